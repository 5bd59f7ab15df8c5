"""Choosing an architecture: scores of random networks, published proxies, and counts."""

from collections.abc import Sequence
from functools import cache

import numpy as np
from matplotlib.figure import Figure

from nads_book.analysis.statistics import (
    drawn_counts,
    rank_correlation,
    rank_correlations,
    with_interval,
)
from nads_book.evidence import Evidence, Facts, above, evidence
from nads_book.experiments import Estimate
from nads_book.figures import style
from nads_book.pages.scored_rows import scored
from nads_book.report import estimate, fixed, markdown_table
from nads_book.studies import nas_contest as contest
from nads_book.studies.nas import GAIN, GOALS, on_paths

DIRECTIONS, COUNT, FITTED = "more directions", "convolutions minus poolings", "fitted counts"
LABELS = {
    DIRECTIONS: "number of directions",
    "jacov": "jacov",
    "synflow": "synflow",
    "params": "parameters",
    COUNT: "convolutions − poolings",
    FITTED: "counts, fitted",
    "sum": "jacov + synflow",
    "with NADs": "these + directions",
    "between": "class differences, tr(CB)",
    "between, each": "the same, median over networks",
    "between over within": "tr(CB) / tr(CW)",
    "fewer directions": "concentration, tr(C²)",
    "10 components": "energy in 10 principal components",
    "50 components": "energy in 50 principal components",
    "light tails": "equal norms of gradients over networks",
}
SHOWN = (*list(LABELS)[:8],)
PLACES = {
    "cifar10": "CIFAR-10",
    "cifar100": "CIFAR-100",
    "ImageNet16-120": "ImageNet16-120",
    "macro": "NAS-Bench-Macro",
}


def half(first: bool) -> list[str]:
    """Return the cells on which the score was chosen, or the others."""
    return [cell for cell in contest.proxies()["cifar10"] if contest.chosen_on(cell) is first]


def counts(cells: Sequence[str]) -> np.ndarray:
    """Return the identities, 3 x 3 and 1 x 1 convolutions and poolings on paths, (n, 4)."""
    return np.array([[on_paths(cell).count(digit) for digit in "0234"] for cell in cells])


@cache
def table_of(data: str = "cifar10", first: bool = False) -> dict[str, np.ndarray]:
    """Return scores, baselines and accuracies of the cells of one half, each (n,).

    The fitted counts are a linear model of the ranks of accuracy on the first half.
    """
    cells, others = half(first), half(True)
    found = contest.table_of(data, cells)
    found["sum"] = contest.ranks(found["jacov"]) + contest.ranks(found["synflow"])
    found["with NADs"] = found["sum"] + contest.ranks(found[DIRECTIONS])
    found[COUNT] = counts(cells) @ np.array([0, 1, 1, -1])
    goal = contest.ranks(contest.table_of("cifar10", others)["val_accuracy"])
    weights = np.linalg.lstsq(np.c_[np.ones(len(others)), counts(others)], goal, rcond=None)[0]
    found[FITTED] = np.c_[np.ones(len(cells)), counts(cells)] @ weights
    return found


@cache
def classes() -> np.ndarray:
    """Return the class of isomorphic cells of each cell of the second half, (n,)."""
    return np.array([contest.all_cells()[cell]["class"] for cell in half(False)])


def drawn(name: str, used: np.ndarray | None = None, data: str = "cifar10") -> np.ndarray:
    """Return the rank correlation of a score with accuracy, then those of draws, (draws,).

    Args:
        name: key of `table_of`.
        used: (n,) mask of the cells that count; all by default.
        data: data set of the accuracies.
    """
    rows = np.arange(len(classes())) if used is None else np.flatnonzero(used)
    found = table_of(data)
    return rank_correlations(
        found[name][rows], found["val_accuracy"][rows], drawn_counts(classes()[rows], contest.DRAWS)
    )


def correlation(name: str, used: np.ndarray | None = None, data: str = "cifar10") -> Estimate:
    """Return the rank correlation of a score with accuracy, with its interval; see `drawn`."""
    return with_interval(drawn(name, used, data))


def lead(name: str, other: str, used: np.ndarray | None = None, data: str = "cifar10") -> Estimate:
    """Return the lead of one score's correlation over that of another, with its interval."""
    return with_interval(drawn(name, used, data) - drawn(other, used, data))


