"""The bulk: the part of the space in which no direction was found, and what it does to those that
were.

Source: the spiked covariance model (Paul, *Asymptotics of sample eigenstructure for a large
dimensional spiked covariance model*, Statistica Sinica 2007, theorems 1, 2 and 4). A bulk of
dimension m has C's mean eigenvalue b and inputs' noise of variance w. Seen through N networks, it
adds to every direction the energy

    beta = m (b + w) / N.

A direction whose level exceeds b by the gap g, with noise w_j, shows if g exceeds the edge e, and
then

    e^2 = beta (b + w_j),      eigenvalue = b + g + beta + e^2 / g,
    squared cosine with the space of the eigenpairs = (1 - e^2 / g^2) / (1 + beta / g).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

_SMALLEST_GAP = 1e-300  # avoids a division by zero


def count_before(found: Tensor) -> int:
    """Return how many values (k,) stand before the first that is true; k if none is."""
    return int((~found).cumprod(0).sum())


@dataclass(frozen=True)
class BulkSpectrum:
    """Spectrum of the part of the space in which no direction was found.

    Args:
        dimension: dimension of that part, m.
        level: mean of C's eigenvalues there, b.
        noise: mean variance of the inputs' noise there, w.
    """

    dimension: int = 0
    level: float = 0.0
    noise: float = 0.0

    def shrink(self, levels: Tensor, noise: Tensor, num_networks: float) -> tuple[Tensor, Tensor]:
        """Return what the bulk does to directions of these levels.

        Args:
            levels: (k,), of C without the bulk.
            noise: (k,), of the inputs along the directions.
            num_networks: N, times the vectors over which the share of each is a mean.

        Returns:
            Squared cosines (k,) of the eigenvectors with the space of the eigenpairs, 0 below the
            edge; and shifts (k,) of the eigenvalues.
        """
        edge, energy = self._edge(noise, num_networks)
        gaps = torch.maximum(levels - self.level, edge).clamp(min=_SMALLEST_GAP)
        # (1 - e^2 / g^2) / (1 + beta / g)
        retained = (1 - (edge / gaps).square()) / (1 + energy / gaps)
        # beta + e^2 / g
        shift = energy + edge.square() / gaps
        return retained.clamp(min=0), shift

    def detected(self, values: Tensor, noise: Tensor, num_networks: float) -> int:
        """Return how many of the first eigenvalues (k,) exceed what the bulk alone gives: b + beta
        + 2 e.
        """
        edge, energy = self._edge(noise, num_networks)
        return count_before(values <= self.level + energy + 2 * edge)

    def invert_shrinkage(self, values: Tensor, noise: Tensor, num_networks: float) -> Tensor:
        """Return the levels (k,) that the bulk shifts to these values (k,).

        From b + g + beta + e^2 / g = value follows g^2 - 2 h g + e^2 = 0 with 2 h = value - b -
        beta. Values that the bulk itself explains stay as they are.
        """
        edge, energy = self._edge(noise, num_networks)
        half = (values - self.level - energy) / 2
        root = (half.square() - edge.square()).clamp(min=0).sqrt()
        gaps = (half + root).clamp(min=0)
        return torch.where(values > self.level, self.level + gaps, values)

    def _edge(self, noise: Tensor, num_networks: float) -> tuple[Tensor, float]:
        """Return e (k,), the gaps below which nothing shows, and beta."""
        energy = self.dimension / num_networks * (self.level + self.noise)
        return (energy * (self.level + noise)).clamp(min=0).sqrt(), energy
