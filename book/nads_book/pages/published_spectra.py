"""The authors' eigenvalues of Fig. 6 beside ours (a section of ``03_nads_and_generalization``)."""

from typing import Any

from nads_book.pages.scored_rows import rows_of
from nads_book.report import LABELS, fixed, markdown_table

STUDY = "published-spectra"
SOURCES = {"ours": "ours", "published": "the authors'"}


def rows() -> dict[str, Any]:
    """Return the row of each architecture."""
    return {row["architecture"]: row for row in rows_of(STUDY)}


def table_spectra() -> str:
    """Return how many NADs hold half of the sum, and how far our directions are the authors'."""
    lines = []
    for name, row in rows().items():
        held = [f"{row[f'{source} hold'][0]}, {row[f'{source} hold'][1]}" for source in SOURCES]
        overlaps = row.get("overlaps") or {}
        found = [fixed(overlaps[k], 2) if k in overlaps else "–" for k in ("5", "10", "20", "50")]
        lines.append([LABELS[name], *held, *found])
    head = [f"NADs with half and nine tenths of the sum, {label}" for label in SOURCES.values()]
    return markdown_table(
        lines, ["", *head, *(f"overlap of the first {k}" for k in (5, 10, 20, 50))]
    )


LAB_TABLES = {
    "Eigenvalues of Fig. 6 and ours, and overlaps of directions": table_spectra,
}
