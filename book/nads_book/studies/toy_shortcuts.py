"""Shortcuts in small: two coordinates with a missing value each, linear separability, and smoothness."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn


class TwoHoles(NamedTuple):
    """What a small network learns from samples of two numbers, one of which was replaced.

    Attributes:
        holed: training samples, ``(N, 2)``.
        labels: class of each, which is also the index of its replaced number.
        whole: samples from which nothing was taken, ``(N, 2)``.
        predicted: classes that the network gives them.
        train_accuracy: accuracy on the training samples.
    """

    holed: Tensor
    labels: Tensor
    whole: Tensor
    predicted: Tensor
    train_accuracy: float


def learn_two_holes(
    deviations: tuple[float, float],
    mean: float = 0.0,
    *,
    strength: float,
    seed: int,
    size: int = 600,
    steps: int = 600,
) -> TwoHoles:
    """Train a perceptron on samples whose class-specific coordinate is replaced by ±``strength``.

    Args:
        deviations: standard deviation of each number.
        mean: mean of both numbers, in standard deviations.
        strength: size of what replaces a number.
        seed: seed of samples and weights.
        size: number of samples.
        steps: number of steps of gradient descent, each on all samples.
    """
    generator = torch.Generator().manual_seed(seed)
    samples = (mean + torch.randn(2, size, 2, generator=generator)) * torch.tensor(deviations)
    labels, holed = torch.arange(size) % 2, samples[0].clone()
    holed[torch.arange(size), labels] = strength * (2.0 * labels - 1)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        layers = (nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
        network = nn.Sequential(*layers)
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
    for _ in range(steps):
        optimizer.zero_grad()
        nn.functional.cross_entropy(network(holed), labels).backward()
        optimizer.step()
    accuracy = float((network(holed).argmax(1) == labels).double().mean())
    return TwoHoles(holed, labels, samples[1], network(samples[1]).argmax(1), accuracy)


def linearly_separable(samples: Tensor, labels: Tensor) -> bool:
    """Return whether a hyperplane separates two classes: whether y (w x + b) >= 1 has a solution.

    Args:
        samples: points, ``(N, D)``.
        labels: classes 0 and 1.
    """
    from scipy.optimize import linprog

    signed = (2.0 * labels - 1)[:, None] * torch.cat([samples, torch.ones(len(samples), 1)], 1)
    bounds = -signed.double().numpy(), -np.ones(len(signed))
    return bool(linprog(np.zeros(signed.shape[1]), *bounds, bounds=(None, None)).status == 0)


def neighbouring_correlation(direction: Tensor) -> float:
    """Return the mean product of pixels that are neighbours in a column or a row, over the mean square.

    Args:
        direction: an image of 1,024 pixels.
    """
    image = direction.view(32, 32).double()
    products = (image[1:] * image[:-1]).mean() + (image[:, 1:] * image[:, :-1]).mean()
    return float(products / 2 / image.square().mean())
