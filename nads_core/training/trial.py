"""A few steps of a training, to know what the whole will take, and whether bfloat16 makes it shorter."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from statistics import median

import torch
from torch import nn

from nads_core.runtime.arguments import usable_device
from nads_core.training.recipes import Recipe, TrainConfig
from nads_core.training.run import NetworkFamily

_TIMED = 0.3  # seconds of steps that are enough to time one of them
_SHORT = 0.2  # seconds: of a training that takes no longer, epochs are of several batches, as in earnest
_BATCHES = 16  # of such an epoch
_TRIES = 3  # where all together take a moment
_PATIENCE = 2.0  # seconds of such a moment
_FORWARD = 1 / 3  # of a step: a backward pass takes about two forward passes


def seconds_per_step(
    build: Callable[[], nn.Module],
    image_shape: tuple[int, int, int],
    recipe: Recipe,
    *,
    mixed_precision: bool = False,
    device: torch.device | str = "cpu",
) -> float:
    """Measure a step of a training as `train_networks` does it for one network: what more steps take more.

    What every training does once, such as setting up, is not in it. On a CPU one thread does it, as when one network a
    core is trained.

    Args:
        build: makes the network, with two or more outputs.
        image_shape: (C, H, W) of its images.
        recipe: whose batches.
        mixed_precision: run the layers in bfloat16.
        device: where.
    """
    device = usable_device(device)
    config = TrainConfig(recipe, mixed_precision=mixed_precision, cuda_graph=device.type == "cuda")
    images = torch.randn(_BATCHES * recipe.batch_size, *image_shape, generator=torch.Generator().manual_seed(0))
    labels = torch.arange(len(images)) % 2

    def seconds(epochs: int, batches: int) -> float:
        """Return what a training of so many epochs of so many batches takes."""
        training = NetworkFamily(build, image_shape, replace(config, recipe=replace(recipe, epochs=epochs)), device)
        size = batches * recipe.batch_size
        start = time.perf_counter()
        training.train(0, (images[:size], labels[:size]), None, None)
        return time.perf_counter() - start

    threads = torch.get_num_threads()
    if device.type == "cpu":
        torch.set_num_threads(1)
    try:
        start = time.perf_counter()
        seconds(1, 1)  # warms up
        batches = 1 if (once := seconds(1, 1)) > _SHORT else _BATCHES
        once, epochs = once if batches == 1 else seconds(1, batches), 2
        found = [seconds(1 + epochs, batches) - once]
        while found[0] < _TIMED:  # until what an epoch adds is more than chance
            epochs *= 2
            found = [seconds(1 + epochs, batches) - once]
        while len(found) < _TRIES and time.perf_counter() - start < _PATIENCE:
            found.append(seconds(1 + epochs, batches) - seconds(1, batches))
        return median(found) / (epochs * batches)
    finally:
        torch.set_num_threads(threads)


def steps_of_training(recipe: Recipe, num_train: int, num_test: int) -> float:
    """Return how many steps a training takes as long as, with the accuracies on both sets after it."""
    return recipe.num_steps(num_train) + _FORWARD * (num_train + num_test) / recipe.batch_size
