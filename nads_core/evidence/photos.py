"""What networks learn in the jobs about photos (Figs. 7 and 8, and notes), and what is measured on them afterwards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

import torch
from torch import Tensor, nn

from nads_core.data.images import DatasetNotFoundError, ImageSet, load_images, normalize
from nads_core.data.notes import Notes, gaussian_images, wrong_labels
from nads_core.data.poisoning import changed_predictions, flip, poison
from nads_core.evidence.experiments import USE_INDICES, Experiment, Unit
from nads_core.training import Dataset


@lru_cache(maxsize=2)
def _load_photos(dataset: str, train: bool, count: int, root: str | None) -> ImageSet:
    return load_images(dataset, train=train, num_images=count, root=root, progress=False)


def photos_of(job: Experiment, train: bool, root: str | None) -> ImageSet:
    """Load a part of CIFAR-10; at the smallest presets generated images where there are no photos."""
    count = job.num_train if train else job.num_test
    try:
        photos = _load_photos("cifar10" if job.preset in ("laptop", "paper") else "auto", train, count, root)
    except DatasetNotFoundError as error:
        raise DatasetNotFoundError(
            f"{job.name} at preset {job.preset} needs the photos of CIFAR-10: {error}"
        ) from error
    if len(photos) != count:
        raise ValueError(f"{job.name} at preset {job.preset} needs {count:,} images, but of {photos.source} there are "
                         f"{len(photos):,}: complete them, or name another folder (NADS_DATA)")  # fmt: skip
    return photos


@lru_cache(maxsize=2)
def _mixture(job: Experiment, train: bool, root: str | None) -> ImageSet:
    """Draw images from the mixture with the moments of the training photos."""
    photos = photos_of(job, True, root)
    return gaussian_images(photos, job.num_train if train else job.num_test, seed=int(train))


@dataclass(frozen=True)
class PhotoDatasets(Sequence[Dataset]):
    """The photos as each unit sees them, made in the process that trains the network."""

    job: Experiment
    units: tuple[Unit, ...]
    train: bool
    root: str | None
    source: str | None  # that the results name: a worker may live longer than what its environment said

    image_shape = (3, 32, 32)

    @property
    def num_samples(self) -> int:
        """Images of each dataset."""
        return self.job.num_train if self.train else self.job.num_test

    def __len__(self) -> int:
        return len(self.units)

    def __getitem__(self, b: int) -> Dataset:  # type: ignore[override]  # no slices
        photos, unit = photos_of(self.job, self.train, self.root), self.units[b]
        if photos.source != self.source:
            raise ValueError(f"these images are {photos.source}, but the results are to be about {self.source}")
        if self.job.figure == "notes":
            seen = _Noted.of(self.job, unit, self.root)
            return seen.training() if self.train else seen.test()
        images, nads = photos.images, self.job.require_nads()
        if self.train and unit.get("index") is not None:
            images = poison(images, photos.labels, nads, unit["index"])
        if unit.get("flipped"):
            images = flip(images, nads)
        return normalize(images), photos.labels


@dataclass(frozen=True)
class _Noted:
    """The images of one unit of the job about notes."""

    unit: Unit
    train: ImageSet
    clean: ImageSet  # test images, prepared as those for training, without notes
    notes: Notes

    @classmethod
    def of(cls, job: Experiment, unit: Unit, root: str | None) -> _Noted:
        load = _mixture if unit["images"] == "mixture" else photos_of
        train, test = load(job, True, root), load(job, False, root)
        notes = Notes(train.images, job.require_nads(), unit["index"] or 0, len(train.class_names))
        train, test = (
            replace(images, images=notes.prepare(images.images, unit["background"])) for images in (train, test)
        )
        return cls(unit, train, test, notes)

    def write(self, images: Tensor, labels: Tensor) -> Tensor:
        """Leave the unit's kind of note."""
        return self.notes.write(images, labels, self.unit["written"], self.unit["size"])

    def training(self) -> Dataset:
        """Return noted images, normalised, and labels."""
        return normalize(self.write(self.train.images, self.train.labels)), self.train.labels

    def test(self) -> Dataset:
        """Return images without notes, normalised, and labels."""
        return normalize(self.clean.images), self.clean.labels


def _predictions(network: nn.Module, images: Tensor) -> Tensor:
    device = next(network.parameters()).device
    with torch.no_grad():
        return torch.cat([network.eval()(part.to(device)).argmax(1).cpu() for part in images.split(1_000)])


def _followed(job: Experiment, unit: Unit, root: str | None, network: nn.Module) -> dict[str, Any]:
    """Return the share of test images that are taken for the class that a wrong note tells, with it and without it."""
    seen = _Noted.of(job, unit, root)
    wrong = wrong_labels(seen.clean.labels, len(seen.clean.class_names))
    shares = {
        name: float((_predictions(network, normalize(images)) == wrong).double().mean())
        for name, images in (("followed", seen.write(seen.clean.images, wrong)), ("unprompted", seen.clean.images))
    }
    mean, deviation = seen.notes.depth
    return {name: round(value, 5) for name, value in (shares | {"mean": mean, "deviation": deviation}).items()}


def _use_of_nads(job: Experiment, root: str | None, network: nn.Module) -> dict[str, Any]:
    """Count the clean test photos whose prediction changes when one NAD component is removed, or its sign flipped."""
    photos, nads = photos_of(job, False, root), job.require_nads()
    images = normalize(photos.images[:2_000])
    indices = [index for index in USE_INDICES if index < len(nads)]
    shares = {
        change: [round(share, 4) for share in changed_predictions(network, images, nads, indices, change).tolist()]
        for change in ("remove", "flip")
    }
    return {"use": {"indices": indices, "num_images": len(images), **shares}}


def measures(job: Experiment, units: list[Unit], root: str | None) -> list[Callable[[nn.Module], Any]] | None:
    """Return what is done with the network of each unit after its training, to give more entries of its row."""
    if job.figure == "fig7":
        return [partial(_use_of_nads, job, root)] * len(units)
    if job.figure == "notes":
        return [partial(_followed, job, unit, root) for unit in units]
    return None
