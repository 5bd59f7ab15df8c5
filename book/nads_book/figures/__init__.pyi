"""The names of `nads_book.figures`, which `__init__.py` imports when they are first used."""

from . import style
from .bases import (
    plot_directions,
    plot_eigenvalues,
)
from .learning import (
    Accuracies,
    plot_accuracies,
    plot_frequency_maps,
    plot_signed_images,
    plot_versions,
)
from .lines import plot_by_index, plot_intervals, plot_lines
from .theory import (
    plot_convergence,
)

__all__ = [
    "Accuracies",
    "plot_accuracies",
    "plot_by_index",
    "plot_convergence",
    "plot_directions",
    "plot_eigenvalues",
    "plot_frequency_maps",
    "plot_intervals",
    "plot_lines",
    "plot_signed_images",
    "plot_versions",
    "style",
]
