"""The page ``09_nad_computation``: how NADs are computed, and how well they are known."""

from nads_book.pages.nad_computation import certainty, combs, costs, definitions, estimators
from nads_book.pages.nad_computation.certainty import plot_reliability, plot_two_runs
from nads_book.pages.nad_computation.combs import comb_share, plot_combs, small_network
from nads_book.pages.nad_computation.costs import plot_run_times
from nads_book.pages.nad_computation.definitions import plot_definitions
from nads_book.pages.nad_computation.estimators import (
    plot_along_a_line,
    show_published,
    stored_beside,
)

PARTS = (costs, estimators, certainty, combs, definitions)
