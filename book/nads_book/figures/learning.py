"""Figures of which directions networks learn from data, over the plane of frequencies."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure
from torch import Tensor

from nads_book.analysis.waves import wrapped
from nads_book.figures.style import (
    COLOURS,
    SEQUENTIAL,
    WIDTH,
    bars,
    colours,
    legend,
    panel_row,
    shade,
    show_signed,
    styled,
    subplots,
)
from nads_core.data.fourier import Frequency

FrequencyMap = Mapping[Frequency, float]


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
        accuracies: label -> test accuracy, training accuracy if it is known, interval of the test accuracy; in [0, 1].
    """
    figure, ((axis,),) = subplots(1, 1, 1.0 + 0.28 * len(accuracies), grid="x")
    for place, (test, train, interval) in enumerate(accuracies.values()):
        style = {"color": COLOURS[0], "capsize": 3, "label": "new images"}
        axis.errorbar(100 * test, place, xerr=bars([test], interval), fmt="o", **style)
        if train is not None:
            ring = {"mfc": "none", "color": COLOURS[1], "markersize": 9, "label": "training images"}
            axis.plot(100 * train, place, "o", **ring)
    axis.axvline(50, color=shade(0.4), linestyle=":", linewidth=1, label="chance")
    axis.set_yticks(range(len(accuracies)), accuracies)
    axis.set(xlabel="accuracy (%)", xlim=(44, 104), ylim=(len(accuracies) - 0.5, -0.5))
    legend(figure, axis, ncols=3)
    return figure


