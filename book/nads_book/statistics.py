"""Agreement of two orders: monotone fits, rank correlations, areas under curves, and their
intervals.

scipy's Spearman correlation takes no weights, by which pairs are drawn again: `rank_correlations`
does.
"""

import functools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nads_book.experiments.evidence import Estimate, around
from nads_book.experiments.formatting import estimate, readable

MANY = 20_000  # draws after which an interval hardly depends on their seed


def accuracy_interval(accuracy: float, num_samples: int) -> tuple[float, float]:
    """Return Wilson's score interval (95 %) of an accuracy measured on ``num_samples`` samples.

    Source: Wilson, Journal of the American Statistical Association 22, 1927.
    `scipy.stats.binomtest` gives the same interval but takes 400 times as long, and figures need
    thousands of intervals.
    """
    z = 1.96
    centre = accuracy + z**2 / (2 * num_samples)
    spread = z * math.sqrt(accuracy * (1 - accuracy) / num_samples + (z / (2 * num_samples)) ** 2)
    scale = 1 + z**2 / num_samples
    return max(0.0, (centre - spread) / scale), min(1.0, (centre + spread) / scale)


def isotonic_fit(values: Sequence[float] | np.ndarray) -> np.ndarray:
    """Return the decreasing sequence (n,) with the least squared distance from values (n,)."""
    from scipy.optimize import isotonic_regression

    return isotonic_regression(values, increasing=False).x


def order_test(
    accuracies: np.ndarray, num_test: int | np.ndarray, inflation: float = 1.0
) -> tuple[float, float]:
    """Test whether accuracies decrease, up to sampling noise of test sets and variance between
    trainings.

    Args:
        accuracies: (n,) in [0, 1], in the order that is tested.
        num_test: number of test samples behind each.
        inflation: ratio of the deviation between trainings, with their test sets, to that of test
            sets alone.

    Returns:
        The root mean square of the distances from the closest decreasing sequence, in standard
        errors of the test set; and its 95 % quantile if the true accuracies decrease.
    """

    def spread(accuracies: np.ndarray) -> float:
        fit = isotonic_fit(accuracies)
        variances = np.maximum(fit * (1 - fit), 1 / num_test) / num_test
        return float(np.sqrt(np.mean((accuracies - fit) ** 2 / variances)))

    # 100 test sets are drawn again from the fit.
    fit = isotonic_fit(accuracies)
    redrawn = np.random.default_rng(0).binomial(num_test, fit, (100, len(fit))) / num_test
    redrawn = np.clip(fit + inflation * (redrawn - fit), 0, 1)
    return spread(accuracies), float(np.quantile([spread(drawn) for drawn in redrawn], 0.95))


def rank_correlation(a: np.ndarray, b: np.ndarray, min_size: int = 8) -> float:
    """Return Spearman's rank correlation, ties in the middle; NaN for fewer than ``min_size`` pairs
    or a constant.

    Args:
        a: (n,).
        b: (n,).
        min_size: smallest number of pairs.
    """
    if len(a) < min_size:
        return float("nan")
    return float(rank_correlations(a, b, np.ones((1, len(a))))[0])


