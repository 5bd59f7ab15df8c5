"""What decides a claim: whether it holds, by which number, and from how many trainings."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

    from nads_book.experiments import Results


Estimate = tuple[float, float, float]  # a number with its 95 % interval, or NaN for none
Facts = dict[str, Any]  # arguments of `evidence` that several claims share


@dataclass(frozen=True)
class Evidence:
    """The numbers behind a claim.

    Args:
        holds: whether the numbers support the claim; None where they do not decide it.
        sentence: the claim with its numbers, in Markdown; empty where the page states it elsewhere.
        value: number behind the claim.
        interval: lower and upper end of the interval of the value.
        null: value that an interval must exclude; otherwise the claim is inconclusive.
        size: size of what was measured: a preset, or `theory` for formulas, simulations and counts.
        num_seeds: number of seeds.
        num_trainings: number of trainings.
        sources: results files, relative to the repository.
        answer: verdict on a statement of the paper in words, unless the register has one.
        counterexample: smallest counter-example to a statement, in words.
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
    answer: str = ""
    counterexample: str = ""


def evidence(
    holds: object,
    value: float | None = None,
    *interval: float,
    sentence: str = "",
    null: float | None = None,
    results: Sequence[Results] = (),
    rows: Sequence[Mapping[str, Any]] | pd.DataFrame = (),
    size: str = "theory",
    num_seeds: int | None = None,
    num_trainings: int | None = None,
) -> Evidence:
    """Return the evidence for a claim.

    Args:
        holds: whether the numbers support the claim, of any type that `bool` takes; None where they
            do not decide it.
        value: any number; nan and infinity become None, as in ``interval``.
        *interval: lower and upper end, or nothing: an estimate goes in as ``*estimate``.
        sentence: sentence of the claim; this and the following arguments are those of `Evidence`.
        null: number.
        results: stored results that decide the claim, which give size, seeds, trainings and
            sources.
        rows: rows that decide it, of a study or some of those of ``results``, which give seeds and
            trainings; those of `Results.table` give size and sources as well.
        size: size, where neither gives it.
        num_seeds: number of seeds, where there are neither ``results`` nor ``rows``.
        num_trainings: number of trainings, where there are neither.
    """
    tables = [one.table for one in results]
    if tables:
        num_seeds = max(one["seed"].nunique() for one in tables)
        num_trainings = sum(map(len, tables))
    if len(rows):
        seeds = [row["seed"] for row in rows] if isinstance(rows, Sequence) else rows["seed"]
        num_seeds, num_trainings = len(set(seeds)), len(rows)
    if not isinstance(rows, Sequence) and "file" in rows:
        tables.append(rows)
    if tables:
        presets = [preset for one in tables for preset in one["preset"]]
        size = next((preset for preset in presets if preset != "paper"), "paper")
    return Evidence(
        holds=None if holds is None else bool(holds),
        sentence=sentence,
        value=_finite(value),
        interval=tuple(map(_finite, interval)) or None,
        null=null,
        size=size,
        num_seeds=num_seeds,
        num_trainings=num_trainings,
        sources=tuple(dict.fromkeys(file for one in tables for file in one["file"])),
    )


def above(estimate: Sequence[float], limit: float = 0, **facts: Any) -> Evidence:
    """Decide whether the interval of an estimate, (value, low, high), lies above a limit; see
    `evidence`.
    """
    return evidence(estimate[1] > limit, *estimate, null=limit, **facts)


def below(estimate: Sequence[float], limit: float = 0, **facts: Any) -> Evidence:
    """Decide whether the interval of an estimate lies below a limit."""
    return evidence(estimate[2] < limit, *estimate, null=limit, **facts)


def otherwise(found: Evidence) -> Evidence:
    """Return the evidence for what came instead of a prediction: it holds if the prediction does
    not.
    """
    return found if found.holds is None else replace(found, holds=not found.holds)


def all_met(outcomes: Mapping[str, bool | None], *criteria: str) -> bool | None:
    """Return whether registered criteria are met: False if one failed, None if one of the others is
    open.
    """
    met = [outcomes[name] for name in criteria]
    return False if False in met else None if None in met else True


def around(value: float, half: float) -> Estimate:
    """Return an estimate with its interval from half of its width."""
    return value, value - half, value + half


def exact_share(hits: Sequence[bool] | np.ndarray) -> Estimate:
    """Return a share of few units with its exact 95 % interval (Clopper and Pearson's)."""
    from scipy.special import betaincinv

    count, total = int(sum(hits)), len(hits)
    low, rest = (
        float(betaincinv(of, total - of + 1, 0.025)) if of else 0.0 for of in (count, total - count)
    )
    return count / total, low, 1 - rest


def fitted_slope(x: np.ndarray, y: np.ndarray) -> Estimate:
    """Return the slope of a line through points (n,), by least squares, with Student's 95 %
    interval.
    """
    from scipy.special import stdtrit

    fit, covariance = np.polyfit(x, y, 1, cov=True)
    return around(float(fit[0]), float(stdtrit(len(x) - 2, 0.975) * covariance[0, 0] ** 0.5))


def _finite(number: float | None) -> float | None:
    return None if number is None or not math.isfinite(number) else float(number)
