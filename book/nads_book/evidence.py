"""What decides a claim: whether it holds, by which number, and from how many trainings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nads_book.experiments import Results


@dataclass(frozen=True)
class Evidence:
    """The numbers behind a claim.

    Args:
        holds: whether the numbers support the claim; None where they do not decide it.
        sentence: the claim with its numbers, in Markdown; empty where the page states it elsewhere.
        value: number behind the claim.
        interval: lower and upper end of the interval of the value.
        null: value that an interval must exclude; otherwise the claim is inconclusive.
        size: size of what was measured: a preset; `theory` for formulas, simulations and counts; or `live` for what
            is trained or drawn at once, which decides nothing.
        num_seeds: number of seeds.
        num_trainings: number of trainings.
        sources: results files, relative to the repository.
    """

    holds: bool | None
    sentence: str = ""
    value: float | None = None
    interval: tuple[float | None, ...] | None = None
    null: float | None = None
    size: str = "theory"
    num_seeds: int | None = None
    num_trainings: int | None = None
    sources: tuple[str, ...] = ()


def evidence(
    holds: object,
    sentence: str = "",
    *,
    value: float | None = None,
    interval: Sequence[float] | None = None,
    null: float | None = None,
    results: Sequence[Results] = (),
    size: str = "theory",
    num_seeds: int | None = None,
    num_trainings: int | None = None,
) -> Evidence:
    """Return the evidence for a claim.

    Args:
        holds: whether the numbers support the claim, of any type that `bool` takes; None where they do not decide it.
        sentence: sentence of the claim; this and the following arguments are those of `Evidence`.
        value: any number; nan and infinity become None, as in `interval`.
        interval: two numbers.
        null: number.
        results: stored results that decide the claim, which give size, seeds, trainings and sources.
        size: size, where there are no ``results``.
        num_seeds: number of seeds, where there are no ``results``.
        num_trainings: number of trainings, where there are no ``results``.
    """
    if results:
        size = next((one.preset for one in results if one.preset != "paper"), "paper")
        num_seeds = max(len({row["seed"] for row in one.rows}) for one in results)
        num_trainings = sum(len(one.rows) for one in results)
    return Evidence(
        holds=None if holds is None else bool(holds),
        sentence=sentence,
        value=_finite(value),
        interval=None if interval is None else tuple(map(_finite, interval)),
        null=null,
        size=size,
        num_seeds=num_seeds,
        num_trainings=num_trainings,
        sources=tuple(f"book/results/{one.job}{_ending(one)}.json" for one in results),
    )


def _finite(number: float | None) -> float | None:
    return None if number is None or not math.isfinite(number) else float(number)


def _ending(results: Results) -> str:
    return "" if results.preset == "paper" else f".{results.preset}"