def rank_correlations(a: np.ndarray, b: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return `rank_correlation` of pairs that are drawn again, (draws,).

    Args:
        a: (n,).
        b: (n,).
        counts: number of times that each pair is drawn, (draws, n).
    """
    total = counts.sum(1, keepdims=True)  # (draws, 1)

    def centred_ranks(x: np.ndarray) -> np.ndarray:
        _, group, sizes = np.unique(x, return_inverse=True, return_counts=True)
        starts = np.cumsum(sizes) - sizes  # of equal values in ascending order
        equal = np.add.reduceat(counts[:, np.argsort(group)], starts, axis=1)
        return (equal.cumsum(1) - (equal + total) / 2)[:, group]  # (draws, n)

    x, y = centred_ranks(a), centred_ranks(b)
    covariance, *variances = (
        np.einsum("dn,dn,dn->d", counts, *pair) for pair in ((x, y), (x, x), (y, y))
    )
    with np.errstate(invalid="ignore"):
        return covariance / np.sqrt(np.multiply(*variances))


def drawn_counts(groups: Sequence[object] | np.ndarray, num_draws: int) -> np.ndarray:
    """Return how often each item is drawn with its whole group, (1 + draws, n); at first once.

    Args:
        groups: (n,), group of each item.
        num_draws: number of draws.
    """
    _, group = np.unique(np.asarray(groups), return_inverse=True)
    return _counts(int(group.max()) + 1, num_draws)[:, group]


@functools.lru_cache(maxsize=4)
def _counts(number: int, num_draws: int) -> np.ndarray:
    """Return how often each group is drawn, (1 + draws, number of groups); at first once."""
    rng = np.random.default_rng(0)
    drawn = rng.multinomial(number, np.full(number, 1 / number), num_draws)
    return np.concatenate([np.ones((1, number)), drawn])


def resampled(
    statistic: Callable[..., float],
    *columns: np.ndarray,
    num_resamples: int = 500,
) -> np.ndarray:
    """Return a statistic of n items, followed by those of items drawn again with replacement.

    The same items are drawn in each call, so that several statistics can be compared draw by draw.

    Args:
        statistic: function of the columns.
        columns: each (n,).
        num_resamples: number of draws.
    """
    columns = [np.asarray(column) for column in columns]
    count = len(columns[0])
    draws = np.random.default_rng(0).integers(count, size=(num_resamples, count))  # positions
    return np.array(
        [statistic(*columns), *(statistic(*(column[draw] for column in columns)) for draw in draws)]
    )


def resampled_correlations(a: np.ndarray, b: np.ndarray, num_resamples: int = 500) -> np.ndarray:
    """Return the rank correlation of n pairs, followed by those of pairs drawn again: see
    `resampled`.
    """
    return rank_correlations(a, b, _counts_of_items(len(a), num_resamples))


@functools.lru_cache(maxsize=4)
def _counts_of_items(count: int, num_resamples: int) -> np.ndarray:
    """Return how often each item is drawn, (1 + draws, n); at first once."""
    draws = np.random.default_rng(0).integers(count, size=(num_resamples, count))
    counts = [np.bincount(draw, minlength=count) for draw in draws]
    return np.stack([np.ones(count), *counts])


def with_interval(resampled: np.ndarray) -> Estimate:
    """Return an estimate and its 95 % bootstrap interval: the first number, and quantiles of the
    others.
    """
    low, high = (
        np.nanquantile(resampled[1:], (0.025, 0.975))
        if np.isfinite(resampled[0])
        else (np.nan, np.nan)
    )
    return float(resampled[0]), float(low), float(high)


def exact_mean(values: Sequence[float] | np.ndarray) -> Estimate:
    """Return the mean of a few values and its exact 95 % bootstrap interval, from all n^n draws."""
    values = np.asarray(values, dtype=float)
    draws = np.stack(np.meshgrid(*[values] * len(values)), -1).reshape(-1, len(values))
    low, high = np.quantile(draws.mean(1), (0.025, 0.975))
    return float(values.mean()), float(low), float(high)


def student_mean(values: Sequence[float] | np.ndarray) -> Estimate:
    """Return the mean of independent values and Student's 95 % interval."""
    return pooled_variance([values]).around(float(np.mean(values)), len(values))


@dataclass(frozen=True)
class Measured:
    """A number with its 95 % interval (Student's).

    Args:
        value: the estimate.
        error: standard error of the estimate, from leaving out parts.
        num_parts: number of parts that were left out one by one.
        num_compared: number of such intervals that hold together (Bonferroni).
    """

    value: float
    error: float
    num_parts: int
    num_compared: int = 1

    @property
    def interval(self) -> tuple[float, float]:
        """The lower and the upper end."""
        from scipy.special import stdtrit

        half = stdtrit(self.num_parts - 1, 1 - 0.025 / self.num_compared) * self.error
        return float(self.value - half), float(self.value + half)

    def __iter__(self) -> Iterator[float]:
        return iter((float(self.value), *self.interval))

    def __str__(self) -> str:
        """Return the number and its interval with as many digits as the interval deserves."""
        low, high = self.interval
        if 1e-6 < high - low < math.inf:
            return estimate(self, max(0, math.ceil(0.5 - math.log10(high - low))))
        return f"{readable(self.value)} ({readable(low)} to {readable(high)})"


def jackknife(
    function: Callable[[np.ndarray], Any], num_parts: int
) -> tuple[np.ndarray, np.ndarray]:
    """Estimate numbers from parts 0, 1, ..., and their standard errors from leaving out each.

    Args:
        function: function of the indices of parts, (m,), that returns a number or an array.
        num_parts: number of parts, three at least.
    """
    everything = np.arange(num_parts)
    left_out = np.array([function(np.delete(everything, part)) for part in everything])
    return np.asarray(function(everything)), np.sqrt((num_parts - 1) * left_out.var(0))


@dataclass(frozen=True)
class SeedVariance:
    """The variance between equal trainings with different seeds.

    Args:
        deviation: standard deviation between trainings of one kind.
        degrees: degrees of freedom of its estimate.
    """

    deviation: float
    degrees: int

    def half_width(self, *counts: int) -> float:
        """Return half of the 95 % interval (Student's) of a mean over a number of trainings, or of
        a sum of such means.

        It is infinite where no kind was trained twice.
        """
        from scipy.special import stdtrit

        if not self.degrees:
            return float("inf")
        share = sum(1 / count for count in counts)
        return float(stdtrit(self.degrees, 0.975) * self.deviation * share**0.5)

    def around(self, value: float | np.floating[Any], *counts: int) -> Estimate:
        """Return a mean over a number of trainings, or a sum of such means, with its interval: see
        `half_width`.
        """
        return around(float(value), self.half_width(*counts))

    def difference(
        self, first: Sequence[float] | np.ndarray, second: Sequence[float] | np.ndarray
    ) -> Estimate:
        """Return the difference of the means of two kinds of trainings, with its interval."""
        return self.around(np.mean(first) - np.mean(second), len(first), len(second))


def pooled_variance(groups: Iterable[Sequence[float] | np.ndarray]) -> SeedVariance:
    """Return the seed variance, pooled over several kinds of trainings.

    A kind that was trained three times can have, by chance, hardly any deviation; all kinds
    together cannot.

    Args:
        groups: values of each kind.
    """
    kinds = [np.asarray(values, dtype=float) for values in groups]
    degrees = sum(len(values) - 1 for values in kinds)
    squares = sum(float(np.square(values - values.mean()).sum()) for values in kinds)
    return SeedVariance((squares / degrees) ** 0.5 if degrees else float("nan"), degrees)


def area_under_curve(scores: np.ndarray, positive: np.ndarray) -> float:
    """Return the chance that a positive item scores above a negative one, a tie counting half; NaN
    without one of each.

    Args:
        scores: (n,).
        positive: (n,) booleans.
    """
    scores, positive = np.asarray(scores, dtype=float), np.asarray(positive, dtype=bool)
    if positive.all() or not positive.any():
        return float("nan")
    # (positive, negative): 0, 1/2 or 1
    above = (np.sign(scores[positive][:, None] - scores[~positive]) + 1) / 2
    return float(above.mean())


def regression(
    response: np.ndarray,
    predictors: Mapping[str, np.ndarray],
    clusters: Sequence[object],
) -> dict[str, Estimate]:
    """Regress a response on standardised predictors, by least squares.

    The intervals come from drawing whole clusters again, 500 times, since networks on one
    direction share it.

    Args:
        response: (n,).
        predictors: name -> (n,).
        clusters: (n,), label of each, such as the index of its direction.

    Returns:
        By name, the change of the response for one standard deviation of the predictor, the others
        fixed.
    """
    names = list(predictors)
    columns = np.stack([np.asarray(predictors[name], dtype=float) for name in names], 1)  # (n, p)
    columns = (columns - columns.mean(0)) / columns.std(0)
    design = np.concatenate([columns, np.ones((len(columns), 1))], 1)
    response, labels = np.asarray(response, dtype=float), np.asarray(clusters)
    members = [np.flatnonzero(labels == name) for name in dict.fromkeys(labels.tolist())]
    chosen = np.random.default_rng(0).integers(len(members), size=(500, len(members)))
    draws = [np.concatenate([members[i] for i in places]) for places in chosen]
    draws.insert(0, np.arange(len(response)))
    fits = np.array(
        [np.linalg.lstsq(design[draw], response[draw], rcond=None)[0][:-1] for draw in draws]
    )
    return dict(zip(names, map(with_interval, fits.T), strict=True))
