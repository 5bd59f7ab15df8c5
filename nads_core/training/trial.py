"""A few steps of a training, to know what the whole will take, and whether bfloat16 makes it shorter."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import torch
from torch import nn

from nads_core.machinery.seeds import seeded
from nads_core.training.recipes import Recipe
from nads_core.training.single import train_network

_STEPS = 3


def seconds_per_step(
    build: Callable[[], nn.Module],
    image_shape: tuple[int, int, int],
    recipe: Recipe,
    *,
    mixed_precision: bool = False,
    device: torch.device | str = "cpu",
) -> float:
    """Measure a step of a training, and the forward pass of as many images after it.

    On a CPU one thread does it, as when one network a core is trained.

    Args:
        build: makes the network, with two or more outputs.
        image_shape: (C, H, W) of its images.
        recipe: whose batches.
        mixed_precision: run the layers in bfloat16.
        device: where.
    """
    with seeded(0, torch.device(device)):
        network = build()
    images = torch.randn(_STEPS * recipe.batch_size, *image_shape, generator=torch.Generator().manual_seed(0))
    labels = torch.arange(len(images)) % 2
    short, threads = replace(recipe, epochs=1), torch.get_num_threads()
    train = partial(
        train_network, network, recipe=short, device=device, mixed_precision=mixed_precision, progress=False
    )
    if torch.device(device).type == "cpu":
        torch.set_num_threads(1)
    try:
        train((images[: recipe.batch_size], labels[: recipe.batch_size]))
        start = time.perf_counter()
        train((images, labels))
        return (time.perf_counter() - start) / _STEPS
    finally:
        torch.set_num_threads(threads)
