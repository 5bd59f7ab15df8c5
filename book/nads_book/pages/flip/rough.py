"""ResNet-18: maps after which neighbouring pixels are uncorrelated, so that only the match differs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import permutations

import numpy as np

from nads_book.evidence import Evidence, evidence
from nads_book.pages.flip.stored import (
    around,
    components,
    difference,
    maps,
    mean,
    own,
)
from nads_book.studies.transform_summaries import KindOfMap, Row, by_kind, half_interval, kind_of

ROUGH = 0.05  # correlation of neighbouring pixels below which a map of ResNet-18 counts as rough


@cache
def rough_maps() -> list[KindOfMap]:
    """Return the kinds of ResNet-18's maps after which neighbouring pixels are uncorrelated."""
    return [kind for kind in by_kind(maps("resnet18")) if abs(kind.neighbours) < ROUGH]


def exact_rank_test(a: Sequence[float], b: Sequence[float]) -> tuple[float, float]:
    """Return Spearman's correlation of up to nine pairs without ties, and its exact two-sided p-value."""
    ranks = [np.argsort(np.argsort(values)) for values in (a, b)]
    count = len(ranks[0])
    every = np.array([*permutations(range(count))])
    products = (every * np.arange(count)).sum(1)  # of all orders; the correlation is linear in it
    centre = count * ((count - 1) / 2) ** 2
    scale = float(np.square(np.arange(count)).sum()) - centre
    found = float((ranks[0] * ranks[1]).sum()) - centre
    p_value = float(np.mean(np.abs(products - centre) >= abs(found) - 1e-9))
    return found / scale, p_value


def match_is_open() -> Evidence:
    """Decide whether match and accuracy have no significant rank correlation over equally rough maps."""
    rough = rough_maps()
    rho, p_value = exact_rank_test(
        [kind.match for kind in rough], [kind.test_accuracy for kind in rough]
    )
    # Fisher's transform: artanh(rho) has a standard error of about 1 / sqrt(n - 3).
    ends = np.tanh(np.arctanh(rho) + np.array([-1.96, 1.96]) / np.sqrt(len(rough) - 3))
    results = [maps("resnet18")]
    return evidence(p_value > 0.05, value=rho, interval=[*ends], null=0, results=results)


def best_matches_score_higher() -> Evidence:
    """Decide whether the rough maps that match best score higher, though accuracy does not follow any further."""
    best = [kind for kind in rough_maps() if kind.match >= 0.2]
    labels = {kind.label for kind in best}
    groups: tuple[list[Row], list[Row]] = ([], [])
    rough = {kind.label for kind in rough_maps()}
    for row in maps("resnet18").rows:
        if kind_of(row) in rough:
            groups[kind_of(row) not in labels].append(row)
    value = 100 * (mean(groups[0]) - mean(groups[1]))
    half = half_interval(maps("resnet18"), *groups)
    falling = sorted(best, key=lambda kind: kind.test_accuracy)
    no_further = falling == sorted(best, key=lambda kind: -kind.match)
    results = [maps("resnet18")]
    return evidence(value > half and no_further, results=results, **around(value, half))


def order_beats_others() -> Evidence:
    """Decide whether ResNet-18's order kept beats a random basis, a shuffled order, and one shuffled in octaves."""
    kept = components("resnet18", "kept")
    orders = [components("resnet18", order) for order in ("shuffled", "shuffled in octaves")]
    found = [difference("resnet18", kept, other) for other in ({"target": "random"}, *orders)]
    value, half = found[-1]
    ends = (value - half, value + half)
    holds = all(value > half for value, half in found)
    return evidence(holds, value=value, interval=ends, results=[maps("resnet18")])


def own_flip() -> Evidence:
    """Decide whether the flip by a network's own NADs is the worst: open while no difference is resolved."""
    one = own("resnet18", "reversed")
    found = [difference("resnet18", one, own(other, "reversed")) for other in ("lenet", "fourier")]
    unresolved = all(abs(value) < half for value, half in found)
    return evidence(None if unresolved else False, value=found[0][0], results=[maps("resnet18")])
