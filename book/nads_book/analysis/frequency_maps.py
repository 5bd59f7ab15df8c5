"""Sweeps over frequencies as maps, and how well two maps agree, or one with itself.

A frequency k = (ky, kx) and its negative are one task: their waves differ by a sign, which swaps
the labels. `grid_frequencies` has one of each pair; these are the keys of every map here, but for
the published cells.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nads_book.analysis.statistics import (
    area_under_curve,
    grouped,
    rank_correlation,
    resampled,
    resampled_correlations,
    with_interval,
)
from nads_book.analysis.waves import grid_frequencies, negative, sampling_weights, strata, wrapped
from nads_book.experiments.results import Results
from nads_book.report import estimate
from nads_core.data.fourier import Frequency

LEARNED = 0.55  # accuracy above which a wave counts as learned
Pairs = list[tuple[float, float]]
WavePairs = list[tuple[Frequency, Frequency]]


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


def common_pairs(a: Mapping[Frequency, float], b: Mapping[Frequency, float]) -> Pairs:
    """Pair two maps where both have a value."""
    return [(value, b[k]) for k, value in a.items() if k in b]


def transposed_pairs(values: Mapping[Frequency, float]) -> Pairs:
    """Pair each task with that of the transposed wave, which has the same expected accuracy.

    The distributions of noise and initial weights are symmetric under transposition.
    """
    others = {k: transposed(k) for k in values}
    return [
        (values[k], values[other]) for k, other in others.items() if k < other and other in values
    ]


def negative_pairs(cells: Mapping[Frequency, float]) -> Pairs:
    """Pair k and -k in the two columns where the published grid is no copy: one task, trained
    twice.
    """
    return [
        (value, cells[negative(k)]) for k, value in cells.items() if k[1] in (0, -16) and k[0] > 0
    ]


def seed_pairs(results: Results) -> Pairs:
    """Pair the two seeds of each task."""
    return common_pairs(by_frequency(results, seed=0), by_frequency(results, seed=1))


@dataclass(frozen=True)
class Agreement:
    """The agreement of two accuracies of each task; the result of `agreement`.

    Args:
        num_pairs: number of pairs.
        difference: mean absolute difference in points, with its 95 % bootstrap interval over the
            pairs.
        correlation: rank correlation, with its interval; NaN for fewer than 8 pairs.
    """

    num_pairs: int
    difference: tuple[float, float, float]
    correlation: tuple[float, float, float]

    def cells(self) -> str:
        """Return three cells of a Markdown table."""
        return f"{self.num_pairs} | {estimate(self.difference)} | {estimate(self.correlation)}"


def transposed(k: Frequency) -> Frequency:
    """Return the task of the transposed wave."""
    turned = (k[1], k[0])
    return turned if turned in set(grid_frequencies()) else negative(turned)


@dataclass(frozen=True)
class SampledAgreement:
    """The agreement of a stratified sample of one map with another map; the result of
    `sampled_agreement`.

    Both are estimates for the whole grid, with 95 % bootstrap intervals within the strata.

    Args:
        num_waves: number of waves.
        area: area under the curve of the first map's values as predictors of what the second has
            learned.
        correlation: rank correlation.
    """

    num_waves: int
    area: tuple[float, float, float]
    correlation: tuple[float, float, float]


def sampled_agreement(
    architecture: str,
    values: Mapping[Frequency, float],
    truth: Mapping[Frequency, float],
    learned: float = LEARNED,
) -> SampledAgreement:
    """Compare two maps where both have a value, each wave weighted by its inverse sampling
    probability.

    Args:
        architecture: architecture whose strata the sample was drawn within, see
            `nads_book.analysis.waves.strata`.
        values: accuracies in [0, 1].
        truth: accuracies of the map that defines which waves are learned.
        learned: accuracy above which a wave is learned.
    """
    sample = [k for k in values if k in truth]
    weights = sampling_weights(architecture, sample)
    stratum = {k: number for number, part in enumerate(strata(architecture)) for k in part}
    a, b = (np.array([accuracies[k] for k in sample]) for accuracies in (values, truth))
    parts = [stratum[k] for k in sample]
    areas = resampled(
        lambda a, b, w: area_under_curve(a, b > learned, w), a, b, weights, strata=parts
    )
    ranks = resampled(
        lambda a, b, w: rank_correlation(a, b, weights=w), a, b, weights, strata=parts
    )
    return SampledAgreement(len(sample), with_interval(areas), with_interval(ranks))


def agreement(
    pairs: Sequence[tuple[float, float]], num_resamples: int = 2_000, seed: int = 0
) -> Agreement:
    """Compare pairs of accuracies in [0, 1].

    Raises:
        ValueError: if there is no pair.
    """
    if not pairs:
        raise ValueError("there are no pairs to compare")
    a, b = np.array(pairs).T
    differences = resampled(
        np.mean, 100 * np.abs(a - b), num_resamples=num_resamples, seed=seed
    )  # in points
    return Agreement(
        len(a), with_interval(differences), with_interval(resampled_correlations(a, b, seed=seed))
    )


def ordered_pairs(
    scores: Mapping[Frequency, float], truth: Mapping[Frequency, float]
) -> tuple[WavePairs, WavePairs]:
    """Return the pairs of a wave that is learned and one that is not, and those that the scores put
    in this order.

    Args:
        scores: score of each wave that is compared.
        truth: accuracies, which determine which waves are learned.
    """
    pairs = [(k, j) for k in scores for j in scores if truth[k] > LEARNED >= truth[j]]
    return pairs, [(k, j) for k, j in pairs if scores[k] > scores[j]]


def count_ordered(scores: Mapping[Frequency, float], truth: Mapping[Frequency, float]) -> str:
    """Return how many of the pairs are in order, such as "7 of 8": see `ordered_pairs`."""
    pairs, ordered = ordered_pairs(scores, truth)
    return f"{len(ordered)} of {len(pairs)}"


def gains_along(
    before: Mapping[Frequency, float], after: Mapping[Frequency, float], waves: Iterable[Frequency]
) -> tuple[np.ndarray, float]:
    """Return the gains in accuracy along waves, in points, and the standard error of their mean.

    Args:
        before: accuracies to compare with.
        after: accuracies of the same waves.
        waves: the waves to compare.
    """
    gains = 100 * np.array([after[k] - before[k] for k in waves])
    return gains, float(gains.std(ddof=1) / np.sqrt(len(gains)))
