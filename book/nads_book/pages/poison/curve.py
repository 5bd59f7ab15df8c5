"""The paper's experiment: accuracy by carrier, and the NADs that poisoned networks use."""

from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor

import nads_core as nc
from nads_book import report
from nads_book.analysis import published
from nads_book.analysis.statistics import accuracy_interval, grouped, means, pooled_variance
from nads_book.evidence import Evidence, above, around, evidence
from nads_book.experiments import Results, Row, matching
from nads_book.figures.poison import index_axis
from nads_book.figures.style import (
    bars,
    colours,
    dotted,
    legend,
    shade,
    show_badge,
    styled,
    subplots,
)
from nads_book.pages.poison.parts import injected, points_lost
from nads_book.report import LABELS
from nads_book.studies import load_results, stored
from nads_book.studies import toy_shortcuts as toys
from nads_core.data.poisoning import carriers

ENOUGH = 100  # changed predictions of the clean network, from which on a ratio counts
STRENGTH = 0.05  # the paper's
SMALL = 8  # grey levels of 255, within which attacks call a change small
# Two samples of one class and two of another, in units of the strength, each with its own number.
COUNTER_EXAMPLE = torch.tensor([[1.0, -2.0], [1.0, 4.0], [-2.0, 1.0], [4.0, 1.0]])


@cache
def poisoned() -> dict[str, Results]:
    """Return the networks that were poisoned at the paper's size."""
    found = {name: load_results(f"fig7-{name}") for name in nc.ARCHITECTURES}
    return {name: results for name, results in found.items() if results and results.rows}


def lenets() -> Results:
    """Return the LeNets that were poisoned at the paper's size."""
    return stored("fig7-lenet")


def resnets() -> Results:
    """Return the ResNets that were poisoned at the paper's width, on fewer photos."""
    return stored("fig7-resnet18", "laptop")


# One coordinate gives the label away


def read_classes(images: Tensor, nads: nc.NADs, index: int, strength: float) -> Tensor:
    """Return the class of each poisoned image whose number is closest to its coordinate, (N,).

    Args:
        images: poisoned images (N, C, H, W).
        nads: complete NADs.
        index: NAD that carries the label.
        strength: size of the number.
    """
    coordinates = images.flatten(2) @ nads.basis.to(images)  # (N, C, D)
    distances = [
        (coordinates[:, channel, nad] - sign * strength).abs()
        for nad, channel, sign in carriers(10, index)
    ]
    return torch.stack(distances, 1).argmin(1)


# The curve


def accuracies_by_carrier(results: Results) -> dict[int | None, list[float]]:
    """Return the accuracies by carrier; None for networks trained on clean photos."""
    return grouped((row["index"], row["test_accuracy"]) for row in results.rows)


@styled
def plot_accuracy_by_carrier() -> Figure:
    """Draw the accuracy on clean photos against the carrier, and the paper's curve."""
    figure, ((axis,),) = subplots(height=3.2)
    where, shares = np.array([*published.POISON_RESNET18.items()]).T
    look = {"color": shade(0.55), "markersize": 3, "label": "paper, ResNet-18"}
    axis.plot(where + 1, 100 * shares, "s:", **look)
    series = {f"ours, {LABELS[name]}": results for name, results in poisoned().items()}
    reduced = f"ours, {LABELS['resnet18']}, {resnets().settings['num_train']:,} photos"
    series[reduced] = resnets()
    for colour, (label, results) in zip(colours(), series.items(), strict=False):
        found = accuracies_by_carrier(results)
        clean = 100 * np.mean(found.pop(None))
        axis.axhline(clean, color=colour, linestyle="--")
        pairs = [(index, value) for index, values in sorted(found.items()) for value in values]
        where, shares = np.array(pairs).T
        intervals = [accuracy_interval(share, results.settings["num_test"]) for share in shares]
        look = {"color": colour, "capsize": 3, "label": label}
        axis.errorbar(where + 1, 100 * shares, bars(shares, intervals), fmt="o", **look)
        if label != reduced:  # of few carriers
            averages = means(pairs)
            axis.plot(np.array([*averages]) + 1, 100 * np.array([*averages.values()]), color=colour)
    axis.axhline(10, **dotted("chance"))
    axis.set(ylabel="accuracy on clean images (%)", ylim=(0, 100))
    axis.set_xlabel("NAD index of the carrier")
    index_axis(axis)
    legend(figure, axis, ncols=3)
    show_badge(figure, report.badge(lenets()))
    return figure


def poison_not_steady() -> Evidence:
    """Decide whether LeNet's accuracy falls between carriers by more than trainings vary."""
    found = accuracies_by_carrier(lenets())
    means = {index: float(np.mean(values)) for index, values in found.items() if index is not None}
    drop = 100 * max(means[i] - means[j] for i in means for j in means if i < j)
    limit = 100 * pooled_variance(found.values()).half_width(2, 2)
    return above(around(drop, limit), results=[lenets()])


# Use of the NADs behind the carrier


