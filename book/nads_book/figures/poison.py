"""Figures of poisoned and of flipped images, and of what networks make of them."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from nads_book.figures.style import (
    bar_ends,
    bars,
    colours,
    dotted,
    legend,
    log_ticks,
    name_rows,
    panel_row,
    rule,
    shade,
    show_colours,
    styled,
    subplots,
)
from nads_book.statistics import accuracy_interval

# Label -> NAD index -> value, and the ends of its interval where they are known.
Sweeps = Mapping[str, Mapping[int, Sequence[float]]]


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


def index_axis(axis: Axes, every: int = 1) -> None:
    """Make a logarithmic axis of NAD indices, drawn at index + 1 because it has no 0.

    Args:
        axis: axis.
        every: of its ticks, only each so many has a place.
    """
    ticks = np.array([0, 3, 10, 30, 100, 300, 1000])[::every]
    log_ticks(axis, ticks + 1, map(str, ticks))
    axis.set_xlim(left=0.85)


@styled
def plot_by_index(
    panels: Mapping[str, Sweeps],
    ylabel: str,
    own: Sweeps | None = None,
    *,
    xlabel: str = "NAD index of the carrier",
    level: float = 0,
) -> Figure:
    """Draw values with their intervals against the NAD index.

    Args:
        panels: title -> values.
        ylabel: label of the vertical axis.
        own: values of the reader's run, drawn as stars in ink.
        xlabel: label of the horizontal axes.
        level: value to compare with, such as chance.
    """
    figure, axes = panel_row(panels, 3.2, xlabel=xlabel, ylabel=ylabel, sharey=True)
    for axis, curves in zip(axes, panels.values(), strict=True):
        drawn = {**curves, **(own or {})}
        for number, (label, sweep) in enumerate(drawn.items()):
            look: dict[str, Any] = {"fmt": f"{'os^Dvp'[number]}-", "color": colours()[number]}
            if number >= len(curves):
                look = {"fmt": "*", "color": shade(0), "markersize": 13}
            values, lengths = bar_ends([[*one, np.nan, np.nan][:3] for one in sweep.values()])
            # Points at one index stand beside each other.
            where = (np.array([*sweep]) + 1) * 1.035 ** (number - (len(drawn) - 1) / 2)
            axis.errorbar(where, values, lengths, label=label, elinewidth=0.9, **look)
        rule(axis, level)
        index_axis(axis, 1 if len(panels) == 1 else 2)
    legend(figure, axes, ncols=2 if len(panels) == 1 else 3)
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
    shown: dict[str, tuple[Mapping[str, Any], dict[str, Any]]] = {
        "test (photos)": (accuracies, {"marker": "o", "color": colours()[0]}),
        "training (photos)": (
            training or {},
            {"marker": "o", "color": colours()[1], "fillstyle": "none"},
        ),
        "paper, test (photos)": (
            published or {},
            {"marker": "s", "color": shade(0.55), "zorder": 0},
        ),
    }
    for axis, (network, values) in zip(axes, accuracies.items(), strict=True):
        for label, tests in values.items():
            place, mean = rows.index(label), float(np.mean(tests))
            style = {"color": shade(0), "capsize": 3, "markersize": 12, "zorder": 1}
            lengths = bars([mean], accuracy_interval(mean, num_images))
            axis.errorbar(100 * mean, place, xerr=lengths, fmt="|", **style)
            for name, (of, look) in shown.items():
                seen = 100 * np.atleast_1d(of.get(network, {}).get(label, []))
                if len(seen):
                    where = [place] * len(seen)
                    axis.plot(seen, where, linestyle="none", markersize=5, label=name, **look)
        axis.axvline(10, **dotted("chance"))
        axis.set_xlim(0, 102)
    name_rows(axes[0], rows)
    legend(figure, axes, ncols=4)
    return figure
