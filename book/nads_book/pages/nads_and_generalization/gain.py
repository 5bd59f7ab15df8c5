"""At equal energy the gain counts: the registered experiment and its two replications."""

from functools import cache
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from nads_book import figures
from nads_book.analysis.prediction import predicted_accuracy
from nads_book.analysis.statistics import MANY, drawn_counts, with_interval
from nads_book.evidence import Estimate, Evidence, around, evidence
from nads_book.experiments import Results, Scored
from nads_book.studies import gain, stored

ARMS = {"free": "free", "frozen": "random", "taught": "learned"}  # first filters, as stored
NUM_GROUPS = 3  # of energies, in the figure


def results(name: str) -> Results:
    """Return the stored networks of a design."""
    return stored(f"law-{name}", "narrow" if name == "resnet18" else "paper")


@cache
def scored(name: str) -> Scored:
    """Return what the registered rule says of a design."""
    return results(name).experiment().score(results(name).rows)


def slope(name: str, arm: str) -> Estimate:
    """Return the points that one standard deviation of the log gain is worth, with ends."""
    value, low, high = scored(name).estimates[arm]["slope"]
    return value, low, high


def accuracies(name: str, arm: str) -> np.ndarray:
    """Return the mean accuracy along each direction, (n,)."""
    rows = results(name).rows
    index = np.array([row["index"] for row in rows])
    return np.bincount(index, gain.accuracies_of(rows, arm)) / np.bincount(index)


def factor(name: str) -> float:
    """Return the ratio of gains that one standard deviation of their logarithm is."""
    return float(np.exp(np.log(gain.load_design(name)["gains"]).std()))


def plot_arms(name: str = "lenet") -> Figure:
    """Draw the distance from the first-step law against the gain, at three energies."""
    design = gain.load_design(name)
    levels = np.unique(design["levels"])
    panels: dict[str, Any] = {}
    for arm in scored(name).estimates:
        off = 100 * (accuracies(name, arm) - predicted_accuracy(design["ratios"]))
        lines = panels[f"first filters {ARMS[arm]}"] = {}
        for shells in np.array_split(np.unique(design["shells"]), NUM_GROUPS):
            inside = np.isin(design["shells"], shells)
            cells = [inside & (design["levels"] == level) for level in levels]
            gains = [design["gains"][cell].mean() for cell in cells]
            halves = [2 * off[cell].std(ddof=1) / cell.sum() ** 0.5 for cell in cells]
            label = f"energy {design['energies'][inside].mean():.1f} of the mean"
            means = [off[cell].mean() for cell in cells]
            lines[label] = gains, list(map(around, means, halves))
    labels = ("gain of one 5 × 5 filter", "accuracy − law (points)")
    return figures.plot_lines(panels, *labels, [2, 4, 8], level=0)


@cache
def share_left(name: str) -> Estimate:
    """Return the share of the gain's effect that random first filters leave, with its interval.

    The two slopes share their directions, which are drawn together.
    """
    design, rows = gain.load_design(name), results(name).rows
    index = np.array([row["index"] for row in rows])
    columns = np.stack([*gain.causes(design).values()], 1)[index]
    columns = np.column_stack([(columns - columns.mean(0)) / columns.std(0), np.ones(len(index))])
    law = predicted_accuracy(design["ratios"])[index]
    off = np.stack([gain.accuracies_of(rows, arm) - law for arm in ("free", "frozen")], 1)
    # Normal equations by direction: a draw of directions is a weighted sum of them.
    members = [index == direction for direction in range(len(design["gains"]))]
    left = np.stack([columns[one].T @ columns[one] for one in members])
    right = np.stack([columns[one].T @ off[one] for one in members])
    weights = drawn_counts(range(len(members)), MANY // 4)
    solved = np.linalg.solve(np.tensordot(weights, left, 1), np.tensordot(weights, right, 1))[:, 0]
    return with_interval(solved[:, 1] / solved[:, 0])


# Claims


def gain_where_filters_learn() -> Evidence:
    """Decide whether LeNet sees the gain with learned first filters, and half as much without."""
    free, random, learned = (slope("lenet", arm) for arm in ARMS)
    holds = free[1] > 3 and learned[1] > 3 and random[2] < free[0] / 2
    return evidence(holds, *free, null=3, results=[results("lenet")])


def gain_in_resnet() -> Evidence:
    """Decide whether a random first layer leaves the ResNet-18 half of the gain's effect."""
    free, random = (slope("resnet18", arm) for arm in ("free", "frozen"))
    half = free[0] / 2
    holds = free[1] > 3 and random[1] > half
    return evidence(holds, *random, null=half, results=[results("resnet18")])


def gain_with_random_filters() -> Evidence:
    """Decide whether random first filters leave the small CNN half of the gain's effect."""
    share = share_left("cnn")
    failed = not scored("cnn").met["gain matters less than half as much, frozen"]
    return evidence(failed and share[1] > 0.5, *share, null=0.5, results=[results("cnn")])


def not_energy_alone() -> Evidence:
    """Decide by the registered criterion whether the gain improves on any curve of energy."""
    one = scored("lenet")
    value = one.estimates["free"]["with gain"][0]
    holds = one.met["closer than any function of energy, free"]
    return evidence(holds, value, results=[results("lenet")])
