"""How to spend a time budget: how many inputs and readouts a network, measured in a pilot.

From network i come R readouts with J contributions each, whose means are m_ir. The estimate of C errs, in the rows of
the leading directions A (k x D), by 1/N times

    v(J, R) = E || A Z ||^2 - || A E Z ||^2,      Z = (1/R) sum_r m_r m_r^T,

and N networks cost N t(J, R) seconds, so the best split of a budget has the least t(J, R) v(J, R). With contributions
that are independent given the network, and readouts that are alike in pairs, v is known for all J and R from a few:

    E || A Z ||^2 = X_1(J) / R + (1 - 1/R) X_2(J),      X_i(J) = a_i + b_i / J + c_i / J^2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from nads_core.directions.covariance import leading_subspace
from nads_core.directions.estimators import Estimator
from nads_core.directions.moments import DenseMoments, GramMoments
from nads_core.networks.ensembles import Ensemble
from nads_core.networks.threaded_ensemble import ThreadedEnsemble
from nads_core.runtime.timing import timed

_NETWORKS, _INPUTS, _READOUTS = 16, 16, 2  # of the pilot
_TIMED_NETWORKS = 4
_LARGEST_NUM_INPUTS = 128


@dataclass(frozen=True)
class Pilot:
    """What a pilot measured.

    Args:
        seconds: (3,): to draw a network, for one more input, and for one more readout of one input.
        same: (3,): a, b, c of X_1.
        pairs: (3,): a, b, c of X_2.
        signal: || A E Z ||^2.
        most_readouts: that the networks have; 1 where their last layer is not linear.
    """

    seconds: np.ndarray
    same: np.ndarray
    pairs: np.ndarray
    signal: float
    most_readouts: int

    def cost(self, num_inputs: int, inputs_per_contribution: int, readouts: int) -> float:
        """Return what is proportional to the squared error at equal time."""
        powers = (inputs_per_contribution / num_inputs) ** np.arange(3)  # 1, 1/J, 1/J^2
        variance = self.same @ powers / readouts + (1 - 1 / readouts) * (self.pairs @ powers) - self.signal
        seconds = self.seconds @ [1, num_inputs, num_inputs * readouts]
        return float(seconds * max(variance, 0.0))

    def best(self, estimator: Estimator) -> dict[str, int]:
        """Return the numbers of inputs and readouts that make the smallest error at equal time, if it leaves them open.

        At least two contributions a network, because their spread tells the noise.
        """
        size = estimator.inputs_per_contribution
        inputs = [2**i for i in range(8) if 2 * size <= 2**i <= _LARGEST_NUM_INPUTS]
        readouts = [2**i for i in range(12) if 2**i <= self.most_readouts]
        _, num_inputs, num_readouts = min((self.cost(k, size, r), k, r) for k in inputs for r in readouts)
        return _open_numbers(estimator, num_inputs, num_readouts)


def _open_numbers(estimator: Estimator, num_inputs: int, readouts: int) -> dict[str, int]:
    numbers = {"num_inputs": num_inputs, "readouts": readouts}
    return {name: numbers[name] for name in estimator.left_open}


def _with(estimator: Estimator, num_inputs: int, readouts: int) -> Estimator:
    return filled(estimator, _open_numbers(estimator, num_inputs, readouts))


def filled(estimator: Estimator, numbers: Mapping[str, int]) -> Estimator:
    """Return an estimator with these numbers in the fields that it leaves open."""
    return replace(estimator, **numbers)  # type: ignore[type-var]  # only a dataclass leaves fields open


def run_pilot(ensemble: Ensemble, estimator: Estimator, num_leading: int = 10) -> Pilot:
    """Measure costs and variances on a few networks.

    Args:
        ensemble: the networks.
        estimator: leaves its numbers open, as `Estimator.left_open` tells.
        num_leading: directions whose error counts.
    """
    most_readouts = (ensemble.num_features or 1) if "readouts" in estimator.left_open else 1
    readouts = min(_READOUTS, most_readouts)
    pair, long, wide = (_with(estimator, *numbers) for numbers in ((2, 1), (_INPUTS, 1), (_INPUTS, readouts)))
    draws = [wide.draw(ensemble, block)[:count] for block, count in ensemble.blocks(_NETWORKS)]
    crew = ThreadedEnsemble(ensemble)
    contributions = torch.cat(crew.map(lambda own, draw: wide.contributions(own, draw), draws))  # (P * R, J, D)

    size = min(_TIMED_NETWORKS, len(draws[0]))
    drawing = _seconds(crew, lambda own: long.draw(own, 0)) / ensemble.block_size

    def evaluating(variant: Estimator) -> float:
        draw = variant.draw(ensemble, 0)[:size]
        return _seconds(crew, lambda own: variant.contributions(own, draw)) / size

    pair_seconds, long_seconds, wide_seconds = map(evaluating, (pair, long, wide))  # of one network
    one_input = max((long_seconds - pair_seconds) / (_INPUTS - 2), long_seconds / _INPUTS / 4)  # forward and backward
    backward = (wide_seconds - long_seconds) / (_INPUTS * max(1, readouts - 1))
    backward = min(max(backward, 0.3 * one_input), 0.8 * one_input)  # whatever a busy machine made of the times
    costs = [drawing + max(0.0, long_seconds - _INPUTS * one_input), one_input - backward, backward]
    contributions = contributions.unflatten(0, (_NETWORKS, readouts)).cpu()
    return Pilot(np.array(costs), *variances(contributions, num_leading), most_readouts)


def _seconds(crew: ThreadedEnsemble, call: Callable[[Ensemble], object]) -> float:
    """Return the shortest of three times that a call took, when every thread of the crew makes it."""

    def all_threads() -> object:
        return crew.map(lambda own, _: call(own), range(crew.size))

    return min(timed(all_threads, crew.device)[1] for _ in range(3)) / crew.size


def variances(contributions: Tensor, num_leading: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Return the coefficients of X_1 and X_2, and || A E Z ||^2, from contributions (P, R, J, D).

    The leading directions are found in one half of the networks and used in the other, so that their choice does not
    flatter them.
    """
    half = len(contributions) // 2
    first, second = contributions[:half], contributions[half:]
    results = [
        _half_variances(measured, _leading_axes(found_in, num_leading))
        for found_in, measured in ((first, second), (second, first))
    ]
    return tuple((one + other) / 2 for one, other in zip(*results, strict=True))


