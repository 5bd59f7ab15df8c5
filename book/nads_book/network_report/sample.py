"""Input gradients of a sample of networks, energies of inputs in them, and their uncertainty.

Each network has two independent estimates x and y of its smoothed gradient g, so (x . v)(y . v) is
an unbiased estimate of its energy (g . v)^2 along an input v. Networks are independent, so leaving
out one at a time (jackknife) gives intervals of any function of mean energies.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from nads_book.atlas.measures import Measured, across, jackknife
from nads_core.directions import NADs
from nads_core.directions.accumulation import read_checkpoint
from nads_core.directions.moments import HalfSamples

FINE = 0.25  # cycles per pixel, from which on a wave is fine: shorter than four pixels
FEWEST_NETWORKS = 16  # below which nothing is decided: leaving out one moves ratios too far
_EDGES = (0, *(2.0**k / 256 for k in range(3)), *(k / 32 for k in range(1, 17)), 1)  # of rings
_CHUNK = 2**24  # numbers that are transformed at a time
_KNOWN_RANKS = 64  # whose errors stand for those of all energies
_COMPARED = 128  # networks whose second moments are multiplied


@dataclass(frozen=True, eq=False)
class Sample:
    """Two estimates of the smoothed gradient of each network.

    Args:
        x: first estimates, (n, R, D), for each of R last layers.
        y: second estimates, (n, R, D).
        shape: shape of an input.
        relative_error: relative standard error of an energy where x and y are no networks but
            scaled NADs; None for networks, which are left out one at a time.
        unmeasured: (n,), the NADs whose eigenvalue is not measured but the floor of a shrunk
            estimate; None for networks.
    """

    x: Tensor
    y: Tensor
    shape: tuple[int, ...]
    relative_error: float | None = None
    unmeasured: np.ndarray | None = None

    @classmethod
    def of_checkpoint(cls, path: str | os.PathLike[str]) -> Sample:
        """Return the first networks of a run of `compute_nads`, at most 512."""
        saved, first = read_checkpoint(Path(path)), HalfSamples()
        first.load_state_dict(saved["first_networks"])
        halves = first.halves()  # (n, R, 2, D)
        return cls(halves[:, :, 0], halves[:, :, 1], tuple(saved["description"]["image_shape"]))

    @classmethod
    def of_nads(cls, nads: NADs) -> Sample:
        """Return vectors whose second moment is that of NADs, where there are no networks.

        The relative error of an energy is then that of the leading eigenvalues, root mean square,
        and in addition the share that eigenvalues without a measurement have in it.
        """
        values = nads.eigenvalues.double().clamp(min=0)
        rows = ((len(nads) * values).sqrt()[:, None] * nads.basis.T.double())[:, None].float()
        errors = torch.full_like(values, float("nan"))
        if nads.uncertainty is not None:
            errors = nads.eigenvalue_std.double()
        unmeasured = errors.isnan()
        leading = (~unmeasured).nonzero()[:_KNOWN_RANKS, 0]
        error = float(errors[leading].norm() / values[leading].norm()) if len(leading) else 1.0
        shape = tuple(nads.directions.shape[1:])
        return cls(rows, rows, shape, error, unmeasured.numpy())

    def __len__(self) -> int:
        return len(self.x)

    @property
    def grid(self) -> tuple[int, ...]:
        """Shape of one channel: (H, W) or (L,); (F,) of rows of a table."""
        return self.shape[1:] or self.shape

    def _chunks(self) -> Iterator[tuple[Tensor, Tensor]]:
        size = max(1, _CHUNK // self.x[0].numel())
        shape = (-1, self.x.shape[1], *(self.shape if len(self.shape) > 1 else (1, *self.shape)))
        for x, y in zip(self.x.split(size), self.y.split(size), strict=True):
            yield x.reshape(shape).float(), y.reshape(shape).float()  # (b, R, C, *grid)

    def spectra(self) -> np.ndarray:
        """Return each network's energy of each wave of unit norm, summed over channels: (n, *grid).

        Frequencies are in the order of `numpy.fft.fftfreq`. Rows of a table have no waves: energies
        of features.
        """
        if len(self.shape) == 1:
            return (self.x * self.y).mean(1).double().numpy()
        parts, axes = [], tuple(range(3, 3 + len(self.grid)))
        for x, y in self._chunks():
            first, second = (torch.fft.fftn(half, dim=axes, norm="ortho") for half in (x, y))
            parts.append((first.conj() * second).real.mean(1).sum(1))
        return torch.cat(parts).double().numpy()

    def channels(self) -> np.ndarray:
        """Return each network's energy in each channel, and in their mean image: (n, C + 1)."""
        parts = []
        for x, y in self._chunks():
            x, y = x.flatten(3), y.flatten(3)  # (b, R, C, P)
            common = (x.sum(2) * y.sum(2)).sum(2, keepdim=True) / x.shape[2]  # (b, R, 1)
            parts.append(torch.cat([(x * y).sum(3), common], dim=2).mean(1))
        return torch.cat(parts).double().numpy()

    def estimate(
        self, rows: np.ndarray, function: Callable[[np.ndarray], np.ndarray]
    ) -> list[Measured]:
        """Estimate functions of mean energies, with standard errors: infinite for few networks.

        Args:
            rows: energies of each network, (n, m).
            function: function of means (..., m) that returns numbers (..., k).
        """
        count, total = len(rows), rows.sum(0)
        with np.errstate(invalid="ignore", divide="ignore"):  # NaN where there is no such wave
            values = function(total / count)
            if self.unmeasured is not None:  # each energy is moved by its error, one at a time
                error = self.relative_error + rows[self.unmeasured].sum(0) / total
                changes = (
                    function(np.where(total, (1 + np.diag(error)) * total, 0) / count) - values
                )
                errors = np.sqrt(np.square(changes).sum(0))
            else:
                left_out = function((total - rows) / (count - 1))  # (n, k)
                errors = np.sqrt((count - 1) * left_out.var(0))
                if count < FEWEST_NETWORKS:
                    errors = np.full_like(errors, np.inf)
        return [Measured(float(v), float(e), count) for v, e in zip(values, errors, strict=True)]

    def effective_directions(self) -> Measured:
        """Estimate (tr C)^2 / tr C^2, the number of directions that count, without bias in each."""
        x, y = (half[:_COMPARED].float() for half in (self.x, self.y))
        count, readouts = x.shape[:2]
        xx, yy, xy = (
            a.flatten(0, 1) @ b.flatten(0, 1).T for a, b in ((x, x), (y, y), (x, y))
        )  # <Z_i, Z_j> = ((x_i . x_j)(y_i . y_j) + (x_i . y_j)(y_i . x_j)) / 2
        pairs = (xx * yy + xy * xy.T).double() / 2
        gram = pairs.view(count, readouts, count, readouts).mean((1, 3)).numpy()
        traces = (x * y).sum(2).mean(1).double().numpy()
        squares = np.outer(traces, traces)
        return jackknife(
            lambda part: across(squares[np.ix_(part, part)]) / across(gram[np.ix_(part, part)]),
            count,
        )


