"""Figures of chapter 10: what grows with the number of pixels, and the NADs of an ImageNet network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from nads_book.figures.style import bare, colours, subplots
from nads_book.figures.variants import styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_KINDS: dict[str, dict[str, Any]] = {  # how each kind of number is drawn
    "live": {"marker": "o", "linestyle": "none"},
    "shipped": {"marker": "s", "linestyle": "none", "fillstyle": "none"},
    "model": {"linestyle": "-", "alpha": 0.8},
}


@styled
def plot_scaling(panels: Mapping[str, Mapping[str, tuple[str, Sequence[float], Sequence[float]]]]) -> Figure:
    """Draw costs against the number of pixels on logarithmic axes, one quantity a panel.

    Args:
        panels: quantity with its unit -> label -> (kind, pixels, values); the kind is "live" (dots), "shipped"
            (squares) or "model" (a line, not in the legend). Labels that agree before the comma have one colour.
    """
    figure, (axes,) = subplots(1, len(panels), 3.5)
    for axis, (quantity, series) in zip(axes, panels.items(), strict=True):
        families = list(dict.fromkeys(label.partition(",")[0] for label in series))
        for label, (kind, pixels, values) in series.items():
            colour = colours()[families.index(label.partition(",")[0]) % 7]
            shown = None if kind == "model" else label
            axis.plot(pixels, values, color=colour, label=shown, **_KINDS[kind])
        axis.set(xscale="log", yscale="log", xlabel="pixels D", ylabel=quantity)
        axis.legend(loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0)
        axis.grid(alpha=0.3)
    return figure


@styled
def plot_colour_directions(directions: np.ndarray, columns: int = 6) -> Figure:
    """Draw directions of three channels as coloured pictures, zero in grey.

    Args:
        directions: (n, 3, H, W).
        columns: pictures a row.
    """
    rows = -(-len(directions) // columns)
    figure, axes = subplots(rows, columns, 1.4 * rows)
    for index, axis in enumerate(axes.flat):
        bare(axis)
        if index < len(directions):
            picture = np.asarray(directions[index])
            axis.imshow(0.5 + picture.transpose(1, 2, 0) / (2 * np.abs(picture).max()), interpolation="nearest")
            axis.set_title(f"NAD {index}")
        else:
            axis.axis("off")
    return figure
