"""Training of the deep linear model (`nads_book.theory`) by gradient descent, for the chapter on
Lemma 1.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from nads_book.theory.pooling import Array


@dataclass(frozen=True)
class Descent:
    """Result of `gradient_descent`.

    Args:
        losses: expected losses before every step, (F, runs, steps + 1).
        iterations: numbers of steps until the loss had fallen by 90 % of the possible decrease, (F,
            runs); ``steps + 1`` for never.
        optimum: the smallest possible expected loss.
    """

    losses: Tensor
    iterations: Tensor
    optimum: float


def gradient_descent(
    frequency: Array,
    response: Array,
    stride: int = 4,
    margin: float = 1.0,
    noise_std: float = 0.5,
    *,
    learning_rate: float,
    num_steps: int,
    num_runs: int = 8,
    theta_std: float = 1.0,
    phi_std: float = 1.0,
    batch_size: int | None = None,
    seed: int = 0,
) -> Descent:
    """Train the model at many frequencies and from many starts at once, by gradient descent on J.

    The model is x -> beta^T x with beta[i] = theta[i mod M] m[i] phi[i] / sqrt(S), and its expected
    loss is ``L = 1 - 2 eps beta[l] + eps^2 beta[l]^2 + sigma^2 |beta|^2``, with minimum sigma^2 /
    (eps^2 + sigma^2) at every l.

    Args:
        frequency: (F,) integers, one data distribution each.
        response: (D,) real response of the prefilter.
        stride: S.
        margin: eps.
        noise_std: sigma.
        learning_rate: step size, the same for all.
        num_steps: number of steps.
        num_runs: number of starts per frequency, drawn from the distribution of Lemma 1; the same
            starts at every frequency.
        theta_std: standard deviation of theta at the start.
        phi_std: standard deviation of phi at the start.
        batch_size: number of samples per step; by default the exact gradient of the expected loss.
        seed: seed of starts and samples.

    Returns:
        Losses and iterations.
    """
    response, frequency = torch.as_tensor(response).double(), torch.as_tensor(frequency)
    size, shape = len(response), (len(frequency), num_runs)
    generator = torch.Generator().manual_seed(seed)
    # The S aliases of an output, which share theta, are one dimension: (F, runs, S, M)
    theta, phi = (
        (std * torch.randn(num_runs, n, generator=generator, dtype=torch.float64))
        .view(num_runs, -1, size // stride)
        .expand(*shape, -1, -1)
        for std, n in ((theta_std, size // stride), (phi_std, size))
    )
    weights = response.view(stride, -1) / math.sqrt(stride)
    place = frequency.view(-1, 1, 1).expand(*shape, 1)  # of the signal
    losses = []
    for _ in range(num_steps + 1):
        beta = (theta * weights * phi).flatten(2)  # the model as a linear map, (F, runs, D)
        missing = 1 - margin * beta.gather(2, place)  # (F, runs, 1)
        losses.append(missing.square()[..., 0] + noise_std**2 * beta.square().sum(-1))
        if batch_size is None:  # half of dL / dbeta
            slope = (noise_std**2 * beta).scatter_add_(2, place, -margin * missing)
        else:
            # (F, runs, batch, D): y x with y = +-1, since the loss only sees y f(x) = f(y x)
            x = noise_std * torch.randn(
                *shape, batch_size, size, generator=generator, dtype=torch.float64
            )
            x += margin * torch.nn.functional.one_hot(frequency, size)[:, None, None]
            residual = torch.einsum("frbd,frd->frb", x, beta) - 1
            slope = torch.einsum("frb,frbd->frd", residual, x) / batch_size
        slope = 2 * learning_rate * slope.view_as(phi) * weights
        theta, phi = theta - (slope * phi).sum(-2, keepdim=True), phi - slope * theta
    losses = torch.stack(losses, -1)  # (F, runs, steps + 1)
    optimum = noise_std**2 / (margin**2 + noise_std**2)
    reached = losses <= optimum + 0.1 * (1 - optimum)
    # The first step after which the loss stays below: stochastic steps may cross the line more than
    # once.
    iterations = num_steps + 1 - reached.flip(-1).long().cumprod(-1).sum(-1)
    return Descent(losses, iterations, optimum)
