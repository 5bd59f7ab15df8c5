"""The figure of one's own images: along which NADs their classes differ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from nads_book.figures.style import COLOURS, shade, show_signed, subplots
from nads_book.figures.variants import styled
from nads_core.data.classes import ClassDifferences
from nads_core.directions import NADs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SHOWN = 4  # directions a network


@styled
def plot_class_differences(found: Mapping[str, tuple[NADs, ClassDifferences]]) -> Figure:
    """Draw, a row a network, what the classes explain along each NAD, and the NADs along which they vary most.

    The grey line is what random labels stay below. Colour directions are drawn by their mean over channels.

    Args:
        found: label -> NADs, and how the classes differ along them.
    """
    widths = [2.6, *[1.0] * _SHOWN]
    figure, axes = subplots(len(found), 1 + _SHOWN, 1.75 * len(found) + 0.3, width_ratios=widths)
    for row, (label, (nads, differences)) in zip(axes, found.items(), strict=True):
        ranks = np.arange(1, len(nads) + 1)
        row[0].plot(ranks, 100 * differences.explained, ".", color=COLOURS[0], ms=3, alpha=0.7, mew=0)
        row[0].plot(ranks, 100 * differences.chance, color=shade(0.5), lw=1, label="random labels")
        row[0].set(xscale="log", ylabel="explained by classes (%)", title=label, ylim=(0, None))
        row[0].set_xlabel("rank of the NAD")
        for axis, index in zip(row[1:], differences.leading(_SHOWN), strict=False):
            show_signed(axis, nads.directions[index].mean(0))
            axis.set_title(f"NAD {index}: {100 * differences.explained[index]:.0f} %")
    axes[0, 0].legend()
    return figure
