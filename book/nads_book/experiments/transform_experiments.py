"""Orthogonal maps of CIFAR-10 that match a network's NADs or don't: which ones, and what they do to the photos."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from nads_book.experiments.orthogonal_transforms import (
    match,
    neighbour_correlation,
    orthogonal_map,
    principal_components,
)
from nads_core.data.fourier import fourier_basis
from nads_core.directions import NADs, load_nads
from nads_core.runtime.seeds import seed_sequence

NADS_VERSION = 2  # of all bases, whichever network is trained
_DRAWS = 3
_OTHER = {"lenet": "resnet18"}  # every other network meets LeNet's


def _kind(source: str, target: str, order: str = "kept", signs: bool = False) -> dict[str, Any]:
    return {"source": source, "target": target, "order": order, "signs": signs}


def map_units(architecture: str) -> list[dict[str, Any]]:
    """Return the maps that a network meets, each with the number of its draw; a beginning has one of every kind.

    Of `orthogonal_map`: ``source`` and ``target`` are "pca" (of centred photos), "fourier" (low frequencies first),
    "random", or an architecture, for its NADs.
    """
    own = architecture if architecture != "logreg" else "lenet"
    other = _OTHER.get(own, "lenet")
    fixed = [_kind(own, own), _kind(own, own, "reversed"), _kind(other, other, "reversed"),
             _kind("fourier", "fourier", "reversed")]  # fmt: skip
    drawn = [_kind("pca", basis, order, True)
             for basis in (own, other, "fourier", "random") for order in ("kept", "reversed")]  # fmt: skip
    drawn += [_kind(own, own, "kept", True), _kind(own, own, "shuffled in octaves"), _kind(own, own, "shuffled"),
              _kind("pca", own, "shuffled in octaves", True), _kind("pca", own, "shuffled", True)]  # fmt: skip
    drawn.remove(_kind("pca", "random", "reversed", True))  # as random as the other way round
    return [unit | {"draw": 0} for unit in fixed] + [unit | {"draw": draw} for draw in range(_DRAWS) for unit in drawn]


@lru_cache(maxsize=4)
def nads_of(architecture: str) -> NADs:
    """Return the NADs that maps are made of."""
    return load_nads(architecture, NADS_VERSION)


def _basis(name: str, draw: int, covariance: Tensor) -> Tensor:
    """Return a basis of 32 x 32 images, (1024, 1024), a direction a column."""
    if name == "pca":
        return principal_components(covariance).float()
    if name == "fourier":
        directions, frequencies = fourier_basis(32)
        return directions.flatten(1)[frequencies.square().sum(1).argsort(stable=True)].T
    if name == "random":
        generator = torch.Generator().manual_seed(seed_sequence(draw, 7))
        return torch.linalg.qr(torch.randn(1024, 1024, generator=generator)).Q
    return nads_of(name).completed().basis


def matrix_of(unit: dict[str, Any], covariance: Tensor) -> Tensor:
    """Return the (1024, 1024) matrix of a unit.

    Args:
        unit: of `map_units`.
        covariance: of the photos' channels, see `nads_book.experiments.orthogonal_transforms.covariance`.
    """
    source, target = (_basis(unit[end], unit["draw"], covariance) for end in ("source", "target"))
    return orthogonal_map(source, target, unit["order"], signs=unit["signs"], seed=seed_sequence(unit["draw"], 8))


def description(architecture: str, matrix: Tensor, covariance: Tensor) -> dict[str, float | None]:
    """Return what a map does to photos: how well they match the network afterwards, and each of their pixels the next.

    Logistic regression is matched by all maps alike: None.
    """
    mapped = matrix.double() @ covariance @ matrix.double().T
    neighbours = round(neighbour_correlation(mapped, 32), 5)
    if architecture == "logreg":
        return {"match": None, "neighbours": neighbours}
    nads = nads_of(architecture)
    sensitivity = (nads.basis * nads.eigenvalues.to(nads.basis)) @ nads.basis.T
    return {"match": round(match(sensitivity, mapped), 5), "neighbours": neighbours}
