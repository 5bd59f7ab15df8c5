"""Figures of images, of accuracies, and of numbers over the plane of frequencies."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from torch import Tensor

from nads_book.figures.style import (
    SEQUENTIAL,
    WIDTH,
    bar_ends,
    colours,
    dotted,
    is_narrow,
    legend,
    name_rows,
    panel_row,
    shade,
    show_colours,
    show_signed,
    styled,
    subplots,
)
from nads_book.statistics import accuracy_interval
from nads_core.data.fourier import Frequency

HALF = 16  # of the height and width of the images
TICKS = (-16, -8, 0, 8)


@styled
def plot_signed_images(images: Mapping[str, Tensor], *, one_scale: bool = False) -> Figure:
    """Draw signed images side by side, each with zero in the middle of its own colours.

    Args:
        images: title -> (H, W).
        one_scale: whether all have the colours of the largest value.
    """
    figure, axes = panel_row(images, WIDTH / len(images) + 0.3, grid=None)
    limit = max(float(image.abs().max()) for image in images.values()) if one_scale else None
    for axis, image in zip(axes, images.values(), strict=True):
        show_signed(axis, image, limit)
    return figure


@styled
def plot_versions(
    versions: Mapping[str, Tensor], captions: Sequence[str], signed: Collection[str] = ()
) -> Figure:
    """Draw several versions of the same images, one per row.

    Args:
        versions: label -> (n, 3, H, W) in [0, 1].
        captions: captions of the images.
        signed: labels of rows whose values lie around 0: they are drawn with 0 as mid-grey.
    """
    columns = max(map(len, versions.values()))
    height = 0.3 + 0.98 * len(versions) * 7 / max(5, columns)
    figure, axes = subplots(len(versions), columns, height)
    for line, (label, images) in zip(axes, versions.items(), strict=True):
        for axis, image in zip(line, images, strict=True):
            show_colours(axis, 0.5 + 0.5 * image if label in signed else image)
        line[0].set_ylabel(label)
    for axis, caption in zip(axes[0], captions, strict=True):
        axis.set_title(caption)
    return figure


class Accuracies(NamedTuple):
    """Accuracies in [0, 1] of networks of one kind.

    Args:
        test: accuracy of each on new images.
        num_test: number of new images behind their mean.
        train: accuracy of each on its training images, if it is known.
        paper: the paper's accuracy on new images, or none.
    """

    test: Sequence[float]
    num_test: int
    train: Sequence[float] = ()
    paper: Sequence[float] = ()


@styled
def plot_accuracies(panels: Mapping[str, Mapping[str, Accuracies]], chance: float) -> Figure:
    """Draw accuracies as dots, a row per kind of network or of images.

    Args:
        panels: title -> label -> accuracies; bars are 95 % intervals of means for so many images.
        chance: accuracy of a guess, in per cent.
    """
    rows = list(dict.fromkeys(label for kinds in panels.values() for label in kinds))
    height = 1.4 + 0.28 * len(rows)
    figure, axes = panel_row(panels, height, grid="x", sharex=True, sharey=True)
    looks: dict[str, dict[str, Any]] = {
        "new images": {"marker": "o", "color": colours()[0]},
        "training images": {"marker": "o", "color": colours()[1], "mfc": "none", "markersize": 8},
        "paper, new images": {"marker": "s", "color": shade(0.55), "zorder": 0},
    }
    for axis, kinds in zip(axes, panels.values(), strict=True):
        for label, (test, num_test, *others) in kinds.items():
            place, mean = rows.index(label), float(np.mean(test))
            share, lengths = bar_ends([(mean, *accuracy_interval(mean, num_test))])
            look = {"fmt": "|", "color": shade(0), "capsize": 3}
            axis.errorbar(100 * share, place, xerr=100 * lengths, **look)
            for (name, look), values in zip(looks.items(), (test, *others), strict=True):
                for value in values:
                    axis.plot(100 * value, place, linestyle="none", label=name, **look)
        axis.axvline(chance, **dotted("chance"))
        axis.set(xlabel="accuracy (%)", xlim=(0.9 * chance, 103))
    name_rows(axes[0], rows)
    legend(figure, axes, ncols=4)
    return figure


def frequency_grid(values: Mapping[Frequency, float] | pd.Series) -> np.ndarray:
    """Lay values out over the published grid, zero frequency in the middle, NaN where there is
    none; one of k and -k stands for both.
    """
    found = pd.Series(values, dtype=float)
    cycles = np.array(found.index.tolist(), dtype=int).reshape(-1, 2)
    grid = np.full((HALF, HALF), np.nan)
    for sign in (-1, 1):
        rows, columns = ((sign * cycles + HALF) % (2 * HALF) // 2).T
        grid[rows, columns] = found
    return grid


@styled
def plot_frequency_maps(
    rows: Mapping[str, Mapping[str, Mapping[Frequency, float] | pd.Series]],
    label: str = "test accuracy (%)",
    limits: tuple[float, float] = (50, 100),
    own: Mapping[str, str] | None = None,
) -> Figure:
    """Draw a number for every frequency, zero in the middle, one panel a row and column (Figs. 1 to
    3).

    Cells without a value are grey. One of k and -k stands for both.

    Args:
        rows: row label -> column title -> value by frequency (ky, kx), of even numbers of cycles;
            all rows have the same columns.
        label: label of the colour bar.
        limits: limits of the colours, shared by the panels of a row.
        own: labels of rows with values from 0 to 1, which have a colour map of their own.
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
        colour_map = SEQUENTIAL if name in own else "viridis"
        ends = (0, 1) if name in own else limits
        for axis, column in zip(line, columns, strict=True):
            image = axis.imshow(
                frequency_grid(panels[column]),
                cmap=mpl.colormaps[colour_map].with_extremes(bad=shade(0.82)),
                vmin=ends[0],
                vmax=ends[1],
                extent=(-HALF - 1, HALF - 1, HALF - 1, -HALF - 1),  # cells of two cycles
            )
            axis.spines[:].set_visible(False)
            axis.set(xticks=TICKS, yticks=TICKS)
        line[0].set_ylabel(name)
        figure.colorbar(
            image,
            ax=list(line),
            label=own.get(name, label),
            location="bottom" if is_narrow() else "right",
            shrink=0.8,
            aspect=15,
        )
    for axis, column in zip(axes[0], columns, strict=True):
        axis.set_title(column)
    if axes.size == 1:
        axes[0, 0].set(xlabel="cycles across", ylabel="cycles down")
    else:
        figure.supxlabel("cycles across", fontsize=9)
        figure.supylabel("cycles down", fontsize=9)
    return figure