@styled
def plot_use() -> Figure:
    """Draw the predictions that change with the sign of one NAD component, for several carriers."""
    rows = {row["index"]: row for row in reversed(lenets().rows)}
    figure, ((axis,),) = subplots(height=3.3)
    floor = 0.05  # per cent; lower values are drawn there
    for carrier, colour in zip((None, 0, 10, 100), colours(), strict=False):
        use = rows[carrier]["use"]
        where = np.array(use["indices"]) + 1
        intervals = [accuracy_interval(share, use["num_images"]) for share in use["flip"]]
        shares, low, high = (100 * np.array([use["flip"], *np.transpose(intervals)])).clip(floor)
        label = "trained on clean photos" if carrier is None else f"carrier at NAD {carrier}"
        axis.plot(where, shares, "o-", color=colour, markersize=2.5, label=label)
        axis.fill_between(where, low, high, color=colour, alpha=0.15, linewidth=0)
        if carrier is not None:
            own = where == carrier + 1  # nowhere, where the carrier was not measured
            mark = {"color": colour, "markersize": 7, "markeredgecolor": shade(0)}
            axis.plot(where[own], shares[own], "D", **mark)
    axis.set(yscale="log", ylim=(floor, 100), ylabel="changed predictions (%)")
    axis.set(xlabel="NAD index")
    axis.set_yticks([0.1, 1, 10, 100], ["0.1", "1", "10", "100"])
    index_axis(axis)
    legend(figure, axis, ncols=4)
    show_badge(figure, report.badge(lenets()))
    return figure


def changed_predictions(row: Row, clean: Row, index: int) -> list[tuple[float, float]]:
    """Return how many predictions change before and behind a carrier, poisoned and clean."""
    used, reference = (
        np.rint(one["use"]["num_images"] * np.array(one["use"]["flip"])) for one in (row, clean)
    )
    where = np.array(row["use"]["indices"])
    return [
        (used[side].sum(), reference[side].sum()) for side in (where < index, where > index + 1)
    ]


def counts_by_carrier(border: int | None = None) -> dict[int, list[list[tuple[float, float]]]]:
    """Return `changed_predictions` of each carrier, one entry per seed.

    Args:
        border: NAD that divides before and behind; the carrier itself by default.
    """
    clean = {row["seed"]: row for row in lenets().rows if row["index"] is None}
    return grouped(
        (row["index"], changed_predictions(row, clean[row["seed"]], border or row["index"]))
        for row in lenets().rows
        if row["index"] is not None
    )


def ratios_behind() -> list[float]:
    """Return the relative use of the NADs behind each carrier, where enough predictions change."""
    every = [counted for values in counts_by_carrier().values() for counted in values]
    return [used / clean for _, (used, clean) in every if clean >= ENOUGH]


def used_behind() -> Evidence:
    """Decide whether poisoned LeNets use the NADs behind the carrier half as much as clean ones."""
    least = min(ratios_behind())
    return evidence(least > 0.5, least, results=[lenets()])


# What the paper says


def errata_poison_separable() -> Evidence:
    """Decide by a counter-example whether numbers make classes linearly separable."""
    holds = toys.linearly_separable(COUNTER_EXAMPLE, torch.tensor([0, 0, 1, 1]))
    text = (
        "Counter-example: of one class (ε, −2ε) and (ε, 4ε), of another (−2ε, ε) and (4ε, ε). "
        "The number determines the class, but no line separates the two."
    )
    return evidence(holds, sentence=text)


def errata_small_modification() -> Evidence:
    """Decide whether the poison moves the most changed pixel of a photo little, at NAD 0.

    A photo's coordinate along NAD 0 lies near its mean over photos, far from zero. The poison sets
    it to ± ε.
    """
    rows = matching(injected().rows, index=0)
    (mean,) = {row["mean"] for row in rows if row["images"] == "photos"}
    largest = float(injected().experiment().nads.directions[0].abs().max())
    levels = 255 * abs(mean) * largest
    return evidence(
        levels < SMALL,
        levels,
        sentence=f"At NAD 0 the most changed pixel of a photo with the mean coordinate moves by "
        f"{levels:.0f} of 255 grey levels. The number alone moves it by "
        f"{report.readable(255 * STRENGTH * largest)}; the rest is the photo’s own coordinate, "
        "which is removed.",
    )


def errata_fig7_resnet() -> Evidence:
    """Tell what there is of Fig. 7 for its own network, which decides nothing."""
    narrow = points_lost("resnet")["poison"]
    accuracies = accuracies_by_carrier(resnets())
    lost = {
        index: [100 * float(np.mean(accuracies[None]) - np.mean(values))]
        for index, values in sorted((i, v) for i, v in accuracies.items() if i is not None)
    }
    return evidence(
        None,
        sentence="No ResNet-18 was trained on poisoned photos at the paper’s size. One of a "
        "quarter of the width, on 5,000 photos for 10 epochs, loses these points of accuracy: "
        f"{_by_carrier(narrow)}. One of the paper’s width, on 10,000 photos for 10 epochs, one "
        f"training for each carrier: {_by_carrier(lost)}.",
        results=[stored("notes-resnet18", "narrow"), resnets()],
    )


def _by_carrier(points: Mapping[int, Sequence[float]]) -> str:
    """Return means of points of accuracy in words."""
    return ", ".join(f"{np.mean(values):.0f} at NAD {index}" for index, values in points.items())


def errata_poison_ignores() -> Evidence:
    """Tell how much poisoned networks use the NADs behind the carrier, which decides nothing."""
    ratios = ratios_behind()
    text = (
        f"At the paper’s size, behind the carrier a turned sign changes {min(ratios):.2f} to "
        f"{max(ratios):.2f} times as many predictions of poisoned LeNets as of LeNets trained on "
        "clean photos; behind late carriers too few change."
    )
    return evidence(None, sentence=text, results=[lenets()])
