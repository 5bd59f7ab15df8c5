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
    legend,
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
    versions: Mapping[str, Tensor],
    captions: Sequence[str],
    signed: Collection[str] = (),
    limit: float = 1.0,
) -> Figure:
    """Draw several versions of the same images, one per row.

    Args:
        versions: label -> (n, 3, H, W).
        captions: captions of the images.
        signed: labels of rows whose values lie around 0: they are drawn with 0 as mid-grey.
        limit: the value of a signed row that becomes the brightest.
    """
    centred = {label: 0.5 + 0.5 * versions[label] / limit for label in versions if label in signed}
    return _image_rows({**versions, **centred}, captions)


def _image_rows(rows: Mapping[str, Tensor], captions: Sequence[str]) -> Figure:
    """Draw labelled rows of images (n, 3, H, W) in [0, 1], with a caption above each column."""
    columns = max(map(len, rows.values()))
    figure, axes = subplots(len(rows), columns, 0.3 + 0.98 * len(rows) * 7 / max(5, columns))
    for line, (label, images) in zip(axes, rows.items(), strict=True):
        for axis, image in zip(line, images, strict=True):
            show_colours(axis, image)
        line[0].set_ylabel(label)
    for axis, caption in zip(axes[0], captions, strict=True):
        axis.set_title(caption)
    return figure


def _index_axis(axis: Axes, label: str) -> None:
    """Make a logarithmic axis of NAD indices, drawn at index + 1 because it has no 0."""
    ticks = np.array([0, 3, 10, 30, 100, 300, 1000])
    axis.set(xscale="log", xlabel=label, xlim=(0.85, 1300))
    axis.set_xticks(ticks + 1, map(str, ticks))
    axis.minorticks_off()


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
    curves: Mapping[str, Sweep],
    ylabel: str,
    own: Mapping[str, Sweep] | None = None,
    xlabel: str = "NAD index of the carrier",
) -> Figure:
    """Draw values with their intervals against the NAD index.

    Args:
        curves: label -> values.
        ylabel: label of the vertical axis.
        own: label -> values of the reader's run, drawn as stars in ink.
        xlabel: label of the horizontal axis.
    """
    figure, ((axis,),) = subplots(height=3.2)
    looks = [
        {"color": colour, "fmt": f"{marker}-", "markersize": 4.5, "linewidth": 1.2}
        for colour, marker in zip(colours(), "os^Dvp", strict=False)
    ]
    looks = looks[: len(curves)]
    looks += [{"color": shade(0), "fmt": "*", "markersize": 13}] * len(own or {})
    drawn = {**curves, **(own or {})}
    for number, ((label, sweep), look) in enumerate(zip(drawn.items(), looks, strict=True)):
        values = np.asarray(sweep.values, dtype=float)
        lengths = np.abs(np.stack([sweep.low, sweep.high]) - values)
        lengths = np.where(np.isfinite(lengths), lengths, 0)
        # Points at one index stand beside each other.
        where = (np.asarray(sweep.indices) + 1) * 1.035 ** (number - (len(drawn) - 1) / 2)
        axis.errorbar(where, values, lengths, label=label, elinewidth=0.9, **look)
    axis.axhline(0, color=shade(0.6), linewidth=0.8)
    axis.set_ylabel(ylabel)
    _index_axis(axis, xlabel)
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
        style = {"color": COLOURS[0], "capsize": 3, "markersize": 6}
        axis.errorbar(100 * share, place + 0.15, xerr=lengths, fmt="o", **style)
    axis.plot([], [], "o", color=COLOURS[0], label="your networks")
    if stored:
        axis.plot([], [], "s", color=shade(0.5), label=name)
    axis.axvline(10, color=shade(0.4), linestyle=":", linewidth=1, label="chance")
    axis.set_yticks(range(len(rows)), rows)
    axis.set(xlim=(0, 100), ylim=(len(rows) - 0.5, -0.5), xlabel="accuracy on clean images (%)")
    legend(figure, axis, ncols=3)
    return figure


