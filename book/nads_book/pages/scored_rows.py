"""What the registered rule of a study says of its stored rows, scored once."""

from collections.abc import Sequence
from functools import cache
from typing import Any

from nads_book.experiments import Row, Scored, evidence, rows_of
from nads_book.studies import experiment


@cache
def scored(name: str) -> Scored:
    """Return what the registered rule of a study says about its stored rows."""
    found: Scored = experiment(name).score(rows_of(name))
    return found


def registered(
    name: str,
    criteria: Sequence[str],
    estimate: Sequence[float] = (),
    rows: Sequence[Row] = (),
    **facts: Any,
) -> evidence.Evidence:
    """Decide by registered criteria of a study, and show an estimate with its interval.

    Args:
        name: name of the study.
        criteria: criteria that must all be met.
        estimate: value, lower and upper end; empty where it is not known yet.
        rows: trainings that are used, to be counted; none for what is no training.
        **facts: other arguments of `evidence`; the size is "laptop" by default.
    """
    holds = evidence.all_met(scored(name).met, *criteria)
    return evidence.evidence(holds, *estimate, rows=rows, **{"size": "laptop"} | facts)