def _leading_axes(contributions: Tensor, num_leading: int) -> Tensor:
    """Return A, (k, D), from contributions (P, R, J, D): each readout counts as a network."""
    networks, readouts, _, dimension = contributions.shape
    moments = (GramMoments if dimension > 2 * readouts * networks else DenseMoments)(dimension)
    moments.update(contributions.flatten(0, 1))
    return leading_subspace(moments, num_leading, (1, 1, dimension)).to(contributions.dtype)


def _half_variances(contributions: Tensor, axes: Tensor) -> tuple[np.ndarray, np.ndarray, float]:
    """Return what `variances` does, along given axes.

    With m_r the means of two readouts, || A m_r m_r^T ||^2 = (m_r . m_r) (A m_r . A m_r), and for two of them the inner
    product of A m_r m_r^T and A m_s m_s^T is (m_r . m_s) (A m_r . A m_s): `_products`.

    Args:
        contributions: (P, R, J, D).
        axes: A, (k, D).
    """
    networks, readouts, num_contributions, _ = contributions.shape
    sizes = [j for j in (1, 2, 4, 8) if j <= num_contributions]
    same, pairs = [], []  # X_1 and X_2 for each size
    for size in sizes:  # G groups of J = size contributions stand for as many draws of inputs
        used = contributions[:, :, : num_contributions // size * size]
        means = used.unflatten(2, (-1, size)).mean(3).transpose(1, 2)  # (P, R, G * J, D) -> (P, G, R, D)
        products = _products(means, axes)  # (P, G, R, R)
        diagonal = products.diagonal(dim1=-2, dim2=-1)  # (P, G, R): a readout with itself
        same.append(float(diagonal.mean()))
        others = products.sum((-2, -1)) - diagonal.sum(-1)  # (P, G): over R (R - 1) pairs of different readouts
        pairs.append(float(others.mean()) / max(1, readouts * (readouts - 1)))
    means = contributions.mean(2)  # (P, R, D)
    total = torch.einsum("prk,prd->kd", means @ axes.T, means).square().sum()  # || sum over networks of A Z R ||^2
    alone = _products(means, axes).sum()  # of which each network with itself
    # Different networks are independent: what is left, a pair of networks, is the square of the expectation.
    signal = float(total - alone) / (readouts**2 * networks * (networks - 1))
    return _quadratic(sizes, same), _quadratic(sizes, pairs), signal


def _products(means: Tensor, axes: Tensor) -> Tensor:
    """Return (m_r . m_s) (A m_r . A m_s) for all pairs of rows: means (..., R, D), axes (k, D) -> (..., R, R)."""
    along = means @ axes.T  # (..., R, k)
    return (means @ means.mT) * (along @ along.mT)


def _quadratic(sizes: list[int], values: list[float]) -> np.ndarray:
    """Fit values = a + b / J + c / J^2, none of them negative."""
    from scipy.optimize import nnls

    rows = np.array([[1, 1 / j, 1 / j**2] for j in sizes])  # (sizes, 3)
    return nnls(rows, np.array(values))[0]
