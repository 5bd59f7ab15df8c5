"""What tests share: random numbers, statistics with tolerances from standard errors, and maps of
images.
"""

import torch
from scipy.stats import kstest
from torch import Tensor

import nads_core as nc


def normal(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> Tensor:
    """Draw standard normal numbers that the seed fixes."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def rotation(size: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> Tensor:
    """Draw an orthogonal matrix."""
    return torch.linalg.qr(normal(size, size, seed=seed, dtype=dtype)).Q


def random_nads(*shape: int, count: int | None = None, seed: int = 0) -> nc.NADs:
    """Draw an orthonormal basis of inputs (C, H, W), or its first directions."""
    basis = rotation(torch.Size(shape).numel(), seed, torch.float64).T.float()
    return nc.NADs(basis[:count].reshape(-1, *shape), torch.linspace(1, 0.1, len(basis[:count])))


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


def simulated(
    levels: Tensor,
    networks: int,
    seed: int = 0,
    *,
    noise: float = 0.0,
    readouts: int = 1,
    degrees: int = 0,
    rare: float = 0.0,
    gain: float = 0.0,
) -> nc.SecondMoment:
    """Draw the second moment of networks with C = diag(levels), if there are no rare ones.

    Args:
        levels: (D,).
        networks: number of networks.
        seed: seed.
        noise: deviation of the noise of each half of the inputs.
        readouts: number of readouts.
        degrees: degrees of freedom of Student's t of the networks' scales; 0 for none.
        rare: share of the networks that read the last six pixels ``gain`` times as strongly.
        gain: its factor.
    """
    generator = torch.Generator().manual_seed(seed)
    shape = networks, 1, readouts, len(levels)
    vectors = torch.randn(shape, generator=generator) * levels.sqrt()
    if rare:
        odd = torch.rand(networks, 1, 1, 1, generator=generator) < rare
        vectors[..., -6:] *= torch.where(odd, gain, 1.0)
    if degrees:  # a scale of mean square 1
        squares = torch.randn(networks, 1, 1, 1, degrees, generator=generator).square().sum(-1)
        vectors = vectors * ((degrees - 2) / squares).sqrt()
    halves = vectors.expand(networks, 2, *shape[2:])
    moment = nc.SecondMoment((len(levels),))
    moment.add(halves + noise * torch.randn(halves.shape, generator=generator))
    return moment


def second_moment(nads) -> Tensor:
    """Return the matrix (D, D) of NADs."""
    basis = nads.basis.double()
    return (basis * nads.eigenvalues.double()) @ basis.T


MAPS = {
    "flip_rows": lambda x: x.flip(-2),
    "flip_columns": lambda x: x.flip(-1),
    "transpose": lambda x: x.transpose(-1, -2),
}
