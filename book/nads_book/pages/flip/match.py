"""Does the match of photos and network explain the cost, or their smoothness?"""

from collections.abc import Iterable, Mapping
from functools import cache
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from scipy.stats import t

from nads_book import report
from nads_book.analysis import statistics
from nads_book.evidence import Estimate, Evidence, around, evidence
from nads_book.figures.style import (
    colours,
    dotted,
    legend,
    panel_row,
    shade,
    show_badge,
    styled,
)
from nads_book.pages.flip.stored import maps, mean
from nads_book.studies import stored
from nads_book.studies.transform_summaries import (
    AS_THEY_ARE,
    KindOfMap,
    by_kind,
    kind_of,
    order_of,
)

ORDERS = {  # of coordinates -> marker
    AS_THEY_ARE: "o",
    "order kept": "^",
    "shuffled": "s",
    "order reversed": "v",
    "random": "D",
}
COLUMNS = {"match": "match", "correlation of neighbouring pixels": "neighbours"}


@styled
def plot_maps(name: str, upright: bool = True) -> Figure:
    """Draw the accuracy of each kind of map against match and smoothness; lines connect an order
    with its reverse.

    Args:
        name: network.
        upright: whether photos as they are belong to it.
    """
    results = maps(name)
    kinds = {kind.label: kind for kind in by_kind(results)}
    example = {kind_of(row): row for row in reversed(results.rows)}
    if not upright:
        del example[AS_THEY_ARE]
    places = {
        (row["source"], row["target"], row["order"]): kinds[label]
        for label, row in example.items()
        if not (row["source"] == row["target"] and row["signs"])
    }
    pairs = [
        (one, places[source, target, "reversed"])
        for (source, target, order), one in places.items()
        if order == "kept" and (source, target, "reversed") in places
    ]
    figure, axes = panel_row(["", ""], 3.2, ylabel="test accuracy (%)", sharey=True)
    for axis, (xlabel, key) in zip(axes, COLUMNS.items(), strict=True):

        def places_of(some: Iterable[KindOfMap], key: str = key) -> np.ndarray:
            found = [(getattr(kind, key), 100 * kind.test_accuracy) for kind in some]
            return np.array(found).reshape(-1, 2).T

        for pair in pairs:
            axis.plot(*places_of(pair), color=shade(0.6), linewidth=0.8, zorder=0)
        for colour, (order, marker) in zip(colours(), ORDERS.items(), strict=False):
            some = [kinds[label] for label, row in example.items() if order_of(row) == order]
            if some:
                axis.plot(*places_of(some), marker, color=colour, alpha=0.75, label=order)
        if name == "lenet":  # logistic regression was trained at its size
            level = 100 * mean(stored("maps-logreg", "laptop").rows)
            axis.axhline(level, **dotted("logistic regression", 0.2))
        axis.set_xlabel(xlabel)
    legend(figure, axes[0], ncols=3)
    show_badge(figure, report.badge(results))
    return figure


class Regression(NamedTuple):
    """What match and smoothness say about the accuracy of kinds of maps.

    Attributes:
        effects: points for one standard deviation of each, the other held, with Student's interval.
        alone: share of the variance that each explains alone.
        together: rank correlation of the two.
    """

    effects: Mapping[str, Estimate]
    alone: Mapping[str, float]
    together: float


@cache
def regressed(name: str, without: str = "") -> Regression:
    """Regress the accuracy of a network on match and smoothness, over maps that take the picture.

    Args:
        name: network.
        without: basis whose maps are left out.
    """
    chosen = {
        kind_of(row)
        for row in maps(name).rows
        if order_of(row) != AS_THEY_ARE and row["target"] != without
    }
    kinds = [kind for kind in by_kind(maps(name)) if kind.label in chosen]
    columns = np.array([[kind.match, kind.neighbours] for kind in kinds])
    accuracies = 100 * np.array([kind.test_accuracy for kind in kinds])
    standard = (columns - columns.mean(0)) / columns.std(0)
    design = np.column_stack([standard, np.ones(len(kinds))])  # (n, 3)
    fitted, squares, *_ = np.linalg.lstsq(design, accuracies, rcond=None)
    degrees = len(kinds) - design.shape[1]
    errors = np.sqrt(squares / degrees * np.diag(np.linalg.inv(design.T @ design)))
    halves = t.ppf(0.975, degrees) * errors
    names = ("match", "smoothness")
    effects = dict(zip(names, map(around, fitted.tolist(), halves.tolist()), strict=False))
    alone = {
        key: float(np.corrcoef(values, accuracies)[0, 1] ** 2)
        for key, values in zip(names, columns.T, strict=True)
    }
    return Regression(effects, alone, statistics.rank_correlation(*columns.T))


def match_with_smoothness() -> Evidence:
    """Decide whether match and smoothness are so correlated over LeNet's maps that they cannot be
    distinguished.
    """
    together = regressed("lenet").together
    return evidence(together > 0.9, together, results=[maps("lenet")])
