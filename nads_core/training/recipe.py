"""Data, recipe and options of a training, and the order of its samples."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import torch
from torch import Tensor

from nads_core.runtime.arguments import (
    make_plain,
    require_integers,
    require_positive,
    usable_device,
)
from nads_core.runtime.seeds import seed_sequence

Dataset = tuple[Tensor, Tensor]  # images (N, C, H, W) and labels (N,)


def require_dataset(data: Dataset, name: str) -> None:
    """Raise a ValueError unless data are tensors of images and as many integer labels from 0 (or
    bool).
    """
    parts = data if isinstance(data, (tuple, list)) else (data,)
    images, labels = parts if len(parts) == 2 else (None, None)
    tensors = isinstance(images, Tensor) and isinstance(labels, Tensor)
    if (
        not tensors
        or not images.is_floating_point()
        or images.dim() != 4
        or labels.shape != images.shape[:1]
        or not len(labels)
        or labels.is_floating_point()
        or labels.is_complex()
        or int(labels.min()) < 0
    ):
        got = " and ".join(
            f"{type(x).__name__} {getattr(x, 'dtype', '')} {tuple(getattr(x, 'shape', ()))}"
            for x in parts
        )
        expected = "tensors of images (N, C, H, W) of floats and integer labels (N,) from 0"
        raise ValueError(f"{name} must be {expected}, got {got}; torch.from_numpy converts arrays")


@dataclass(frozen=True)
class Recipe:
    """Stochastic gradient descent with clipped gradients and a learning rate that falls linearly to
    zero, per step.

    Args:
        epochs: number of passes over the training set.
        learning_rate: learning rate of the first step.
        batch_size: number of samples per step.
        momentum: momentum of the gradients.
        weight_decay: coefficient of the L2 penalty.
        clip_norm: upper bound of the norm of the gradient of all weights together.
    """

    epochs: int = 20
    learning_rate: float = 0.5
    batch_size: int = 128
    momentum: float = 0.0
    weight_decay: float = 0.0
    clip_norm: float = 0.5

    def __post_init__(self) -> None:
        require_integers(epochs=self.epochs, batch_size=self.batch_size)
        require_positive(learning_rate=self.learning_rate, clip_norm=self.clip_norm)
        if not (0 <= self.momentum < 1 and self.weight_decay >= 0):
            got = f"{self.momentum} and {self.weight_decay}"
            raise ValueError(f"expected 0 <= momentum < 1 and weight_decay >= 0, got {got}")
        make_plain(self)

    def num_steps(self, num_samples: int) -> int:
        """Return the number of steps for a training set of ``num_samples``."""
        return self.epochs * math.ceil(num_samples / self.batch_size)

    def rate(self, step: int, num_steps: int) -> float:
        """Return the learning rate of one step, counted from 0."""
        return self.learning_rate * (1 - step / num_steps)


SEPARABLE_RECIPE = Recipe()  # the paper's recipe for D(v), which has 10,000 training samples
CIFAR10_RECIPE = Recipe(epochs=50, learning_rate=0.21, momentum=0.9, weight_decay=5e-4)


@dataclass(frozen=True)
class TrainConfig:
    """Options of a training: those of `train_network`, which describes them."""

    recipe: Recipe = SEPARABLE_RECIPE
    seed: int = 0
    device: torch.device = field(default_factory=usable_device)
    mixed_precision: bool = False
    stop_loss: float | None = None
    stop_at_full_accuracy: bool = False

    def __post_init__(self) -> None:
        make_plain(self)


def batches(num_samples: int, recipe: Recipe, seed: int) -> Iterator[Tensor]:
    """Yield the sample indices of every step, (batch_size,) or fewer at an epoch's end; a new order
    in each epoch.
    """
    generator = torch.Generator().manual_seed(seed_sequence(seed))
    for _ in range(recipe.epochs):
        yield from torch.randperm(num_samples, generator=generator).split(recipe.batch_size)
