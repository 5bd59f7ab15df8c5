"""What became of registered predictions, as tables of the lab notes."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from nads_book.experiments.stored import load_study
from nads_book.experiments.study import Evidence, Row
from nads_book.experiments.study_files import FileStudy
from nads_book.report import markdown_table
from nads_book.studies import experiment

MARKS = {True: "met", False: "**failed**", None: "open"}


@cache
def rows_of(name: str) -> list[Row]:
    """Return the stored rows of a study.

    Raises:
        FileNotFoundError: if there are none.
    """
    study: FileStudy = experiment(name)
    rows: list[Row] = load_study(study.file)["rows"]
    return rows


@cache
def scored(name: str) -> Evidence:
    """Return what the registered rule of a study says about its stored rows."""
    found: Evidence = experiment(name).score(rows_of(name))
    return found


def table_of_outcomes(name: str) -> str:
    """Return the registered criteria of a study, all of which were expected to be met."""
    study = experiment(name)
    left = len(study.missing(rows_of(name)))
    rows = [[criterion, MARKS[met]] for criterion, met in scored(name).met.items()]
    if left:
        rows.append([f"{left} of {len(study.units())} units are left: nads-book run {name}", ""])
    return markdown_table(rows, ["registered prediction", "outcome"])


def estimates(name: str, wanted: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Return estimates of a study by group and name, those that there are."""
    found = scored(name).estimates
    return {
        group: {key: found[group][key] for key in keys if key in found[group]}
        for group, keys in wanted.items()
        if group in found
    }
