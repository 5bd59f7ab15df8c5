"""Regression on the output of a layer: what of its input the output explains, and how well classifiers learn from it.

`retained_energy` in `pooling` is the share of the variance of v^T x, for white noise x, that is a linear function of
the layer's output. Here the same share is estimated by linear regression, for any layer, linear or not; and the labels
of D(v) are learned from the output by logistic regression and by a small CNN.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nads_core.runtime.seeds import seeded


def strided_convolution_matrix(filters: Tensor, size: int, stride: int) -> Tensor:
    """Return a strided circular convolution without bias as one matrix.

    Args:
        filters: (C, taps), one impulse response a channel.
        size: number of input samples D.
        stride: S, a divisor of D.

    Returns:
        (C D / S, D) float64, channels one below the other: usable with `pooling.bayes_accuracy_after`.

    Raises:
        ValueError: for a stride that does not divide the size.
    """
    if size % stride:
        raise ValueError(f"stride {stride} does not divide the {size} samples")
    channels, taps = filters.shape
    rows = torch.zeros(channels, size // stride, size, dtype=torch.float64)
    for output in range(size // stride):
        rows[:, output].index_add_(1, (output * stride + torch.arange(taps)) % size, filters.double())
    return rows.flatten(0, 1)


def row_space_energy(layer: Tensor, directions: Tensor) -> Tensor:
    """Return q of a linear layer, exactly: the squared norm of each direction's projection on the layer's row space.

    Args:
        layer: (M, D), of any rank.
        directions: (F, D), unit norm.

    Returns:
        (F,) in [0, 1].
    """
    _, singular_values, rows = torch.linalg.svd(layer, full_matrices=False)
    rank = int((singular_values > 1e-12 * singular_values.max()).sum())
    return (directions @ rows[:rank].T).square().sum(-1)


def measured_energy(
    layer: Callable[[Tensor], Tensor], directions: Tensor, num_samples: int, *, num_batches: int = 10, seed: int
) -> tuple[Tensor, Tensor]:
    """Estimate q of any layer: the share of the variance of v^T x that a linear function of the output explains.

    For every batch the regression is fitted on one half of white noise and its share of variance measured on the other.

    Args:
        layer: maps (N, D) to (N, ...).
        directions: (F, D), unit norm.
        num_samples: white-noise signals in all.
        num_batches: independent repetitions, which give the standard error.
        seed: seed of the noise.

    Returns:
        Estimate (F,), corrected for the cost of fitting, and standard error (F,).
    """
    generator = torch.Generator().manual_seed(seed)
    count, shares = num_samples // (2 * num_batches), []
    for _ in range(num_batches):
        x = torch.randn(2, count, directions.shape[1], generator=generator, dtype=torch.float64)
        wanted = x @ directions.T  # (2, n, F), of the two halves
        seen = torch.stack([layer(half).flatten(1) for half in x])
        seen = torch.cat([seen, torch.ones_like(seen[..., :1])], -1)  # (2, n, p), with a constant
        gram = seen[0].T @ seen[0]
        weights = torch.linalg.pinv(gram, hermitian=True, rtol=1e-12) @ (seen[0].T @ wanted[0])  # (p, F)
        unexplained = (wanted[1] - seen[1] @ weights).square().mean(0) / wanted[1].square().mean(0)
        shares.append(1 - unexplained * (count - seen.shape[-1]) / count)  # fitting p weights costs p / (n - p)
    shares = torch.stack(shares)  # (batches, F)
    return shares.mean(0), shares.std(0) / math.sqrt(num_batches)


def with_products(outputs: Tensor, reach: int = 3) -> Tensor:
    """Append products of neighbouring outputs, so that a linear regression becomes quadratic: (N, M) -> (N, M')."""
    products = [outputs * outputs.roll(shift, -1) for shift in range(reach + 1)]
    return torch.cat([outputs, *products], -1)


class SmallCNN(nn.Module):
    """Two circular convolutions with 5 taps and a linear layer, on the M outputs of a pooling layer: (N, M) -> (N,).

    The convolutions are written as a linear layer on five shifted copies: trained many at a time with `torch.func.vmap`
    that is one batched matrix product, where a convolution becomes a slow grouped one.
    """

    def __init__(self, size: int, width: int = 8):
        super().__init__()
        self.conv1 = nn.Linear(5, width)
        self.conv2 = nn.Linear(5 * width, width)
        self.linear = nn.Linear(width * size, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Return one logit a signal."""
        x = F.relu(self.conv1(_shifted_copies(x[..., None])))
        return self.linear(F.relu(self.conv2(_shifted_copies(x))).flatten(1)).squeeze(1)


def _shifted_copies(x: Tensor) -> Tensor:
    """Put five circular shifts of the signal side by side: (N, M, C) -> (N, M, 5 C)."""
    return torch.cat([x.roll(shift, 1) for shift in range(-2, 3)], -1)


class LinearClassifier(nn.Module):
    """Logistic regression, one linear layer on the M outputs of a pooling layer: (N, M) -> (N,)."""

    def __init__(self, size: int):
        super().__init__()
        self.linear = nn.Linear(size, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Return one logit a signal."""
        return self.linear(x).squeeze(1)


def pooled_samples(
    directions: Tensor, layer: Tensor, margin: float, noise_std: float, num_samples: int, *, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Draw D(v) for every direction and push it through a linear layer.

    Args:
        directions: (F, D), unit norm.
        layer: (M, D).
        margin: eps.
        noise_std: sigma.
        num_samples: N per direction.
        generator: source of labels and noise.

    Returns:
        Outputs (F, N, M) and labels (F, N) in {0, 1}, float64.
    """
    labels = torch.randint(0, 2, (len(directions), num_samples), generator=generator).double()
    noise = noise_std * torch.randn(len(directions), num_samples, directions.shape[1], generator=generator).double()
    noise -= (noise @ directions[:, :, None]) * directions[:, None]  # (F, N, D), orthogonal to its direction
    signals = margin * (2 * labels - 1)[..., None] * directions[:, None] + noise
    return signals @ layer.T, labels


def train_classifiers(
    build: Callable[[], nn.Module], inputs: Tensor, labels: Tensor, *, num_steps: int, learning_rate: float,
    batch_size: int = 128, weight_decay: float = 0.0, seed: int,
) -> Callable[[Tensor], Tensor]:  # fmt: skip
    """Train one classifier a data set, all at once, with Adam and a linearly falling step size.

    Args:
        build: function that returns a newly initialised classifier, (N, M) -> (N,).
        inputs: (F, N, M), one data set each.
        labels: (F, N) in {0, 1}.
        num_steps: steps of stochastic gradient descent.
        learning_rate: learning rate of the first step.
        batch_size: samples a step.
        weight_decay: decoupled, as in AdamW.
        seed: seed of initial weights and batches.

    Returns:
        A function from (F, N', M) to logits (F, N').
    """
    with seeded(seed):
        models = [build() for _ in inputs]
    parameters, buffers = torch.func.stack_module_state(models)  # name -> (F, *shape)
    scale = inputs.std(dim=(1, 2), keepdim=True)  # (F, 1, 1): directions differ in what the layer leaves of them

    def run_model(parameters: dict[str, Tensor], buffers: dict[str, Tensor], x: Tensor) -> Tensor:
        return torch.func.functional_call(models[0], (parameters, buffers), (x,))

    def logits(x: Tensor) -> Tensor:
        x = (x / scale).float()  # (F, N', M)
        return torch.func.vmap(run_model)(parameters, buffers, x)

    optimizer = torch.optim.AdamW(parameters.values(), lr=learning_rate, weight_decay=weight_decay)
    generator = torch.Generator().manual_seed(seed)
    for step in range(num_steps):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate * (1 - step / num_steps)
        picked = torch.randint(0, inputs.shape[1], (batch_size,), generator=generator)  # the same rows of all data sets
        loss = F.binary_cross_entropy_with_logits(
            logits(inputs[:, picked]), labels[:, picked].float(), reduction="none"
        )  # (F, batch)
        optimizer.zero_grad()
        loss.mean(1).sum().backward()  # a sum over classifiers, which share no weight: each gets its own gradient
        optimizer.step()
    return torch.no_grad()(logits)


def learning_curve(
    build: Callable[[], nn.Module], directions: Tensor, layer: Tensor, margin: float, noise_std: float,
    train_sizes: tuple[int, ...], *, num_test: int = 10_000, num_runs: int = 3, seed: int, **training: Any,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Return the test accuracy of trained classifiers as the training set grows.

    Args:
        build: function as in `train_classifiers`.
        directions: (F, D).
        layer: (M, D), the pooling layer in front of the classifiers.
        margin: eps.
        noise_std: sigma.
        train_sizes: training samples.
        num_test: test samples per direction.
        num_runs: repetitions with new data and new weights.
        seed: seed of weights, batches and samples.
        **training: further arguments of `train_classifiers`.

    Returns:
        Accuracies (F, sizes): mean over the runs, and its standard error.
    """
    repeated = directions.repeat(num_runs, 1)  # (runs F, D)
    generator = torch.Generator().manual_seed(seed)
    accuracies = []
    for size in train_sizes:
        inputs, labels = pooled_samples(repeated, layer, margin, noise_std, size + num_test, generator=generator)
        classify = train_classifiers(build, inputs[:, :size], labels[:, :size], seed=seed + size, **training)
        correct = (classify(inputs[:, size:]) > 0) == (labels[:, size:] > 0)
        accuracies.append(correct.double().mean(1).view(num_runs, -1))
    stacked = torch.stack(accuracies, -1)  # (runs, F, sizes)
    return stacked.mean(0), stacked.std(0) / math.sqrt(num_runs)
