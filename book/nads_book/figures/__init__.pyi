"""The names of `nads_book.figures`, which `__init__.py` imports when they are first used."""

from . import style
from .bases import (
    plot_directions,
    plot_eigenvalues,
)
from .intervals import plot_intervals
from .learning import (
    plot_accuracy_dots,
    plot_frequency_maps,
    plot_signed_images,
)
from .lines import plot_lines
from .poison import (
    plot_by_index,
    plot_representations,
    plot_versions,
)
from .theory import (
    plot_aliasing,
    plot_convergence,
    plot_curves,
    plot_learning_curves,
    plot_matrices,
    plot_two_classes,
)

__all__ = [
    "plot_accuracy_dots",
    "plot_aliasing",
    "plot_by_index",
    "plot_convergence",
    "plot_curves",
    "plot_directions",
    "plot_eigenvalues",
    "plot_frequency_maps",
    "plot_intervals",
    "plot_learning_curves",
    "plot_lines",
    "plot_matrices",
    "plot_representations",
    "plot_signed_images",
    "plot_two_classes",
    "plot_versions",
    "style",
]
