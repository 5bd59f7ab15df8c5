"""Predictions about the atlas, registered before it was computed, and their outcomes."""

import numpy as np
import pandas as pd

from nads_book.atlas.stored import Atlas
from nads_book.experiments import load_study
from nads_book.statistics import Measured

_ABOUT = 0.05  # how far "about" reaches: a share of the other value, or a distance from zero


def judged(atlas: Atlas) -> pd.DataFrame:
    """Return the registered predictions with their verdicts, without those that predict nothing.

    A row has an entry, a key of `MEASURES`, and a relation ("less", "greater" or "about") to
    another entry or a number; the reason; and the verdict, see `verdict`.
    """
    rows = pd.DataFrame(load_study("atlas-predictions.json")["predictions"])
    rows = rows.dropna(subset="measure")
    columns = ["entry", "measure", "relation", "than"]
    found = [verdict(atlas, *row) for row in rows[columns].itertuples(index=False)]
    return rows.assign(verdict=found)


def verdict(atlas: Atlas, entry: str, measure: str, relation: str, than: str | float) -> str:
    """Return "held" or "failed" if the whole 95 % interval of the difference does, else "open"."""
    own = atlas.measures[entry][measure]
    if isinstance(than, str):
        other = atlas.measures[than][measure]
    else:
        other = Measured(than, 0.0, own.num_parts)
    error = float(np.hypot(own.error, other.error))
    low, high = Measured(own.value - other.value, error, own.num_parts).interval
    reach = _ABOUT * abs(other.value) or _ABOUT
    if relation == "about":
        held, failed = -reach < low and high < reach, low > reach or high < -reach
    else:
        held, failed = (high < 0, low > 0) if relation == "less" else (low > 0, high < 0)
    return "held" if held else "failed" if failed else "open"