def _filled(values: FrequencyMap, size: int, step: int) -> np.ndarray:
    """Lay values out over the plane, zero frequency in the middle; one of k and -k stands for both."""
    both = {wrapped(-ky, -kx, size): value for (ky, kx), value in values.items()}
    both |= {wrapped(ky, kx, size): value for (ky, kx), value in values.items()}
    grid = np.full((size // step, size // step), np.nan)
    for (ky, kx), value in both.items():
        grid[(ky + size // 2) // step, (kx + size // 2) // step] = min(
            value, 1e12
        )  # an infinity has no colour
    return grid


def _step(maps: Sequence[FrequencyMap], size: int) -> int:
    """Return the largest spacing of a grid that holds every frequency."""
    return math.gcd(size // 2, *(abs(f) for values in maps for k in values for f in k))


def _in_words(values: FrequencyMap | None, norm: Callable[[Any], Any]) -> str:
    """Return a text for a map of many waves that has one colour to the eye; otherwise an empty one."""
    if not values:
        return "not run"
    low, high = min(values.values()), max(values.values())
    if len(values) < 9 or not math.isfinite(high) or float(norm(high) - norm(low)) > 0.03:
        return ""
    ends = [f"{end:.3g}" for end in (low, high)]
    return f"{ends[0]}\neverywhere" if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}\neverywhere"


@styled
def plot_frequency_maps(
    rows: Mapping[str, Mapping[str, FrequencyMap | None]],
    label: str = "test accuracy (%)",
    limits: tuple[float, float] = (50, 100),
    *,
    scale: str = "linear",
    over: str | None = None,
    size: int = 32,
    own: Mapping[str, tuple[str, tuple[float, float], str]] | None = None,
    marked: Sequence[int] = (),
) -> Figure:
    """Draw a number for every frequency, zero in the middle, one panel a row and column (Figs. 1 to 3).

    Cells without a value are grey; a panel that is None has a text. One of k and -k stands for both. More rows than
    columns are drawn as columns.

    Args:
        rows: row label -> column title -> {(ky, kx): value}; the rows may have different columns.
        label: label of the colour bar.
        limits: limits of the colours, shared by all panels.
        scale: scale of the colours, "linear" or "log".
        over: meaning of a value beyond the upper limit, which is drawn in red.
        size: height and width of the images.
        own: rows of energies, with a colour map of their own: label of the bar, limits, scale.
        marked: numbers of cycles, across or down, that get dotted lines.
    """
    own = own or {}
    columns = list(dict.fromkeys(title for panels in rows.values() for title in panels))
    if len(rows) > len(columns) and not own:
        rows = {
            title: {name: panels.get(title) for name, panels in rows.items()} for title in columns
        }
        columns = list(rows[columns[0]])
    step = _step([values for panels in rows.values() for values in panels.values() if values], size)
    kinds = {
        name: SEQUENTIAL if name in own else "viridis" if over is None else "cividis_r"
        for name in rows
    }
    cmaps = {
        name: mpl.colormaps[k].with_extremes(bad=shade(0.82), over="#7a0c02")
        for name, k in kinds.items()
    }
    scales = {name: own.get(name, (label, limits, scale)) for name in rows}
    norms = {
        name: (LogNorm if kind == "log" else Normalize)(*ends)
        for name, (_, ends, kind) in scales.items()
    }
    side = min((WIDTH - 1.6) / len(columns), 2.5 if len(rows) + len(columns) > 2 else 4.0)
    figure, axes = subplots(
        len(rows), len(columns), 0.75 + side * len(rows), grid=None, sharex=True, sharey=True
    )
    figure.set_layout_engine("compressed")  # panels are square: no gaps between rows
    if len(columns) == 1:
        figure.set_figwidth(2.2 + side)
    edge, half = size // 2, step / 2
    extent, ticks = (
        (-edge - half, edge - half, edge - half, -edge - half),
        [-edge, -edge // 2, 0, edge // 2],
    )
    for axis, title in zip(axes[0], columns, strict=True):
        axis.set_title(title)
    for line, (name, panels) in zip(axes, rows.items(), strict=True):
        for axis, title in zip(line, columns, strict=True):
            values = panels.get(title)
            grid, words = _filled(values or {}, size, step), _in_words(values, norms[name])
            shown = np.ma.masked_array(
                grid, np.isnan(grid) | bool(words)
            )  # a number shows more than one colour
            ran = values and words  # a panel with words has no grey cells
            colouring = {
                "cmap": cmaps[name].with_extremes(bad=(0,) * 4) if ran else cmaps[name],
                "norm": norms[name],
            }
            axis.imshow(shown, **colouring, interpolation="nearest", extent=extent)
            axis.spines[:].set_visible(bool(ran))
            if words:
                axis.text(
                    0.5,
                    0.5,
                    words,
                    ha="center",
                    va="center",
                    transform=axis.transAxes,
                    color=shade(0.2),
                )
            axis.set(xticks=ticks, yticks=ticks)
            for place in {sign * cycles for cycles in marked for sign in (1, -1)} & set(
                range(-edge, edge)
            ):
                style = {"color": "white", "linewidth": 1, "linestyle": ":"}
                axis.axhline(place, **style)
                axis.axvline(place, **style)
        line[0].set_ylabel(name)
    if axes.size == 1:
        axes[0, 0].set(xlabel="cycles across", ylabel="cycles down")
    else:
        figure.supxlabel("cycles across", fontsize=9)
        figure.supylabel("cycles down", fontsize=9)
    extend = "neither" if over is None else "max"
    for title in dict.fromkeys(title for title, _, _ in scales.values()):
        chosen = [index for index, name in enumerate(rows) if scales[name][0] == title]
        first, places = list(rows)[chosen[0]], axes[chosen]
        mappable = ScalarMappable(norms[first], cmaps[first])
        bar = figure.colorbar(
            mappable, ax=places, label=title, extend=extend, shrink=0.8, aspect=15
        )
    if over is not None:
        bar.ax.set_title(over, fontsize=8)
    return figure


@styled
def plot_accuracy_by_energy(
    panels: Mapping[str, Mapping[str, tuple[Sequence[float], Sequence[float]]]],
    learned: float | None = None,
    own: tuple[float, float] | None = None,
) -> Figure:
    """Draw test accuracy against the energy of a direction before training, one panel per network.

    Args:
        panels: title -> series -> energies (n,), accuracies (n,) in [0, 1].
        learned: accuracy to mark.
        own: energy and accuracy of the reader's network, drawn as a star in ink in the first panel.
    """
    figure, axes = panel_row(
        panels, 2.9, xlabel="energy before training", ylabel="test accuracy (%)", sharey=True
    )
    kinds = list(dict.fromkeys(label for series in panels.values() for label in series))
    for axis, series in zip(axes, panels.values(), strict=True):
        if learned is not None:
            label = f"learned: above {100 * learned:.0f} %"
            axis.axhline(100 * learned, color=shade(0.4), linestyle=":", linewidth=1, label=label)
        for label, (energies, accuracies) in series.items():
            place = kinds.index(label)
            style = {"color": COLOURS[place], "markersize": 4 - place, "alpha": 0.6, "label": label}
            axis.plot(energies, 100 * np.asarray(accuracies), "o^s"[place], **style)
        axis.set(xscale="log", ylim=(45, 102))
    if own:
        style = {"color": shade(0), "markersize": 13, "label": "yours"}
        axes[0].plot(own[0], 100 * own[1], "*", **style)
    if len(kinds) + (learned is not None) > 1:
        legend(figure, axes, "outside lower center", ncols=3)
    return figure


@styled
def plot_train_test(panels: Mapping[str, tuple[Sequence[float], Sequence[float]]]) -> Figure:
    """Draw training against test accuracy, one panel per network; overfitting is above the diagonal.

    Args:
        panels: title -> test accuracies (n,), training accuracies (n,); in [0, 1].
    """
    labels = {"xlabel": "test accuracy (%)", "ylabel": "training accuracy (%)"}
    figure, axes = panel_row(
        panels, 0.5 + min(2.9, 0.92 * WIDTH / len(panels)), sharex=True, sharey=True, **labels
    )
    for axis, (test, train), colour in zip(axes, panels.values(), colours(), strict=False):
        axis.plot([45, 102], [45, 102], color=shade(0.4), linewidth=1, label="no overfitting")
        axis.axvline(50, color=shade(0.4), linestyle=":", linewidth=1, label="chance")
        _accuracy_pairs(axis, test, train, colour)
    if len(panels) == 1:
        figure.set_size_inches(3.6, 3.4)
    axes[0].legend(loc="lower right")
    return figure


def _accuracy_pairs(axis: Axes, x: Sequence[float], y: Sequence[float], colour: str) -> None:
    """Draw one accuracy against another, both in [0, 1], on equal axes."""
    axis.plot(
        100 * np.asarray(x), 100 * np.asarray(y), "o", color=colour, markersize=3.5, alpha=0.6
    )
    axis.set(xlim=(45, 102), ylim=(45, 102), aspect="equal")


@styled
def plot_agreement(
    panels: Mapping[str, tuple[str, str, Sequence[float], Sequence[float]]],
) -> Figure:
    """Draw one accuracy of each direction against another one, with the diagonal on which they agree.

    Args:
        panels: title -> (horizontal label, vertical label, (n,), (n,)); accuracies in [0, 1].
    """
    figure, axes = panel_row(
        panels, 0.5 + min(3.0, 0.92 * WIDTH / len(panels)), sharex=True, sharey=True
    )
    for axis, (xlabel, ylabel, x, y), colour in zip(axes, panels.values(), colours(), strict=False):
        axis.plot([45, 102], [45, 102], color=shade(0.4), linewidth=1)
        _accuracy_pairs(axis, x, y, colour)
        axis.set(xlabel=f"{xlabel} (%)", ylabel=f"{ylabel} (%)")
    return figure
