"""A simulated number with the formulas for it, checks that a seed determines, and their table."""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from nads_book.experiments.formatting import fixed, markdown_table, readable

LIMIT = 4.0  # standard errors


@dataclass(frozen=True)
class Check:
    """One simulated number, with the formula for it.

    Args:
        setting: sizes and parameters, in words.
        simulated: result of the simulation.
        standard_error: standard error of ``simulated``; the rounding error of float64 where nothing
            is random.
        formula: value of our formula; for an inequality, its upper bound.
        printed: value of the formula as printed.
        is_bound: whether the statement is simulated <= formula rather than an equality.
    """

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
        if difference and not error:
            return math.copysign(math.inf, difference)
        return difference / error if difference else 0.0

    @property
    def z(self) -> float:
        """Standard errors between the simulation and our formula."""
        return self._z(self.formula)

    @property
    def z_printed(self) -> float:
        """Standard errors between the simulation and the formula as printed."""
        return self._z(self.printed)


def passed(checks: Iterable[Check], *, printed: bool = False) -> bool:
    """Return whether every check stays within 4 standard errors of our formula, or of the printed
    one.
    """
    return all(abs(check.z_printed if printed else check.z) < LIMIT for check in checks)


def worst(checks: Iterable[Check], *, printed: bool = False) -> float:
    """Return the largest absolute z, of our formula or of the printed one."""
    return max(abs(check.z_printed if printed else check.z) for check in checks)


def mean_and_error(samples: Tensor) -> tuple[Tensor, Tensor]:
    """Return the mean over the first dimension and its standard error."""
    return samples.mean(0), samples.std(0) / math.sqrt(len(samples))


CheckFunction = Callable[
    ..., list[Check]
]  # (num_samples=1, *, seed=0): a statement in at least 20 settings


def random_signs(num_samples: int, generator: torch.Generator) -> Tensor:
    """Return labels -1 or +1, (N,) float64."""
    return torch.randint(0, 2, (num_samples,), generator=generator).double() * 2 - 1


def check_function(settings: Callable[[int, torch.Generator], Iterator[Check]]) -> CheckFunction:
    """Turn an iterator over settings, which draws from a generator, into a `CheckFunction`."""

    def check(num_samples: int = 1, *, seed: int = 0) -> list[Check]:
        return list(settings(num_samples, torch.Generator().manual_seed(seed)))

    for name in ("__name__", "__doc__", "__module__"):
        setattr(check, name, getattr(settings, name))
    return check


def table(checks: Iterable[Check]) -> str:
    """Return a Markdown table, one row per check."""
    rows = []
    for c in checks:
        decimals = (
            1 - math.floor(math.log10(c.standard_error)) if c.standard_error > 0 else 16
        )  # that the error leaves
        simulated, error = readable(round(c.simulated, decimals), 4), readable(c.standard_error, 2)
        ours, printed = readable(c.formula, 4), readable(c.printed, 4)
        rows.append(
            (c.setting, simulated, error, ours, readable_z(c.z), printed, readable_z(c.z_printed))
        )
    return markdown_table(
        rows, ("setting", "simulated", "standard error", "our form", "off by", "printed", "off by")
    )


def readable_z(z: float) -> str:
    """Return a number of standard errors as text, without digits beyond 1,000.

    >>> [readable_z(z) for z in (-2.345, -0.01, 7.1e11)]
    ['−2.3', '0.0', 'above 1,000']
    """
    if abs(z) >= 999.95:
        return "above 1,000" if z > 0 else "below −1,000"
    return fixed(z)
