"""Summaries of networks that were trained on orthogonally transformed photos: by kind of map, with
intervals.
"""

from typing import NamedTuple

import numpy as np

from nads_book.analysis.statistics import SeedVariance, grouped, pooled_variance
from nads_book.evidence import around
from nads_book.experiments import Estimate, Results, Row, Rows
from nads_book.report import LABELS

AS_THEY_ARE = "photos as they are"
BASES = {"pca": "PCA", "fourier": "Fourier", "random": "a random basis"}
BASES |= {name: f"{label}'s NADs" for name, label in LABELS.items()}


class KindOfMap(NamedTuple):
    """Means over the networks of one kind of map.

    Attributes:
        label: name of the kind.
        match: match of the mapped photos with the network, from 0 to 1.
        neighbours: mean correlation of neighbouring pixels.
        test_accuracy: accuracy on mapped test photos.
        train_accuracy: accuracy on mapped training photos.
        half: half of the 95 % interval of the test accuracy, in points.
        num_networks: number of networks.
    """

    label: str
    match: float
    neighbours: float
    test_accuracy: float
    train_accuracy: float
    half: float
    num_networks: int


def kind_of(row: Row) -> str:
    """Return the name of the kind of map that a network was trained on, whatever
    the random draw.
    """
    onto = "" if row["source"] == row["target"] else f" onto {BASES[row['target']]}"
    if row["order"] == "kept" and not onto and not row["signs"]:
        return AS_THEY_ARE
    signs = ", random signs" if row["signs"] and not onto else ""
    return f"{BASES[row['source']]}{onto}, {row['order']}{signs}"


def order_of(row: Row) -> str:
    """Return what a map does to the order of the coordinates."""
    if kind_of(row) == AS_THEY_ARE:
        return AS_THEY_ARE
    if row["target"] == "random":
        return "random"
    return {"kept": "order kept", "reversed": "order reversed"}.get(row["order"], "shuffled")


def variances(results: Results) -> tuple[SeedVariance, SeedVariance]:
    """Return the variance of trainings on one map, and of draws of one kind of map, pooled over
    kinds, in points.
    """
    cells = grouped(
        ((kind_of(row), row["draw"]), 100 * row["test_accuracy"]) for row in results.rows
    )
    kinds = grouped((kind, np.mean(values)) for (kind, _), values in cells.items())
    return pooled_variance(cells.values()), pooled_variance(kinds.values())


def half_interval(results: Results, *sides: Rows) -> float:
    """Return half of the 95 % interval of a mean accuracy, or of the difference of two, in points.

    Args:
        results: all networks of the job, whose spread is pooled.
        sides: the networks of each mean. Where they have several draws of a map, the draws may
            decide.
    """
    trainings, draws = variances(results)
    drawn = [count for side in sides if (count := len({row["draw"] for row in side})) > 1]
    return max(trainings.half_width(*map(len, sides)), draws.half_width(*drawn) if drawn else 0.0)


def difference_of(results: Results, one: Rows, other: Rows) -> Estimate:
    """Return by how many points the mean accuracy of some networks exceeds that of others, with its
    interval; see `half_interval`.
    """
    first, second = (
        float(np.mean([row["test_accuracy"] for row in side])) for side in (one, other)
    )
    return around(100 * (first - second), half_interval(results, one, other))


def by_kind(results: Results) -> list[KindOfMap]:
    """Return the means of each kind of map, the highest test accuracy first."""
    kinds = []
    fields = ("match", "neighbours", "test_accuracy", "train_accuracy")
    for label, same in grouped((kind_of(row), row) for row in results.rows).items():
        match, neighbours, test, train = (
            float(np.mean([row[key] or 0 for row in same])) for key in fields
        )
        half = half_interval(results, same)
        kinds.append(KindOfMap(label, match, neighbours, test, train, half, len(same)))
    return sorted(kinds, key=lambda kind: -kind.test_accuracy)
