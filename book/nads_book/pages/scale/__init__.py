"""The page ``16_scale``: what NADs cost, in time, in memory and in networks."""

from nads_book.pages.scale import costs, larger_images
from nads_book.pages.scale.costs import (
    memory_needed,
    plot_pixels,
    plot_run_times,
    show_estimators,
    show_passes,
    time_network,
)
from nads_book.pages.scale.larger_images import plot_agreement_at_64, show_certain_nads

PARTS = (costs, larger_images)