def upper() -> np.ndarray:
    """Return which cells reach at least the median accuracy, (n,)."""
    accuracy = table_of()["val_accuracy"]
    return np.asarray(accuracy >= np.median(accuracy))


@style.styled
def plot_scores() -> Figure:
    """Draw rank correlations with accuracy on CIFAR-10, for all cells and for the better ones."""
    figure, ((axis,),) = style.subplots(height=3.6, grid="x")
    kinds = {
        "all cells": (None, "full", -0.12),
        "better half of the cells": (upper(), "none", 0.12),
    }
    for place, name in enumerate(SHOWN):
        for label, (used, fill, shift) in kinds.items():
            values, lengths = style.bar_ends([correlation(name, used)])
            colour = style.colours()[name in (DIRECTIONS, "with NADs")]
            dots = axis.errorbar(values, place + shift, xerr=lengths, fmt="o", color=colour)
            dots[0].set(fillstyle=fill, markersize=6, label="" if place else label)
    style.name_rows(axis, (LABELS[name] for name in SHOWN))
    axis.set(xlim=(-0.1, 1), xlabel="rank correlation with accuracy")
    style.legend(figure, axis, ncol=2)
    return figure


@style.styled
def plot_your_cell(cell: str, directions: float) -> Figure:
    """Draw directions and published test accuracy of the stored cells, and those of a reader's.

    Args:
        cell: six digits from 0 to 4.
        directions: effective number of directions that the reader measured.
    """
    cells = list(contest.proxies()["cifar10"])
    number = -1 / contest.table_of("cifar10", cells)[DIRECTIONS]
    accuracies = {name: float(row["test200_cifar10"]) for name, row in contest.all_cells().items()}
    accuracy = np.array([accuracies[name] for name in cells])
    figure, ((axis,),) = style.subplots(height=3.4)
    seen = number > 0  # not those without a path
    axis.plot(number[seen], accuracy[seen], ".", color=style.shade(0.5), label="stored cells")
    if cell in cells:
        place = cells.index(cell)
        axis.plot(number[place], accuracy[place], "o", markersize=6, label=f"{cell}, stored")
    axis.plot(directions, accuracies[cell], "D", markersize=6, label=f"{cell}, yours")
    axis.set(xlabel="effective number of directions", ylabel="test accuracy on CIFAR-10 (%)")
    style.log_ticks(axis, [3, 5, 10, 20])
    style.legend(figure, axis, ncol=3)
    return figure


def facts(used: np.ndarray | None = None) -> Facts:
    """Return size and number of networks of a claim about cells of the second half."""
    number = len(classes()) if used is None else int(used.sum())
    return {"size": "paper", "num_seeds": 1, "num_trainings": number}


def reaches(name: str) -> Evidence:
    """Decide by the registered rule, which has no "open", whether an interval lies above a goal."""
    found = scored("nas").estimates["cifar10"][name]
    return evidence(found[1] > GOALS[name], *found, **facts())


def nas_little_gain() -> Evidence:
    """Decide whether the gain over jacov and synflow is in the registered range."""
    gains = [lead("with NADs", "sum", data=data) for data in contest.DATA]
    holds = all(GAIN[0] <= value <= GAIN[1] for value, *_ in gains)
    return evidence(holds, *max(gains), **facts())


def all_scores() -> str:
    """Return the rank correlations of all scores on both halves of the cells."""
    rows = []
    for name, label in LABELS.items():
        first = rank_correlation(table_of(first=True)[name], table_of(first=True)["val_accuracy"])
        rows.append(
            [
                label,
                fixed(first, 2),
                estimate(correlation(name)),
                estimate(correlation(name, upper())),
            ]
        )
    head = ["score", f"first half ({len(half(True))})", f"second half ({len(half(False))})"]
    return markdown_table(rows, [*head, "second half, better cells"])


def benchmarks() -> str:
    """Return the contest on all benchmarks."""
    names = {"alone": DIRECTIONS, "rank sum": "sum"}
    keys = ("alone", "jacov", "synflow", "params", "flops", "rank sum", "with NADs", "gain")
    rows = [
        [
            LABELS.get(names.get(key, key), key),
            *(estimate(scored("nas").estimates[place].get(key, [np.nan] * 3)) for place in PLACES),
        ]
        for key in keys
    ]
    return markdown_table(rows, ["rank correlation", *PLACES.values()])


CLAIMS = {
    "nas-plain-count": lambda: above(lead(COUNT, DIRECTIONS), **facts()),
}
