"""Energies of inputs in eight groups of networks, and their uncertainty.

The second moment C_k of a group of networks is a sum of products x y^T, so the energy of an input v
in it is the sum of (x . v)(y . v), without the noise of the networks' inputs. Groups are
independent, so leaving out one at a time (jackknife) gives intervals of any function of mean
energies.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nads_book.statistics import Measured, jackknife
from nads_core.directions import SecondMoment
from nads_core.directions.certainty import FEWEST_NETWORKS, GROUPS

FEWEST_GROUPS = 4  # of 8, that have to hold the energy, so that something is decided
NEGLIGIBLE = 0.05  # relative difference that is not worth a sentence


def differs(found: Measured, other: float) -> bool:
    """Whether an interval leaves out another number, and all within 5 % of it."""
    low, high = found.interval
    return low > (1 + NEGLIGIBLE) * other or high < (1 - NEGLIGIBLE) * other


@dataclass(frozen=True, eq=False)
class Sample:
    """Second moments of groups of networks, C_k = sum of x y^T, whose mean is C.

    Args:
        x: first factors, (n, R, D), R for each of n groups.
        y: second factors, (n, R, D).
        shape: shape of an input.
        num_networks: number of networks in all groups.
    """

    x: Tensor
    y: Tensor
    shape: tuple[int, ...]
    num_networks: int = FEWEST_NETWORKS

    @classmethod
    def of_moment(cls, moment: SecondMoment) -> Sample:
        """Return the groups of a second moment: its matrices, or the vectors of large inputs."""
        shape, count = tuple(moment.image_shape), moment.num_networks
        if not moment.is_large:
            x = (GROUPS * moment.shares()).float()
            return cls(x, torch.eye(x.shape[1]).expand_as(x), shape, count)
        vectors = torch.cat(moment.rows)[: count // GROUPS * GROUPS]  # equal groups
        halves = vectors.unflatten(0, (-1, GROUPS)).transpose(0, 1)  # (8, m, J, R, D)
        x, y = (halves[:, :, half].flatten(1, 2).float() for half in (0, -1))  # (8, m R, D)
        return cls(x / (x.shape[1] * moment.scale**2), y, shape, count)

    @cached_property
    def energies(self) -> np.ndarray:
        """Energy of all directions in each group, tr C_k, (n,)."""
        pairs = zip(self.x, self.y, strict=True)
        return np.array([float((x * y).double().sum()) for x, y in pairs])

    @cached_property
    def decides(self) -> bool:
        """Whether there are enough networks, and no few of them hold the energy: the number of
        groups of equal weight that would, (sum e)^2 / sum e^2, is large enough.
        """
        energies = self.energies.clip(min=0)
        fewest = FEWEST_GROUPS * float(np.square(energies).sum())
        return self.num_networks >= FEWEST_NETWORKS and float(energies.sum()) ** 2 >= fewest

    @property
    def grid(self) -> tuple[int, ...]:
        """Shape of one channel: (H, W) or (L,); (F,) of rows of a table."""
        return self.shape[1:] or self.shape

    def spectra(self) -> np.ndarray:
        """Return each group's energy of each wave of unit norm, summed over channels: (n, *grid).

        Frequencies are in the order of `numpy.fft.fftfreq`. Rows of a table have no waves: energies
        of features.
        """

        def of_waves(*factors: Tensor) -> Tensor:
            x, y = (half.unflatten(1, (-1, *self.grid)) for half in factors)  # (R, C, *grid)
            if len(self.shape) > 1:
                axes = tuple(range(2, x.dim()))
                x, y = (torch.fft.fftn(half, dim=axes, norm="ortho") for half in (x, y))
            return (x.conj() * y).real.sum((0, 1))

        return torch.stack([*map(of_waves, self.x, self.y)]).double().numpy()

    def estimate(
        self, rows: np.ndarray, function: Callable[[np.ndarray], Any], num_compared: int = 1
    ) -> list[Measured]:
        """Estimate functions of mean energies; intervals are infinite where few groups hold the
        energies.

        Args:
            rows: energies in each group, (n, ...).
            function: function of means (...) that returns numbers (k,).
            num_compared: number of intervals that hold together.
        """
        with np.errstate(invalid="ignore", divide="ignore"):  # NaN where there is no such wave
            values, errors = jackknife(lambda chosen: function(rows[chosen].mean(0)), len(rows))
        errors = errors if self.decides else np.full_like(values, np.inf)
        return [
            Measured(value, error, len(rows), num_compared)
            for value, error in zip(values, errors, strict=True)
        ]
