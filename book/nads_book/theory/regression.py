"""Regression on the output of a layer: the share of its input that the output explains.

`retained_energy` of `nads_book.theory.pooling` is the share of the variance of v^T x, for white
noise x, that is linear in the layer's output. Here the same share is estimated by linear
regression, for any layer, linear or not.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from nads_book.theory.pooling import num_outputs, row_space_split


def strided_convolution_matrix(filters: Tensor, size: int, stride: int) -> Tensor:
    """Return a strided circular convolution without bias as one matrix.

    Args:
        filters: impulse responses, one per channel, (C, taps) with taps <= D.
        size: number of input samples D.
        stride: S, a divisor of D.

    Returns:
        (C D / S, D) float64, channels one below the other: usable with
        `pooling.bayes_accuracy_after`.

    Raises:
        ValueError: for a stride that does not divide the size.
    """
    num_outputs(size, stride)  # rejects such a stride
    identity = torch.eye(size, dtype=torch.float64)[:, None]  # (D, 1, D): each input sample alone
    periodic = F.pad(identity, (0, filters.shape[1] - 1), mode="circular")
    outputs = F.conv1d(periodic, filters.double()[:, None], stride=stride)  # (D, C, D / S)
    return outputs.flatten(1).T


def row_space_energy(layer: Tensor, directions: Tensor) -> Tensor:
    """Return q of a linear layer, exactly: the squared norm of each direction's projection on the
    layer's row space.

    Args:
        layer: matrix of any rank, (M, D).
        directions: unit vectors, (F, D).

    Returns:
        (F,) in [0, 1].
    """
    return row_space_split(layer, directions)[0]


def measured_energy(
    layer: Callable[[Tensor], Tensor],
    directions: Tensor,
    num_samples: int,
    *,
    num_batches: int = 10,
    seed: int,
) -> tuple[Tensor, Tensor]:
    """Estimate q of any layer: the share of the variance of v^T x that a linear function of the
    output explains.

    In every batch one half of the white noise fits the regression, and the other half measures its
    share of variance.

    Args:
        layer: function from (N, D) to (N, ...).
        directions: unit vectors, (F, D).
        num_samples: total number of white-noise signals.
        num_batches: number of independent repetitions, which give the standard error.
        seed: seed of the noise.

    Returns:
        Estimate (F,), corrected for the cost of fitting, and standard error (F,).
    """
    generator = torch.Generator().manual_seed(seed)
    count, shares = num_samples // (2 * num_batches), []
    for _ in range(num_batches):
        x = torch.randn(2, count, directions.shape[1], generator=generator, dtype=torch.float64)
        targets = x @ directions.T  # (2, n, F), of the two halves
        outputs = torch.stack([layer(half).flatten(1) for half in x])
        # (2, n, p), with a constant
        outputs = torch.cat([outputs, torch.ones_like(outputs[..., :1])], -1)
        gram = outputs[0].T @ outputs[0]
        pseudoinverse = torch.linalg.pinv(gram, hermitian=True, rtol=1e-12)
        weights = pseudoinverse @ (outputs[0].T @ targets[0])  # (p, F)
        residuals = targets[1] - outputs[1] @ weights
        unexplained = residuals.square().mean(0) / targets[1].square().mean(0)
        # Fitting r weights costs r / (n - r), with r the rank: dependent outputs cost nothing.
        rank = int(torch.linalg.matrix_rank(gram, hermitian=True, rtol=1e-12))
        shares.append(1 - unexplained * (count - rank) / count)
    shares = torch.stack(shares)  # (batches, F)
    return shares.mean(0), shares.std(0) / math.sqrt(num_batches)
