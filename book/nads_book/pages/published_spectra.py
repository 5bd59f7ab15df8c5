"""The authors' eigenvalues of Fig. 6 beside ours (a section of ``03_nads_and_generalization``)."""

from typing import Any

from nads_book.pages.scored_rows import rows_of
from nads_core.directions import NADs

STUDY = "published-spectra"
SOURCES = {"ours": "ours", "published": "the authors'"}


def half_of_energy(nads: NADs) -> int:
    """Return how many of the first NADs hold half of the energy."""
    return int((nads.eigenvalues.cumsum(0) < nads.eigenvalues.sum() / 2).sum()) + 1


def rows() -> dict[str, Any]:
    """Return the row of each architecture."""
    return {row["architecture"]: row for row in rows_of(STUDY)}
