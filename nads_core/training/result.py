"""Results of trainings, and predictions of trained networks."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import torch
from torch import Tensor, nn

from nads_core.training.recipe import Dataset


@dataclass(frozen=True)
class TrainingResult:
    """Result of a training; every field has a leading dimension B when B networks were trained.

    Args:
        train_accuracy: accuracy on the training set, after training, in eval mode; in [0, 1].
        test_accuracy: accuracy on the test set, or None without one.
        losses: training loss of each batch before its step, (steps,); NaN after an early stop.
        seconds: wall time.
    """

    train_accuracy: Tensor
    test_accuracy: Tensor | None
    losses: Tensor
    seconds: Tensor


def stacked(results: Sequence[TrainingResult]) -> TrainingResult:
    """Return the results of B networks as one whose fields have the shape (B, ...)."""
    columns: dict[str, Any] = {}
    for field in fields(TrainingResult):
        column = [getattr(result, field.name) for result in results]
        columns[field.name] = None if column[0] is None else torch.stack(column)
    return TrainingResult(**columns)


def accuracy(network: nn.Module, data: Dataset, batch_size: int = 250) -> float:
    """Return the fraction of samples that a network classifies correctly, in eval mode.

    Args:
        network: module from images (N, C, H, W) to logits (N, classes); its mode is restored.
        data: images (N, C, H, W) and labels (N,), on any device.
        batch_size: number of images per forward pass.
    """
    images, labels = data
    return float((predicted_classes(network, images, batch_size) == labels.cpu()).double().mean())


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
