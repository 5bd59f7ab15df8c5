"""How often a network is right, and how well that is known from so many samples."""

from __future__ import annotations

import math

from torch import nn

from nads_core.training.datasets import Dataset
from nads_core.training.predictions import predicted_classes


def accuracy(network: nn.Module, data: Dataset, batch_size: int = 250) -> float:
    """Return the share of samples that a network classifies correctly, in eval mode.

    Args:
        network: maps (N, C, H, W) to logits (N, classes); afterwards it is in the mode in which it was.
        data: images (N, C, H, W) and labels (N,), on any device.
        batch_size: images at a time.
    """
    images, labels = data
    return float((predicted_classes(network, images, batch_size) == labels.cpu()).double().mean())


def accuracy_interval(accuracy: float, num_samples: int, z: float = 1.96) -> tuple[float, float]:
    """Return Wilson's score interval of an accuracy measured on ``num_samples`` samples (95 % by default).

    Source: Wilson, Journal of the American Statistical Association 22, 1927. Written out because figures and sweeps ask
    for thousands: `scipy.stats.binomtest` gives the same interval in 400 times the time.

    Raises:
        ValueError: for an accuracy outside [0, 1] or a count that is not positive.
    """
    if not (0 <= accuracy <= 1 and num_samples > 0):
        raise ValueError(f"expected an accuracy in [0, 1] and a positive count, got {accuracy} and {num_samples}")
    centre = accuracy + z**2 / (2 * num_samples)
    spread = z * math.sqrt(accuracy * (1 - accuracy) / num_samples + (z / (2 * num_samples)) ** 2)
    scale = 1 + z**2 / num_samples
    return max(0.0, (centre - spread) / scale), min(1.0, (centre + spread) / scale)


def difference_interval(first: float, second: float, num_samples: int, z: float = 1.96) -> tuple[float, float]:
    """Return an interval of ``first - second``, two accuracies measured on ``num_samples`` samples each (95 %).

    Newcombe's hybrid of two score intervals (Statistics in Medicine 17, 1998, method 10), for independent samples:
    where both were measured on the same samples, as in the book, it is on the safe side.

    Raises:
        ValueError: for an accuracy outside [0, 1] or a count that is not positive.
    """
    (low, high), (other_low, other_high) = (accuracy_interval(a, num_samples, z) for a in (first, second))
    difference = first - second
    return (
        difference - math.hypot(first - low, other_high - second),
        difference + math.hypot(high - first, second - other_low),
    )
