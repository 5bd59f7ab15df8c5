"""The page ``09_nad_computation``: how NADs are computed, and how well they are known."""

from collections.abc import Callable

from nads_book.evidence import Evidence
from nads_book.pages.nad_computation import certainty, combs, definitions, estimators
from nads_book.pages.nad_computation.certainty import plot_reliability, plot_two_runs
from nads_book.pages.nad_computation.combs import comb_share, plot_combs, small_network
from nads_book.pages.nad_computation.definitions import plot_definitions
from nads_book.pages.nad_computation.estimators import (
    plot_along_a_line,
    show_published,
    show_similarity,
    show_unique,
    stored_beside,
)

CLAIMS: dict[str, Callable[[], Evidence]] = (
    estimators.CLAIMS | certainty.CLAIMS | combs.CLAIMS | definitions.CLAIMS
)
LAB_TABLES: dict[str, Callable[[], str]] = (
    certainty.LAB_TABLES | combs.LAB_TABLES | definitions.LAB_TABLES
)

__all__ = [
    "CLAIMS",
    "LAB_TABLES",
    "comb_share",
    "plot_along_a_line",
    "plot_combs",
    "plot_definitions",
    "plot_reliability",
    "plot_two_runs",
    "show_published",
    "show_similarity",
    "show_unique",
    "small_network",
    "stored_beside",
]
