"""Orders of waves: how well one set of accuracies or scores predicts which waves another has learned."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from nads_core.data.fourier import Frequency

LEARNED = 0.55  # accuracy above which a wave counts as learned
Pair = tuple[Frequency, Frequency]


def ordered_pairs(scores: Mapping[Frequency, float], truth: Mapping[Frequency, float]) -> tuple[list[Pair], list[Pair]]:
    """Return the pairs of a wave that is learned and one that is not, and those that the scores put in this order.

    Args:
        scores: score of each wave that is compared.
        truth: accuracies, which determine what is learned.
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
