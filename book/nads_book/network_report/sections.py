"""A section of a report, and how its sentences show numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Protocol

from nads_book.report import readable

_NEGLIGIBLE = 0.05  # relative difference that is not worth a sentence


class Estimated(Protocol):
    """A number with a 95 % interval."""

    @property
    def value(self) -> float:
        """The estimate."""

    @property
    def interval(self) -> tuple[float, float]:
        """Ends of the interval."""


@dataclass(frozen=True)
class Section:
    """A part of a report.

    Args:
        title: heading.
        sentences: sentences as HTML, of which the first one that the data decide also opens the
            report.
        body: pictures and tables as HTML.
        numbers: content for JSON.
        opening: sentence for the opening of the report; "" where the data decide nothing.
    """

    title: str
    sentences: list[str]
    body: str = ""
    numbers: dict[str, Any] = field(default_factory=dict)
    opening: str = ""


def shown(number: Estimated, unit: str = "", scale: float = 1) -> str:
    """Return an estimate with its interval, such as "12 % (11 to 13)".

    Args:
        number: the estimate.
        unit: unit behind the estimate, with a space where there is one.
        scale: factor of the numbers shown.
    """
    low, high = (scale * end for end in number.interval)
    relative = (high - low) / 2 / max(abs(scale * number.value), 1e-300)
    digits = 2  # or as many as the interval deserves
    if 0 < relative < 1:
        digits = min(4, 2 + math.floor(-math.log10(relative)))
    value, *ends = (readable(x, digits) for x in (scale * number.value, low, high))
    return f"{value}{unit} ({' to '.join(ends)})"


def decided(number: Estimated, other: float) -> bool:
    """Whether the interval leaves out another number, and all within 5 % of it."""
    low, high = number.interval
    return low > (1 + _NEGLIGIBLE) * other or high < (1 - _NEGLIGIBLE) * other


def as_json(number: Estimated) -> list[float | None]:
    """Return the estimate and the ends of its interval; None for what is not finite."""
    values = (number.value, *number.interval)
    return [float(f"{value:.5g}") if math.isfinite(value) else None for value in values]


def table(head: list[str], rows: list[list[str]]) -> str:
    """Return a table as HTML, from cells that are HTML."""
    cells = "".join(f"<th>{cell}</th>" for cell in head)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    content = f"<table><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table>"
    return f'<div class="scroll">{content}</div>'
