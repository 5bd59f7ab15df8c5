"""The page ``16_scale``: what NADs cost, in time, in memory and in networks."""

from collections.abc import Callable

from nads_book.evidence import Evidence
from nads_book.pages.scale import costs, larger_images
from nads_book.pages.scale.costs import (
    memory_needed,
    plot_pixels,
    plot_run_times,
    show_devices,
    show_estimators,
    show_passes,
    time_network,
)
from nads_book.pages.scale.larger_images import plot_agreement_at_64, show_certain_nads

CLAIMS: dict[str, Callable[[], Evidence]] = costs.CLAIMS | larger_images.CLAIMS
LAB_TABLES: dict[str, Callable[[], str]] = costs.LAB_TABLES | larger_images.LAB_TABLES

__all__ = [
    "CLAIMS",
    "LAB_TABLES",
    "memory_needed",
    "plot_agreement_at_64",
    "plot_pixels",
    "plot_run_times",
    "show_certain_nads",
    "show_devices",
    "show_estimators",
    "show_passes",
    "time_network",
]
