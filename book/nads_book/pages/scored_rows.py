"""Rows of a study and what its registered rule says of them, loaded and scored once."""

from functools import cache

from nads_book.experiments.stored import load_study
from nads_book.experiments.study import Evidence, Row
from nads_book.experiments.study_files import FileStudy
from nads_book.studies import experiment


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
