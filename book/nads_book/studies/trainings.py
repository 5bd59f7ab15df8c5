"""What all trainings of figures have in common: their size, how one network is trained, and how it
is described.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import torch
from torch import nn

from nads_book.experiments import (
    Context,
    Facts,
    Row,
    Study,
    TrainingSize,
    Unit,
    load_nads,
)
from nads_book.studies.presets import ON_CPUS, SIZES, Size
from nads_core.directions import NADs
from nads_core.networks.architectures import Architecture, Factory
from nads_core.runtime.provenance import RNG_VERSION, canonical, fingerprint
from nads_core.training import Dataset, TrainConfig, TrainingResult, train_new

THIN = ("width", "growth")  # options of architectures that make them thin

# A step in bfloat16 takes .68, .47 and .52 of the time in float32 for these on a CPU, but 1.4 for
# LeNet and 1.7 for logistic regression (timed once: training_step-*.json in the history).
DEEP = ("vgg11", "resnet18", "densenet121")


@dataclass(frozen=True, kw_only=True)
class TrainingStudy(TrainingSize, Study):
    """One figure at one size; `experiment` makes them. A subclass for each figure defines units,
    data and measures.

    Args:
        architecture: architecture of the networks that are trained.
        preset: name of the size.
        trainings: all units, in the order of training; any beginning of it covers the plane or the
            NADs evenly.
        nads_version: version of the NADs that the job is about, see `load_nads`; None for other
            jobs.
    """

    architecture: Architecture
    preset: str
    trainings: tuple[Unit, ...]
    nads_version: int | None = None

    figure: ClassVar[str]  # the prefix of the job's name
    has_presets = True
    about_nads: ClassVar[bool] = False
    image_shape: ClassVar[tuple[int, int, int]] = (1, 32, 32)
    num_classes: ClassVar[int] = 2
    precisions = (False, True)
    stop_loss: ClassVar[float | None] = None
    # Whether networks of one seed begin with equal weights: see `paired_seeds`.
    same_weights: ClassVar[bool] = False

    @classmethod
    def create(cls, model: str, preset: str, nads_version: int | None = None) -> Self:
        """Return the job of an architecture and a preset, by their names."""
        size = SIZES[preset]
        version = None
        if cls.about_nads:
            version = load_nads(model, nads_version).provenance["version"]
        targets = cls.targets(model, size, version)
        seeds = size.paired_seeds if cls.same_weights else size.seeds
        units = tuple(target | {"seed": seed} for seed in seeds for target in targets)
        return cls(
            **vars(cls.training(size)),
            architecture=cls.adapted(size.architecture(model)),
            preset=preset,
            trainings=units,
            nads_version=version,
        )

    @classmethod
    def targets(cls, model: str, size: Size, nads_version: int | None) -> list[Unit]:
        """Return the units of one seed, without the seed."""
        raise NotImplementedError

    @classmethod
    def training(cls, size: Size) -> TrainingSize:
        """Return how long each network is trained, and on how many images."""
        raise NotImplementedError

    @classmethod
    def adapted(cls, architecture: Architecture) -> Architecture:
        """Return the architecture with the changes that the experiment is about."""
        return architecture

    def data(self, unit: Unit, train: bool, context: Context) -> Dataset:
        """Return the training or the test set of a unit."""
        raise NotImplementedError

    def measure(self, unit: Unit, context: Context, network: nn.Module) -> Facts:
        """Return measurements on the trained network of a unit, as further entries of its row."""
        return {}

    def row(self, result: TrainingResult) -> Facts:
        """Return the stored record of a training, as JSON: see `Results`."""
        steps = math.ceil(self.num_train / self.recipe.batch_size)  # of an epoch
        losses = result.losses[result.losses.isfinite()]
        values: Facts = {
            name: getattr(result, name) for name in ("test_accuracy", "train_accuracy")
        }
        values["final_loss"] = losses[-steps:].mean()
        row = {name: round(float(x), 5) for name, x in values.items()}
        return row | {"seconds": round(float(result.seconds), 2)}

    def settings(self, photos: str | None = None) -> Facts:
        """Return all that determines the results, as JSON: two files can be merged if these agree.

        Args:
            photos: `ImageSet.source` of the images of an experiment on photos.
        """
        options = self.architecture.options
        settings: Facts = {"recipe": asdict(self.recipe), "numbers": RNG_VERSION}
        settings |= {"num_train": self.num_train, "num_test": self.num_test}
        settings |= {name: True for name in ("stop_perfect", "paired_test") if getattr(self, name)}
        settings |= {name: options[name] for name in THIN if name in options}
        if self.about_nads:
            facts = {"version": self.nads_version, "fingerprint": self.nads.fingerprint}
            settings["nads"] = {"name": self.architecture.name, **facts}
        return settings

    @property
    def name(self) -> str:
        """Name of the job, such as ``fig1-lenet``."""
        return f"{self.figure}-{self.architecture.name}"

    @property
    def nads(self) -> NADs:
        """The NADs that the job is about."""
        return load_nads(self.architecture.name, self.nads_version)

    def units(self) -> Sequence[Unit]:
        """Return all units, in the order of training."""
        return self.trainings

    def facts(self, photos: str | None = None) -> Facts:
        """Return name, size and settings of the job."""
        return {"job": self.name, "preset": self.preset, "settings": self.settings(photos)}

    def default_precision(self, device: torch.device) -> bool:
        """Return whether layers of a new study run in bfloat16: on a GPU that has it, and on a CPU
        for deep networks at the presets "laptop" and "narrow".
        """
        if device.type == "cuda":
            return torch.cuda.is_bf16_supported(including_emulation=False)
        return device.type == "cpu" and self.preset in ON_CPUS and self.architecture.name in DEEP

    def run(self, unit: Unit, context: Context) -> Row:
        """Train the network of one unit, from its checkpoint if there is one."""
        checkpoint = None if context.out is None else self._checkpoint(unit, context, context.out)
        network, result = self.train(self.build, unit, context, checkpoint)
        return self.row(result) | self.measure(unit, context, network)

    def build(self) -> nn.Module:
        """Return a new network."""
        channels, size, _ = self.image_shape
        return self.architecture.build(channels, size, self.num_classes)

    def train(
        self,
        factory: Factory,
        unit: Unit,
        context: Context,
        checkpoint: Path | None = None,
    ) -> tuple[nn.Module, TrainingResult]:
        """Train a new network of a factory as a unit asks; return it and its result."""
        config = TrainConfig(
            self.recipe,
            unit["seed"],
            context.device,
            context.mixed_precision,
            self.stop_loss,
            self.stop_perfect,
        )
        # What fixes the initial weights
        network_id = 0 if self.same_weights else self.trainings.index(unit)
        train, test = (self.data(unit, part, context) for part in (True, False))
        return train_new(factory, network_id, train, test, config, checkpoint=checkpoint)

    def _checkpoint(self, unit: Unit, context: Context, out: Path) -> Path:
        """Return the file of a unit's training, under a name that identifies all that determines
        it.
        """
        identity: list[Any] = [self.name, self.preset, self.settings(context.source), unit]
        identity += [context.device.type, context.mixed_precision]
        return out.with_name(f".{out.name}.{fingerprint(canonical(identity))}.part")
