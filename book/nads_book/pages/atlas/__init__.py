"""The page ``10_atlas``: what in an architecture makes its directions."""

from __future__ import annotations

from collections.abc import Callable

from nads_book.evidence import Evidence
from nads_book.pages.atlas import changes, trained
from nads_book.pages.atlas.changes import (
    LATTICE,
    PATCHES,
    POOLING,
    effective_number,
    plot_entries,
    plot_largest_effects,
    plot_yours,
    show_counts,
)
from nads_book.pages.atlas.tables import LAB_TABLES
from nads_book.pages.atlas.trained import plot_learned

__all__ = [
    "CLAIMS",
    "LAB_TABLES",
    "LATTICE",
    "PATCHES",
    "POOLING",
    "effective_number",
    "plot_entries",
    "plot_largest_effects",
    "plot_learned",
    "plot_yours",
    "show_counts",
]

CLAIMS: dict[str, Callable[[], Evidence]] = {**changes.CLAIMS, **trained.CLAIMS}
