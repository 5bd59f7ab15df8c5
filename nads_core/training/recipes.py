"""What a training does: the recipe, and what follows from it: the order of the samples, and the step on the weights."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from nads_core.runtime.arguments import require_integers
from nads_core.runtime.seeds import seed_sequence


@dataclass(frozen=True)
class Recipe:
    """Stochastic gradient descent whose rate falls linearly to zero, step by step, with clipped gradients."""

    epochs: int = 20
    learning_rate: float = 0.5  # at the first step
    batch_size: int = 128
    momentum: float = 0.0
    weight_decay: float = 0.0
    clip_norm: float = 0.5  # the gradient of all weights together is scaled down to this norm

    def __post_init__(self) -> None:
        require_integers(epochs=self.epochs, batch_size=self.batch_size)
        if not (self.learning_rate > 0 and self.clip_norm > 0):
            raise ValueError(f"learning_rate and clip_norm must be positive, got {self}")

    def num_steps(self, num_samples: int) -> int:
        """Return the number of steps for a training set of ``num_samples``."""
        return self.epochs * math.ceil(num_samples / self.batch_size)

    def rate(self, step: int, num_steps: int) -> float:
        """Return the learning rate of one step, counted from 0."""
        return self.learning_rate * (1 - step / num_steps)


SEPARABLE_RECIPE = Recipe()  # the paper's for D(v), which holds 10,000 training samples
CIFAR10_RECIPE = Recipe(epochs=50, learning_rate=0.21, momentum=0.9, weight_decay=5e-4)


def batches(num_samples: int, recipe: Recipe, seed: int) -> Iterator[Tensor]:
    """Yield the sample indices of every step, (batch_size,) or fewer at an epoch's end; a new order in each epoch."""
    generator = torch.Generator().manual_seed(seed_sequence(seed))
    for _ in range(recipe.epochs):
        yield from torch.randperm(num_samples, generator=generator).split(recipe.batch_size)


def descend(weights: Tensor, gradients: Tensor, momenta: Tensor, recipe: Recipe, rate: float | Tensor) -> None:
    """Take one clipped step on the flat weights (..., P) of one or of many networks, in place."""
    norm = torch.linalg.vector_norm(gradients, dim=-1, keepdim=True)  # (..., 1), of all weights of a network
    gradients.mul_((recipe.clip_norm / (norm + 1e-6)).clamp(max=1))
    gradients.add_(weights, alpha=recipe.weight_decay)
    momenta.mul_(recipe.momentum).add_(gradients)
    weights.sub_(momenta * rate)
