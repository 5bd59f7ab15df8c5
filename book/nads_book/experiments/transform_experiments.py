"""The experiment on orthogonal transforms of CIFAR-10 (jobs ``maps-*``), some of which match a network's NADs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

import torch
from torch import Tensor, nn

from nads_book.experiments.base import Unit, shipped_nads
from nads_book.experiments.orthogonal_transforms import (
    covariance,
    match,
    neighbour_correlation,
    orthogonal_map,
    principal_components,
    transform,
)
from nads_book.experiments.poison_and_flip_experiments import PhotoExperiment, load_photos
from nads_book.experiments.presets import Size
from nads_core.data.fourier import fourier_basis
from nads_core.data.images import normalize
from nads_core.networks.architectures import ARCHITECTURES
from nads_core.runtime.seeds import seed_sequence
from nads_core.training import Dataset

NADS_VERSION = 2  # of all bases, whatever architecture is trained
_DRAWS = 3
_OTHER = {"lenet": "resnet18"}  # the other NADs of all other architectures are those of LeNet


def _kind(source: str, target: str, order: str = "kept", signs: bool = False) -> dict[str, Any]:
    return {"source": source, "target": target, "order": order, "signs": signs}


def transform_units(architecture: str) -> list[dict[str, Any]]:
    """Return the transforms of an architecture, each with the number of its draw; a beginning has one of every kind.

    They are arguments of `orthogonal_map`: ``source`` and ``target`` are "pca" (of centred photos), "fourier" (low
    frequencies first), "random", or an architecture, for its NADs.
    """
    same = architecture if architecture != "logreg" else "lenet"
    other = _OTHER.get(same, "lenet")
    fixed = [_kind(same, same), _kind(same, same, "reversed"), _kind(other, other, "reversed"),
             _kind("fourier", "fourier", "reversed")]  # fmt: skip
    drawn = [_kind("pca", basis, order, True)
             for basis in (same, other, "fourier", "random") for order in ("kept", "reversed")]  # fmt: skip
    drawn += [_kind(same, same, "kept", True), _kind(same, same, "shuffled in octaves"), _kind(same, same, "shuffled"),
              _kind("pca", same, "shuffled in octaves", True), _kind("pca", same, "shuffled", True)]  # fmt: skip
    drawn.remove(_kind("pca", "random", "reversed", True))  # the reversed order of a random basis is as random
    return [unit | {"draw": 0} for unit in fixed] + [unit | {"draw": draw} for draw in range(_DRAWS) for unit in drawn]


def _basis(name: str, draw: int, covariance: Tensor) -> Tensor:
    """Return a basis of 32 x 32 images, (1024, 1024), one direction per column."""
    if name == "pca":
        return principal_components(covariance).float()
    if name == "fourier":
        directions, frequencies = fourier_basis(32)
        return directions.flatten(1)[frequencies.square().sum(1).argsort(stable=True)].T
    if name == "random":
        generator = torch.Generator().manual_seed(seed_sequence(draw, 7))
        return torch.linalg.qr(torch.randn(1024, 1024, generator=generator)).Q
    return shipped_nads(name, NADS_VERSION).completed().basis


def matrix_of(unit: dict[str, Any], covariance: Tensor) -> Tensor:
    """Return the (1024, 1024) matrix of a unit.

    Args:
        unit: unit of `transform_units`.
        covariance: covariance of the photos' channels, see `nads_book.experiments.orthogonal_transforms.covariance`.
    """
    source, target = (_basis(unit[end], unit["draw"], covariance) for end in ("source", "target"))
    return orthogonal_map(source, target, unit["order"], signs=unit["signs"], seed=seed_sequence(unit["draw"], 8))


def describe(architecture: str, matrix: Tensor, covariance: Tensor) -> dict[str, float | None]:
    """Return how well transformed photos match a network, and the correlation of their adjacent pixels.

    All transforms match logistic regression equally well: None.
    """
    mapped = matrix.double() @ covariance @ matrix.double().T
    neighbours = round(neighbour_correlation(mapped, 32), 5)
    if architecture == "logreg":
        return {"match": None, "neighbours": neighbours}
    nads = shipped_nads(architecture, NADS_VERSION)
    sensitivity = (nads.basis * nads.eigenvalues.to(nads.basis)) @ nads.basis.T
    return {"match": round(match(sensitivity, mapped), 5), "neighbours": neighbours}


@lru_cache(maxsize=1)
def _photo_covariance(dataset: str, num_photos: int, root: str | None) -> Tensor:
    """Return the covariance of a channel of normalised training photos, (D, D)."""
    return covariance(normalize(load_photos(dataset, True, num_photos, root).images))


class TransformExperiment(PhotoExperiment):
    """Networks on photos under orthogonal transforms, which keep all information and may hide the picture."""

    figure = "maps"
    summary = "accuracy on CIFAR-10 under transforms that match a network's NADs or don't (not in the paper)"
    unit_fields = ("source", "target", "order", "signs", "draw")
    same_weights = True

    @classmethod
    def targets(cls, model: str, size: Size, nads_version: int | None) -> list[Unit]:
        return transform_units(model)[: size.num_transforms]

    @classmethod
    def seeds(cls, size: Size) -> tuple[int, ...]:
        return size.paired_seeds

    def settings(self, photos: str | None = None) -> dict[str, Any]:
        names = sorted({unit["target"] for unit in self.units} & set(ARCHITECTURES))
        fingerprints = {name: shipped_nads(name, NADS_VERSION).fingerprint for name in names}
        bases = {name: {"version": NADS_VERSION, "fingerprint": value} for name, value in fingerprints.items()}
        return super().settings(photos) | {"bases": bases}

    def dataset(self, unit: Unit, train: bool, root: str | None) -> Dataset:
        photos, matrix = self.photos(train, root), matrix_of(unit, _photo_covariance(*self.source(root)))
        return transform(normalize(photos.images), matrix), photos.labels

    def measures(self, units: Sequence[Unit], root: str | None) -> list[Callable[[nn.Module], dict[str, Any]]]:
        return [partial(self._describe, unit, root) for unit in units]

    def _describe(self, unit: Unit, root: str | None, network: nn.Module) -> dict[str, Any]:
        """Return what a unit's transform does to photos; the network does not matter."""
        spread = _photo_covariance(*self.source(root))
        return describe(self.architecture.name, matrix_of(unit, spread), spread)
