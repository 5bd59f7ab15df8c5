"""Figures of which directions networks learn from data, over the plane of frequencies."""

from collections.abc import Mapping, Sequence

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure
from torch import Tensor

from nads_book.figures.style import (
    SEQUENTIAL,
    WIDTH,
    bars,
    colours,
    dotted,
    is_narrow,
    legend,
    name_rows,
    panel_row,
    shade,
    show_signed,
    styled,
    subplots,
)
from nads_book.statistics import accuracy_interval
from nads_core.data.fourier import Frequency

# Label -> test accuracy, training accuracy if it is known, number of test images.
Dots = dict[str, tuple[float, float | None, int]]
HALF = 16  # of the height and width of the images
TICKS = (-16, -8, 0, 8)


@styled
def plot_signed_images(images: Mapping[str, Tensor]) -> Figure:
    """Draw signed images side by side, each with zero in the middle of its own colours.

    Args:
        images: title -> (H, W).
    """
    figure, axes = panel_row(images, WIDTH / len(images) + 0.3, grid=None)
    for axis, image in zip(axes, images.values(), strict=True):
        show_signed(axis, image)
    return figure


@styled
def plot_accuracy_dots(accuracies: Dots) -> Figure:
    """Draw accuracies on new images, with 95 % intervals, and on training images, a line per
    network and task.

    Args:
        accuracies: label -> test accuracy, training accuracy if it is known, in [0, 1], and number
            of new images.
    """
    figure, ((axis,),) = subplots(1, 1, 1.0 + 0.28 * len(accuracies), grid="x")
    blue, orange, *_ = colours()
    for place, (test, train, num_test) in enumerate(accuracies.values()):
        lengths = bars([test], accuracy_interval(test, num_test))
        axis.errorbar(100 * test, place, xerr=lengths, fmt="o", color=blue, label="new images")
        if train is not None:
            ring = {"markersize": 9, "label": "training images"}
            axis.plot(100 * train, place, "o", mfc="none", color=orange, **ring)
    axis.axvline(50, **dotted("chance"))
    name_rows(axis, accuracies)
    axis.set(xlabel="accuracy (%)", xlim=(44, 104))
    legend(figure, axis, ncols=3)
    return figure


def frequency_grid(values: Mapping[Frequency, float] | pd.Series) -> np.ma.MaskedArray:
    """Lay values out over the published grid, zero frequency in the middle; one of k and -k stands
    for both.
    """
    found = pd.Series(values, dtype=float)
    cycles = np.array(found.index.tolist(), dtype=int).reshape(-1, 2)
    grid = np.full((HALF, HALF), np.nan)
    for sign in (-1, 1):
        rows, columns = ((sign * cycles + HALF) % (2 * HALF) // 2).T
        grid[rows, columns] = found.clip(upper=1e12)  # infinity has no colour
    return np.ma.masked_invalid(grid)


@styled
def plot_frequency_maps(
    rows: Mapping[str, Mapping[str, Mapping[Frequency, float] | pd.Series]],
    label: str = "test accuracy (%)",
    limits: tuple[float, float] = (50, 100),
    *,
    speed: bool = False,
    own: Mapping[str, str] | None = None,
    marked: Sequence[int] = (),
) -> Figure:
    """Draw a number for every frequency, zero in the middle, one panel a row and column (Figs. 1 to
    3).

    Cells without a value are grey. One of k and -k stands for both.

    Args:
        rows: row label -> column title -> value by frequency (ky, kx), of even numbers of cycles;
            all rows have the same columns.
        label: label of the colour bar.
        limits: limits of the colours, shared by the panels of a row.
        speed: whether values are numbers of steps, which have a logarithmic scale and can be
            infinite: these are red.
        own: labels of rows with values from 0 to 1, which have a colour map of their own.
        marked: numbers of cycles, across or down, that get dotted lines.
    """
    own, columns = own or {}, list(next(iter(rows.values())))
    side = min((WIDTH - 1.6) / len(columns), 2.5 if len(rows) + len(columns) > 2 else 4.0)
    figure, axes = subplots(
        len(rows), len(columns), 0.75 + side * len(rows), grid=None, sharex=True, sharey=True
    )
    figure.set_layout_engine("compressed")  # panels are square: no gaps between rows
    if len(columns) == 1 and not is_narrow():
        figure.set_figwidth(2.2 + side)
    for line, (name, panels) in zip(axes, rows.items(), strict=True):
        colour_map = SEQUENTIAL if name in own else "cividis_r" if speed else "viridis"
        ends = (0, 1) if name in own else limits
        for axis, column in zip(line, columns, strict=True):
            image = axis.imshow(
                frequency_grid(panels[column]),
                cmap=mpl.colormaps[colour_map].with_extremes(bad=shade(0.82), over="#7a0c02"),
                norm=LogNorm(*ends) if speed else Normalize(*ends),
                extent=(-HALF - 1, HALF - 1, HALF - 1, -HALF - 1),  # cells of two cycles
            )
            axis.spines[:].set_visible(False)
            axis.set(xticks=TICKS, yticks=TICKS)
            for place in {sign * cycles for cycles in marked for sign in (-1, 1)} - {HALF}:
                axis.axhline(place, color="white", linestyle=":")
                axis.axvline(place, color="white", linestyle=":")
        line[0].set_ylabel(name)
        bar = figure.colorbar(
            image,
            ax=list(line),
            label=own.get(name, label),
            extend="max" if speed else "neither",
            location="bottom" if is_narrow() else "right",
            shrink=0.8,
            aspect=15,
        )
    if speed:
        bar.ax.set_title("never", fontsize=8)
    for axis, column in zip(axes[0], columns, strict=True):
        axis.set_title(column)
    if axes.size == 1:
        axes[0, 0].set(xlabel="cycles across", ylabel="cycles down")
    else:
        figure.supxlabel("cycles across", fontsize=9)
        figure.supylabel("cycles down", fontsize=9)
    return figure
