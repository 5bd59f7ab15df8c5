"""What tests share: statistics with tolerances from standard errors, and maps of images."""

from scipy.stats import kstest, spearmanr
from torch import Tensor


def assert_mean(samples: Tensor, expected: Tensor | float, num_errors: float = 5.0) -> None:
    """Fail unless the mean over the first dimension lies within ``num_errors`` standard errors, in
    every entry.
    """
    samples = samples.double()
    errors = samples.std(0) / len(samples) ** 0.5
    worst = float(((samples.mean(0) - expected) / errors).abs().max())
    assert worst < num_errors, f"a mean lies {worst:.1f} standard errors from its expectation"


def assert_normal(samples: Tensor, std: float) -> None:
    """Kolmogorov-Smirnov test against N(0, std^2) at the 0.1 % level."""
    assert kstest(samples.flatten().double().numpy() / std, "norm").pvalue > 1e-3


def rank_correlation(first: Tensor, second: Tensor) -> float:
    """Spearman's rank correlation of two vectors."""
    return float(spearmanr(first, second).statistic)


def second_moment(nads) -> Tensor:
    """Return the matrix (D, D) of NADs."""
    basis = nads.basis.double()
    return (basis * nads.eigenvalues.double()) @ basis.T


MAPS = {
    "flip_rows": lambda x: x.flip(-2),
    "flip_columns": lambda x: x.flip(-1),
    "transpose": lambda x: x.transpose(-1, -2),
}