@styled
def plot_accuracy_by_index(
    curves: Mapping[str, Curve],
    baselines: Mapping[str, float],
    published: Mapping[int, float] | None = None,
) -> Figure:
    """Draw the accuracy on clean images against the NAD index of the carrier (Fig. 7).

    Args:
        curves: label -> NAD indices, accuracies in [0, 1], (low, high) of each; an index may occur several times.
        baselines: label -> accuracy after training on clean images; a dashed line in its curve's colour.
        published: index -> accuracy, of the paper's ResNet-18; drawn in grey.
    """
    figure, ((axis,),) = subplots(height=3.2)
    if published:
        where, values = np.array(sorted(published.items())).T
        axis.plot(
            where + 1, 100 * values, "s:", color=shade(0.55), markersize=3, label="paper, ResNet-18"
        )
    for colour, (label, (indices, accuracies, intervals)) in zip(
        colours(), curves.items(), strict=False
    ):
        order = np.argsort(indices, kind="stable")
        indices, accuracies = np.asarray(indices)[order], np.asarray(accuracies)[order]
        lengths, style = (
            bars(accuracies, np.asarray(intervals)[order]),
            {"color": colour, "label": label},
        )
        axis.errorbar(
            indices + 1, 100 * accuracies, lengths, fmt="o", capsize=3, markersize=4, **style
        )
        means = [100 * accuracies[indices == index].mean() for index in np.unique(indices)]
        axis.plot(np.unique(indices) + 1, means, color=colour)
        if label in baselines:
            axis.axhline(100 * baselines[label], color=colour, linestyle="--", linewidth=1.2)
    axis.plot(
        [], [], color=shade(0.4), linestyle="--", linewidth=1.2, label="trained on clean images"
    )
    axis.axhline(10, color=shade(0.4), linestyle=":", linewidth=1, label="chance")
    axis.set(ylabel="accuracy on clean images (%)", ylim=(0, 100))
    _index_axis(axis, "NAD index of the carrier")
    legend(figure, axis, ncols=3)
    return figure


@styled
def plot_use(
    panels: Mapping[str, Mapping[str, Curve]],
    carriers: Mapping[str, int | None],
) -> Figure:
    """Draw how many predictions change with one NAD component, against its index; a panel a kind of change.

    Args:
        panels: title -> label of a network -> NAD indices, shares in [0, 1], (low, high) of each.
        carriers: label of a network -> NAD index of the carrier that it was trained with, marked by a larger symbol.
    """
    figure, (axes,) = subplots(1, len(panels), 3.3)
    floor = 0.05  # per cent; lower values are drawn there
    for axis, (title, networks) in zip(axes, panels.items(), strict=True):
        for colour, (label, (indices, shares, intervals)) in zip(
            colours(), networks.items(), strict=False
        ):
            where, shown = np.asarray(indices) + 1, 100 * np.asarray(shares, dtype=float)
            axis.plot(
                where,
                shown.clip(floor),
                "o-",
                color=colour,
                markersize=2.5,
                linewidth=1.3,
                label=label,
            )
            low, high = 100 * np.asarray(intervals, dtype=float).T
            axis.fill_between(
                where, low.clip(floor), high.clip(floor), color=colour, alpha=0.15, linewidth=0
            )
            carrier = carriers.get(label)
            if carrier is not None and carrier in indices:
                at = list(indices).index(carrier)
                axis.plot(
                    where[at],
                    shown[at].clip(floor),
                    "D",
                    color=colour,
                    markersize=7,
                    markeredgecolor=shade(0),
                )
        axis.set(yscale="log", ylim=(floor, 100), title=title)
        axis.set_yticks([0.1, 1, 10, 100], ["0.1", "1", "10", "100"])
        _index_axis(axis, "NAD index")
    axes[0].set_ylabel("changed predictions (%)")
    for axis in axes[1:]:
        axis.tick_params(labelleft=False)
    legend(figure, axes[0], ncols=4)
    return figure


