"""Responses of networks to shortcuts injected along NADs: means over seeds, with their intervals."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from nads_book.analysis.statistics import pooled_variance
from nads_book.experiments.results import Results
from nads_book.studies import load_results

Condition = tuple[str, str, str, float | None]  # images, background, written, size


@dataclass(frozen=True, eq=False)
class Response:
    """The response to one kind of shortcut at n carriers.

    Args:
        indices: (n,) NAD indices, ascending.
        mean: (n,) means over seeds.
        low, high: (n,) 95 % intervals, which include the variance between trainings; infinite for one seed.
        deviation: (n,) deviations of the images' coordinates.
    """

    indices: np.ndarray
    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray
    deviation: np.ndarray


def condition_of(row: Mapping[str, object]) -> Condition:
    """Return the kind of shortcut that a row is about."""
    return tuple(row[name] for name in ("images", "background", "written", "size"))  # type: ignore[return-value]


def responses(results: Results, measure: str = "class") -> dict[Condition, Response]:
    """Collect a sweep over carriers for every kind of shortcut.

    Args:
        results: results of a job such as ``notes-lenet``.
        measure: "class", the share of test images classified as the class of a wrong shortcut, less the share without a
            shortcut; "place", the same for all classes with shortcuts at that coordinate, which an ablated coordinate
            does not distinguish; "test_accuracy", on images prepared as those for training, without shortcuts; or
            "unprepared_accuracy", on images as they are.
    """
    by_condition: dict[Condition, dict[int, list[tuple[float, float]]]] = {}
    about_shortcuts = measure in ("class", "place")
    for row in results.rows:
        if row["index"] is None or (about_shortcuts and "followed" not in row):
            continue
        value = (
            row["followed"][measure] - row["unprompted"][measure]
            if about_shortcuts
            else row[measure]
        )
        by_condition.setdefault(condition_of(row), {}).setdefault(row["index"], []).append(
            (value, row["deviation"])
        )
    collected = {}
    for condition, by_index in by_condition.items():
        indices = sorted(by_index)
        values = [[value for value, _ in by_index[index]] for index in indices]
        mean = np.array([np.mean(of_seeds) for of_seeds in values])
        half = [pooled_variance([of_seeds]).half_width(len(of_seeds)) for of_seeds in values]
        deviation = np.array([by_index[index][0][1] for index in indices])
        collected[condition] = Response(
            np.array(indices), mean, mean - half, mean + half, deviation
        )
    return collected


def follow_shares(results: Results, condition: Condition) -> dict[int, list[float]]:
    """Collect by carrier, in ascending order, the share that follows one kind of shortcut in each network."""
    shares: dict[int, list[float]] = {}
    for row in sorted(
        (row for row in results.rows if "followed" in row),
        key=lambda row: (row["index"], row["seed"]),
    ):
        if condition_of(row) == condition:
            shares.setdefault(row["index"], []).append(
                row["followed"]["class"] - row["unprompted"]["class"]
            )
    return shares


def by_epochs(name: str) -> dict[int, Results]:
    """Return the stored results of a job such as ``notes-lenet`` for each number of epochs, in ascending order.

    Results of less than one of the three seeds are left out.
    """
    stored = (
        load_results(name, preset) for preset in ("laptop", "epochs20", "epochs50", "epochs100")
    )
    kept = [results for results in stored if results and 3 * len(results.rows) >= results.num_units]
    return {results.settings["recipe"]["epochs"]: results for results in kept}
