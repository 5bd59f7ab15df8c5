"""A section of a report, and how its sentences show numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Protocol

from nads_book.report import readable


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
    digits = next((n for n in (2, 3, 4) if readable(low, n) != readable(high, n)), 2)
    value, *ends = (readable(x, digits) for x in (scale * number.value, low, high))
    return f"{value}{unit} ({' to '.join(ends)})"


def decided(number: Estimated, other: float = 0.0) -> bool:
    """Whether the interval leaves out another number."""
    low, high = number.interval
    return math.isfinite(low) and not low <= other <= high


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
