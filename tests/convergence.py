"""Statistics that the tests share: tolerances come from standard errors, never from taste."""

import math

import torch
from torch import Tensor


def standard_error(samples: Tensor) -> Tensor:
    """Standard error of the mean over the first dimension."""
    return samples.double().std(0) / math.sqrt(len(samples))


def assert_mean(samples: Tensor, expected: Tensor | float, num_errors: float = 5.0) -> None:
    """Fail unless the mean over the first dimension lies within ``num_errors`` standard errors, in every entry."""
    deviations = (samples.double().mean(0) - expected) / standard_error(samples)
    worst = float(deviations.abs().max())
    assert worst < num_errors, f"a mean lies {worst:.1f} standard errors from its expectation"


def assert_normal(samples: Tensor, std: float) -> None:
    """Kolmogorov-Smirnov test against N(0, std^2) at the 0.1 % level."""
    ordered = samples.flatten().double().sort().values / std
    steps = torch.arange(len(ordered) + 1) / len(ordered)
    cdf = torch.special.ndtr(ordered)
    distance = float(torch.maximum((cdf - steps[:-1]).abs().max(), (cdf - steps[1:]).abs().max()))
    assert distance < 1.95 / math.sqrt(len(ordered)), (
        f"Kolmogorov-Smirnov distance {distance:.4f} for {len(ordered)} samples"
    )


def log_slopes(sizes: Tensor, values: Tensor) -> Tensor:
    """Slopes of log(values) against log(sizes) by least squares: values (R, len(sizes)) -> (R,)."""
    x = torch.log(torch.as_tensor(sizes, dtype=torch.float64))
    x = x - x.mean()
    return (torch.log(values.double()) * x).sum(1) / x.square().sum()


def assert_rate(sizes: Tensor, errors: Tensor, rate: float, num_errors: float = 4.0) -> None:
    """Fail unless errors (R replications, sizes) fall as sizes^rate, judged by the scatter of their slopes."""
    slopes = log_slopes(sizes, errors)
    error = float(standard_error(slopes))
    assert error < 0.1, f"{len(slopes)} replications know the slope to {error:.2f} only"
    assert abs(float(slopes.mean()) - rate) < num_errors * error, (
        f"slope {float(slopes.mean()):.3f} +- {error:.3f}"
    )


def rank_correlation(first: Tensor, second: Tensor) -> float:
    """Spearman's rank correlation of two vectors without ties."""
    ranks = torch.stack([values.argsort().argsort().double() for values in (first, second)])
    return float(torch.corrcoef(ranks)[0, 1])
