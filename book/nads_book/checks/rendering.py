"""Checks as Markdown and HTML, for chapters and for the errata page."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable

from nads_book.checks.check import Check
from nads_book.report import readable


def table(checks: Iterable[Check]) -> str:
    """Return a Markdown table, one row per check."""
    rows = ["| setting | simulated | standard error | ours | z | printed | z |", "|---|---|---|---|---|---|---|"]
    for c in checks:
        decimals = (
            1 - math.floor(math.log10(c.standard_error)) if c.standard_error > 0 else 16
        )  # digits that the error leaves
        simulated, error = readable(round(c.simulated, decimals), 4), readable(c.standard_error, 2)
        ours, printed = readable(c.formula, 4), readable(c.printed, 4)
        numbers = (simulated, error, ours, readable_z(c.z), printed, readable_z(c.z_printed))
        rows.append(f"| {c.setting} | " + " | ".join(numbers) + " |")
    return "\n".join(rows)


def readable_z(z: float) -> str:
    """Return a number of standard errors as text, without digits beyond 1,000.

    >>> [readable_z(z) for z in (-2.345, -0.01, 7.1e11)]
    ['−2.3', '0.0', 'above 1,000']
    """
    if abs(z) >= 999.95:
        return "above 1,000" if z > 0 else "below −1,000"
    return f"{round(z, 1) + 0.0:.1f}".replace("-", "−")


def store(key: str, verdict: str, evidence: str, counterexample: str | None = None) -> None:
    """Store texts in the notebook, under the names that `book/errata.md` pastes; nothing is shown.

    The outputs carry the metadata of `myst_nb.glue`, which therefore need not be installed where a chapter runs.
    """
    from IPython.display import publish_display_data

    parts = {"verdict": f"<strong>{html.escape(verdict)}</strong>", "evidence": html.escape(evidence)}
    if counterexample is not None:
        parts["counterexample"] = html.escape(counterexample)
    prefix = "application/papermill.record/"
    for part, text in parts.items():
        metadata = {"scrapbook": {"name": f"{key}-{part}", "mime_prefix": prefix}}
        publish_display_data({f"{prefix}text/html": f"<span>{text}</span>"}, metadata)
