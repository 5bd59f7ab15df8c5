"""Orthogonal transforms of images, which keep all information: coordinates of one basis become those of another.

The flip of section 4.2 is one of them. Others keep the order of the coordinates and destroy the picture, or align the
directions in which photos vary with those to which a network is sensitive: see `match`.
"""

from __future__ import annotations

import torch
from torch import Tensor

ORDERS = ("kept", "reversed", "shuffled in octaves", "shuffled")
_FIRST_OCTAVE = 16


def orthogonal_map(
    source: Tensor, target: Tensor, order: str = "kept", *, signs: bool = False, seed: int = 0
) -> Tensor:
    """Return the matrix that maps direction i of one basis to a direction of another.

    Args:
        source: (D, D) orthogonal matrix, one direction per column, from the first to the last.
        target: matrix of the other basis.
        order: target of direction i: "kept", the i-th; "reversed", the i-th from the end; "shuffled", a random one;
            "shuffled in octaves", a random one among 0 to 15, 16 to 31, 32 to 63 ...
        signs: whether each coordinate is multiplied by a random sign.
        seed: seed of random orders and signs.

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
    """Return tr(C S), between the sensitivity of a network and the variance of images, scaled to [0, 1].

    0 is the minimum over all orthogonal maps of the images and 1 the maximum: both eigenbases equal, with the
    eigenvalues in opposite orders, or in one (von Neumann's trace inequality). A random map gives about the value of
    equal eigenvalues.

    Args:
        sensitivity: C, (D, D), of which the NADs are the eigenvectors.
        covariance: S, (D, D).

    Raises:
        ValueError: if all maps have the same trace, because one of the two is a multiple of the identity.
    """
    sensitive, variances = (torch.linalg.eigvalsh(matrix.double()) for matrix in (sensitivity, covariance))
    most, least = float(sensitive @ variances), float(sensitive @ variances.flip(0))
    if most - least <= 1e-6 * most:
        raise ValueError("one of the two is a multiple of the identity: no map matches better than another")
    return (float((sensitivity.double() * covariance.double()).sum()) - least) / (most - least)


def neighbour_correlation(covariance: Tensor, size: int) -> float:
    """Return the mean correlation of horizontally or vertically adjacent pixels.

    Args:
        covariance: (D, D) of images of ``size`` x ``size`` pixels.
        size: number of pixels of a side.
    """
    deviations = covariance.diagonal().sqrt()
    correlations = (covariance / deviations / deviations[:, None]).view(size, size, size, size)
    rows = torch.arange(size)
    right = correlations[rows[:, None], rows[None, :-1], rows[:, None], rows[None, 1:]]
    below = correlations[rows[:-1, None], rows[None], rows[1:, None], rows[None]]
    return float(torch.cat([right.flatten(), below.flatten()]).mean())
