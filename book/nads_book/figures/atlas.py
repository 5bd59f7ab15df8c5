"""Figures of the atlas: the effects of changes, directions with the energies of waves, and what was
learned.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from torch import Tensor

from nads_book.evidence import Estimate
from nads_book.figures.style import COLOURS, bare, legend, name_rows, show_signed, styled, subplots
from nads_core.directions import NADs

_EVEN = 0.5  # decades: a map with less has one colour


@styled
def plot_effects(
    effects: Mapping[str, Estimate], directions: Mapping[str, Tensor], label: str
) -> Figure:
    """Draw numbers with their 95 % intervals as dots on lines, each beside a direction.

    Args:
        effects: change -> the number, and the ends of its interval.
        directions: change -> direction (H, W) that is drawn at the end of its line.
        label: label of the axis.
    """
    figure, ((axis,),) = subplots(height=0.7 + 0.42 * len(effects), grid="x")
    for place, (name, (value, low, high)) in enumerate(effects.items()):
        axis.plot([low, high], [place, place], color=COLOURS[0], lw=2, solid_capstyle="butt")
        axis.plot(value, place, "o", color=COLOURS[0], ms=5)
        picture = axis.inset_axes(
            (1.01, place - 0.45, 0.1, 0.9), transform=axis.get_yaxis_transform()
        )
        show_signed(picture, directions[name])
    name_rows(axis, effects)
    axis.set(xlim=(0, None), xlabel=label, ylabel="")
    return figure


@styled
def plot_entries(
    bases: Mapping[str, NADs], waves: Mapping[str, np.ndarray], count: int = 4
) -> Figure:
    """Draw the first NADs of architectures and the energies of waves in their second moment, one
    architecture per row.

    Args:
        bases: label -> NADs of single-channel images.
        waves: label -> energies (H, W) relative to their mean, frequencies as numpy orders them.
        count: number of NADs.
    """
    figure, axes = subplots(len(bases), count + 1, 0.3 + 1.25 * len(bases))
    axes[0, 0].set_title("energy of waves,\nlog scale")  # first, so that a phone shows it
    for column in range(count):
        axes[0, column + 1].set_title(f"NAD {column}")
    for row, (label, nads) in zip(axes, bases.items(), strict=True):
        for axis, direction in zip(row[1:], nads.directions[:count, 0], strict=False):
            show_signed(axis, direction)
        decades = np.log10(np.maximum(np.fft.fftshift(waves[label]), 1e-6))
        even = np.ptp(decades) < _EVEN
        shown = np.full_like(decades, decades.mean()) if even else decades
        row[0].imshow(shown, cmap="magma", vmin=-2, vmax=1.5, interpolation="nearest")
        if even:
            row[0].text(
                0.5,
                0.5,
                "all equal",
                color="white",
                ha="center",
                va="center",
                transform=row[0].transAxes,
            )
        bare(row[0])
        row[0].set_ylabel(label)
    return figure


@styled
def plot_learned(
    groups: Mapping[str, tuple[Sequence[float], Sequence[float]]], label: str, threshold: float
) -> Figure:
    """Draw a prediction for each wave, one row per architecture, filled where the wave was learned.

    Args:
        groups: architecture -> prediction for each wave, and accuracies in [0, 1].
        label: label of the prediction.
        threshold: accuracy above which a wave counts as learned.
    """
    figure, ((axis,),) = subplots(height=0.9 + 0.28 * len(groups), grid="x")
    for place, (x, y) in enumerate(groups.values()):
        values, learned = np.asarray(x), np.asarray(y) > threshold
        style = {"color": COLOURS[0], "markersize": 6, "linestyle": "none", "marker": "o"}
        axis.plot(values[learned], np.full(learned.sum(), place), label="learned", **style)
        style["fillstyle"] = "none"
        axis.plot(values[~learned], np.full((~learned).sum(), place), label="not learned", **style)
    axis.set(xscale="log", xlabel=label, yticks=range(len(groups)), yticklabels=list(groups))
    legend(figure, axis, ncols=2)
    return figure