@styled
def plot_representations(
    accuracies: Mapping[str, Mapping[str, Sequence[float]]],
    num_images: int,
    training: Mapping[str, Mapping[str, Sequence[float]]] | None = None,
    published: Mapping[str, Mapping[str, float]] | None = None,
    images: str = "images",
) -> Figure:
    """Draw accuracies on several representations of the same images (Fig. 8), one panel per network.

    Args:
        accuracies: network -> representation -> test accuracy in [0, 1], of each seed.
        num_images: number of test images; the bars are 95 % intervals of the mean over seeds, for that many images.
        training: accuracies on the training set; drawn hollow.
        published: network -> representation -> the paper's test accuracy; drawn as a grey square.
        images: name of the images, such as "photos".
    """
    rows = list(dict.fromkeys(label for values in accuracies.values() for label in values))
    shared: dict[str, Any] = {
        "sharex": True,
        "sharey": True,
        "xlabel": "accuracy (%)",
        "ylabel": "representation",
    }
    figure, axes = panel_row(accuracies, 1.4 + 0.26 * len(rows), grid="x", **shared)
    for axis, (network, values) in zip(axes, accuracies.items(), strict=True):
        for label, tests in values.items():
            place, mean = rows.index(label), float(np.mean(tests))
            style = {"color": shade(0), "capsize": 3, "markersize": 12, "zorder": 1}
            axis.errorbar(
                100 * mean,
                place,
                xerr=bars([mean], accuracy_interval(mean, num_images)),
                fmt="|",
                **style,
            )
            axis.plot(
                100 * np.asarray(tests), [place] * len(tests), "o", color=COLOURS[0], markersize=5
            )
            if training:
                seen = 100 * np.asarray(training[network][label])
                axis.plot(
                    seen, [place] * len(seen), "o", color=COLOURS[1], markersize=5, fillstyle="none"
                )
            if published and label in published.get(network, {}):
                axis.plot(
                    100 * published[network][label],
                    place,
                    "s",
                    color=shade(0.55),
                    markersize=6,
                    zorder=0,
                )
        axis.axvline(10, color=shade(0.4), linestyle=":", linewidth=1)
        axis.set_xlim(0, 102)
    axes[0].set_yticks(range(len(rows)), rows)
    axes[0].set_ylim(len(rows) - 0.5, -0.5)
    axes[0].plot([], [], "o", color=COLOURS[0], label=f"test ({images})")
    if training:
        axes[0].plot([], [], "o", color=COLOURS[1], fillstyle="none", label=f"training ({images})")
    if published:
        axes[0].plot([], [], "s", color=shade(0.55), label="paper, test (photos)")
    axes[0].plot([], [], ":", color=shade(0.4), linewidth=1, label="chance")
    legend(figure, axes[0], ncols=4)
    return figure


@styled
def plot_scatter(
    panels: Mapping[str, Mapping[str, tuple[Sequence[float], Sequence[float]]]],
    ylabel: str,
    levels: Mapping[str, float] | None = None,
    pairs: Sequence[Sequence[tuple[Sequence[float], Sequence[float]]]] = (),
) -> Figure:
    """Draw accuracies against several numbers, one a panel, in groups.

    Args:
        panels: label of the horizontal axis -> group -> numbers (n,) and accuracies (n,) in [0, 1]. An empty group
            keeps its colour free.
        ylabel: label of the first vertical axis.
        levels: label -> accuracy in [0, 1], dotted lines across all panels.
        pairs: panels, each with numbers (2,) and accuracies (2,) of points that a line connects.
    """
    figure, axes = panel_row([""] * len(panels), 3.2, ylabel=ylabel, sharey=True)
    for axis, lines in zip(axes, pairs, strict=False):
        for numbers, accuracies in lines:
            axis.plot(
                numbers,
                100 * np.asarray(accuracies),
                "-",
                color=shade(0.6),
                linewidth=0.8,
                zorder=0,
            )
    drawn = {
        label
        for groups in panels.values()
        for label, (numbers, _) in groups.items()
        if len(numbers)
    }
    for axis, (xlabel, groups) in zip(axes, panels.items(), strict=True):
        for (label, (numbers, accuracies)), colour, marker in zip(
            groups.items(), colours(), "o^svDPX", strict=False
        ):
            style = {
                "color": colour,
                "markersize": 4.5,
                "alpha": 0.75,
                "label": label if label in drawn else None,
            }
            axis.plot(numbers, 100 * np.asarray(accuracies), marker, **style)
        for (label, level), grey in zip((levels or {}).items(), (0.2, 0.5, 0.7), strict=False):
            axis.axhline(100 * level, color=shade(grey), linestyle=":", linewidth=1.2, label=label)
        axis.set_xlabel(xlabel)
    legend(figure, axes[0], ncols=3)
    return figure
