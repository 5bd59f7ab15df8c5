"""Orthogonal transforms of images, which keep all information, and the experiment on them (jobs
``maps-*``).

A transform maps the coordinates of one basis to those of another. The flip of section 4.2 is one of
them. Others keep the order of the coordinates and destroy the picture, or align the directions in
which photos vary with those to which a network is sensitive: see `match`.
"""

import math
from functools import lru_cache

import torch
from torch import Tensor, nn

from nads_book.experiments import Context, Facts, Unit
from nads_book.experiments.stored import load_nads
from nads_book.studies.poison_and_flip import PhotoStudy, load_photos
from nads_book.studies.presets import Size
from nads_core.data.fourier import fourier_basis
from nads_core.data.images import normalize
from nads_core.directions import NADs
from nads_core.networks.architectures import ARCHITECTURES
from nads_core.runtime.seeds import seed_sequence
from nads_core.training import Dataset

_FIRST_OCTAVE = 16
NADS_VERSION = 2  # of all bases, whatever architecture is trained
_DRAWS = 3
_OTHER = {"lenet": "resnet18"}  # the other NADs of all other architectures are those of LeNet


def orthogonal_map(
    source: Tensor, target: Tensor, order: str = "kept", *, signs: bool = False, seed: int = 0
) -> Tensor:
    """Return the matrix that maps direction i of one basis to a direction of another.

    Args:
        source: (D, D) orthogonal matrix, one direction per column, from the first to the last.
        target: matrix of the other basis.
        order: target of direction i: "kept", the i-th; "reversed", the i-th from the end;
            "shuffled", a random one; "shuffled in octaves", a random one among 0 to 15, 16 to 31,
            32 to 63 ...
        signs: whether each coordinate is multiplied by a random sign.
        seed: seed of random orders and signs.

    Returns:
        (D, D), orthogonal.
    """
    dimension = len(source)
    generator = torch.Generator().manual_seed(seed)
    signed = torch.ones(dimension)
    if signs:
        signed = 2.0 * torch.randint(2, (dimension,), generator=generator) - 1
    place = torch.arange(dimension)
    if order == "reversed":
        place = place.flip(0)
    elif order == "shuffled":
        place = torch.randperm(dimension, generator=generator)
    elif order == "shuffled in octaves":
        first, last = 0, min(_FIRST_OCTAVE, dimension)
        while first < dimension:
            place[first:last] = first + torch.randperm(last - first, generator=generator)
            first, last = last, min(2 * last, dimension)
    return (target[:, place] * signed.to(target)) @ source.to(target).T


def transform(images: Tensor, matrix: Tensor) -> Tensor:
    """Apply a (D, D) matrix to every channel of images (N, C, H, W), with D = H W."""
    return (images.flatten(2) @ matrix.to(images).T).view_as(images)


def covariance(images: Tensor) -> Tensor:
    """Return the (D, D) covariance of the pixels of a channel, over images (N, C, H, W) and their
    channels, float64.
    """
    centred = (images - images.mean(0)).flatten(0, 1).flatten(1).double()  # (N C, D)
    return centred.T @ centred / len(centred)


def principal_components(covariance: Tensor) -> Tensor:
    """Return the eigenvectors of a covariance (D, D), a column each, that with the largest variance
    first.
    """
    return torch.linalg.eigh(covariance).eigenvectors.flip(1)


def match(sensitivity: Tensor, covariance: Tensor) -> float:
    """Return tr(C S), between the sensitivity of a network and the variance of images, scaled to
    [0, 1].

    0 is the minimum over all orthogonal maps of the images and 1 the maximum: both eigenbases
    equal, with the eigenvalues in opposite orders, or in one (von Neumann's trace inequality). A
    random map gives about the value of equal eigenvalues.

    Args:
        sensitivity: C, (D, D), of which the NADs are the eigenvectors.
        covariance: S, (D, D).
    """
    sensitive, variances = (
        torch.linalg.eigvalsh(matrix.double()) for matrix in (sensitivity, covariance)
    )
    most, least = float(sensitive @ variances), float(sensitive @ variances.flip(0))
    return (float((sensitivity.double() * covariance.double()).sum()) - least) / (most - least)


def neighbour_correlation(covariance: Tensor, size: int) -> float:
    """Return the mean correlation of horizontally or vertically adjacent pixels.

    Args:
        covariance: (D, D) of images of ``size`` x ``size`` pixels.
        size: number of pixels of a side.
    """
    deviations = covariance.diagonal().sqrt()
    correlations = covariance / deviations / deviations[:, None]
    pixels = torch.arange(size**2).view(size, size)
    right = correlations[pixels[:, :-1], pixels[:, 1:]]
    below = correlations[pixels[:-1], pixels[1:]]
    return float(torch.cat([right.flatten(), below.flatten()]).mean())


