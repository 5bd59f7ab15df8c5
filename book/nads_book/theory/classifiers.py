"""Classifiers behind a pooling layer: logistic regression and a small CNN learn the labels of
D(v).
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nads_core.runtime.seeds import seeded


class SmallCNN(nn.Module):
    """Two circular convolutions with 5 taps and a linear layer, on the M outputs of a pooling
    layer: (N, M) -> (N,).

    The convolutions are written as a linear layer on five shifted copies: trained many at a time
    with `torch.func.vmap` that is one batched matrix product, where a convolution becomes a slow
    grouped one.
    """

    def __init__(self, size: int, width: int = 8):
        super().__init__()
        self.conv1 = nn.Linear(5, width)
        self.conv2 = nn.Linear(5 * width, width)
        self.linear = nn.Linear(width * size, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Return one logit per signal."""
        x = F.relu(self.conv1(_shifted_copies(x[..., None])))
        return self.linear(F.relu(self.conv2(_shifted_copies(x))).flatten(1)).squeeze(1)


def _shifted_copies(x: Tensor) -> Tensor:
    """Put five circular shifts of the signal side by side: (N, M, C) -> (N, M, 5 C)."""
    return torch.cat([x.roll(shift, 1) for shift in range(-2, 3)], -1)


class LinearClassifier(nn.Sequential):
    """Logistic regression, one linear layer on the M outputs of a pooling layer: (N, M) -> (N,)."""

    def __init__(self, size: int):
        super().__init__(nn.Linear(size, 1), nn.Flatten(0))


def pooled_samples(
    directions: Tensor,
    layer: Tensor,
    margin: float,
    noise_std: float,
    num_samples: int,
    *,
    generator: torch.Generator,
) -> tuple[Tensor, Tensor]:
    """Draw D(v) for every direction and apply a linear layer.

    Args:
        directions: unit vectors, (F, D).
        layer: matrix of the layer, (M, D).
        margin: eps.
        noise_std: sigma.
        num_samples: number of samples per direction, N.
        generator: source of labels and noise.

    Returns:
        Outputs (F, N, M) and labels (F, N) in {0, 1}, float64.
    """
    labels = torch.randint(0, 2, (len(directions), num_samples), generator=generator).double()
    noise = (
        noise_std
        * torch.randn(
            len(directions), num_samples, directions.shape[1], generator=generator
        ).double()
    )
    noise -= (noise @ directions[:, :, None]) * directions[
        :, None
    ]  # (F, N, D), orthogonal to its direction
    signals = margin * (2 * labels - 1)[..., None] * directions[:, None] + noise
    return signals @ layer.T, labels


def train_classifiers(
    build: Callable[[], nn.Module],
    inputs: Tensor,
    labels: Tensor,
    *,
    num_steps: int,
    learning_rate: float,
    batch_size: int = 128,
    weight_decay: float = 0.0,
    seed: int,
) -> Callable[[Tensor], Tensor]:
    """Train one classifier per data set, all at once, with AdamW and a linearly falling learning
    rate.

    Args:
        build: function that returns a newly initialised classifier, (N, M) -> (N,).
        inputs: data sets, (F, N, M).
        labels: labels in {0, 1}, (F, N).
        num_steps: number of steps of stochastic gradient descent.
        learning_rate: learning rate of the first step.
        batch_size: number of samples per step.
        weight_decay: coefficient of the decoupled weight decay.
        seed: seed of initial weights and batches.

    Returns:
        A function from (F, N', M) to logits (F, N').
    """
    with seeded(seed):
        models = [build() for _ in inputs]
    parameters, buffers = torch.func.stack_module_state(models)  # name -> (F, *shape)
    scale = inputs.std(
        dim=(1, 2), keepdim=True
    )  # (F, 1, 1): the layer shrinks directions by different factors
    run_model = torch.func.vmap(partial(torch.func.functional_call, models[0]))

    def logits(x: Tensor) -> Tensor:
        """Return the logits (F, N') of all classifiers for inputs (F, N', M)."""
        return run_model((parameters, buffers), ((x / scale).float(),))

    optimizer = torch.optim.AdamW(parameters.values(), lr=learning_rate, weight_decay=weight_decay)
    generator = torch.Generator().manual_seed(seed)
    for step in range(num_steps):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate * (1 - step / num_steps)
        # The same rows of all data sets.
        rows = torch.randint(0, inputs.shape[1], (batch_size,), generator=generator)
        loss = F.binary_cross_entropy_with_logits(
            logits(inputs[:, rows]), labels[:, rows].float(), reduction="none"
        )
        optimizer.zero_grad()
        # (F, batch); classifiers share no weight, so that each gets its own gradient
        loss.mean(1).sum().backward()
        optimizer.step()
    return torch.no_grad()(logits)


def learning_curve(
    build: Callable[[], nn.Module],
    directions: Tensor,
    layer: Tensor,
    margin: float,
    noise_std: float,
    train_sizes: tuple[int, ...],
    *,
    num_test: int = 10_000,
    num_runs: int = 3,
    seed: int,
    **training: Any,
) -> tuple[Tensor, Tensor]:
    """Return the test accuracy of trained classifiers as the training set grows.

    Args:
        build: function as in `train_classifiers`.
        directions: unit vectors, (F, D).
        layer: matrix of the pooling layer in front of the classifiers, (M, D).
        margin: eps.
        noise_std: sigma.
        train_sizes: numbers of training samples.
        num_test: number of test samples per direction.
        num_runs: number of repetitions with new data and new weights.
        seed: seed of weights, batches and samples.
        **training: further arguments of `train_classifiers`.

    Returns:
        Accuracies (F, sizes): mean over the runs, and its standard error.
    """
    repeated = directions.repeat(num_runs, 1)  # (runs F, D)
    generator = torch.Generator().manual_seed(seed)
    accuracies = []
    for size in train_sizes:
        inputs, labels = pooled_samples(
            repeated, layer, margin, noise_std, size + num_test, generator=generator
        )
        classify = train_classifiers(
            build, inputs[:, :size], labels[:, :size], seed=seed + size, **training
        )
        correct = (classify(inputs[:, size:]) > 0) == (labels[:, size:] > 0)
        accuracies.append(correct.double().mean(1).view(num_runs, -1))
    stacked = torch.stack(accuracies, -1)  # (runs, F, sizes)
    return stacked.mean(0), stacked.std(0) / math.sqrt(num_runs)
