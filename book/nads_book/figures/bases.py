"""Figures of NADs: the directions, and how strongly they are preferred."""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from nads_book.figures.lines import plot_lines
from nads_book.figures.style import (
    bare,
    is_narrow,
    shade,
    show_spectrum,
    styled,
    subplots,
)
from nads_core.directions import NADs
from nads_core.directions.plot import draw_direction


@styled
def plot_directions(
    bases: Mapping[str, NADs] | NADs, indices: Sequence[int] = (0, 1, 2, 3)
) -> Figure:
    """Draw NADs (left) and, of images, their energy in the Fourier domain (right), one architecture
    a row (Fig. 5).

    `nads_core.directions.plot.draw_direction` draws the directions. The energy of colour images is
    that of all channels.

    Args:
        bases: label -> NADs of inputs of any shape; or the NADs of one architecture.
        indices: indices of the directions. Those that are certain by less than a half have a dotted
            frame: they are one of many directions that the run could have found.
    """
    bases = {bases.name: bases} if isinstance(bases, NADs) else bases
    count, images = len(indices), any(nads.directions.dim() == 4 for nads in bases.values())
    if is_narrow():  # spectra below
        rows, ratios = len(bases) * (1 + images), [1] * count
    else:
        rows, ratios = len(bases), [1] * count + ([0.25] + [1] * count) * images
    height = 0.35 + 0.98 * rows * (1 + is_narrow())
    figure, axes = subplots(rows, len(ratios), height, grid=None, width_ratios=ratios)
    for axis in axes.flat:
        axis.axis("off")
    parts = {"NAD": axes[: len(bases), :count]}
    if images:
        parts["spectrum"] = axes[len(bases) :] if is_narrow() else axes[:, count + 1 :]
    for kind, panels in parts.items():
        for line, (label, nads) in zip(panels, bases.items(), strict=True):
            if kind == "spectrum" and nads.directions.dim() < 4:
                continue
            for axis, index in zip(line, indices, strict=True):
                axis.axis("on")
                draw = show_spectrum if kind == "spectrum" else draw_direction
                draw(axis, nads[index])
                bare(axis)
                if nads.uncertainty is not None and nads.certainty[index] < 0.5:
                    place: dict[str, Any] = {"transform": axis.transAxes, "clip_on": False}
                    place |= {"fill": False, "edgecolor": shade(0.3), "ls": ":", "linewidth": 2}
                    axis.add_patch(Rectangle((0, 0), 1, 1, **place))
            if kind == "NAD" or is_narrow():
                line[0].set_ylabel(label)
        for axis, index in zip(panels[0], indices, strict=True):
            axis.set_title(f"{kind} {index}")
    return figure


def plot_eigenvalues(bases: Mapping[str, NADs]) -> Figure:
    """Draw how fast the eigenvalues of each basis decay, relative to the first, on logarithmic axes
    (Fig. 6, green).
    """
    lines = {}
    for label, nads in bases.items():
        values = nads.eigenvalues[nads.eigenvalues > 0] / nads.eigenvalues[0]
        lines[label] = range(1, len(values) + 1), values
    labels = ("rank of the NAD (1 = most preferred)", "eigenvalue / first")
    marks = dict.fromkeys(lines, "-")
    return plot_lines({"": lines}, *labels, [1, 10, 100, 1_000], marks=marks, yscale="log")
