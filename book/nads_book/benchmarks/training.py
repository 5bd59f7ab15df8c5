"""The duration of a training step on this machine, for estimates; no result depends on it."""

from __future__ import annotations

from dataclasses import replace

import torch

from nads_core.networks.architectures import Architecture
from nads_core.training import Recipe, train_networks

_LONG = 0.2  # seconds of a step from which on a single one is timed


def seconds_per_step(
    architecture: Architecture,
    image_shape: tuple[int, int, int],
    recipe: Recipe,
    *,
    num_classes: int = 2,
    mixed_precision: bool = False,
    device: torch.device | str = "cpu",
) -> float:
    """Measure one step of a training as `train_networks` does it for one network, on one thread of a CPU.

    It is the time that further epochs add, so that what every training does once is not in it.

    Args:
        architecture: architecture of the network.
        image_shape: (C, H, W) of its images.
        recipe: recipe whose batch size is used.
        num_classes: number of outputs.
        mixed_precision: whether layers run in bfloat16.
        device: device of the training.
    """
    on_cpu = torch.device(device).type == "cpu"

    def seconds(epochs: int, batches: int) -> float:
        images = torch.randn(batches * recipe.batch_size, *image_shape, generator=torch.Generator().manual_seed(0))
        result = train_networks(
            architecture, [(images, torch.arange(len(images)) % num_classes)],
            recipe=replace(recipe, epochs=epochs), num_classes=num_classes, mixed_precision=mixed_precision,
            device=device, method="processes" if on_cpu else "auto", workers=1 if on_cpu else None, progress=False,
        )  # fmt: skip
        return float(result.seconds)  # type: ignore[arg-type]  # one network

    seconds(1, 1)  # warms up the worker
    epochs, batches = (2, 1) if seconds(1, 1) > _LONG else (9, 16)
    return (seconds(epochs, batches) - seconds(1, batches)) / ((epochs - 1) * batches)
