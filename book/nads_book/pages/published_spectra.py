"""The authors' eigenvalues of Fig. 6 beside ours (a section of ``03_nads_and_generalization``)."""

from math import nan
from typing import Any

from nads_book.pages.scored_rows import rows_of
from nads_book.report import LABELS, fixed, markdown_table
from nads_core.directions import NADs

STUDY = "published-spectra"
SOURCES = {"ours": "ours", "published": "the authors'"}


def half_of_energy(nads: NADs) -> int:
    """Return how many of the first NADs hold half of the energy."""
    return int((nads.eigenvalues.cumsum(0) < nads.eigenvalues.sum() / 2).sum()) + 1


def rows() -> dict[str, Any]:
    """Return the row of each architecture."""
    return {row["architecture"]: row for row in rows_of(STUDY)}


def table_spectra() -> str:
    """Return how many NADs hold half of the sum, and how far our directions are the authors'."""
    lines, counts = [], ("5", "10", "20", "50")
    for name, row in rows().items():
        held = [f"{half}, {most}" for half, most in (row[f"{source} hold"] for source in SOURCES)]
        overlaps = row.get("overlaps") or {}
        lines.append([LABELS[name], *held, *(fixed(overlaps.get(k, nan), 2) for k in counts)])
    head = [f"NADs with half and nine tenths of the sum, {label}" for label in SOURCES.values()]
    return markdown_table(lines, ["", *head, *(f"overlap of the first {k}" for k in counts)])


LAB_TABLES = {
    "Eigenvalues of Fig. 6 and ours, and overlaps of directions": table_spectra,
}
