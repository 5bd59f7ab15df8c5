"""Classifiers behind a pooling layer: logistic regression and a small CNN learn the labels of
D(v).
"""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor, nn

import nads_core as nc

RECIPE = nc.Recipe(learning_rate=0.2, momentum=0.9, weight_decay=1e-3)


def linear(size: int) -> nn.Module:
    """Return logistic regression on the M outputs of a pooling layer: (N, 1, 1, M) -> (N, 2)."""
    return nn.Sequential(nn.Flatten(), nn.Linear(size, 2))


def small_cnn(size: int, width: int = 8) -> nn.Module:
    """Return two circular convolutions with 5 taps and a linear layer: (N, 1, 1, M) -> (N, 2)."""
    convolution = partial(nn.Conv2d, kernel_size=(1, 5), padding=(0, 2), padding_mode="circular")
    first, second = convolution(1, width), convolution(width, width)
    read = nn.Linear(width * size, 2)
    return nn.Sequential(first, nn.ReLU(), second, nn.ReLU(), nn.Flatten(), read)


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
    shape = len(directions), num_samples, directions.shape[1]
    noise = noise_std * torch.randn(shape, generator=generator).double()
    # (F, N, D), orthogonal to its direction
    noise -= (noise @ directions[:, :, None]) * directions[:, None]
    signals = margin * (2 * labels - 1)[..., None] * directions[:, None] + noise
    return signals @ layer.T, labels


def learning_curve(
    build: Callable[[], nn.Module],
    directions: Tensor,
    layer: Tensor,
    margin: float,
    noise_std: float,
    train_sizes: tuple[int, ...],
    *,
    num_steps: int,
    num_test: int = 10_000,
    num_runs: int = 2,
    seed: int,
) -> tuple[Tensor, Tensor]:
    """Return the test accuracy of trained classifiers as the training set grows.

    Args:
        build: function that returns a newly initialised classifier, (N, 1, 1, M) -> (N, 2).
        directions: unit vectors, (F, D).
        layer: matrix of the pooling layer in front of the classifiers, (M, D).
        margin: eps.
        noise_std: sigma.
        train_sizes: numbers of training samples.
        num_steps: number of training steps, up to whole passes over the training set.
        num_test: number of test samples per direction.
        num_runs: number of repetitions with new data and new weights.
        seed: seed of weights, batches and samples.

    Returns:
        Accuracies (F, sizes): mean over the runs, and its standard error.
    """
    repeated = directions.repeat(num_runs, 1)  # (runs F, D)
    generator = torch.Generator().manual_seed(seed)
    accuracies = []
    for size in train_sizes:
        outputs, labels = pooled_samples(
            repeated, layer, margin, noise_std, size + num_test, generator=generator
        )
        # The layer shrinks directions by different factors.
        images = (outputs / outputs.std((1, 2), keepdim=True)).float()[:, :, None, None]
        pairs = list(zip(images, labels.long(), strict=True))
        trained = nc.train_networks(
            build,
            [(x[:size], y[:size]) for x, y in pairs],
            [(x[size:], y[size:]) for x, y in pairs],
            recipe=replace(RECIPE, epochs=max(1, num_steps * RECIPE.batch_size // size)),
            seed=seed + size,
            progress=False,
        )
        accuracies.append(torch.as_tensor(trained.test_accuracy).double().view(num_runs, -1))
    stacked = torch.stack(accuracies, -1)  # (runs, F, sizes)
    return stacked.mean(0), stacked.std(0) / math.sqrt(num_runs)
