"""Figures of the atlas: the effects of changes, predictions, and which architectures are similar."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from torch import Tensor

from nads_book.figures.style import COLOURS, bare, shade, show_signed, styled, subplots
from nads_core.directions import NADs

_EVEN = 0.5  # decades: a map with less has one colour


@styled
def plot_effects(
    effects: Mapping[str, tuple[float, float, float]], directions: Mapping[str, Tensor], label: str
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
    axis.set_yticks(range(len(effects)), list(effects))
    axis.set(ylim=(len(effects) - 0.5, -0.5), xlim=(0, None), xlabel=label, ylabel="")
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
def plot_entries(
    bases: Mapping[str, NADs], waves: Mapping[str, np.ndarray], count: int = 4
) -> Figure:
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
            row[count].text(
                0.5, 0.5, "all equal", ha="center", va="center", transform=row[count].transAxes
            )
            row[count].axis("off")
        else:
            row[count].imshow(decades, cmap="magma", vmin=-2, vmax=1.5, interpolation="nearest")
            bare(row[count])
        row[0].set_ylabel(label)
    return figure


@styled
def plot_learned(
    groups: Mapping[str, tuple[Sequence[float], Sequence[float]]],
    label: str,
    curve: tuple[np.ndarray, np.ndarray],
) -> Figure:
    """Draw accuracies after training against a prediction of random weights, all architectures in one panel.

    The six architectures with the farthest points from the curve are labelled there.

    Args:
        groups: architecture -> prediction for each wave, and accuracies in [0, 1].
        label: label of the prediction.
        curve: one line for all architectures, two arrays (m,).
    """
    figure, ((axis,),) = subplots(height=3.6)
    points = [
        (name, *point)
        for name, (x, y) in groups.items()
        for point in zip(x, 100 * np.asarray(y), strict=True)
    ]
    far = lambda point: abs(point[2] - 100 * np.interp(point[1], *curve))  # noqa: E731
    axis.plot(
        *zip(*[point[1:] for point in points], strict=True), "o", color=COLOURS[0], ms=4, alpha=0.7
    )
    farthest = {point[0]: point for point in sorted(points, key=far)}  # one of each name, the last
    for name, x, y in sorted(farthest.values(), key=far)[-6:]:
        axis.annotate(name, (x, y), (5, 0), textcoords="offset points", va="center", fontsize=8)
    axis.plot(curve[0], 100 * curve[1], color=shade(0.5), lw=1.5, zorder=0)
    axis.set(xscale="log", xlabel=label, ylabel="test accuracy (%)", ylim=(45, 101))
    return figure
