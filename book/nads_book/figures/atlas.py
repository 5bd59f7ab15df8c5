"""Figures of the atlas: the effects of changes, predictions, and which architectures are similar."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from nads_book.figures.style import COLOURS, bare, colours, shade, show_signed, styled, subplots
from nads_core.directions import NADs

_EVEN = 0.5  # decades: a map with less has one colour


@styled
def plot_effects(
    effects: Mapping[str, Mapping[str, tuple[float, float, float]]], label: str, scale: str = "linear"
) -> Figure:
    """Draw numbers with their 95 % intervals as dots on lines, in groups.

    Args:
        effects: group -> change -> the number, and the ends of its interval.
        label: label of the axis.
        scale: scale of the axis, "linear" or "log".
    """
    count = sum(map(len, effects.values())) + 0.6 * len(effects)
    figure, ((axis,),) = subplots(height=0.7 + 0.17 * count, grid="x")
    place, places, names = 0.0, [], []
    for number, (group, members) in enumerate(effects.items()):
        colour = COLOURS[number % 6]
        for name, (value, low, high) in members.items():
            axis.plot([low, high], [place, place], color=colour, lw=2, solid_capstyle="butt")
            axis.plot(value, place, "o", color=colour, ms=4)
            places.append(place)
            names.append(f"{group}: {name}" if group else name)
            place += 1
        place += 0.6
    axis.set_yticks(places, names)
    axis.set(ylim=(place - 0.3, -0.7), xlabel=label, ylabel="what is changed", xscale=scale)
    return figure


@styled
def plot_alignments(matrix: np.ndarray, names: Sequence[str]) -> Figure:
    """Draw how similar the second moments of all pairs are, as a matrix.

    Args:
        matrix: cosines, (n, n).
        names: names of the rows and columns.
    """
    figure, ((axis,),) = subplots(height=7.4, grid=None)
    picture = axis.imshow(matrix, cmap="viridis", vmin=0, vmax=1, interpolation="nearest")
    axis.set_xticks(range(len(names)), names, rotation=90, fontsize=6)
    axis.set_yticks(range(len(names)), names, fontsize=6)
    figure.colorbar(picture, label="cosine of the second moments", shrink=0.6)
    return figure


@styled
def plot_entries(bases: Mapping[str, NADs], waves: Mapping[str, np.ndarray], count: int = 4) -> Figure:
    """Draw the first NADs of architectures and the energies of waves in their second moment, one architecture per row.

    Args:
        bases: label -> NADs of single-channel images.
        waves: label -> energies (H, W) relative to their mean, frequencies as numpy orders them.
        count: number of NADs.
    """
    figure, axes = subplots(len(bases), count + 1, 0.3 + 1.25 * len(bases))
    for column in range(count):
        axes[0, column].set_title(f"NAD {column}")
    axes[0, count].set_title("energy of waves, log scale")
    for row, (label, nads) in zip(axes, bases.items(), strict=True):
        for axis, direction in zip(row, nads.directions[:count, 0], strict=False):
            show_signed(axis, direction)
        decades = np.log10(np.maximum(np.fft.fftshift(waves[label]), 1e-6))
        if np.ptp(decades) < _EVEN:
            row[count].text(0.5, 0.5, "all alike", ha="center", va="center", transform=row[count].transAxes)
            row[count].axis("off")
        else:
            row[count].imshow(decades, cmap="magma", vmin=-2, vmax=1.5, interpolation="nearest")
            bare(row[count])
        row[0].set_ylabel(label)
    return figure


@styled
def plot_learned(
    groups: Mapping[str, tuple[Sequence[float], Sequence[float]]], label: str, curve: tuple[np.ndarray, np.ndarray]
) -> Figure:
    """Draw accuracies after training against a prediction of random weights, all architectures in one panel.

    Args:
        groups: architecture -> prediction for each wave, and accuracies in [0, 1].
        label: label of the prediction.
        curve: one line for all architectures, two arrays (m,).
    """
    figure, ((axis,),) = subplots(height=3.6)
    markers = "osD^v<>pPX*d"
    for number, (name, (x, accuracy)) in enumerate(groups.items()):
        colour, marker = colours()[number % 7], markers[number % len(markers)]
        axis.plot(x, 100 * np.asarray(accuracy), marker, color=colour, ms=4.5, alpha=0.85, label=name)
    axis.plot(curve[0], 100 * curve[1], color=shade(0.5), lw=1.5, zorder=0, label="one line for all")
    axis.set(xscale="log", xlabel=label, ylabel="test accuracy (%)", ylim=(45, 101))
    axis.legend(ncols=1, loc="center left", bbox_to_anchor=(1, 0.5))
    return figure
