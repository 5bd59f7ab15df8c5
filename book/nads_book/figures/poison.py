"""Figures of poisoned and of flipped images, and of what networks make of them."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from nads_book.figures.style import (
    COLOURS,
    bars,
    colours,
    dotted,
    legend,
    log_ticks,
    name_rows,
    panel_row,
    shade,
    show_colours,
    styled,
    subplots,
)
from nads_core.training import accuracy_interval

Curve = tuple[
    Sequence[int], Sequence[float], Sequence[tuple[float, float]]
]  # NAD indices, shares, their intervals


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


def _index_axis(axis: Axes, label: str) -> None:
    """Make a logarithmic axis of NAD indices, drawn at index + 1 because it has no 0."""
    ticks = np.array([0, 3, 10, 30, 100, 300, 1000])
    axis.set(xlabel=label, xlim=(0.85, 1300))
    log_ticks(axis, ticks + 1, map(str, ticks))


class Sweep(NamedTuple):
    """Values at several NADs.

    Args:
        indices: (n,) NAD indices.
        values: (n,) values, in the unit of the axis.
        low, high: (n,) ends of their intervals; infinite where there are none.
    """

    indices: Sequence[int]
    values: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]


@styled
def plot_by_index(
    curves: Mapping[str, Sweep], ylabel: str, own: Mapping[str, Sweep] | None = None
) -> Figure:
    """Draw values with their intervals against the NAD index.

    Args:
        curves: label -> values.
        ylabel: label of the vertical axis.
        own: label -> values of the reader's run, drawn as stars in ink.
    """
    figure, ((axis,),) = subplots(height=3.2)
    drawn = {**curves, **(own or {})}
    for number, (label, sweep) in enumerate(drawn.items()):
        look = {"color": colours()[number], "fmt": f"{'os^Dvp'[number]}-", "markersize": 4.5}
        if number >= len(curves):
            look = {"color": shade(0), "fmt": "*", "markersize": 13}
        else:
            look["linewidth"] = 1.2
        values = np.asarray(sweep.values, dtype=float)
        lengths = np.abs(np.stack([sweep.low, sweep.high]) - values)
        lengths = np.where(np.isfinite(lengths), lengths, 0)
        # Points at one index stand beside each other.
        where = (np.asarray(sweep.indices) + 1) * 1.035 ** (number - (len(drawn) - 1) / 2)
        axis.errorbar(where, values, lengths, label=label, elinewidth=0.9, **look)
    axis.axhline(0, color=shade(0.6), linewidth=0.8)
    axis.set_ylabel(ylabel)
    _index_axis(axis, "NAD index of the carrier")
    legend(figure, axis, ncols=2)
    return figure


@styled
def plot_trial(
    accuracies: Mapping[str, float], num_test: int, stored: Mapping[str, Sequence[float]], name: str
) -> Figure:
    """Draw accuracies on clean images after training on versions of others, beside stored ones.

    Args:
        accuracies: version -> accuracy in [0, 1].
        num_test: number of test images, which gives the 95 % intervals.
        stored: version -> accuracies in [0, 1] of several trainings.
        name: name of the stored networks.
    """
    figure, ((axis,),) = subplots(height=0.9 + 0.34 * len(accuracies), grid="x")
    rows = list(accuracies)
    for place, version in enumerate(rows):
        for accuracy in stored.get(version, ()):
            axis.plot(100 * accuracy, place - 0.15, "s", color=shade(0.5), markersize=5)
        share = accuracies[version]
        lengths = bars([share], accuracy_interval(share, num_test))
        axis.errorbar(
            100 * share,
            place + 0.15,
            xerr=lengths,
            fmt="o",
            color=COLOURS[0],
            capsize=3,
            markersize=6,
        )
    axis.plot([], [], "o", color=COLOURS[0], label="your networks")
    if stored:
        axis.plot([], [], "s", color=shade(0.5), label=name)
    axis.axvline(10, **dotted("chance"))
    name_rows(axis, rows)
    axis.set(xlim=(0, 100), xlabel="accuracy on clean images (%)")
    legend(figure, axis, ncols=3)
    return figure


@styled
def plot_accuracy_by_index(
    curves: Mapping[str, Curve], baselines: Mapping[str, float], published: Mapping[int, float]
) -> Figure:
    """Draw the accuracy on clean images against the NAD index of the carrier (Fig. 7).

    Args:
        curves: label -> NAD indices, accuracies in [0, 1], (low, high) of each; an index may occur
            several times.
        baselines: label -> accuracy after training on clean images; a dashed line in its curve's
            colour.
        published: index -> accuracy, of the paper's ResNet-18; drawn in grey.
    """
    figure, ((axis,),) = subplots(height=3.2)
    where, values = np.array(sorted(published.items())).T
    axis.plot(
        where + 1, 100 * values, "s:", color=shade(0.55), markersize=3, label="paper, ResNet-18"
    )
    dashed: dict[str, Any] = {"linestyle": "--", "linewidth": 1.2}
    for colour, (label, curve) in zip(colours(), curves.items(), strict=False):
        order = np.argsort(curve[0], kind="stable")
        indices, accuracies, intervals = (np.asarray(part)[order] for part in curve)
        style = {"color": colour, "label": label, "capsize": 3, "markersize": 4}
        lengths = bars(accuracies, intervals)
        axis.errorbar(indices + 1, 100 * accuracies, lengths, fmt="o", **style)
        means = [100 * accuracies[indices == index].mean() for index in np.unique(indices)]
        axis.plot(np.unique(indices) + 1, means, color=colour)
        axis.axhline(100 * baselines[label], color=colour, **dashed)
    axis.plot([], [], color=shade(0.4), label="trained on clean images", **dashed)
    axis.axhline(10, **dotted("chance"))
    axis.set(ylabel="accuracy on clean images (%)", ylim=(0, 100))
    _index_axis(axis, "NAD index of the carrier")
    legend(figure, axis, ncols=3)
    return figure


@styled
def plot_use(networks: Mapping[str, Curve], carriers: Mapping[str, int | None]) -> Figure:
    """Draw how many predictions change with one NAD component, against its index.

    Args:
        networks: label of a network -> NAD indices, shares in [0, 1], (low, high) of each.
        carriers: label of a network -> NAD index of the carrier that it was trained with, marked by
            a larger symbol.
    """
    figure, ((axis,),) = subplots(height=3.3)
    floor = 0.05  # per cent; lower values are drawn there
    for colour, (label, (indices, shares, intervals)) in zip(
        colours(), networks.items(), strict=False
    ):
        where = np.asarray(indices) + 1
        shown = (100 * np.asarray(shares, dtype=float)).clip(floor)
        axis.plot(where, shown, "o-", color=colour, markersize=2.5, linewidth=1.3, label=label)
        low, high = (100 * np.asarray(intervals, dtype=float).T).clip(floor)
        axis.fill_between(where, low, high, color=colour, alpha=0.15, linewidth=0)
        if (carrier := carriers[label]) is not None:
            mark = {"color": colour, "markersize": 7, "markeredgecolor": shade(0)}
            at = where == carrier + 1  # nowhere, where the carrier was not measured
            axis.plot(where[at], shown[at], "D", **mark)
    axis.set(yscale="log", ylim=(floor, 100), ylabel="changed predictions (%)")
    axis.set_yticks([0.1, 1, 10, 100], ["0.1", "1", "10", "100"])
    _index_axis(axis, "NAD index")
    legend(figure, axis, ncols=4)
    return figure


@styled
def plot_representations(
    accuracies: Mapping[str, Mapping[str, Sequence[float]]],
    num_images: int,
    training: Mapping[str, Mapping[str, Sequence[float]]] | None = None,
    published: Mapping[str, Mapping[str, float]] | None = None,
) -> Figure:
    """Draw accuracies on several representations of the same photos (Fig. 8), one panel per
    network.

    Args:
        accuracies: network -> representation -> test accuracy in [0, 1], of each seed.
        num_images: number of test photos; the bars are 95 % intervals of the mean over seeds, for
            that many photos.
        training: accuracies on the training set; drawn hollow.
        published: network -> representation -> the paper's test accuracy; drawn as a grey square.
    """
    rows = list(dict.fromkeys(label for values in accuracies.values() for label in values))
    labels = {"xlabel": "accuracy (%)", "ylabel": "representation"}
    height = 1.4 + 0.26 * len(rows)
    figure, axes = panel_row(accuracies, height, grid="x", sharex=True, sharey=True, **labels)
    looks: dict[str, dict[str, Any]] = {
        "test (photos)": {"marker": "o", "color": COLOURS[0], "markersize": 5},
        "training (photos)": {
            "marker": "o",
            "color": COLOURS[1],
            "markersize": 5,
            "fillstyle": "none",
        },
        "paper, test (photos)": {"marker": "s", "color": shade(0.55), "markersize": 6, "zorder": 0},
    }
    shown: list[Mapping[str, Any]] = [accuracies, training or {}, published or {}]
    for axis, (network, values) in zip(axes, accuracies.items(), strict=True):
        for label, tests in values.items():
            place, mean = rows.index(label), float(np.mean(tests))
            style = {"color": shade(0), "capsize": 3, "markersize": 12, "zorder": 1}
            lengths = bars([mean], accuracy_interval(mean, num_images))
            axis.errorbar(100 * mean, place, xerr=lengths, fmt="|", **style)
            for look, of in zip(looks.values(), shown, strict=True):
                seen = 100 * np.atleast_1d(of.get(network, {}).get(label, []))
                axis.plot(seen, [place] * len(seen), linestyle="none", **look)
        axis.axvline(10, **dotted())
        axis.set_xlim(0, 102)
    name_rows(axes[0], rows)
    for (label, look), of in zip(looks.items(), shown, strict=True):
        if of:
            axes[0].plot([], [], linestyle="none", label=label, **look | {"markersize": 6})
    axes[0].plot([], [], ":", color=shade(0.4), linewidth=1, label="chance")
    legend(figure, axes[0], ncols=4)
    return figure


@styled
def plot_scatter(
    panels: Mapping[str, Mapping[str, tuple[Sequence[float], Sequence[float]]]],
    levels: Mapping[str, float],
    pairs: Sequence[Sequence[tuple[Sequence[float], Sequence[float]]]],
) -> Figure:
    """Draw test accuracies against several numbers, one a panel, in groups.

    Args:
        panels: label of the horizontal axis -> group -> numbers (n,) and accuracies (n,) in [0, 1].
            An empty group keeps its colour free.
        levels: label -> accuracy in [0, 1], dotted lines across all panels.
        pairs: panels, each with numbers (2,) and accuracies (2,) of points that a line connects.
    """
    figure, axes = panel_row([""] * len(panels), 3.2, ylabel="test accuracy (%)", sharey=True)
    for axis, lines, (xlabel, groups) in zip(axes, pairs, panels.items(), strict=True):
        for numbers, accuracies in lines:
            axis.plot(
                numbers,
                100 * np.asarray(accuracies),
                "-",
                color=shade(0.6),
                linewidth=0.8,
                zorder=0,
            )
        for (label, (numbers, accuracies)), colour, marker in zip(
            groups.items(), colours(), "o^svDPX", strict=False
        ):
            style = {"color": colour, "markersize": 4.5, "alpha": 0.75}
            style["label"] = label if len(numbers) else None
            axis.plot(numbers, 100 * np.asarray(accuracies), marker, **style)
        for label, level in levels.items():
            axis.axhline(100 * level, color=shade(0.2), linestyle=":", linewidth=1.2, label=label)
        axis.set_xlabel(xlabel)
    legend(figure, axes[0], ncols=3)
    return figure
