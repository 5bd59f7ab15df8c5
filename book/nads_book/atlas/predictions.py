"""Predictions about the atlas, made before it was computed, and their outcomes."""

from dataclasses import dataclass

import numpy as np

from nads_book.atlas.measures import MEASURES, Measured
from nads_book.atlas.stored import Atlas
from nads_book.experiments import load_study

_ABOUT = 0.05  # how far "about" reaches: a share of the other value, or a distance from zero


@dataclass(frozen=True)
class Prediction:
    """One sentence of the committed file.

    Args:
        entry: name of the entry that is predicted.
        measure: key of `MEASURES`; None where theory predicts nothing.
        because: reason for the prediction.
        relation: "less", "greater" or "about".
        than: another entry, or a number.
        chapter: source of the reason; "symmetry" if it is in no chapter.
    """

    entry: str
    measure: str | None
    because: str
    relation: str = ""
    than: str | float = 0.0
    chapter: str = ""

    def __str__(self) -> str:
        if self.measure is None:
            return "nothing"
        words = {"less": "less than", "greater": "more than", "about": "about"}[self.relation]
        return (
            f"{MEASURES[self.measure]} {words} "
            f"{self.than if isinstance(self.than, str) else f'{self.than:g}'}"
        )


def predictions() -> list[Prediction]:
    """Return all of them, in the order in which they were written."""
    return [Prediction(**row) for row in load_study("atlas-predictions.json")["predictions"]]


@dataclass(frozen=True)
class Score:
    """The outcome of a prediction.

    Args:
        found: the measure of the entry.
        other: the measure that it was compared with.
        verdict: "held" or "failed" if the whole 95 % interval of the difference does, "open"
            otherwise.
    """

    found: Measured
    other: Measured
    verdict: str


def score(prediction: Prediction, atlas: Atlas) -> Score | None:
    """Compare a prediction with the measurement; None where nothing was predicted."""
    if prediction.measure is None:
        return None
    measured = atlas.measures[prediction.entry][prediction.measure]
    if isinstance(prediction.than, str):
        other = atlas.measures[prediction.than][prediction.measure]
    else:
        other = Measured(float(prediction.than), 0.0, measured.num_parts)
    low, high = Measured(
        measured.value - other.value,
        float(np.hypot(measured.error, other.error)),
        measured.num_parts,
    ).interval
    reach = _ABOUT * abs(other.value) or _ABOUT
    if prediction.relation == "about":
        held, failed = -reach < low and high < reach, low > reach or high < -reach
    else:
        held, failed = (high < 0, low > 0) if prediction.relation == "less" else (low > 0, high < 0)
    return Score(measured, other, "held" if held else "failed" if failed else "open")
