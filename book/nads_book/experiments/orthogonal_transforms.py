"""Orthogonal maps of images, which lose nothing and may lose the picture: coordinates laid onto another basis.

The flip of section 4.2 is one of them. Others keep the order of the coordinates and take the picture, or lay what
matters in photos onto the directions that matter to a network: see `match`.
"""

from __future__ import annotations

import torch
from torch import Tensor

ORDERS = ("kept", "reversed", "shuffled in octaves", "shuffled")
_FIRST_OCTAVE = 16


def orthogonal_map(
    source: Tensor, target: Tensor, order: str = "kept", *, signs: bool = False, seed: int = 0
) -> Tensor:
    """Return the matrix that lays coordinate i of one basis onto the direction of another.

    Args:
        source: (D, D) orthogonal, a direction a column, from the first to the last.
        target: the same of the other basis.
        order: on which direction coordinate i comes to lie: on the i-th; "reversed", on the i-th from the end;
            "shuffled", on a random one; "shuffled in octaves", on a random one among 0 to 15, 16 to 31, 32 to 63 ...
        signs: whether each coordinate is multiplied by a random sign.
        seed: of what is random.

    Returns:
        (D, D), orthogonal.

    Raises:
        ValueError: for an unknown order, or bases of other shapes.
    """
    if order not in ORDERS:
        raise ValueError(f"unknown order {order!r}: choose from {ORDERS}")
    dimension = len(source)
    if source.shape != target.shape or source.shape != (dimension, dimension):
        raise ValueError(
            f"two square bases of one size are needed, got {tuple(source.shape)} and {tuple(target.shape)}"
        )
    generator = torch.Generator().manual_seed(seed)
    signed = 2.0 * torch.randint(2, (dimension,), generator=generator) - 1 if signs else torch.ones(dimension)
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
    """Return the (D, D) covariance of the pixels of a channel, over images (N, C, H, W) and their channels, float64."""
    centred = (images - images.mean(0)).flatten(0, 1).flatten(1).double()  # (N C, D)
    return centred.T @ centred / len(centred)


def principal_components(covariance: Tensor) -> Tensor:
    """Return the eigenvectors of a covariance (D, D), a column each, that with the largest variance first."""
    return torch.linalg.eigh(covariance).eigenvectors.flip(1)


def match(sensitivity: Tensor, covariance: Tensor) -> float:
    """Return tr(C S), of what a network is sensitive to and what varies in images, from 0 to 1.

    0 is the least that any orthogonal map of the images could give and 1 the most: both eigenbases the same, with the
    eigenvalues in opposite orders, or in one (von Neumann's trace inequality). A random map gives about
    what equal eigenvalues would.

    Args:
        sensitivity: C, (D, D), of which the NADs are the eigenvectors.
        covariance: S, (D, D).

    Raises:
        ValueError: if all maps have the same trace, because one of the two is a multiple of the identity.
    """
    wanted, there = (torch.linalg.eigvalsh(matrix.double()) for matrix in (sensitivity, covariance))
    most, least = float(wanted @ there), float(wanted @ there.flip(0))
    if most - least <= 1e-6 * most:
        raise ValueError("one of the two is a multiple of the identity: no map matches better than another")
    return (float((sensitivity.double() * covariance.double()).sum()) - least) / (most - least)


def neighbour_correlation(covariance: Tensor, size: int) -> float:
    """Return the mean correlation of pixels beside or below each other.

    Args:
        covariance: (D, D) of images of ``size`` x ``size`` pixels.
        size: of a side.
    """
    deviations = covariance.diagonal().sqrt()
    correlations = (covariance / deviations / deviations[:, None]).view(size, size, size, size)
    rows = torch.arange(size)
    beside = correlations[rows[:, None], rows[None, :-1], rows[:, None], rows[None, 1:]]
    below = correlations[rows[:-1, None], rows[None], rows[1:, None], rows[None]]
    return float(torch.cat([beside.flatten(), below.flatten()]).mean())
