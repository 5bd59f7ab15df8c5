"""Sweeps over frequencies as maps, and how well two maps agree, or one with itself.

A frequency k = (ky, kx) and its negative are one task: their waves differ by a sign, which swaps
the labels. `grid_frequencies` has one of each pair; these are the keys of every map here, but for
the published cells.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from nads_book.analysis.published import fourier_accuracies
from nads_book.analysis.statistics import grouped
from nads_book.analysis.waves import grid_frequencies, negative, wrapped
from nads_book.experiments import Results
from nads_core.data.fourier import Frequency

LEARNED = 0.55  # accuracy above which a wave counts as learned
Pairs = list[tuple[float, float]]


def mirrored(k: Frequency) -> Frequency:
    """Return the frequency of the left-right mirror image, which in general is another task."""
    return wrapped(k[0], -k[1])


def by_frequency(
    results: Results, field: str = "test_accuracy", seed: int | None = None
) -> dict[Frequency, Any]:
    """Return a field of a sweep for each frequency: the mean over seeds, or the value of one seed.

    ``field="iterations"`` gives arrays, the median number of steps to each loss, infinite if it is
    never reached.
    """
    values = grouped(
        (tuple(row["frequency"]), row[field])
        for row in results.rows
        if seed is None or row["seed"] == seed
    )
    if field == "iterations":
        return {
            k: np.median(np.where(np.array(v) < 0, np.inf, v), axis=0) for k, v in values.items()
        }
    return {k: float(np.mean(v)) for k, v in values.items()}


def copied_cells(cells: Mapping[Frequency, float]) -> tuple[int, int]:
    """Count the cells of a grid that equal their left-right mirror image exactly, and those that
    have one.
    """
    others = [k for k in cells if mirrored(k) != k]
    return sum(cells[k] == cells[mirrored(k)] for k in others), len(others)


def of_tasks(cells: Mapping[Frequency, float], right: bool | None = None) -> dict[Frequency, float]:
    """Return the published value of each task: the mean of its two cells, k and -k, or that of one
    half of the grid.
    """
    if right is None:
        return {k: (cells[k] + cells[negative(k)]) / 2 for k in grid_frequencies()}
    sign = 1 if right else -1
    return {k: cells[k if sign * k[1] >= 0 else negative(k)] for k in grid_frequencies()}


@cache
def published_accuracies(name: str, right: bool | None = None) -> Mapping[Frequency, float]:
    """Return the authors' test accuracies of a network by wave, of `of_tasks`, in [0, 1]."""
    return of_tasks(fourier_accuracies(name), right)


def common_pairs(a: Mapping[Frequency, float], b: Mapping[Frequency, float]) -> Pairs:
    """Pair two maps where both have a value."""
    return [(value, b[k]) for k, value in a.items() if k in b]


def seed_pairs(results: Results) -> Pairs:
    """Pair the two seeds of each task."""
    return common_pairs(by_frequency(results, seed=0), by_frequency(results, seed=1))
