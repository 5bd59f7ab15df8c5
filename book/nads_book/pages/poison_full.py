"""The page ``07_poison``, the paper's own experiment: accuracy by carrier, use of the NADs behind the
carrier, and what the paper says about it.
"""

from collections.abc import Callable, Iterable
from functools import cache

import numpy as np
import torch
from matplotlib.figure import Figure

from nads_book import published
from nads_book.claims import decides
from nads_book.experiments import Results, formatting
from nads_book.experiments.evidence import Evidence, above, around, evidence
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
from nads_book.pages.poison import injected, narrow, trained
from nads_book.statistics import accuracy_interval, pooled_variance
from nads_book.studies import stored

ENOUGH = 100  # changed predictions of the clean network, from which on a ratio counts
SMALL = 8  # grey levels of 255, within which attacks call a change small
# Two samples of each of two classes, in units of the strength, each class with its own number.
COUNTER_EXAMPLE = torch.tensor([[[1.0, -2.0], [1.0, 4.0]], [[-2.0, 1.0], [4.0, 1.0]]])


@cache
def poisoned() -> Results:
    """Return the LeNets that were poisoned at the paper's size."""
    return stored("fig7-lenet")


@cache
def resnets() -> Results:
    """Return the ResNets that were poisoned at the paper's width, on fewer photos."""
    return stored("fig7-resnet18", "laptop")


@styled
def plot_accuracy_by_carrier() -> Figure:
    """Draw the accuracy on clean photos against the carrier, and the paper's curve."""
    figure, ((axis,),) = subplots(height=3.2)
    where, shares = np.array([*published.POISON_RESNET18.items()]).T
    look = {"color": shade(0.55), "markersize": 3, "label": "paper, ResNet-18"}
    axis.plot(where + 1, 100 * shares, "s:", **look)
    series = {"LeNet": poisoned(), "ResNet-18": resnets()}
    for colour, (name, results) in zip(colours(), series.items(), strict=False):
        rows = results.table
        clean = rows["index"].isna()
        axis.axhline(100 * rows["test_accuracy"][clean].mean(), color=colour, linestyle="--")
        shares = rows["test_accuracy"][~clean]
        intervals = [accuracy_interval(share, results.settings["num_test"]) for share in shares]
        label = f"ours, {name}, {results.settings['num_train']:,} photos"
        look = {"color": colour, "capsize": 3, "label": label}
        axis.errorbar(
            rows["index"][~clean] + 1, 100 * shares, bars(shares, intervals), fmt="o", **look
        )
        means = 100 * rows.groupby("index")["test_accuracy"].mean()
        axis.plot(means.index + 1, means, color=colour)
    axis.axhline(10, **dotted("chance"))
    axis.set(ylabel="accuracy on clean images (%)", ylim=(0, 100))
    axis.set_xlabel("NAD index of the carrier")
    index_axis(axis)
    legend(figure, axis, ncols=2)
    show_badge(figure, formatting.badge(poisoned()))
    return figure


@decides("poison-not-steady")
def _():
    """Decide whether LeNet's accuracy falls between carriers by more than trainings vary."""
    rows = poisoned().table
    rows["points"] = 100 * rows["test_accuracy"]
    means = rows.groupby("index")["points"].mean()
    drop = (means.cummax() - means).max()
    cells = rows.groupby("index", dropna=False)["points"]
    limit = pooled_variance(values for _, values in cells).half_width(2, 2)
    return above(around(drop, limit), results=[poisoned()])


# Use of the NADs behind the carrier


@styled
def plot_use() -> Figure:
    """Draw the predictions that change with the sign of one NAD component, for several carriers."""
    rows = {row["index"]: row for row in reversed(poisoned().rows)}
    figure, ((axis,),) = subplots(height=3.3)
    floor = 0.05  # per cent; lower values are drawn there
    for carrier, colour in zip((None, 0, 10, 100), colours(), strict=False):
        use = rows[carrier]["use"]
        where, num_images = np.array(use["indices"]), use["num_images"]
        intervals = [accuracy_interval(share, num_images) for share in use["flip"]]
        shares, low, high = (100 * np.array([use["flip"], *np.transpose(intervals)])).clip(floor)
        label = "trained on clean photos" if carrier is None else f"carrier at NAD {carrier}"
        axis.plot(where + 1, shares, "o-", color=colour, markersize=2.5, label=label)
        axis.fill_between(where + 1, low, high, color=colour, alpha=0.15, linewidth=0)
        own = where == carrier  # nowhere, where the carrier was not measured
        mark = {"color": colour, "markersize": 7, "markeredgecolor": shade(0)}
        axis.plot(where[own] + 1, shares[own], "D", **mark)
    axis.set(yscale="log", ylim=(floor, 100), xlabel="NAD index")
    axis.set_ylabel(f"changed predictions (% of {num_images:,})")
    axis.set_yticks([0.1, 1, 10, 100], ["0.1", "1", "10", "100"])
    index_axis(axis)
    legend(figure, axis, ncols=4)
    show_badge(figure, formatting.badge(poisoned()))
    return figure


@decides("used-behind")
def _():
    """Decide whether poisoned LeNets use the NADs behind the carrier half as much as clean ones of
    the same seed, where enough predictions change.
    """
    rows = poisoned().rows
    clean = {row["seed"]: row["use"] for row in rows if row["index"] is None}
    ratios = []
    for row in rows:
        if row["index"] is not None:
            uses = row["use"], clean[row["seed"]]
            # Four classes are on the next NAD
            behind = np.array(row["use"]["indices"]) > row["index"] + 1
            changed, expected = (use["num_images"] * (behind @ use["flip"]) for use in uses)
            if expected >= ENOUGH:
                ratios.append(changed / expected)
    return evidence(min(ratios) > 0.5, min(ratios), results=[poisoned()])


# What the paper says


@decides("errata-poison-separable")
def _():
    """Decide by a counter-example whether numbers make classes linearly separable: no line separates
    classes of equal means.
    """
    first, second = COUNTER_EXAMPLE.mean(1)
    return evidence(not torch.equal(first, second))


@decides("errata-small-modification")
def _():
    """Decide whether the poison moves the most changed pixel of a photo little, at NAD 0.

    A photo's coordinate along NAD 0 lies near its mean over photos, far from zero. The poison sets
    it to ± ε.
    """
    (mean,) = trained()["mean"][trained()["index"] == 0].unique()
    levels = 255 * abs(mean) * float(injected().experiment().nads.directions[0].abs().max())
    return evidence(levels < SMALL, levels)


@decides("errata-fig7-resnet", results=[narrow, resnets])
@decides("errata-poison-ignores", results=[poisoned])
def _(results: Iterable[Callable[[], Results]]) -> Evidence:
    """Say what there is of a statement that stored results do not decide."""
    return evidence(None, results=[load() for load in results])
