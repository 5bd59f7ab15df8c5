"""From random weights to test accuracy: the first-step law, and how well an estimate orders measured accuracies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from nads_core.directions import NADs
from nads_core.evidence.experiments import Results, direction_of
from nads_core.evidence.waves import grid_frequencies


@dataclass(frozen=True, eq=False)
class Family:
    """Directions v with the test accuracies that were measured on D(v).

    Args:
        keys: NAD indices, or frequencies, in ascending order; n of them.
        directions: (n, C, H, W), unit norm.
        accuracies: (n,) in [0, 1], means over seeds.
        num_test: (n,) test samples behind each, over all seeds.
        num_train: training samples of each network.
        noise_std: sigma of D(v).
    """

    keys: Sequence
    directions: Tensor
    accuracies: np.ndarray
    num_test: np.ndarray
    num_train: int = 10_000
    noise_std: float = 1.0

    def __len__(self) -> int:
        return len(self.keys)

    def first_below(self, level: float) -> object | None:
        """Return the first key at which the falling fit of the accuracies is below a level, None if there is none."""
        return next(
            (key for key, value in zip(self.keys, falling_fit(self.accuracies), strict=True) if value < level), None
        )

    @classmethod
    def of(cls, results: Results) -> Family:
        """Collect the rows of one sweep over directions, averaged over seeds.

        Raises:
            ValueError: if there are no rows yet.
        """
        if not results.rows:
            raise ValueError(f"{results.job} has no results yet: run it first")
        job, found = results.experiment(), {}
        for row in results.rows:
            name = "index" if "index" in row else "frequency"
            key = tuple(row[name]) if name == "frequency" else row[name]
            found.setdefault(key, []).append(row["test_accuracy"])
        keys = sorted(found)
        return cls(
            keys,
            torch.stack([direction_of(job, {name: key}) for key in keys]),
            np.array([np.mean(found[key]) for key in keys]),
            np.array([job.num_test * len(found[key]) for key in keys]),
            job.num_train,
            job.noise_std,
        )


def wave_energies(nads: NADs) -> list[dict]:
    """Return what random weights alone say about every task of Fig. 1: the energy v^T C v of both phases of its wave.

    Args:
        nads: of (1, 32, 32) images.

    Returns:
        For each frequency of `grid_frequencies` its ``frequency`` [ky, kx], and the energies of the ``sine`` and of the
        ``cosine``, relative to the largest of all; a phase that vanishes has none.
    """
    size = nads.directions.shape[-1]
    rows = torch.arange(size, dtype=torch.float64)
    found = []
    for ky, kx in grid_frequencies(size):
        angle = 2 * torch.pi / size * (ky * rows[:, None] + kx * rows[None])
        phases = {"sine": angle.sin(), "cosine": angle.cos()}
        norms = {name: wave.norm() for name, wave in phases.items()}
        found.append({"frequency": [ky, kx]} | {
            name: float(nads.energy(wave[None] / norms[name])) for name, wave in phases.items() if norms[name] > 1e-6
        })  # fmt: skip
    largest = max(max(row.get("sine", 0), row.get("cosine", 0)) for row in found)
    return [row | {name: float(f"{row[name] / largest:.6g}") for name in ("sine", "cosine") if name in row}
            for row in found]  # fmt: skip


def signal_to_noise(
    nads: NADs, directions: Tensor, num_train: int, noise_std: float, margin: float = 1.0
) -> np.ndarray:
    """Return the ratio z for which the first-step law predicts the test accuracy Phi(z) on D(v).

    A linear classifier with weights w = C (1/N) sum y x, which is what one gradient step gives a network whose tangent
    kernel is x^T C x'. Its mean over training sets scores a test sample with the signal margin^2 v^T C v and the noise
    noise_std sqrt(margin^2 norm(P C v)^2 + noise_std^2 norm(P C P)^2 / N), with P = I - v v^T.

    Args:
        nads: eigenpairs of C; its scale does not matter.
        directions: v, (m, C, H, W), unit norm.
        num_train: N.
        noise_std: sigma of D(v).
        margin: epsilon of D(v).

    Returns:
        (m,), float64.
    """
    values = nads.eigenvalues.double()
    shares = (directions.flatten(1).float() @ nads.basis).double().square()
    energy, squares = shares @ values, shares @ values.square()
    skewed = (squares - energy.square()).clamp(min=0)  # norm(P C v)^2
    across = values.square().sum() - 2 * squares + energy.square()  # norm(P C P)^2
    noise = noise_std * (margin**2 * skewed + noise_std**2 / num_train * across).sqrt()
    return (margin**2 * energy / noise).numpy()


def predicted_accuracy(ratios: np.ndarray) -> np.ndarray:
    """Return Phi of signal-to-noise ratios, of any number of them: accuracies in [0, 1]."""
    return torch.special.ndtr(torch.as_tensor(np.asarray(ratios, dtype=float))).numpy()


def falling_fit(values: Sequence[float]) -> np.ndarray:
    """Return the falling sequence with the least squared distance, by pooling adjacent violators."""
    pools = []
    for value in values:
        pools.append((value, 1))
        while len(pools) > 1 and pools[-2][0] < pools[-1][0]:
            (a, m), (b, n) = pools[-2:]
            pools[-2:] = [((m * a + n * b) / (m + n), m + n)]
    return np.array([value for value, count in pools for _ in range(count)], dtype=float)


@dataclass(frozen=True, eq=False)
class OrderTest:
    """How far accuracies are from falling; `order_test` makes it.

    Args:
        gaps: (n,) distances from the closest falling sequence.
        deviations: (n,) the same in standard errors of the test set.
        spread: root mean square of the deviations.
        luck: 95 % quantile of that spread if the truth falls and only the test sets are finite.
    """

    gaps: np.ndarray
    deviations: np.ndarray
    spread: float
    luck: float


def order_test(
    accuracies: Sequence[float], num_test: int | np.ndarray, num_redrawn: int = 100, seed: int = 0
) -> OrderTest:
    """Test whether accuracies fall, up to the luck of finite test sets.

    Args:
        accuracies: (n,) in [0, 1], in the order that is tested.
        num_test: test samples behind each.
        num_redrawn: how often test sets are drawn again from the fit, to see what luck makes of it.
        seed: of these.

    Raises:
        ValueError: if there are no accuracies.
    """
    if not len(accuracies):
        raise ValueError("there are no accuracies whose order could be tested")
    fit = falling_fit(accuracies)

    def deviations(accuracies: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        fit = falling_fit(accuracies)
        return accuracies - fit, (accuracies - fit) / np.sqrt(np.maximum(fit * (1 - fit), 1 / num_test) / num_test)

    gaps, found = deviations(np.asarray(accuracies))
    redrawn = np.random.default_rng(seed).binomial(num_test, fit, (num_redrawn, len(fit))) / num_test
    luck = [np.sqrt(np.mean(deviations(again)[1] ** 2)) for again in redrawn]
    return OrderTest(gaps, found, float(np.sqrt(np.mean(found**2))), float(np.quantile(luck, 0.95)))


def _midranks(x: np.ndarray, weights: np.ndarray) -> np.ndarray:
    _, inverse = np.unique(x, return_inverse=True)
    totals = np.bincount(inverse, weights)
    return (totals.cumsum() - totals / 2)[inverse]


def rank_correlation(a: np.ndarray, b: np.ndarray, min_size: int = 8, weights: np.ndarray | None = None) -> float:
    """Return Spearman's rank correlation, ties in the middle; NaN for fewer than ``min_size`` pairs or a constant.

    Args:
        a: (n,).
        b: (n,).
        min_size: pairs that it takes.
        weights: (n,), how many pairs each stands for; 1 by default.
    """
    if len(a) < min_size or min(np.ptp(a), np.ptp(b)) == 0:
        return float("nan")
    weights = np.ones(len(a)) if weights is None else np.asarray(weights, dtype=float)
    (aa, ab), (_, bb) = np.cov(_midranks(a, weights), _midranks(b, weights), aweights=weights)
    return float(ab / np.sqrt(aa * bb))


def resampled(
    statistic: Callable[..., float],
    *columns: np.ndarray,
    strata: Sequence | None = None,
    num_resamples: int = 500,
    seed: int = 0,
) -> np.ndarray:
    """Return a statistic of n items, followed by those of items drawn again with replacement.

    The same seed draws the same items, so that several statistics can be compared draw by draw.

    Args:
        statistic: function of the columns.
        columns: each (n,).
        strata: (n,), the stratum of each item, where the sample was drawn within strata: from each as many again.
        num_resamples: draws.
        seed: of the draws.
    """
    columns = [np.asarray(column) for column in columns]
    rng, count = np.random.default_rng(seed), len(columns[0])
    if strata is None:
        draws = rng.integers(count, size=(num_resamples, count)) if count else []
    else:
        labels = np.asarray(strata)
        parts = [np.flatnonzero(labels == label) for label in dict.fromkeys(labels.tolist())]
        draws = np.concatenate([part[rng.integers(len(part), size=(num_resamples, len(part)))] for part in parts], 1)
    return np.array([statistic(*columns), *(statistic(*(column[draw] for column in columns)) for draw in draws)])


def resampled_correlations(a: np.ndarray, b: np.ndarray, num_resamples: int = 500, seed: int = 0) -> np.ndarray:
    """Return the rank correlation of n pairs, followed by those of pairs drawn again: see `resampled`."""
    return resampled(rank_correlation, a, b, num_resamples=num_resamples, seed=seed)


def with_interval(resampled: np.ndarray) -> tuple[float, float, float]:
    """Return an estimate and its 95 % bootstrap interval: the first number, and quantiles of the others."""
    low, high = np.nanquantile(resampled[1:], (0.025, 0.975)) if np.isfinite(resampled[0]) else (np.nan, np.nan)
    return float(resampled[0]), float(low), float(high)


def crossing(x: np.ndarray, accuracies: np.ndarray, level: float) -> float | None:
    """Return where accuracies, made monotone in x, fall below a level; None if they do not."""
    order = np.argsort(-x)
    below = falling_fit(accuracies[order]) < level
    return float(x[order][below.argmax()]) if below.any() and not below.all() else None


def area_under_curve(scores: np.ndarray, positive: np.ndarray, weights: np.ndarray | None = None) -> float:
    """Return the chance that a positive item scores above a negative one, a tie counting half; NaN without one of each.

    Args:
        scores: (n,).
        positive: (n,) booleans.
        weights: (n,), how many items each stands for, the inverse of its probability to be in the sample; 1 by default.
    """
    scores, positive = np.asarray(scores, dtype=float), np.asarray(positive, dtype=bool)
    weights = np.ones(len(scores)) if weights is None else np.asarray(weights, dtype=float)
    if positive.all() or not positive.any():
        return float("nan")
    above = (np.sign(scores[positive][:, None] - scores[~positive][None]) + 1) / 2
    pairs = weights[positive][:, None] * weights[~positive][None]
    return float((above * pairs).sum() / pairs.sum())
