"""One registered prediction beside the result."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nads_book.evidence import Estimate
from nads_book.report import estimate, readable

INFINITE = math.inf


def in_words(name: str) -> Any:
    """Return what a registration states in its text only, from ``ranges.toml``."""
    return tomllib.loads(Path(__file__).with_name("ranges.toml").read_text("utf8"))[name]


@dataclass(frozen=True)
class Prediction:
    """What was registered before the results, and what came out.

    Args:
        text: prediction in words.
        expected: range or answer that was registered.
        found: the result in words, "–" where there is none yet.
        outcome: "met", "failed", or "open" where the rows do not decide it.
        note: remark that a reader needs to judge it; may be empty.
    """

    text: str
    expected: str
    found: str
    outcome: str
    note: str = ""


def ranged(
    text: str,
    value: float,
    low: float = -INFINITE,
    high: float = INFINITE,
    *,
    note: str = "",
) -> Prediction:
    """Return a prediction of a number, decided by its estimate, as most registrations say.

    Args:
        text: name of the number.
        value: the estimate; nan leaves the prediction open.
        low: lower end of the range, which belongs to it.
        high: upper end, which does too.
        note: remark, see `Prediction`.
    """
    if math.isnan(value):
        return Prediction(text, limits(low, high), "–", "open", note)
    outcome = "met" if low <= value <= high else "failed"
    return Prediction(text, limits(low, high), readable(value, 3), outcome, note)


def resolved(
    text: str,
    values: Sequence[float],
    low: float = -INFINITE,
    high: float = INFINITE,
    *,
    note: str = "",
) -> Prediction:
    """Return a prediction of a number, decided by its interval: open where that contains an end of
    the range.

    Args:
        text: name of the number.
        values: the estimate and both ends of its interval.
        low: lower end of the range.
        high: upper end of the range.
        note: remark, see `Prediction`.
    """
    value, lower, upper = values
    if math.isnan(value + lower + upper):
        return Prediction(text, limits(low, high), "–", "open", note)
    unresolved = lower <= low <= upper or lower <= high <= upper
    outcome = "open" if unresolved else "met" if low < value < high else "failed"
    return Prediction(text, limits(low, high), estimate(values), outcome, note)


def pointed(text: str, guess: float, values: Sequence[float]) -> Prediction:
    """Return a prediction of a number without a range: met where the interval of the result
    contains it.

    Args:
        text: name of the number.
        guess: number that was registered.
        values: the estimate and both ends of its interval.
    """
    value, low, high = values
    if math.isnan(value + low + high):
        return Prediction(text, f"about {readable(guess, 3)}", "–", "open")
    outcome = "met" if low <= guess <= high else "failed"
    return Prediction(text, f"about {readable(guess, 3)}", estimate(values), outcome)


def of_numbers(
    table: Mapping[str, Any],
    estimates: Mapping[str, Mapping[str, Estimate]],
    *path: str,
    label: str = "",
    note: str = "",
) -> Iterator[Prediction]:
    """Yield predictions of numbers, from a table of what was registered.

    Args:
        table: name -> range (see `ranged`), number (see `pointed`), or a table of the same.
        estimates: numbers by group and name, as a study scores them; a group has the names of all
            tables around, joined.
        *path: names of the tables around.
        label: beginning of all texts.
        note: remark, see `Prediction`.
    """
    words, group = in_words("names"), ", ".join(path)
    for name, inner in table.items():
        text = f"{label}{words.get(group, group)}: {words.get(name, name)}"
        values = estimates.get(group, {}).get(name, (math.nan,) * 3)
        if isinstance(inner, Mapping):
            yield from of_numbers(inner, estimates, *path, name, label=label, note=note)
        elif isinstance(inner, Sequence):
            yield ranged(text, values[0], *inner, note=note)
        else:
            yield pointed(text, inner, values)


def answered(
    text: str, expected: bool, found: bool | None, *, shown: str = "", note: str = ""
) -> Prediction:
    """Return a prediction of whether something holds.

    Args:
        text: sentence that may hold.
        expected: whether it was expected.
        found: whether it does; None leaves the prediction open.
        shown: the result in words, "yes" or "no" by default.
        note: remark, see `Prediction`.
    """
    words = {True: "yes", False: "no", None: "–"}
    outcome = "open" if found is None else "met" if found == expected else "failed"
    return Prediction(text, words[expected], shown or words[found], outcome, note)


def limits(low: float, high: float) -> str:
    """Return a range in words.

    >>> limits(0.5, INFINITE), limits(-INFINITE, 2), limits(-1, 3)
    ('at least 0.5', 'at most 2', '−1 to 3')
    """
    if math.isinf(high):
        return f"at least {readable(low, 3)}"
    if math.isinf(low):
        return f"at most {readable(high, 3)}"
    return f"{readable(low, 3)} to {readable(high, 3)}"
