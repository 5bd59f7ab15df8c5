"""What networks did with notes along NADs: means over seeds with their intervals, and what they depend on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nads_core.evidence.results import Results

Condition = tuple[str, str, str, float | None]  # images, background, written, size


@dataclass(frozen=True, eq=False)
class Response:
    """What came of one kind of note at n carriers.

    Args:
        indices: (n,) NAD indices, ascending.
        mean: (n,) over seeds.
        low, high: (n,) 95 % intervals, which include the variance between trainings; infinite for one seed.
        deviation: (n,) of what the images have there.
    """

    indices: np.ndarray
    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray
    deviation: np.ndarray


def condition_of(row: Mapping[str, object]) -> Condition:
    """Return the kind of note that a row is about."""
    return tuple(row[name] for name in ("images", "background", "written", "size"))  # type: ignore[return-value]


def responses(results: Results, measure: str = "class") -> dict[Condition, Response]:
    """Collect a sweep over carriers for every kind of note.

    Args:
        results: of a job such as ``notes-lenet``.
        measure: "class", the share of test images that are taken for the class of a wrong note, less the share that are
            without any note; "place", the same for all classes whose notes are at that coordinate, which is all that a
            hole can tell; "test_accuracy", on images prepared as those for training, without notes; or
            "unprepared_accuracy", on images as they are.
    """
    from scipy.stats import t

    found: dict[Condition, dict[int, list[tuple[float, float]]]] = {}
    for row in results.rows:
        if row["index"] is None or (measure in ("class", "place") and "followed" not in row):
            continue
        if measure in ("class", "place"):
            value = row["followed"][measure] - row["unprompted"][measure]
        else:
            value = row[measure]
        found.setdefault(condition_of(row), {}).setdefault(row["index"], []).append((value, row["deviation"]))
    collected = {}
    for condition, by_index in found.items():
        indices = sorted(by_index)
        values = [np.array(by_index[index])[:, 0] for index in indices]
        mean = np.array([of_seeds.mean() for of_seeds in values])
        half = [
            t.ppf(0.975, len(of_seeds) - 1) * of_seeds.std(ddof=1) / len(of_seeds) ** 0.5
            if len(of_seeds) > 1
            else np.inf
            for of_seeds in values
        ]
        deviation = np.array([by_index[index][0][1] for index in indices])
        collected[condition] = Response(np.array(indices), mean, mean - half, mean + half, deviation)
    return collected


@dataclass(frozen=True)
class Coefficient:
    """Of a regression, with its 95 % interval."""

    value: float
    low: float
    high: float


def regression(
    response: np.ndarray,
    predictors: Mapping[str, np.ndarray],
    clusters: Sequence[object],
    num_resamples: int = 500,
    seed: int = 0,
) -> dict[str, Coefficient]:
    """Regress a response on standardised predictors, by least squares.

    The intervals come from drawing whole clusters again: networks with notes at one NAD share its direction.

    Args:
        response: (n,).
        predictors: name -> (n,).
        clusters: (n,), the carrier of each.
        num_resamples: draws.
        seed: of the draws.

    Returns:
        By name, by how much the response rises for one standard deviation of the predictor, the others held.

    Raises:
        ValueError: if a predictor is constant.
    """
    names = list(predictors)
    columns = np.stack([np.asarray(predictors[name], dtype=float) for name in names], 1)  # (n, p)
    if not columns.std(0).all():
        raise ValueError(f"a predictor is constant: {[n for n, s in zip(names, columns.std(0), strict=True) if not s]}")
    columns = (columns - columns.mean(0)) / columns.std(0)
    design = np.concatenate([columns, np.ones((len(columns), 1))], 1)
    response, labels = np.asarray(response, dtype=float), np.asarray(clusters)
    parts = [np.flatnonzero(labels == label) for label in dict.fromkeys(labels.tolist())]
    rng = np.random.default_rng(seed)
    draws = [np.arange(len(response))]
    draws += [
        np.concatenate([parts[i] for i in rng.integers(len(parts), size=len(parts))]) for _ in range(num_resamples)
    ]
    fits = np.array([np.linalg.lstsq(design[draw], response[draw], rcond=None)[0][:-1] for draw in draws])
    low, high = np.quantile(fits[1:], (0.025, 0.975), axis=0)
    return {name: Coefficient(float(fits[0, i]), float(low[i]), float(high[i])) for i, name in enumerate(names)}
