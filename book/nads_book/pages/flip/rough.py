"""ResNet-18: maps after which neighbouring pixels are uncorrelated, so that only the match
differs.
"""

from functools import cache

import numpy as np
from scipy.stats import permutation_test, rankdata

from nads_book.evidence import Evidence, evidence
from nads_book.pages.flip.stored import (
    components,
    difference,
    maps,
)
from nads_book.studies.transform_summaries import KindOfMap, by_kind

ROUGH = 0.05  # correlation of neighbouring pixels below which a map of ResNet-18 counts as rough


@cache
def rough_maps() -> list[KindOfMap]:
    """Return the kinds of ResNet-18's maps after which neighbouring pixels are uncorrelated."""
    return [kind for kind in by_kind(maps("resnet18")) if abs(kind.neighbours) < ROUGH]


def match_open() -> Evidence:
    """Decide whether match and accuracy have no significant rank correlation over equally rough
    maps.

    The p-value is exact, from all orders of the maps.
    """
    matches, accuracies = rankdata(
        [(kind.match, kind.test_accuracy) for kind in rough_maps()], axis=0
    ).T

    def products(order: np.ndarray, axis: int) -> np.ndarray:
        return (order * accuracies).sum(axis)

    exact = permutation_test(
        (matches,), products, permutation_type="pairings", n_resamples=np.inf, vectorized=True
    )
    rho = np.corrcoef(matches, accuracies)[0, 1]
    # Fisher's transform: artanh(rho) has a standard error of about 1 / sqrt(n - 3).
    half = 1.96 / (len(matches) - 3) ** 0.5
    ends = np.tanh(np.arctanh(rho) + np.array([-half, half]))
    return evidence(exact.pvalue > 0.05, rho, *ends, null=0, results=[maps("resnet18")])


def order_beats_shuffled() -> Evidence:
    """Decide whether ResNet-18's order kept beats a random basis, and not a shuffled order or one
    shuffled in octaves.
    """
    kept = components("resnet18", "kept")
    orders = [components("resnet18", order) for order in ("shuffled", "shuffled in octaves")]
    found = [difference("resnet18", kept, other) for other in ({"target": "random"}, *orders)]
    random, *shuffled = (low > 0 for _, low, _ in found)
    return evidence(random and not all(shuffled), *found[-1], results=[maps("resnet18")])
