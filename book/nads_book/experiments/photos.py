"""What networks learn in the jobs about photos (Figs. 7 and 8, and notes), and what is measured on them afterwards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

import torch
from torch import Tensor, nn

from nads_book.experiments.jobs import NOTE_SIZES, USE_INDICES, Experiment, Unit
from nads_book.experiments.orthogonal_transforms import covariance, transform
from nads_book.experiments.shortcut_injection import Notes, gaussian_images, same_coordinate, wrong_labels
from nads_book.experiments.transform_experiments import description, matrix_of
from nads_core.data.images import DatasetNotFoundError, ImageSet, load_images, normalize
from nads_core.data.poisoning import flip, poison
from nads_core.training import Dataset, accuracy, changed_predictions, predicted_classes


@lru_cache(maxsize=2)
def _load_photos(dataset: str, train: bool, count: int, root: str | None) -> ImageSet:
    return load_images(dataset, train=train, num_images=count, root=root, progress=False)


def _dataset(job: Experiment) -> str:
    return "auto" if job.preset in ("smoke", "demo") else "cifar10"


def photos_of(job: Experiment, train: bool, root: str | None) -> ImageSet:
    """Load a part of CIFAR-10; at the smallest presets generated images where there are no photos."""
    count = job.num_train if train else job.num_test
    try:
        photos = _load_photos(_dataset(job), train, count, root)
    except DatasetNotFoundError as error:
        raise DatasetNotFoundError(
            f"{job.name} at preset {job.preset} needs the photos of CIFAR-10: {error}"
        ) from error
    if len(photos) != count:
        raise ValueError(f"{job.name} at preset {job.preset} needs {count:,} images, but of {photos.source} there are "
                         f"{len(photos):,}: complete them, or name another folder (NADS_DATA)")  # fmt: skip
    return photos


@lru_cache(maxsize=2)
def _mixture(source: tuple[str, int, str | None], count: int, seed: int) -> ImageSet:
    """Draw images from the mixture with the moments of training photos."""
    dataset, num_photos, root = source
    return gaussian_images(_load_photos(dataset, True, num_photos, root), count, seed=seed)


@lru_cache(maxsize=1)
def _covariance(dataset: str, num_photos: int, root: str | None) -> Tensor:
    """Return the covariance of training photos, (D, D), and that of rounding their pixels to 8 bits."""
    covariance = torch.cov(_load_photos(dataset, True, num_photos, root).images.flatten(1).double().T)
    return covariance + torch.eye(len(covariance)) * (1 / 255) ** 2 / 12


@lru_cache(maxsize=1)
def _normalised_covariance(dataset: str, num_photos: int, root: str | None) -> Tensor:
    """Return the covariance of a channel of training photos, (D, D)."""
    return covariance(normalize(_load_photos(dataset, True, num_photos, root).images))


def _map(job: Experiment, unit: Unit, root: str | None) -> Tensor:
    return matrix_of(unit, _normalised_covariance(_dataset(job), job.num_train, root))


def _described(job: Experiment, unit: Unit, root: str | None, network: nn.Module) -> dict[str, Any]:
    """Return what is known of a unit's map without its network."""
    spread = _normalised_covariance(_dataset(job), job.num_train, root)
    return description(job.architecture.name, matrix_of(unit, spread), spread)


def _images_of(job: Experiment, unit: Unit, train: bool, root: str | None) -> ImageSet:
    if unit["images"] == "photos":
        return photos_of(job, train, root)
    return _mixture((_dataset(job), job.num_train, root), job.num_train if train else job.num_test, seed=int(train))


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
            return seen.training() if self.train else (normalize(seen.clean), seen.test.labels)
        if self.job.figure == "maps":
            return transform(normalize(photos.images), _map(self.job, unit, self.root)), photos.labels
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
    test: ImageSet  # as they are
    clean: Tensor  # test images, prepared as those for training, without notes
    notes: Notes

    @classmethod
    def of(cls, job: Experiment, unit: Unit, root: str | None) -> _Noted:
        train, test = _images_of(job, unit, True, root), _images_of(job, unit, False, root)
        notes = Notes(train.images, job.require_nads(), unit["index"] or 0, len(train.class_names))
        prepared = replace(train, images=notes.prepare(train.images, unit["background"]))
        return cls(unit, prepared, test, notes.prepare(test.images, unit["background"]), notes)

    def training(self) -> Dataset:
        """Return noted images, normalised, and labels."""
        written, size = self.unit["written"], self.unit["size"]
        return normalize(self.notes.write(self.train.images, self.train.labels, written, size)), self.train.labels


def _shares(network: nn.Module, images: Tensor, told: Tensor) -> dict[str, float]:
    """Return the shares of images taken for the class that is told, and for one whose note is at the same coordinate.

    A hole has no sign: the second is all that it can tell.
    """
    found = predicted_classes(network, normalize(images))
    alike = same_coordinate()[told, found]
    return {name: round(float(hits.double().mean()), 5) for name, hits in (("class", found == told), ("place", alike))}


def _followed(job: Experiment, unit: Unit, root: str | None, network: nn.Module) -> dict[str, Any]:
    """Measure what a network does with wrong notes on test images; one that never saw any, with notes of all sizes."""
    seen = _Noted.of(job, unit, root)
    told = wrong_labels(seen.test.labels, len(seen.test.class_names))
    row: dict[str, Any] = {
        "unprompted": _shares(network, seen.clean, told),
        "unprepared_accuracy": round(accuracy(network, (normalize(seen.test.images), seen.test.labels)), 5),
    }
    if unit["written"] != "none":
        noted = seen.notes.write(seen.clean, told, unit["written"], unit["size"])
        row["followed"] = _shares(network, noted, told)
    else:  # how much notes move a network that has not learnt to read them
        indices = [unit["index"]] if unit["index"] is not None else sorted({u["index"] for u in job.units} - {None})
        row["moved"] = {}
        for index in indices:
            notes = seen.notes if unit["index"] is not None else Notes(seen.train.images, job.require_nads(), index)
            row["moved"][str(index)] = {
                f"{size:g}": _shares(network, notes.write(seen.clean, told, "added", size), told) for size in NOTE_SIZES
            }
    if unit["index"] is not None:
        row["mean"], row["deviation"] = (round(value, 6) for value in seen.notes.depth)
        if unit["background"] == "kept":  # the covariance is that of images as they are
            row["left"] = round(seen.notes.left(_covariance(_dataset(job), job.num_train, root)), 6)
    return row


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
    if job.figure == "maps":
        return [partial(_described, job, unit, root) for unit in units]
    if job.figure == "notes":
        return [partial(_followed, job, unit, root) for unit in units]
    return None
