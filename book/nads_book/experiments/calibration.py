"""Do certificates come true? Runs of one architecture, compared with each other and with all others together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nads_book.experiments.stored import load_study
from nads_core.directions.certificates import DirectionUncertainty
from nads_core.directions.covariance import leading_eigenpairs
from nads_core.directions.eigenpairs import Eigenpairs, find_eigenpairs
from nads_core.directions.first_networks import FirstNetworks
from nads_core.directions.moments import DenseMoments
from nads_core.directions.nads import NADs

_EXACT = 0.98  # certainty of the pool of the other runs, from which on it stands for the truth
_BINS = 10


@dataclass(frozen=True)
class Comparison:
    """What one run promised about its directions, and what became of it; those of certainty 0 promise nothing.

    Args:
        promised: (n,), expected squared cosines: with the exact direction of the same name where the pool of the other
            runs knows it, and with that of another run elsewhere.
        kept: (n,), squared cosines with the pool's direction, or their mean over all other runs.
        deviations: errors of the eigenvalues in units of their `eigenvalue_std`, where the pool knows them better.
    """

    promised: np.ndarray
    kept: np.ndarray
    deviations: np.ndarray


def compare_runs(
    runs: Sequence[tuple[DenseMoments, FirstNetworks]], image_shape: tuple[int, ...], symmetries: tuple[str, ...]
) -> list[Comparison]:
    """Compare each of several runs of one architecture with the pool of the others, and with each of them.

    Args:
        runs: moments and first networks of each, three at least.
        image_shape: of the input.
        symmetries: of the architecture.
    """
    if len(runs) < 3:
        raise ValueError(f"expected three runs at least, got {len(runs)}")
    count = runs[0][0].dimension
    whole = runs[0][0].empty()
    for moments, _ in runs:
        whole.merge(moments)
    found = [find_eigenpairs(*run, count, image_shape, symmetries=symmetries) for run in runs]
    comparisons = []
    for number, (moments, _) in enumerate(runs):
        first = runs[(number + 1) % len(runs)][1]  # of the pool, not of this run
        pool = find_eigenpairs(_without(whole, moments), first, count, image_shape, symmetries=symmetries)
        comparisons.append(_comparison(found[number], found[:number] + found[number + 1 :], pool))
    return comparisons


def compare_with_exact(
    runs: Sequence[tuple[DenseMoments, FirstNetworks]], covariance: Tensor, image_shape: tuple[int, ...]
) -> list[Comparison]:
    """Compare runs with the second moment that their networks have.

    Args:
        runs: moments and first networks of each.
        covariance: (D, D), with different eigenvalues.
        image_shape: of the input.
    """
    count = len(covariance)
    values, axes = leading_eigenpairs(covariance.double(), count)
    one, zero = torch.ones(count), torch.zeros(count)
    exact = Eigenpairs(values, axes, DirectionUncertainty(("",) * count, one, one, zero, one, ()), "none")
    return [_comparison(find_eigenpairs(*run, count, image_shape), [], exact) for run in runs]


def _without(whole: DenseMoments, part: DenseMoments) -> DenseMoments:
    """Return the moments of the networks of ``whole`` that are not in ``part``."""
    rest = whole.empty()
    (seen, noise), (own, own_noise) = whole.sums(), part.sums()
    count = whole.num_networks - part.num_networks
    rest.load_state_dict({"seen": seen - own, "noise": noise - own_noise, "num_networks": count, "buffer": []})
    return rest


def _comparison(run: Eigenpairs, others: list[Eigenpairs], pool: Eigenpairs) -> Comparison:
    own, known = run.certificates, pool.certificates
    in_pool = {name: index for index, name in enumerate(known.names)}
    agreement = torch.zeros(len(own))
    for other in others:
        place = {name: index for index, name in enumerate(other.certificates.names)}
        theirs = other.directions[[place[name] for name in own.names]]  # (n, D), of the same names
        agreement += (run.directions * theirs).sum(1).square().cpu() / len(others)
    promised, kept, deviations = [], [], []
    for index, name in enumerate(own.names):
        exact = in_pool[name]
        if not own.certainty[index]:
            continue  # nothing is promised
        if known.certainty[exact] > _EXACT:
            promised.append(float(own.certainty[index]))
            kept.append(float(run.directions[index].double() @ pool.directions[exact].double()) ** 2)
        else:
            promised.append(float(own.agreement[index]))
            kept.append(float(agreement[index]))
        if known.eigenvalue_std[exact] < 0.3 * own.eigenvalue_std[index]:
            error = float(run.eigenvalues[index] - pool.eigenvalues[exact])
            deviations.append(error / float(own.eigenvalue_std[index]))
    return Comparison(np.array(promised), np.array(kept), np.array(deviations))


def agreement(first: NADs, second: NADs) -> tuple[Tensor, Tensor]:
    """Return the squared cosines (n,) of the directions of one run with those of another.

    Returns:
        With the direction of the same index, and with the direction of the same name.
    """
    place = {name: index for index, name in enumerate(second.names)}
    squares = (first.directions.flatten(1) @ second.directions.flatten(1).T).square()
    named = torch.stack([squares[index, place[name]] for index, name in enumerate(first.names)])
    return squares.diagonal(), named


def measured_agreement() -> dict[str, Any]:
    """Return how shipped NADs agree with an independent run, index by index (benchmarks/reliability.py measures it)."""
    return load_study("agreement.json")


@dataclass(frozen=True)
class Bin:
    """Directions of about one certainty.

    Args:
        promised: mean of what was promised.
        kept: mean of what was found.
        error: standard error of ``kept`` over runs.
        share: of all directions about which something was promised.
    """

    promised: float
    kept: float
    error: float
    share: float


def reliability(comparisons: Sequence[Comparison]) -> list[Bin]:
    """Return a reliability diagram: for directions of about one certainty, what was promised and what was found."""
    total, bins = sum(len(c.promised) for c in comparisons), []
    for number in range(_BINS):
        inside = [np.minimum((c.promised * _BINS).astype(int), _BINS - 1) == number for c in comparisons]
        counts = np.array([mask.sum() for mask in inside])
        if not counts.any():
            continue
        sums = np.array([c.kept[mask].sum() for c, mask in zip(comparisons, inside, strict=True)])
        promised = sum(c.promised[mask].sum() for c, mask in zip(comparisons, inside, strict=True)) / counts.sum()
        kept = sums.sum() / counts.sum()
        error = np.sqrt(((sums - kept * counts) ** 2).sum()) / counts.sum()  # of a ratio of sums over runs
        bins.append(Bin(float(promised), float(kept), float(error), float(counts.sum() / total)))
    return bins


def coverage(comparisons: Sequence[Comparison]) -> float:
    """Return how often the exact eigenvalue lies within 1.96 standard deviations; 0.95 is promised."""
    deviations = np.concatenate([c.deviations for c in comparisons])
    return float((np.abs(deviations) < 1.96).mean())


def summary(comparisons: Sequence[Comparison], **facts: Any) -> dict[str, Any]:
    """Return what a file keeps of a reliability diagram."""
    deviations = sum(len(c.deviations) for c in comparisons)
    return facts | {
        "runs": len(comparisons), "bins": [asdict(entry) for entry in reliability(comparisons)],
        "eigenvalues": deviations, "coverage": coverage(comparisons),
    }  # fmt: skip


def measured_reliability() -> dict[str, dict[str, Any]]:
    """Return the reliability diagrams that ship with the package, by name (benchmarks/reliability.py measures them)."""
    return load_study("reliability.json")


def between(earlier: DenseMoments, later: DenseMoments) -> DenseMoments:
    """Return the moments of the networks that a run added from one checkpoint to the next."""
    return _without(later, earlier)
