"""Does the match of photos and network explain the cost, or their smoothness?"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from scipy.stats import t

from nads_book import figures, report
from nads_book.analysis import statistics
from nads_book.evidence import Estimate, Evidence, above, around, evidence
from nads_book.experiments import matching
from nads_book.pages.flip.stored import (
    components,
    difference,
    maps,
    mean,
)
from nads_book.studies import stored
from nads_book.studies.transform_summaries import (
    AS_THEY_ARE,
    KindOfMap,
    Row,
    by_kind,
    kind_of,
    order_of,
)

COLUMNS = {"match": "match", "correlation of neighbouring pixels": "neighbours"}


def plot_maps(name: str, upright: bool = True) -> Figure:
    """Draw the accuracy of each kind of map against match and smoothness; lines connect an order
    with its reverse.

    Args:
        name: network.
        upright: whether photos as they are belong to it.
    """
    results = maps(name)
    kinds = {kind.label: kind for kind in by_kind(results)}
    example: dict[str, Row] = {}
    for row in results.rows:
        example.setdefault(kind_of(row), row)
    orders = [AS_THEY_ARE, "order kept", "shuffled", "order reversed", "random"]
    groups = {
        order: [kinds[label] for label, row in example.items() if order_of(row) == order]
        for order in orders
    }
    if not upright:
        groups[AS_THEY_ARE] = []  # its colour stays free
    places = {
        (row["source"], row["target"], row["order"]): kinds[label]
        for label, row in example.items()
        if not (row["source"] == row["target"] and row["signs"])
        and (upright or label != AS_THEY_ARE)
    }
    pairs = [
        (one, places[source, target, "reversed"])
        for (source, target, order), one in places.items()
        if order == "kept" and (source, target, "reversed") in places
    ]

    def points(some: Sequence[KindOfMap], key: str) -> tuple[list[float], list[float]]:
        return [getattr(kind, key) for kind in some], [kind.test_accuracy for kind in some]

    panels = {
        label: {order: points(some, key) for order, some in groups.items()}
        for label, key in COLUMNS.items()
    }
    lines = [[points(pair, key) for pair in pairs] for key in COLUMNS.values()]
    level = {}
    if name == "lenet":  # logistic regression was trained at its size
        level = {"logistic regression": mean(stored("maps-logreg", "laptop").rows)}
    badge = report.badge(results)
    return figures.plot_scatter(panels, level, lines, badge=badge)


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


def match_goes_with_smoothness() -> Evidence:
    """Decide whether match and smoothness are so correlated over LeNet's maps that they cannot be
    distinguished.
    """
    together = regressed("lenet").together
    return evidence(together > 0.9, together, results=[maps("lenet")])


def equally_rough() -> Evidence:
    """Decide whether LeNet scores more on that of two equally rough sets which matches less."""
    kept, back = (components("resnet18", order) for order in ("kept", "reversed"))
    lead = difference("lenet", back, kept)
    matches = [mean(matching(maps("lenet").rows, **side), "match") for side in (kept, back)]
    holds = lead[1] > 0 and 0.05 > matches[0] > matches[1]
    return evidence(holds, *lead, null=0, results=[maps("lenet")])


def smoothness_counts(name: str) -> Evidence:
    """Decide whether smoother maps score more, with the match held."""
    effect = regressed(name).effects["smoothness"]
    return evidence(effect[2] > 0, *effect, null=0, results=[maps(name)])


def match_over_fourier() -> Evidence:
    """Decide whether principal components on LeNet's NADs score more than on the Fourier basis."""
    lead = difference("lenet", components("lenet", "kept"), components("fourier", "kept"))
    return above(lead, results=[maps("lenet")])


def order_within_octaves() -> Evidence:
    """Decide whether the order within an octave of indices is worth less than 1.5 points to
    LeNet.
    """
    kept, octaves = (components("lenet", order) for order in ("kept", "shuffled in octaves"))
    lead = difference("lenet", kept, octaves)
    return evidence(-1.5 < lead[1] and lead[2] < 1.5, *lead, results=[maps("lenet")])
