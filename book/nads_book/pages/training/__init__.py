"""The page ``11_training``: what training does to NADs, with three optimisers."""

from nads_book.pages.training import (
    adam,
    first_step,
    optimisers,
    own_networks,
    trajectories,
    used,
)
from nads_book.pages.training.adam import plot_bases
from nads_book.pages.training.first_step import plot_balanced, plot_first_step, plot_rates
from nads_book.pages.training.optimisers import plot_optimisers
from nads_book.pages.training.own_networks import plot_your_training
from nads_book.pages.training.trajectories import plot_changes, widget
from nads_book.pages.training.used import plot_used
from nads_book.studies.adam_flip import effective_inputs

PARTS = (first_step, trajectories, optimisers, adam, used)
