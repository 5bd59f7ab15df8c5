"""Responses of networks to shortcuts injected along NADs: means over seeds,
with their intervals.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from nads_book.analysis.statistics import grouped, pooled_variance
from nads_book.experiments import Results
from nads_book.studies import load_results

Condition = tuple[str, str, str, float | None]  # images, background, written, size


@dataclass(frozen=True, eq=False)
class Response:
    """The response to one kind of shortcut at n carriers.

    Args:
        indices: (n,) NAD indices, ascending.
        mean: (n,) means over seeds.
        low, high: (n,) 95 % intervals, which include the variance between trainings; infinite for
            one seed.
        deviation: (n,) deviations of the images' coordinates.
    """

    indices: np.ndarray
    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray
    deviation: np.ndarray


def condition_of(row: Mapping[str, object]) -> Condition:
    """Return the kind of shortcut that a row is about."""
    names = ("images", "background", "written", "size")
    return tuple(row[name] for name in names)  # type: ignore[return-value]


def responses(results: Results, measure: str = "class") -> dict[Condition, Response]:
    """Collect a sweep over carriers for every kind of shortcut.

    Args:
        results: results of a job such as ``notes-lenet``.
        measure: "class", the share of test images classified as the class of a wrong shortcut, less
            the share without a shortcut; "place", the same for all classes with shortcuts at that
            coordinate, which an ablated coordinate does not distinguish; "test_accuracy", on images
            prepared as those for training, without shortcuts; or "unprepared_accuracy", on images
            as they are.
    """
    about_shortcuts = measure in ("class", "place")

    def value(row: Mapping[str, Any]) -> float:
        if about_shortcuts:
            return row["followed"][measure] - row["unprompted"][measure]
        return row[measure]

    rows = [row for row in results.rows if row["index"] is not None]
    rows = [row for row in rows if "followed" in row or not about_shortcuts]
    collected = {}
    for condition, same in grouped((condition_of(row), row) for row in rows).items():
        by_index = dict(sorted(grouped((row["index"], row) for row in same).items()))
        of_seeds = [list(map(value, own)) for own in by_index.values()]
        table = [pooled_variance([one]).around(np.mean(one), len(one)) for one in of_seeds]
        deviation = [own[0]["deviation"] for own in by_index.values()]
        columns = (list(by_index), *zip(*table, strict=True), deviation)
        collected[condition] = Response(*map(np.array, columns))
    return collected


def follow_shares(results: Results, condition: Condition) -> dict[int, list[float]]:
    """Collect by carrier, in ascending order, the share that follows one kind of shortcut in each
    network.
    """
    rows = [row for row in results.rows if "followed" in row and condition_of(row) == condition]
    rows.sort(key=lambda row: (row["index"], row["seed"]))
    return grouped(
        (row["index"], row["followed"]["class"] - row["unprompted"]["class"]) for row in rows
    )


def by_epochs(name: str) -> dict[int, Results]:
    """Return the stored results of a job such as ``notes-lenet`` for each number of epochs, in
    ascending order.

    Results of less than one of the three seeds are left out.
    """
    stored = (
        load_results(name, preset) for preset in ("laptop", "epochs20", "epochs50", "epochs100")
    )
    kept = [results for results in stored if results and 3 * len(results.rows) >= results.num_units]
    return {results.settings["recipe"]["epochs"]: results for results in kept}
