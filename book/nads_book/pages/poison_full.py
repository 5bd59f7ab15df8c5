"""The page ``07_poison``, the paper's own experiment: accuracy by carrier, use of the NADs behind
the carrier, and what the paper says about it.
"""

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure

from nads_book import figures, published
from nads_book.claims import decides
from nads_book.experiments import Results, formatting
from nads_book.experiments.evidence import Evidence, above, around, evidence
from nads_book.pages.poison import SPAN, injected, narrow, trained
from nads_book.statistics import pooled_variance
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


def plot_accuracy_by_carrier() -> Figure:
    """Draw the accuracy on clean photos against the carrier, and the paper's curve."""
    curves: dict[str, Any] = {"paper, ResNet-18": 100 * pd.Series(published.POISON_RESNET18)}
    for name, results in {"LeNet": poisoned(), "ResNet-18": resnets()}.items():
        rows = results.table
        points = 100 * rows["test_accuracy"]
        clean = points[rows["index"].isna()].mean()
        label = f"ours, {name}, {results.settings['num_train']:,} photos (clean: {clean:.0f} %)"
        curves[label] = points.groupby(rows["index"]).agg(SPAN)
    badge = formatting.badge(poisoned())
    return figures.plot_by_index(curves, "accuracy on clean images (%)", level=10, badge=badge)


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
    """Decide by a counter-example whether numbers make classes linearly separable: no line
    separates classes of equal means.
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
