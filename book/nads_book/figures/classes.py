"""The figure of class differences along NADs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from nads_book.figures.variants import styled
from nads_core.cli import class_differences
from nads_core.data.classes import ClassDifferences
from nads_core.directions import NADs

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@styled
def plot_class_differences(results: Mapping[str, tuple[NADs, ClassDifferences]]) -> Figure:
    """Draw the figure of ``nads class-differences`` in the book's style.

    Args:
        results: NADs and class differences of each network by its label.
    """
    return class_differences.plot_class_differences(results)
