"""Figures of NADs: the directions, how strongly they are preferred, how well bases agree, and what
they cost.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from torch import Tensor

from nads_book.figures.style import (
    bare,
    colours,
    is_narrow,
    legend,
    shade,
    show_spectrum,
    styled,
    subplots,
)
from nads_book.photos.class_differences import ClassDifferences
from nads_core.directions import NADs
from nads_core.directions.plot import draw_direction


@styled
def plot_directions(
    bases: Mapping[str, NADs] | NADs, indices: Sequence[int] = (0, 1, 2, 3)
) -> Figure:
    """Draw NADs (left) and, of images, their energy in the Fourier domain (right), one architecture
    a row (Fig. 5).

    `export.draw_direction` draws the directions; the energy of colour images is that of all
    channels.

    Args:
        bases: label -> NADs of inputs of any shape; or the NADs of one architecture.
        indices: indices of the directions. Those that are certain by less than a half have a dotted
            frame: they are one of many directions that the run could have found.
    """
    bases = {bases.name: bases} if isinstance(bases, NADs) else bases
    count, images = len(indices), any(nads.directions.dim() == 4 for nads in bases.values())
    frame: dict[str, Any] = {
        "fill": False,
        "edgecolor": shade(0.3),
        "ls": ":",
        "linewidth": 2,
        "clip_on": False,
    }
    if is_narrow():  # spectra below
        rows, ratios = len(bases) * (1 + images), [1] * count
    else:
        rows, ratios = len(bases), [1] * count + ([0.25] + [1] * count) * images
    height = 0.35 + 0.98 * rows * (1 + is_narrow())
    figure, axes = subplots(rows, len(ratios), height, grid=None, width_ratios=ratios)
    for axis in axes.flat:
        axis.axis("off")
    spectra = axes[len(bases) :] if is_narrow() else axes[:, count + 1 :]
    for row, (label, nads) in enumerate(bases.items()):
        for column, index in enumerate(indices):
            drawn = [axes[row, column]]
            draw_direction(drawn[0], nads[index])
            bare(drawn[0])
            axes[0, column].set_title(f"NAD {index}")
            if nads.directions.dim() == 4:
                drawn.append(spectra[row, column])
                show_spectrum(drawn[1], nads[index])
                spectra[0, column].set_title(f"spectrum {index}")
            for axis in drawn:
                axis.axis("on")
                if nads.uncertainty is not None and nads.certainty[index] < 0.5:
                    axis.add_patch(Rectangle((0, 0), 1, 1, transform=axis.transAxes, **frame))
            if column == 0:
                for axis in drawn if is_narrow() else drawn[:1]:
                    axis.set_ylabel(label)
    return figure


@styled
def plot_eigenvalues(bases: Mapping[str, NADs]) -> Figure:
    """Draw how fast the eigenvalues of each basis decay, relative to the first, on logarithmic axes
    (Fig. 6, green).
    """
    figure, ((axis,),) = subplots(height=3.2)
    curves = []
    for label, nads in bases.items():
        values = np.asarray(nads.eigenvalues / nads.eigenvalues[0])
        values = values[values > 0]
        curves += axis.plot(np.arange(len(values)) + 1, values, label=label)
    place = 0.0  # of the label below
    for curve in sorted(curves, key=lambda curve: curve.get_ydata()[-1]):
        ranks, values = curve.get_data()
        place = max(3 * place, values[-1])
        end = 1.1 * ranks[-1], place
        look: dict[str, Any] = {"color": curve.get_color(), "va": "center"}
        axis.annotate(str(curve.get_label()), end, annotation_clip=False, **look)
    axis.set(xlabel="rank of the NAD (1 = most preferred)", ylabel="eigenvalue / first")
    axis.set(xscale="log", yscale="log")
    return figure


@styled
def plot_kinks(cuts: Mapping[str, tuple[Tensor, Tensor]], slopes: Mapping[str, float]) -> Figure:
    """Draw a network along a line, and its slope there, a column a length of the line.

    Args:
        cuts: title -> places along the line (n,) and outputs (n,). The slope drawn is that between
            neighbouring places.
        slopes: label -> slope to compare with, drawn over all of each line; the first is marked at
            0, its place.
    """
    figure, axes = subplots(2, len(cuts), 4.2)
    (point, at_point), *averages = slopes.items()
    for (upper, lower), (title, (places, outputs)) in zip(axes.T, cuts.items(), strict=True):
        places, outputs = np.asarray(places), np.asarray(outputs)
        upper.plot(places, outputs, color=shade(0), linewidth=1)
        lower.stairs(
            np.diff(outputs) / np.diff(places), places, baseline=None, color=shade(0), linewidth=0.8
        )
        for (label, value), colour in zip(averages, colours(), strict=False):
            lower.axhline(value, color=colour, linestyle="--", linewidth=1.5, label=label)
        lower.plot(
            0, at_point, "o", color=colours()[1], markersize=5, label=point, linestyle="none"
        )
        upper.set_title(title)
        for axis in (upper, lower):
            axis.set_xlabel("t")
            axis.ticklabel_format(axis="y", scilimits=(0, 0))
    axes[0, 0].set_ylabel("output f(x + tv)")
    axes[1, 0].set_ylabel("slope along v")
    legend(figure, axes[1, 0], ncols=len(slopes))
    figure.align_ylabels()
    return figure


@styled
def plot_class_differences(results: Mapping[str, tuple[NADs, ClassDifferences]]) -> Figure:
    """Draw the variance that the classes explain along each NAD, and the four NADs with the largest
    class variance.

    Each network has one row. The grey line is the 95th percentile of random labels. Directions of
    colour images are averaged over their channels.

    Args:
        results: NADs and class differences of each network by its label.
    """
    figure, axes = subplots(
        len(results), 5, 1.75 * len(results) + 0.3, grid=None, width_ratios=[2.6, 1, 1, 1, 1]
    )
    for row, (label, (nads, differences)) in zip(axes, results.items(), strict=True):
        ranks = np.arange(1, len(nads) + 1)
        row[0].plot(ranks, 100 * differences.explained, ".", alpha=0.7)
        row[0].plot(ranks, 100 * differences.chance, color=shade(0.5), label="random labels")
        row[0].set(xscale="log", ylabel="explained by classes (%)", title=label, ylim=(0, None))
        row[0].set_xlabel("rank of the NAD")
        for axis, index in zip(row[1:], differences.leading(4), strict=False):
            draw_direction(axis, nads.directions[index].mean(0, keepdim=True))
            axis.set_title(f"NAD {index}: {100 * differences.explained[index]:.0f} %")
            axis.spines[:].set_visible(False)
    axes[0, 0].legend()
    return figure
