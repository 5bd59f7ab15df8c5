"""A statement of the paper, the table that compares it with simulations, and the verdict on it.

A table has one row per setting: the simulated number with its standard error, and the value of the
statement in our form and as printed. An equality holds where both differ by less than 4 standard
errors (``|z| < LIMIT``), a bound where the simulated number exceeds it by less.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from nads_book.experiments import formatting
from nads_book.experiments.evidence import Evidence
from nads_book.experiments.formatting import fixed, readable

LIMIT = 4.0  # standard errors
FORMS = ("ours", "printed")
Row = tuple[Any, ...]  # setting, simulated, error, ours, printed
Settings = Callable[[int, torch.Generator], Iterator[Row]]


@dataclass(frozen=True)
class Statement:
    """One statement of the paper, in one reading.

    Args:
        title: number in the paper, and the reading.
        settings: function of a number of samples and a generator, which simulates the statement in
            at least 20 settings.
        example: the smallest counter-example to the printed form, in words, up to its two numbers;
            "" where there is no counter-example.
        numbers: function that computes the right number for the example, and the printed one.
        otherwise: verdict if the simulations contradict the printed form but not ours.
        is_printed: whether the main text prints the statement at all.
        is_exact: whether the paper states it as exact; an approximation that it announces is not
            falsified.
        is_random: whether the settings draw samples of a random quantity; otherwise only rounding
            errors remain.
        is_bound: whether the statement is an upper bound rather than an equality.
    """

    title: str
    settings: Settings
    example: str = ""
    numbers: Callable[[], Sequence[Tensor]] | None = None
    otherwise: str = "holds with a changed constant"
    is_printed: bool = True
    is_exact: bool = True
    is_random: bool = True
    is_bound: bool = False

    def compare(self, rows: Iterable[Row] | pd.DataFrame) -> pd.DataFrame:
        """Return rows as a table, with the distances of both forms in standard errors."""
        table = pd.DataFrame(rows, columns=["setting", "simulated", "error", *FORMS])
        error = np.maximum(table["error"], 1e-12 * table["simulated"].abs())
        for form in FORMS:
            difference = table["simulated"] - table[form]
            if self.is_bound:
                difference = difference.clip(lower=0)
            table[f"z {form}"] = (difference / error).where(difference != 0, 0.0)
        return table

    def verdict(self, table: pd.DataFrame) -> str:
        """Return the outcome of the simulations in words."""
        if not holds(table, "ours"):
            return "not settled: the simulation contradicts our form too"
        if not self.is_printed:
            return "not in the main text; our form is confirmed"
        return "holds as printed" if holds(table, "printed") else self.otherwise

    def measured(self, table: pd.DataFrame) -> str:
        """Return the number of settings, and how far both forms are from the simulation."""
        text, z = f"{len(table)} settings; ", _distances(table)
        if self.is_bound:
            ours, printed = (z >= LIMIT).sum()
            return f"{text}our bound is exceeded in {ours}, the printed one in {printed}."
        if not self.is_random:
            ours, printed = (
                readable((table["simulated"] - table[form]).abs().max()) for form in FORMS
            )
            return (
                f"{text}the output differs by at most {ours} from our form and by {printed} from "
                f"the printed one. Rounding errors are below "
                f"{readable(LIMIT * table['error'].max())}."
            )
        ours, printed = (fixed(one) if one < 999.95 else "above 1,000" for one in z.max())
        more = f", the printed one {printed}" if self.is_printed else ""
        return f"{text}our form is off by at most {ours} standard errors{more}."

    def counterexample(self) -> str:
        """Return the counter-example with its numbers, which are computed, or "none"."""
        if not self.example or self.numbers is None:
            return "none"
        ours, printed = (readable(float(number), 3) for number in self.numbers())
        return f"{self.example} {ours}; printed {printed}"


STATEMENTS: dict[str, Statement] = {}  # "lemma1" -> Lemma 1, whose claim is "errata-lemma1"


def statement(key: str, title: str, *example: Any, **facts: Any) -> Callable[[Settings], None]:
    """Register the settings of a statement; the other arguments are those of `Statement`."""

    def register(settings: Settings) -> None:
        STATEMENTS[key] = Statement(title, settings, *example, **facts)

    return register


def holds(table: pd.DataFrame, form: str) -> bool:
    """Return whether one of `FORMS` agrees with the simulation in every setting."""
    return bool((_distances(table)[f"z {form}"] < LIMIT).all())


def _distances(table: pd.DataFrame) -> pd.DataFrame:
    return table[[f"z {form}" for form in FORMS]].abs()


@cache
def simulate(key: str) -> pd.DataFrame:
    """Return the table of all settings of a statement."""
    one, generator = STATEMENTS[key], torch.Generator().manual_seed(0)
    return one.compare(one.settings(10_000 if one.is_random else 1, generator))


def decide(key: str) -> Evidence:
    """Return the evidence for a statement as printed, or for ours where none is printed."""
    one, table = STATEMENTS[key], simulate(key)
    as_stated = holds(table, "printed" if one.is_printed else "ours")
    return Evidence(
        (as_stated or (False if one.is_exact else None)) if holds(table, "ours") else None,
        one.measured(table),
        answer=one.verdict(table),
        counterexample=one.counterexample(),
    )


def show_verdicts(*keys: str) -> None:
    """Display the verdicts on some of `STATEMENTS`, and hand them to the errata page."""
    rows = []
    for key in keys:
        one, table = STATEMENTS[key], simulate(key)
        formatting.publish(f"errata-{key}")
        rows.append((one.title, f"**{one.verdict(table)}**", one.measured(table)))
    formatting.table(rows, ("statement of the paper", "verdict", "evidence"))


def mean_and_error(samples: Tensor) -> tuple[Tensor, Tensor]:
    """Return the mean over the first dimension and its standard error."""
    return samples.mean(0), samples.std(0) / math.sqrt(len(samples))


def random_signs(num_samples: int, generator: torch.Generator) -> Tensor:
    """Return labels -1 or +1, (N,) float64."""
    return torch.randint(0, 2, (num_samples,), generator=generator).double() * 2 - 1
