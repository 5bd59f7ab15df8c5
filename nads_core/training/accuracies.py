"""Predictions and accuracies of trained networks, with intervals."""

import math

import torch
from torch import Tensor, nn

from nads_core.training.recipes import Dataset


def accuracy(network: nn.Module, data: Dataset, batch_size: int = 250) -> float:
    """Return the fraction of samples that a network classifies correctly, in eval mode.

    Args:
        network: module from images (N, C, H, W) to logits (N, classes); its mode is restored.
        data: images (N, C, H, W) and labels (N,), on any device.
        batch_size: number of images per forward pass.
    """
    images, labels = data
    return float((predicted_classes(network, images, batch_size) == labels.cpu()).double().mean())


def accuracy_interval(accuracy: float, num_samples: int) -> tuple[float, float]:
    """Return Wilson's score interval (95 %) of an accuracy measured on ``num_samples`` samples.

    Source: Wilson, Journal of the American Statistical Association 22, 1927.
    `scipy.stats.binomtest` gives the same interval but takes 400 times as long, and figures need
    thousands of intervals.

    Raises:
        ValueError: if an accuracy is outside [0, 1] or ``num_samples`` is not positive.
    """
    if not (0 <= accuracy <= 1 and num_samples > 0):
        raise ValueError(
            f"expected an accuracy in [0, 1] and a positive count, got {accuracy} and {num_samples}"
        )
    z = 1.96
    centre = accuracy + z**2 / (2 * num_samples)
    spread = z * math.sqrt(accuracy * (1 - accuracy) / num_samples + (z / (2 * num_samples)) ** 2)
    scale = 1 + z**2 / num_samples
    return max(0.0, (centre - spread) / scale), min(1.0, (centre + spread) / scale)


def predicted_classes(network: nn.Module, images: Tensor, batch_size: int = 1_000) -> Tensor:
    """Return the class with the largest logit for each image, in eval mode; images are cast to the
    weights' type.

    Args:
        network: module from images (N, C, H, W) to logits (N, classes); its mode is restored.
        images: normalised images (N, C, H, W), on any device.
        batch_size: number of images per forward pass.

    Returns:
        (N,) int64, on the CPU.
    """
    weights, training = next(network.parameters()), network.training
    # Copies, as a network may begin with an operation in place
    network.eval()
    with torch.no_grad():
        classes = [
            network(part.to(weights, copy=True)).argmax(1).cpu()
            for part in images.split(batch_size)
        ]
    network.train(training)
    return torch.cat(classes)
