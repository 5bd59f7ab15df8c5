"""Accuracies of trained networks with their intervals, and predictions that depend on a NAD."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from nads_core.data.poisoning import require_fitting
from nads_core.directions import NADs
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


def accuracy_interval(accuracy: float, num_samples: int, z: float = 1.96) -> tuple[float, float]:
    """Return Wilson's score interval of an accuracy measured on ``num_samples`` samples (95 % by default).

    Source: Wilson, Journal of the American Statistical Association 22, 1927. `scipy.stats.binomtest` gives the
    same interval but takes 400 times as long, and figures need thousands of intervals.

    Raises:
        ValueError: if an accuracy is outside [0, 1] or ``num_samples`` is not positive.
    """
    if not (0 <= accuracy <= 1 and num_samples > 0):
        raise ValueError(f"expected an accuracy in [0, 1] and a positive count, got {accuracy} and {num_samples}")
    centre = accuracy + z**2 / (2 * num_samples)
    spread = z * math.sqrt(accuracy * (1 - accuracy) / num_samples + (z / (2 * num_samples)) ** 2)
    scale = 1 + z**2 / num_samples
    return max(0.0, (centre - spread) / scale), min(1.0, (centre + spread) / scale)


def difference_interval(first: float, second: float, num_samples: int, z: float = 1.96) -> tuple[float, float]:
    """Return an interval of ``first - second``, two accuracies measured on ``num_samples`` samples each (95 %).

    Newcombe's hybrid of two score intervals (Statistics in Medicine 17, 1998, method 10), which assumes independent
    samples. It is conservative when both accuracies were measured on the same samples, as in the book.

    Raises:
        ValueError: if an accuracy is outside [0, 1] or ``num_samples`` is not positive.
    """
    (low, high), (other_low, other_high) = (accuracy_interval(a, num_samples, z) for a in (first, second))
    difference = first - second
    return (
        difference - math.hypot(first - low, other_high - second),
        difference + math.hypot(high - first, second - other_low),
    )


def predicted_classes(network: nn.Module, images: Tensor, batch_size: int = 1_000) -> Tensor:
    """Return the class with the largest logit for each image, in eval mode; images are cast to the weights' type.

    Args:
        network: module from images (N, C, H, W) to logits (N, classes); its mode is restored.
        images: normalised images (N, C, H, W), on any device.
        batch_size: number of images per forward pass.

    Returns:
        (N,) int64, on the CPU.
    """
    weights, training = next(network.parameters()), network.training
    network.eval()
    with torch.no_grad():
        classes = [network(part.to(weights)).argmax(1).cpu() for part in images.split(batch_size)]
    network.train(training)
    return torch.cat(classes)


@torch.no_grad()
def changed_predictions(
    network: nn.Module, images: Tensor, nads: NADs, indices: Sequence[int], change: str = "remove"
) -> Tensor:
    """Return the fraction of images whose predicted class changes when one NAD component is changed, per NAD.

    Args:
        network: module from images (N, C, H, W) to logits.
        images: normalised images (N, C, H, W).
        nads: NADs of single-channel images of the same size.
        indices: indices of the NADs to change, one at a time.
        change: "remove" to set the component of every channel to 0, "flip" to change its sign.

    Returns:
        (len(indices),) float64 in [0, 1].

    Raises:
        ValueError: if shapes disagree, an index does not exist, or the change is unknown.
    """
    require_fitting(images, nads)
    if change not in ("remove", "flip"):
        raise ValueError(f"unknown change {change!r}: choose 'remove' or 'flip'")
    missing = [index for index in indices if not 0 <= index < len(nads)]
    if missing:
        raise ValueError(f"there are {len(nads)} NADs, got the indices {missing}")
    images = images.to(next(network.parameters()).device)
    before, shares = predicted_classes(network, images), []  # classes (N,)
    for index in indices:
        direction = nads.directions[index, 0].to(images)  # (H, W), for every channel
        component = (images * direction).sum((2, 3), keepdim=True) * direction  # (N, C, 1, 1) x (H, W)
        after = predicted_classes(network, images - (1 if change == "remove" else 2) * component)
        shares.append((after != before).double().mean())
    return torch.stack(shares)
