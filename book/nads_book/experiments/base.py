"""What all experiments have in common: their units, their size, and how one network of theirs is described."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any, ClassVar, Self

from torch import nn

from nads_book.experiments.presets import SIZES, Size, TrainingSize
from nads_book.experiments.stored import load_nads
from nads_core.directions import NADs
from nads_core.networks.architectures import Architecture
from nads_core.runtime.provenance import RNG_VERSION
from nads_core.training import Dataset, TrainingResult

THIN = ("width", "growth")  # options of architectures that make them thin

Unit = dict[str, Any]  # what one network is trained on, as it is stored: see `Experiment.unit_fields`
Sets = tuple[Sequence[Dataset], Sequence[Dataset]]  # a training and a test set for each unit
Measures = list[Callable[[nn.Module], dict[str, Any]]]  # one for each unit

shipped_nads = lru_cache(maxsize=16)(load_nads)


@dataclass(frozen=True, kw_only=True)
class Experiment(TrainingSize):
    """One job at one size; `experiment` makes them. A subclass for each experiment defines units, data and measures.

    Args:
        architecture: architecture of the networks that are trained.
        preset: name of the size.
        units: trained units, in the order of training; any beginning of it covers the plane or the NADs evenly.
        nads_version: version of the NADs that the job is about, see `load_nads`; None for other jobs.
    """

    architecture: Architecture
    preset: str
    units: tuple[Unit, ...]
    nads_version: int | None = None

    figure: ClassVar[str]  # the prefix of the job's name
    summary: ClassVar[str]
    unit_fields: ClassVar[tuple[str, ...]]  # fields of a unit other than its seed
    about_nads: ClassVar[bool] = False
    on_photos: ClassVar[bool] = False
    image_shape: ClassVar[tuple[int, int, int]] = (1, 32, 32)
    num_classes: ClassVar[int] = 2
    stop_loss: ClassVar[float | None] = None
    same_weights: ClassVar[bool] = False  # whether networks of one seed begin with equal weights: see `paired_seeds`

    @classmethod
    def create(cls, model: str, preset: str, nads_version: int | None = None) -> Self:
        """Return the job of an architecture and a preset, by their names."""
        size = SIZES[preset]
        if nads_version is not None and not cls.about_nads:
            raise ValueError(f"{cls.figure}-{model} is not about NADs: leave nads_version out")
        version = shipped_nads(model, nads_version).provenance["version"] if cls.about_nads else None
        targets = cls.targets(model, size, version)
        seeds = size.paired_seeds if cls.same_weights else size.seeds
        units = tuple({**target, "seed": seed} for seed in seeds for target in targets)
        return cls(
            **vars(cls.training(size)), architecture=cls.adapted(size.architecture(model)), preset=preset,
            units=units, nads_version=version,
        )  # fmt: skip

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

    def datasets(self, units: Sequence[Unit], seed: int, root: str | None, photos: str | None) -> Sets:
        """Return the training and the test sets of some units, made when they are asked for.

        Args:
            units: units of one seed.
            seed: seed of the datasets.
            root: folder with photos, see `load_images`.
            photos: `ImageSet.source` that the results name.
        """
        raise NotImplementedError

    def measures(self, units: Sequence[Unit], root: str | None, mixed_precision: bool | None) -> Measures | None:
        """Return for each unit the measurements on its trained network, as further entries of its row.

        Args:
            units: units of one seed.
            root: folder with photos, see `load_images`.
            mixed_precision: whether the layers of the networks ran in bfloat16.
        """
        return None

    def row(self, result: TrainingResult) -> dict[str, Any]:
        """Return the stored record of a training, as JSON: see `Results`."""
        steps = math.ceil(self.num_train / self.recipe.batch_size)  # of an epoch
        losses = result.losses[result.losses.isfinite()]
        row = {
            "test_accuracy": round(float(result.test_accuracy), 5),  # type: ignore[arg-type]  # there is a test set
            "train_accuracy": round(float(result.train_accuracy), 5),
            "final_loss": round(float(losses[-steps:].mean()), 5),
            "seconds": round(float(result.seconds or 0), 2),
        }
        return row | (result.measured or {})

    def settings(self, photos: str | None = None) -> dict[str, Any]:
        """Return all that determines the results, as JSON: two files can be merged if these agree.

        Args:
            photos: `ImageSet.source` of the images of an experiment on photos.
        """
        settings = {"recipe": asdict(self.recipe), "num_train": self.num_train, "num_test": self.num_test}
        settings["numbers"] = RNG_VERSION
        settings |= {name: True for name in ("stop_perfect", "paired_test") if getattr(self, name)}
        settings |= {name: self.architecture.options[name] for name in THIN if name in self.architecture.options}
        if self.about_nads:
            name, version = self.architecture.name, self.nads_version
            settings["nads"] = {"name": name, "version": version, "fingerprint": self.nads.fingerprint}
        return settings

    @property
    def name(self) -> str:
        """Name of the job, such as ``fig1-lenet``."""
        return f"{self.figure}-{self.architecture.name}"

    @property
    def nads(self) -> NADs:
        """The NADs that the job is about.

        Raises:
            ValueError: for a job that is not about NADs.
        """
        if not self.about_nads:
            raise ValueError(f"{self.name} is not about NADs")
        return shipped_nads(self.architecture.name, self.nads_version)

    def network_ids(self, units: Sequence[Unit]) -> list[int]:
        """Return the numbers that fix the initial weights of units."""
        return [0 if self.same_weights else self.units.index(unit) for unit in units]

    @classmethod
    def key(cls, row: Mapping[str, Any]) -> str:
        """Return the identity of the unit that a row, or a unit, is about."""
        return json.dumps([row.get(field) for field in (*cls.unit_fields, "seed")])
