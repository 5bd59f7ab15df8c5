"""Rows of a study and what its registered rule says of them, loaded and scored once."""

from collections.abc import Sequence
from functools import cache
from typing import Any

import pandas as pd

from nads_book.experiments import Row, Scored, evidence, load_study
from nads_book.studies import experiment


@cache
def rows_of(name: str) -> list[Row]:
    """Return the stored rows of a study.

    Raises:
        FileNotFoundError: if there are none.
    """
    rows: list[Row] = load_study(f"{name}.json")["rows"]
    return rows


@cache
def table_of(name: str) -> pd.DataFrame:
    """Return the stored rows of a study as a table."""
    return pd.DataFrame(rows_of(name))


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
