"""What tests share: statistics with tolerances from standard errors, and maps of images."""

import math

import torch
from torch import Tensor


def standard_error(samples: Tensor) -> Tensor:
    """Standard error of the mean over the first dimension."""
    return samples.double().std(0) / math.sqrt(len(samples))


def assert_mean(samples: Tensor, expected: Tensor | float, num_errors: float = 5.0) -> None:
    """Fail unless the mean over the first dimension lies within ``num_errors`` standard errors, in
    every entry.
    """
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


def rank_correlation(first: Tensor, second: Tensor) -> float:
    """Spearman's rank correlation of two vectors without ties."""
    ranks = torch.stack([values.argsort().argsort().double() for values in (first, second)])
    return float(torch.corrcoef(ranks)[0, 1])


def second_moment(nads) -> Tensor:
    """Return the matrix (D, D) of NADs."""
    basis = nads.basis.double()
    return (basis * nads.eigenvalues.double()) @ basis.T


MAPS = {
    "flip_rows": lambda x: x.flip(-2),
    "flip_columns": lambda x: x.flip(-1),
    "transpose": lambda x: x.transpose(-1, -2),
}
