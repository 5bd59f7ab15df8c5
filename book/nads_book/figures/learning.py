"""Figures of which directions networks learn from data, over the plane of frequencies."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
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
from nads_book.published.waves import wrapped
from nads_core.data.fourier import Frequency

FrequencyMap = Mapping[Frequency, float]
SIZE = 32  # height and width of the images


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
def plot_accuracy_dots(
    accuracies: Mapping[str, tuple[float, float | None, tuple[float, float]]],
) -> Figure:
    """Draw accuracies on new images and on training images, a line per network and task.

    Args:
        accuracies: label -> test accuracy, training accuracy if it is known, interval of the test
            accuracy; in [0, 1].
    """
    figure, ((axis,),) = subplots(1, 1, 1.0 + 0.28 * len(accuracies), grid="x")
    for place, (test, train, interval) in enumerate(accuracies.values()):
        lengths, (blue, orange, *_) = bars([test], interval), colours()
        axis.errorbar(100 * test, place, xerr=lengths, fmt="o", color=blue, label="new images")
        if train is not None:
            ring = {"markersize": 9, "label": "training images"}
            axis.plot(100 * train, place, "o", mfc="none", color=orange, **ring)
    axis.axvline(50, **dotted("chance"))
    name_rows(axis, accuracies)
    axis.set(xlabel="accuracy (%)", xlim=(44, 104))
    legend(figure, axis, ncols=3)
    return figure


def _grid(values: FrequencyMap, step: int) -> np.ndarray:
    """Lay values out over the plane, zero frequency in the middle; one of k and -k stands for
    both.
    """
    half = SIZE // 2
    grid = np.full((SIZE // step, SIZE // step), np.nan)
    for sign in (-1, 1):
        for (ky, kx), value in values.items():
            y, x = wrapped(sign * ky, sign * kx)
            shown = min(value, 1e12)  # infinity has no colour
            grid[(y + half) // step, (x + half) // step] = shown
    return grid


@styled
def plot_frequency_maps(
    rows: Mapping[str, Mapping[str, FrequencyMap]],
    label: str = "test accuracy (%)",
    limits: tuple[float, float] = (50, 100),
    *,
    scale: str = "linear",
    over: str | None = None,
    own: Mapping[str, tuple[str, tuple[str, str]]] | None = None,
    marked: Sequence[int] = (),
) -> Figure:
    """Draw a number for every frequency, zero in the middle, one panel a row and column (Figs. 1 to
    3).

    Cells without a value are grey. One of k and -k stands for both.

    Args:
        rows: row label -> column title -> {(ky, kx): value}; all rows have the same columns.
        label: label of the colour bar.
        limits: limits of the colours, shared by all panels.
        scale: scale of the colours, "linear" or "log".
        over: meaning of a value beyond the upper limit, which is drawn in red.
        own: rows of values from 0 to 1, with a colour map of their own: label of the bar, and what
            stands at its ends.
        marked: numbers of cycles, across or down, that get dotted lines.
    """
    own = own or {}
    columns = list(next(iter(rows.values())))
    keys = [k for panels in rows.values() for values in panels.values() for k in values]
    step = math.gcd(SIZE // 2, *(abs(f) for k in keys for f in k))  # of a grid that holds them all
    side = min((WIDTH - 1.6) / len(columns), 2.5 if len(rows) + len(columns) > 2 else 4.0)
    figure, axes = subplots(
        len(rows), len(columns), 0.75 + side * len(rows), grid=None, sharex=True, sharey=True
    )
    figure.set_layout_engine("compressed")  # panels are square: no gaps between rows
    if len(columns) == 1 and not is_narrow():
        figure.set_figwidth(2.2 + side)
    edge, half = SIZE // 2, step / 2
    ends, ticks = (-edge - half, edge - half), [-edge, -edge // 2, 0, edge // 2]
    ends_of = dict(own.values())
    colour_bars: dict[str, tuple[Any, list[Any]]] = {}  # label of a colour bar -> picture, axes
    for line, (name, panels) in zip(axes, rows.items(), strict=True):
        title, colour_limits = (own[name][0], (0, 1)) if name in own else (label, limits)
        map_name = SEQUENTIAL if name in own else "viridis" if over is None else "cividis_r"
        for axis, column in zip(line, columns, strict=True):
            image = axis.imshow(
                np.ma.masked_invalid(_grid(panels[column], step)),
                cmap=mpl.colormaps[map_name].with_extremes(bad=shade(0.82), over="#7a0c02"),
                norm=(LogNorm if scale == "log" else Normalize)(*colour_limits),
                extent=(*ends, *ends[::-1]),
            )
            axis.spines[:].set_visible(False)
            axis.set(xticks=ticks, yticks=ticks)
            for cycles in marked:
                for place in {wrapped(cycles, 0)[0], -cycles}:
                    for line_at in (axis.axhline, axis.axvline):
                        line_at(place, color="white", linestyle=":")
        line[0].set_ylabel(name)
        colour_bars.setdefault(title, (image, []))[1].extend(line)
    for axis, column in zip(axes[0], columns, strict=True):
        axis.set_title(column)
    if axes.size == 1:
        axes[0, 0].set(xlabel="cycles across", ylabel="cycles down")
    else:
        figure.supxlabel("cycles across", fontsize=9)
        figure.supylabel("cycles down", fontsize=9)
    extend = "neither" if over is None else "max"
    place = "bottom" if is_narrow() else "right"
    look: dict[str, Any] = {"location": place, "shrink": 0.8, "aspect": 15}
    for title, (image, places) in colour_bars.items():
        bar = figure.colorbar(image, ax=places, label=title, extend=extend, **look)
        if title in ends_of:
            bar.set_ticks([0, 1], labels=ends_of[title])
    if over is not None:
        bar.ax.set_title(over, fontsize=8)
    return figure


@styled
def plot_agreement(
    panels: Mapping[str, tuple[str, str, Sequence[float], Sequence[float]]], chance: bool = False
) -> Figure:
    """Draw one accuracy of each direction against another one, with the diagonal on which they
    agree.

    Args:
        panels: title -> (horizontal label, vertical label, (n,), (n,)); accuracies in [0, 1].
        chance: whether a dotted line marks the chance level of the horizontal axis.
    """
    figure, axes = panel_row(
        panels, 0.5 + min(3.0, 0.92 * WIDTH / len(panels)), sharex=True, sharey=True
    )
    for axis, (xlabel, ylabel, x, y), colour in zip(axes, panels.values(), colours(), strict=False):
        axis.plot([45, 102], [45, 102], color=shade(0.4), linewidth=1)
        if chance:
            axis.axvline(50, **dotted("chance"))
            axis.legend(loc="lower right")
        axis.plot(100 * np.asarray(x), 100 * np.asarray(y), "o", color=colour, alpha=0.6)
        axis.set(xlim=(45, 102), ylim=(45, 102), aspect="equal")
        axis.set(xlabel=f"{xlabel} (%)", ylabel=f"{ylabel} (%)")
    return figure