def _kind(source: str, target: str, order: str = "kept", signs: bool = False) -> Facts:
    return {"source": source, "target": target, "order": order, "signs": signs}


def transform_units(architecture: str) -> list[Facts]:
    """Return the transforms of an architecture, each with the number of its draw; a beginning has
    one of every kind.

    They are arguments of `orthogonal_map`: ``source`` and ``target`` are "pca" (of centred photos),
    "fourier" (low frequencies first), "random", or an architecture, for its NADs.
    """
    same = architecture if architecture != "logreg" else "lenet"
    other = _OTHER.get(same, "lenet")
    fixed = [
        _kind(same, same),
        _kind(same, same, "reversed"),
        _kind(other, other, "reversed"),
        _kind("fourier", "fourier", "reversed"),
    ]
    drawn = [
        _kind("pca", basis, order, True)
        for basis in (same, other, "fourier", "random")
        for order in ("kept", "reversed")
        if (basis, order) != ("random", "reversed")  # as random as the kept order
    ]
    drawn += [
        _kind(same, same, "kept", True),
        _kind(same, same, "shuffled in octaves"),
        _kind(same, same, "shuffled"),
        _kind("pca", same, "shuffled in octaves", True),
        _kind("pca", same, "shuffled", True),
    ]
    return [unit | {"draw": 0} for unit in fixed] + [
        unit | {"draw": draw} for draw in range(_DRAWS) for unit in drawn
    ]


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
    return load_nads(name, NADS_VERSION).complete_basis().basis


def matrix_of(unit: Facts, covariance: Tensor) -> Tensor:
    """Return the (1024, 1024) matrix of a unit.

    Args:
        unit: unit of `transform_units`.
        covariance: covariance of the photos' channels, see `covariance`.
    """
    source, target = (_basis(unit[end], unit["draw"], covariance) for end in ("source", "target"))
    return orthogonal_map(
        source, target, unit["order"], signs=unit["signs"], seed=seed_sequence(unit["draw"], 8)
    )


def describe(nads: NADs | None, matrix: Tensor, covariance: Tensor) -> dict[str, float | None]:
    """Return how well transformed photos match a network, and the correlation of their adjacent
    pixels.

    All transforms match logistic regression equally well, which has no NADs: None.
    """
    mapped = matrix.double() @ covariance @ matrix.double().T
    neighbours = round(neighbour_correlation(mapped, math.isqrt(len(mapped))), 5)
    if nads is None:
        return {"match": None, "neighbours": neighbours}
    sensitivity = (nads.basis * nads.eigenvalues.to(nads.basis)) @ nads.basis.T
    return {"match": round(match(sensitivity, mapped), 5), "neighbours": neighbours}


@lru_cache(maxsize=1)
def _photo_covariance(dataset: str, num_photos: int, root: str | None) -> Tensor:
    """Return the covariance of a channel of normalised training photos, (D, D)."""
    return covariance(normalize(load_photos(dataset, True, num_photos, root).images))


class TransformStudy(PhotoStudy):
    """Networks on photos under orthogonal transforms, which keep all information and may hide the
    picture.
    """

    figure = "maps"
    same_weights = True

    @classmethod
    def targets(cls, model: str, size: Size, nads_version: int | None) -> list[Unit]:
        return transform_units(model)[: size.num_transforms]

    def settings(self, photos: str | None = None) -> Facts:
        names = sorted({unit["target"] for unit in self.trainings} & set(ARCHITECTURES))
        bases = {
            name: {
                "version": NADS_VERSION,
                "fingerprint": load_nads(name, NADS_VERSION).fingerprint,
            }
            for name in names
        }
        return super().settings(photos) | {"bases": bases}

    def dataset(self, unit: Unit, train: bool, root: str | None) -> Dataset:
        photos = self.photos(train, root)
        matrix = matrix_of(unit, _photo_covariance(*self.source(root)))
        return transform(normalize(photos.images), matrix), photos.labels

    def measure(self, unit: Unit, context: Context, network: nn.Module) -> Facts:
        """Return what a unit's transform does to photos; the network does not matter."""
        spread = _photo_covariance(*self.source(context.root))
        name = self.architecture.name
        nads = None if name == "logreg" else load_nads(name, NADS_VERSION)
        return describe(nads, matrix_of(unit, spread), spread)
