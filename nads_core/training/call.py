"""One call of `train_networks` as a value: what every way of training many networks is given, and nothing else."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from nads_core.kernels import faster_max_pooling
from nads_core.networks.initialisation import require_module
from nads_core.runtime.seeds import seed_sequence, seeded
from nads_core.training.datasets import Dataset
from nads_core.training.interrupted import TrainingState
from nads_core.training.recipes import Recipe
from nads_core.training.result import TrainingDiverged, TrainingResult
from nads_core.training.single import fit

Measure = Callable[[nn.Module], Any]


@dataclass(frozen=True)
class Settings:
    """Everything that is common to the networks of one call of `train_networks`; workers get a copy."""

    factory: Callable[[], nn.Module]
    image_shape: tuple[int, ...]  # (C, H, W)
    recipe: Recipe
    seed: int
    device: torch.device
    dtype: torch.dtype
    mixed_precision: bool
    captured: bool = False  # each step a CUDA graph
    stop_loss: float | None = None
    stop_perfect: bool = False

    def network(self, number: int) -> nn.Module:
        """Return the network with a given number: its first weights follow from the seed and the number alone."""
        with seeded(seed_sequence(self.seed, 2, number), self.device):
            network = require_module(self.factory())
        return network.to(self.dtype)

    def train(
        self, number: int, train: Dataset, test: Dataset | None, measure: Measure | None, **options: Any
    ) -> TrainingResult:
        """Train network ``number`` on its own data."""
        network = self.network(number)
        if self.device.type == "cpu" and not self.mixed_precision:
            network = faster_max_pooling(network)
        train, test = self.cast(train), test and self.cast(test)
        with seeded(seed_sequence(self.seed, 3, number), self.device):
            result = fit(
                network, train, test, self.recipe, self.seed, self.device, mixed_precision=self.mixed_precision,
                captured=self.captured, stop_loss=self.stop_loss, stop_perfect=self.stop_perfect, **options,
            )  # fmt: skip
        return result if measure is None else replace(result, measured=measure(network))

    @property
    def stops(self) -> bool:
        """Whether a network may end before the others."""
        return self.stop_loss is not None or self.stop_perfect

    @property
    def draws(self) -> bool:
        """Whether a step of training draws random numbers, as dropout does."""
        with seeded(0), torch.no_grad():
            network = self.network(0).cpu().train()
            before = torch.get_rng_state()
            network(torch.zeros(2, *self.image_shape, dtype=self.dtype))
            return not torch.equal(before, torch.get_rng_state())

    def cast(self, data: Dataset) -> Dataset:
        """Give images the type of the weights."""
        return data[0].to(self.dtype), data[1]


@dataclass(frozen=True)
class Call:
    """The networks of one call with their datasets, stopping rules and callbacks; b counts from 0."""

    settings: Settings
    numbers: Sequence[int]  # network b is number numbers[b] of its family
    datasets: Sequence[Dataset]
    test_datasets: Sequence[Dataset] | None
    measures: Sequence[Measure] | None
    states: Sequence[TrainingState] | None
    deadline: float  # of time.monotonic; infinite for none
    progress: bool  # show a bar
    on_result: Callable[[int, TrainingResult], None]  # called with b and its result as soon as there is one

    @property
    def count(self) -> int:
        """How many networks."""
        return len(self.numbers)

    @property
    def label(self) -> str:
        """Text of the progress bar."""
        return f"training {self.count} networks" if self.count > 1 else "training"

    @property
    def seconds_left(self) -> float:
        """Until the deadline, infinite if there is none."""
        return self.deadline - time.monotonic()

    def test_dataset(self, b: int) -> Dataset | None:
        """Return the test set of network b."""
        return None if self.test_datasets is None else self.test_datasets[b]

    def measure(self, b: int) -> Measure | None:
        """Return what to do with network b after its training."""
        return None if self.measures is None else self.measures[b]

    def diverged(self, b: int, error: TrainingDiverged) -> TrainingDiverged:
        """Return the error of network b with a name on it."""
        return TrainingDiverged(f"network {b + 1} of {self.count}: {error}" if self.count > 1 else str(error))

    def state(self, b: int) -> TrainingState | None:
        """Return the file of network b."""
        return None if self.states is None else self.states[b]
