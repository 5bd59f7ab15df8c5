"""The page ``11_training``: what training does to NADs, with three optimisers."""

from nads_book.pages import first_step
from nads_book.pages.first_step import plot_balanced, plot_first_step
from nads_book.pages.training import closed_form, optimisers, own_networks, trajectories, used
from nads_book.pages.training.optimisers import plot_optimisers
from nads_book.pages.training.own_networks import plot_your_training, trained_nads
from nads_book.pages.training.trajectories import plot_changes, widget
from nads_book.pages.training.used import plot_used

CLAIMS = {
    **closed_form.CLAIMS,
    **first_step.CLAIMS,
    **trajectories.CLAIMS,
    **optimisers.CLAIMS,
    **used.CLAIMS,
}
LAB_TABLES = {
    **first_step.LAB_TABLES,
    **trajectories.LAB_TABLES,
    **optimisers.LAB_TABLES,
    **used.LAB_TABLES,
}

__all__ = [
    "CLAIMS",
    "LAB_TABLES",
    "plot_balanced",
    "plot_changes",
    "plot_first_step",
    "plot_optimisers",
    "plot_used",
    "plot_your_training",
    "trained_nads",
    "widget",
]
