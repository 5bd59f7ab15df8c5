"""Experiments on D(v), the task that is separable along one direction v: Figs. 1, 2, 3 and 6, and
random directions.
"""

from dataclasses import replace
from typing import ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from nads_book.experiments import Context, Facts, TrainingSize, Unit, factorial
from nads_book.experiments.stored import load_nads
from nads_book.published.waves import grid_frequencies, spread, stratified_frequencies
from nads_book.studies.presets import Size
from nads_book.studies.trainings import TrainingStudy
from nads_core.data.fourier import fourier_direction
from nads_core.data.separable import SeparableDatasets
from nads_core.networks.architectures import Architecture
from nads_core.runtime.seeds import seed_sequence
from nads_core.training import Dataset, TrainingResult
from nads_core.training.train_one import WINDOW

# Candidates for "a small training loss" of Fig. 2; training stops at the last.
LOSSES = (0.3, 0.1, 0.03)
MARGIN = 1.0
# Waves along which our ResNet-18 is more than five points from a network of the authors.
FURTHEST = ((14, -4), (4, -10))


class DirectionStudy(TrainingStudy):
    """Networks on D(v), one direction for each unit."""

    noise_std: ClassVar[float]  # sigma of D(v)

    @classmethod
    def training(cls, size: Size) -> TrainingSize:
        return size.separable

    def direction(self, unit: Unit) -> Tensor:
        """Return the unit image (1, 32, 32) along which a unit's data are separable."""
        raise NotImplementedError

    def data(self, unit: Unit, train: bool, context: Context) -> Dataset:
        directions = self.direction(unit)[None]
        seed = seed_sequence(unit["seed"], 5 if train else 6)
        if train:
            return SeparableDatasets(directions, self.num_train, MARGIN, self.noise_std, seed)[0]
        sizes = self.num_test, MARGIN, self.noise_std, seed, self.paired_test
        return SeparableDatasets(directions, *sizes)[0]

    def settings(self, photos: str | None = None) -> Facts:
        return super().settings() | {"margin": MARGIN, "noise_std": self.noise_std}


class WaveStudy(DirectionStudy):
    """Networks on D(v) of waves v."""

    noise_std = 3.0

    @classmethod
    def targets(cls, model: str, size: Size, nads_version: int | None) -> list[Unit]:
        frequencies = stratified_frequencies(model) if size.stratified else grid_frequencies()
        return factorial(frequency=map(list, frequencies[: size.num_waves]))

    def direction(self, unit: Unit) -> Tensor:
        return fourier_direction(tuple(unit["frequency"]), 32)


class Fig1(WaveStudy):
    """Fig. 1, accuracy by wave: `figures.plot_frequency_maps`."""

    figure = "fig1"


class Again(WaveStudy):
    """How far apart are trainings along one wave? Waves of Fig. 1, with other seeds."""

    figure = "again"

    @classmethod
    def targets(cls, model: str, size: Size, nads_version: int | None) -> list[Unit]:
        """Return the waves of Fig. 1 at a stratified size, and else `FURTHEST`."""
        if size.stratified:
            return super().targets(model, size, nads_version)
        return factorial(frequency=map(list, FURTHEST))

    @classmethod
    def create(cls, model: str, preset: str, nads_version: int | None = None) -> Self:
        """Return the study; its seeds follow those of Fig. 1."""
        again = super().create(model, preset, nads_version)
        count = len({unit["seed"] for unit in again.trainings})
        units = (unit | {"seed": unit["seed"] + count} for unit in again.trainings)
        return replace(again, trainings=tuple(units))


def iterations_to(losses: Tensor, loss: float) -> int:
    """Return the first step at which the mean of the last 20 losses (steps,) is at most ``loss``;
    -1 for never.
    """
    window = min(WINDOW, len(losses))
    reached = losses.unfold(0, window, 1).mean(1) <= loss  # (steps - window + 1,)
    return int(reached.int().argmax()) + window if reached.any() else -1


class Fig2(WaveStudy):
    """Fig. 2, speed of learning by wave: `figures.plot_frequency_maps`."""

    figure = "fig2"
    noise_std = 0.5
    stop_loss = LOSSES[-1]

    @classmethod
    def training(cls, size: Size) -> TrainingSize:
        return replace(size.separable, stop_perfect=False)

    def row(self, result: TrainingResult) -> Facts:
        iterations = [iterations_to(result.losses, loss) for loss in LOSSES]
        return super().row(result) | {"iterations": iterations}


class Fig3(WaveStudy):
    """Fig. 3, accuracy by wave without pooling: `figures.plot_frequency_maps`."""

    figure = "fig3"

    @classmethod
    def adapted(cls, architecture: Architecture) -> Architecture:
        if architecture.name == "logreg":
            return architecture
        return architecture.variant(pooling="none", name=architecture.name)


class Fig6(DirectionStudy):
    """Fig. 6, accuracy by NAD: `plot_accuracy_by_nad` of its page."""

    figure = "fig6"
    about_nads = True
    noise_std = 1.0

    @classmethod
    def targets(cls, model: str, size: Size, nads_version: int | None) -> list[Unit]:
        """Return about ``num_directions`` indices, half of them evenly and half geometrically
        spaced.
        """
        count, last = size.num_directions, len(load_nads(model, nads_version)) - 1
        even = np.linspace(0, last, count // 2)
        geometric = np.geomspace(1, last + 1, count - count // 2) - 1
        indices = np.unique(np.concatenate([even, geometric]).round().astype(int))
        return factorial(index=indices[spread(np.log1p(indices)[:, None])].tolist())

    def direction(self, unit: Unit) -> Tensor:
        return self.nads.directions[unit["index"]]


class RandomDirections(DirectionStudy):
    """Accuracy by random direction, a control of the accuracies along NADs."""

    figure = "random"
    noise_std = 1.0

    @classmethod
    def targets(cls, model: str, size: Size, nads_version: int | None) -> list[Unit]:
        return factorial(index=range(size.num_directions))

    def direction(self, unit: Unit) -> Tensor:
        generator = torch.Generator().manual_seed(seed_sequence(0, 4, unit["index"]))
        noise = torch.randn(1, 32, 32, generator=generator)
        return noise / noise.norm()