def radii(grid: tuple[int, ...]) -> np.ndarray:
    """Return the frequency of each wave in cycles per pixel, in the order of `Sample.spectra`."""
    squares = np.zeros(grid)
    for axis, size in enumerate(grid):
        squares += (
            np.fft.fftfreq(size).reshape([-1 if i == axis else 1 for i in range(len(grid))]) ** 2
        )
    return np.sqrt(squares)


def rings(grid: tuple[int, ...]) -> np.ndarray:
    """Return the number of the ring of frequencies to which each wave belongs: 0 for the constant.

    >>> rings((8,)).tolist()
    [0, 7, 11, 15, 19, 15, 11, 7]
    """
    return np.searchsorted(_EDGES, radii(grid) - 1e-9)


def ring_centres(numbers: np.ndarray) -> np.ndarray:
    """Return the middle frequency of rings, in cycles per pixel."""
    edges = np.array([0.0, *_EDGES[:-1], 0.5**0.5])
    return (edges[numbers] + edges[numbers + 1]) / 2


def profile(spectra: np.ndarray, grid: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of the rings (k,), and the mean energy of a wave in each (..., k)."""
    ring = rings(grid).ravel()
    numbers, counts = np.unique(ring, return_counts=True)
    members = (ring[:, None] == numbers) / counts  # (waves, k)
    return numbers, spectra.reshape(*spectra.shape[: -len(grid)], -1) @ members
