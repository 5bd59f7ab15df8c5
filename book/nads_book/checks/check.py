"""A simulated number beside the formulas for it, and what many of them say together."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from torch import Tensor

from nads_book.report import readable

LIMIT = 4.0  # standard errors


@dataclass(frozen=True)
class Check:
    """One simulated number beside the formula for it.

    Args:
        statement: which statement of the paper, a key of `errata.STATEMENTS`.
        setting: sizes and parameters, in words.
        simulated: the number that the simulation gave.
        standard_error: of ``simulated``; the rounding error of float64 where nothing is random.
        formula: what our formula gives; for an inequality, its upper bound.
        printed: what the formula as printed gives.
        is_bound: whether the statement is simulated <= formula rather than an equality.
    """

    statement: str
    setting: str
    simulated: float
    standard_error: float
    formula: float
    printed: float
    is_bound: bool = False

    def _z(self, value: float) -> float:
        difference = self.simulated - value
        if self.is_bound:
            difference = max(difference, 0.0)
        error = max(self.standard_error, 1e-12 * abs(self.simulated))
        return 0.0 if difference == 0 else difference / error if error else math.copysign(math.inf, difference)

    @property
    def z(self) -> float:
        """Standard errors between the simulation and our formula."""
        return self._z(self.formula)

    @property
    def z_printed(self) -> float:
        """Standard errors between the simulation and the formula as printed."""
        return self._z(self.printed)


def passed(checks: Iterable[Check], *, printed: bool = False) -> bool:
    """Return whether every check stays within 4 standard errors of our formula, or of the printed one."""
    return all(abs(check.z_printed if printed else check.z) < LIMIT for check in checks)


def worst(checks: Iterable[Check], *, printed: bool = False) -> float:
    """Return the largest absolute z, of our formula or of the printed one."""
    return max(abs(check.z_printed if printed else check.z) for check in checks)


def table(checks: Iterable[Check]) -> str:
    """Return a Markdown table, one row a check."""
    rows = ["| setting | simulated | standard error | ours | z | printed | z |", "|---|---|---|---|---|---|---|"]
    for c in checks:
        decimals = 1 - math.floor(math.log10(c.standard_error)) if c.standard_error > 0 else 16  # what the error leaves
        simulated, error = readable(round(c.simulated, decimals), 4), readable(c.standard_error, 2)
        ours, printed = readable(c.formula, 4), readable(c.printed, 4)
        numbers = (simulated, error, ours, readable_z(c.z), printed, readable_z(c.z_printed))
        rows.append(f"| {c.setting} | " + " | ".join(numbers) + " |")
    return "\n".join(rows)


def readable_z(z: float) -> str:
    """Write a number of standard errors; where it is past 1,000, how far past says nothing.

    >>> [readable_z(z) for z in (-2.345, -0.01, 7.1e11)]
    ['−2.3', '0.0', 'above 1,000']
    """
    if abs(z) >= 999.95:
        return "above 1,000" if z > 0 else "below −1,000"
    return f"{round(z, 1) + 0.0:.1f}".replace("-", "−")


def mean_and_error(samples: Tensor) -> tuple[Tensor, Tensor]:
    """Return the mean over the first dimension and its standard error."""
    return samples.mean(0), samples.std(0) / math.sqrt(len(samples))
