"""The page ``10_atlas``: what in an architecture makes its directions."""

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
from nads_book.pages.atlas.tables import show_entries
from nads_book.pages.atlas.trained import plot_learned

PARTS = (changes, trained)
