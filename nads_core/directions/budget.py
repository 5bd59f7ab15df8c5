"""How to spend a time budget: how many inputs and readouts a network, measured in a pilot.

From network i come R readouts with J contributions each, whose means are m_ir. The estimate of C errs, in the rows of
the leading directions A (k x D), by 1/N times

    v(J, R) = E || A Z ||^2 - || A E Z ||^2,      Z = (1/R) sum_r m_r m_r^T,

and N networks cost N t(J, R) seconds, so the best split of a budget has the least t(J, R) v(J, R). With contributions
that are independent given the network, and readouts that are alike in pairs, v is known for all J and R from a few:

    E || A Z ||^2 = X_1(J) / R + (1 - 1/R) X_2(J),      X_i(J) = a_i + b_i / J + c_i / J^2.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from nads_core.directions.covariance import DenseMoments, GramMoments, leading_subspace
from nads_core.directions.input_gradients import Estimator, SmoothedGradient
from nads_core.networks.crew import Crew
from nads_core.networks.ensembles import Ensemble

_NETWORKS, _INPUTS, _READOUTS = 16, 16, 2  # of the pilot
_TIMED = 4  # networks
_MOST_INPUTS = 128


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

    def cost(self, num_inputs: int, per_contribution: int, readouts: int) -> float:
        """Return what is proportional to the squared error at equal time."""
        powers = (per_contribution / num_inputs) ** np.arange(3)
        variance = self.same @ powers / readouts + (1 - 1 / readouts) * (self.pairs @ powers) - self.signal
        seconds = self.seconds @ [1, num_inputs, num_inputs * readouts]
        return float(seconds * max(variance, 0.0))

    def best(self, estimator: Estimator) -> Estimator:
        """Return the estimator with the numbers of inputs and readouts that make the smallest error at equal time.

        At least two contributions a network, because their spread tells the noise.
        """
        each = 2 if estimator.antithetic else 1
        inputs = [2**i for i in range(8) if 2 * each <= 2**i <= _MOST_INPUTS]
        readouts = [2**i for i in range(12) if 2**i <= self.most_readouts]
        _, num_inputs, count = min((self.cost(k, each, r), k, r) for k in inputs for r in readouts)
        return _with(estimator, num_inputs, count)


def _with(estimator: Estimator, num_inputs: int, readouts: int) -> Estimator:
    more = {"readouts": readouts} if isinstance(estimator, SmoothedGradient) else {}
    return replace(estimator, num_inputs=num_inputs, **more)


def run_pilot(ensemble: Ensemble, estimator: Estimator, num_leading: int = 10) -> Pilot:
    """Measure costs and variances on a few networks.

    Args:
        ensemble: the networks.
        estimator: `SmoothedGradient` or `MixedDerivative`; its numbers of inputs and readouts are left open.
        num_leading: directions whose error counts.
    """
    most = (ensemble.num_features or 1) if isinstance(estimator, SmoothedGradient) else 1
    readouts = min(_READOUTS, most)
    few, one, many = (_with(estimator, *numbers) for numbers in ((2, 1), (_INPUTS, 1), (_INPUTS, readouts)))
    draws = [many.draw(ensemble, block)[:count] for block, count in ensemble.blocks(_NETWORKS)]
    crew = Crew(ensemble)
    contributions = torch.cat(crew.map(lambda twin, draw: many.contributions(twin, draw), draws))

    size = min(_TIMED, len(draws[0]))
    drawing = _seconds(crew, lambda twin: one.draw(twin, 0)) / ensemble.block_size

    def evaluating(variant: Estimator) -> float:
        draw = variant.draw(ensemble, 0)[:size]
        return _seconds(crew, lambda twin: variant.contributions(twin, draw)) / size

    short, long, wide = map(evaluating, (few, one, many))
    each = max((long - short) / (_INPUTS - 2), long / _INPUTS / 4)
    backward = (wide - long) / (_INPUTS * max(1, readouts - 1))
    backward = min(max(backward, 0.3 * each), 0.8 * each)  # whatever a busy machine made of the times
    costs = [drawing + max(0.0, long - _INPUTS * each), each - backward, backward]
    contributions = contributions.unflatten(0, (_NETWORKS, readouts)).cpu()
    return Pilot(np.array(costs), *variances(contributions, num_leading), most)


def _seconds(crew: Crew, call: Callable[[Ensemble], object]) -> float:
    """Return the shortest of three times that a call took, when every thread of the crew makes it."""
    synchronize = torch.cuda.synchronize if crew.device.type == "cuda" else lambda: None
    times = []
    for _ in range(3):
        synchronize()
        start = time.perf_counter()
        crew.map(lambda twin, _: call(twin), range(crew.size))
        synchronize()
        times.append((time.perf_counter() - start) / crew.size)
    return min(times)


def variances(contributions: Tensor, num_leading: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Return the coefficients of X_1 and X_2, and || A E Z ||^2, from contributions (P, R, J, D).

    The leading directions are found in one half of the networks and used in the other, so that their choice does not
    flatter them.
    """
    count, readouts, most, dimension = contributions.shape
    halves, results = (contributions[: count // 2], contributions[count // 2 :]), []
    sizes = [j for j in (1, 2, 4, 8) if j <= most]
    for found_in, measured in (halves, halves[::-1]):
        moments = (GramMoments if dimension > 2 * readouts * len(found_in) else DenseMoments)(dimension)
        moments.update(found_in.flatten(0, 1))
        axes = leading_subspace(moments, num_leading, (1, 1, dimension)).to(measured.dtype)
        same, pairs = [], []
        for size in sizes:
            means = measured[:, :, : most // size * size].unflatten(2, (-1, size)).mean(3).transpose(1, 2)
            along = means @ axes.T  # (P / 2, groups of J, R, k)
            products = (means @ means.mT) * (along @ along.mT)  # (P / 2, groups, R, R)
            diagonal = products.diagonal(dim1=-2, dim2=-1)
            same.append(float(diagonal.mean()))
            others = products.sum((-2, -1)) - diagonal.sum(-1)
            pairs.append(float(others.mean()) / max(1, readouts * (readouts - 1)))
        means = measured.mean(2)  # (P / 2, R, D)
        along = means @ axes.T
        total = torch.einsum("prk,prd->kd", along, means).square().sum()
        alone = ((means @ means.mT) * (along @ along.mT)).sum()
        networks = len(measured)  # against each other: the square of the expectation
        signal = float(total - alone) / (readouts**2 * networks * (networks - 1))
        results.append((_quadratic(sizes, same), _quadratic(sizes, pairs), signal))
    first, second = results
    return tuple((a + b) / 2 for a, b in zip(first, second, strict=True))


def _quadratic(sizes: list[int], values: list[float]) -> np.ndarray:
    """Fit values = a + b / J + c / J^2, none of them negative."""
    from scipy.optimize import nnls

    rows = np.array([[1, 1 / j, 1 / j**2] for j in sizes])
    return nnls(rows, np.array(values))[0]
