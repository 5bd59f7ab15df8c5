"""Energies of inputs in eight groups of networks, and their uncertainty.

The second moment C_k of a group of networks is a sum of products x y^T, so the energy of an input v
in it is the sum of (x . v)(y . v), without the noise of the networks' inputs. Groups are
independent, so leaving out one at a time (jackknife) gives intervals of any function of mean
energies.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from scipy.stats import t
from torch import Tensor

from nads_book.report import estimate, readable
from nads_core.directions import NADs, SecondMoment
from nads_core.directions.certainty import FEWEST_NETWORKS, GROUPS

FEWEST_GROUPS = 4  # of 8, that have to hold the energy, so that something is decided
NEGLIGIBLE = 0.05  # relative difference that is not worth a sentence
_KNOWN_RANKS = 64  # whose errors stand for those of all energies


class Estimate(NamedTuple):
    """A number with the ends of its 95 % interval."""

    value: float
    low: float
    high: float

    @classmethod
    def student(cls, value: float, error: float, parts: float, num_compared: int = 1) -> Estimate:
        """Return a number with Student's interval.

        Args:
            value: the number.
            error: standard error of the number, from leaving out parts.
            parts: number of parts.
            num_compared: number of such intervals that hold together (Bonferroni).
        """
        half = t.ppf(1 - 0.025 / num_compared, max(1, parts - 1)) * error
        return cls(float(value), float(value - half), float(value + half))

    def differs_from(self, other: float) -> bool:
        """Whether the interval leaves out another number, and all within 5 % of it."""
        return self.low > (1 + NEGLIGIBLE) * other or self.high < (1 - NEGLIGIBLE) * other

    def map(self, function: Callable[[float], float]) -> Estimate:
        """Return an increasing function of the number and of its interval."""
        return Estimate(*map(function, self))

    @property
    def percent(self) -> str:
        """The share in percent, such as "12 % (11 to 13)"."""
        return str(self.map(lambda share: 100 * share)).replace(" (", " % (")

    def __str__(self) -> str:
        """Return the number and its interval with as many digits as the interval deserves."""
        digits, relative = 2, (self.high - self.low) / 2 / max(abs(self.value), 1e-300)
        if 0 < relative < 1:
            digits = min(4, 2 + math.floor(-math.log10(relative)))
        size = math.floor(math.log10(max(abs(self.value), 1e-300)))
        decimals = digits - 1 - size
        low, high = outwards(self.low, decimals, up=False), outwards(self.high, decimals, up=True)
        if -3 <= size < 5 and math.isfinite(high):
            return estimate((self.value, low, high), max(0, decimals))
        return f"{readable(self.value, digits)} ({readable(low, 12)} to {readable(high, 12)})"


def outwards(limit: float, decimals: int, up: bool) -> float:
    """Round a limit away from what it limits, so that the rounded one holds, too.

    Args:
        limit: number, or infinity.
        decimals: number of decimals; negative before the point.
        up: whether it is an upper limit.
    """
    if not math.isfinite(limit):
        return limit
    scaled = limit * 10.0**decimals
    if abs(scaled - round(scaled)) > 1e-6:  # otherwise it is round, but for float arithmetic
        scaled = math.ceil(scaled) if up else math.floor(scaled)
    return round(scaled) / 10.0**decimals


@dataclass(frozen=True, eq=False)
class Sample:
    """Second moments of groups of networks, C_k = sum of x y^T, whose mean is C.

    Args:
        x: first factors, (n, R, D), R for each of n groups.
        y: second factors, (n, R, D).
        shape: shape of an input.
        relative_errors: relative standard error of the energy in each row, (n,), where x and y are
            no groups but scaled NADs; None for groups, which are left out one at a time.
        num_networks: number of networks in all groups.
    """

    x: Tensor
    y: Tensor
    shape: tuple[int, ...]
    relative_errors: np.ndarray | None = None
    num_networks: int = FEWEST_NETWORKS

    @classmethod
    def of_moment(cls, moment: SecondMoment) -> Sample:
        """Return the groups of a second moment: its matrices, or the vectors of large inputs."""
        shape, count = tuple(moment.image_shape), moment.num_networks
        if not moment.is_large:
            x = (GROUPS * moment.shares()).float()
            return cls(x, torch.eye(x.shape[1]).expand_as(x), shape, None, count)
        vectors = torch.cat(moment.rows)[: count // GROUPS * GROUPS]  # equal groups
        halves = vectors.unflatten(0, (-1, GROUPS)).transpose(0, 1)  # (8, m, J, R, D)
        x, y = (halves[:, :, half].flatten(1, 2).float() for half in (0, -1))  # (8, m R, D)
        return cls(x / (x.shape[1] * moment.scale**2), y, shape, None, count)

    @classmethod
    def of_nads(cls, nads: NADs) -> Sample:
        """Return vectors whose second moment is that of NADs, where there are no networks.

        The relative error of an energy is then that of the leading eigenvalues, root mean square.
        An eigenvalue whose error is not known has 1 in addition.
        """
        values, errors = nads.eigenvalues.double().clamp(min=0), nads.eigenvalue_std.double()
        rows = ((len(nads) * values).sqrt()[:, None] * nads.basis.T.double())[:, None].float()
        leading = errors.isfinite().nonzero()[:_KNOWN_RANKS]
        known = len(leading) > 0  # else nothing is known of any energy
        relative = float(errors[leading].norm() / values[leading].norm()) if known else math.inf
        return cls(rows, rows, tuple(nads.directions.shape[1:]), relative + errors.isnan().numpy())

    def __len__(self) -> int:
        return len(self.x)

    @cached_property
    def num_effective(self) -> float:
        """Number of groups of equal weight that hold the energy, (sum e)^2 / sum e^2."""
        energies = self.energies.clip(min=0)
        squares = float(np.square(energies).sum())
        return float(energies.sum()) ** 2 / squares if squares else float(len(self))

    @cached_property
    def energies(self) -> np.ndarray:
        """Energy of all directions in each group, tr C_k, (n,)."""
        return np.array(
            [float((x * y).double().sum()) for x, y in zip(self.x, self.y, strict=True)]
        )

    @property
    def grid(self) -> tuple[int, ...]:
        """Shape of one channel: (H, W) or (L,); (F,) of rows of a table."""
        return self.shape[1:] or self.shape

    def _energies(self, function: Callable[[Tensor, Tensor], Tensor]) -> np.ndarray:
        """Return a function of the factors (R, C, *grid) of each group, summed over R."""
        x, y = (half.unflatten(2, (-1, *self.grid)) for half in (self.x, self.y))
        return torch.stack([*map(function, x, y)]).double().numpy()

    def spectra(self) -> np.ndarray:
        """Return each group's energy of each wave of unit norm, summed over channels: (n, *grid).

        Frequencies are in the order of `numpy.fft.fftfreq`. Rows of a table have no waves: energies
        of features.
        """

        def of_waves(x: Tensor, y: Tensor) -> Tensor:
            if len(self.shape) > 1:
                axes = tuple(range(2, x.dim()))
                x, y = (torch.fft.fftn(half, dim=axes, norm="ortho") for half in (x, y))
            return (x.conj() * y).real.sum((0, 1))

        return self._energies(of_waves)

    def channels(self) -> np.ndarray:
        """Return each group's energy in each channel, and in their mean image: (n, C + 1)."""

        def of_channels(x: Tensor, y: Tensor) -> Tensor:
            x, y = x.flatten(2), y.flatten(2)  # (R, C, P)
            common = (x.sum(1) * y.sum(1)).sum(1, keepdim=True) / x.shape[1]  # (R, 1)
            return torch.cat([(x * y).sum(2), common], dim=1).sum(0)

        return self._energies(of_channels)

    @property
    def decides(self) -> bool:
        """Whether there are enough networks, and no few of them hold the energy."""
        return self.num_networks >= FEWEST_NETWORKS and self.num_effective >= FEWEST_GROUPS

    def estimate(
        self, rows: np.ndarray, function: Callable[[np.ndarray], np.ndarray], num_compared: int = 1
    ) -> list[Estimate]:
        """Estimate functions of mean energies; intervals are infinite where few groups hold the
        energies.

        Args:
            rows: energies in each group, (n, m).
            function: function of means (..., m) that returns numbers (..., k).
            num_compared: number of intervals that hold together.
        """
        return [
            Estimate.student(value, error, len(rows), num_compared)
            for value, error in zip(*self.errors(rows, function), strict=True)
        ]

    def errors(
        self, rows: np.ndarray, function: Callable[[np.ndarray], np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return functions of mean energies and their standard errors, (k,) each, as `estimate`."""
        count, total = len(rows), rows.sum(0)
        with np.errstate(invalid="ignore", divide="ignore"):  # NaN where there is no such wave
            values = function(total / count)
            if self.relative_errors is not None:  # each energy is moved by its error, one at a time
                moved = (total + np.diag(self.relative_errors @ rows)) / count
                return values, np.sqrt(np.square(function(moved) - values).sum(0))
            if not self.decides:
                return values, np.full_like(values, np.inf)
            left_out = function((total - rows) / (count - 1))  # (n, k)
            return values, np.sqrt((count - 1) * left_out.var(0))
