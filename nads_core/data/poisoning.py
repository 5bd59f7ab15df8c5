"""Hiding the labels in NAD coordinates of the images, and reversing the order of those coordinates
(section 4.2).
"""

import math

import torch
from torch import Tensor

from nads_core.directions import NADs
from nads_core.runtime.arguments import require_integers


def carriers(num_classes: int, index: int, channels: int = 3) -> list[tuple[int, int, int]]:
    """Return for each class the coordinate that carries its label: (NAD index, channel, sign).

    Three channels and two signs distinguish six classes, so every six classes take the next NAD:
    class t has index + t // 6, channel t mod 3 and sign 2 (t mod 2) - 1. With one channel, every
    two classes do.

    Raises:
        ValueError: for another number of channels.
    """
    if channels not in (1, 3):
        raise ValueError(f"carriers are defined for images with 1 or 3 channels, got {channels}")
    return [
        (index + t // (2 * channels), t % channels, 2 * (t % 2) - 1) for t in range(num_classes)
    ]


def require_fitting(images: Tensor, nads: NADs) -> None:
    """Raise a ValueError unless NADs are single-channel images of the size of the images, which are
    floating-point numbers.
    """
    shape = tuple(nads.directions.shape[1:])
    if shape[0] != 1:
        raise ValueError(
            "NADs of single-channel images are needed (they act on each channel), "
            f"got shape {shape}"
        )
    if images.dim() != 4 or tuple(images.shape[2:]) != shape[1:]:
        raise ValueError(
            f"images of shape (N, C, {shape[1]}, {shape[2]}) expected, got {tuple(images.shape)}"
        )
    if not images.is_floating_point():
        raise ValueError(f"images of floats in [0, 1] expected, got {images.dtype}: divide by 255")


def poison(
    images: Tensor, labels: Tensor, nads: NADs, index: int, strength: float = 0.05
) -> Tensor:
    """Replace one NAD coordinate of every image by one that encodes its class (section 4.2, Fig.
    7).

    The image's component along the carrier of its class becomes exactly +-strength, with
    ``strength=0`` a hole; all else stays. Pixels may leave [0, 1] by a little and are not clipped,
    which would undo the change.

    Args:
        images: (N, C, H, W) in [0, 1], with 1 or 3 channels.
        labels: (N,) integers from 0.
        nads: NADs of single-channel images of the same size.
        index: NAD index of the carrier.
        strength: epsilon, the coordinate's new magnitude, in the unit of the pixels.

    Returns:
        (N, C, H, W), a new tensor.

    Raises:
        ValueError: if shapes disagree, the strength is negative or not finite, or the carrier needs
            a NAD that is not there.
    """
    require_fitting(images, nads)
    if (
        len(labels) != len(images)
        or labels.dtype.is_floating_point
        or (len(labels) and int(labels.min()) < 0)
    ):
        raise ValueError(
            f"expected {len(images)} integer labels from 0, "
            f"got {tuple(labels.shape)} {labels.dtype}"
        )
    if not 0 <= strength < math.inf:
        raise ValueError(
            f"strength must be finite and at least 0, in the unit of the pixels, got {strength!r}"
        )
    require_integers(least=0, index=index)
    labels = labels.long()  # bytes and booleans would select as masks
    num_classes = int(labels.max()) + 1 if len(labels) else 1
    table = torch.tensor(carriers(num_classes, index, images.shape[1]), device=labels.device)
    if int(table[:, 0].max()) >= len(nads):
        raise ValueError(
            f"carriers at NADs {index} to {int(table[:, 0].max())} "
            f"need more than the {len(nads)} given"
        )
    nad, channel, sign = table[labels].T  # each (N,)
    directions = nads.directions[:, 0].to(images)[nad]  # (N, H, W)
    rows = torch.arange(len(images), device=images.device)
    # (N,), the coordinates that are replaced
    present = (images[rows, channel] * directions).sum((1, 2))
    poisoned = images.clone()
    poisoned[rows, channel] += (strength * sign - present)[:, None, None] * directions
    return poisoned


def flip(images: Tensor, nads: NADs) -> Tensor:
    """Reverse the order of the NAD coordinates of every channel (section 4.2, Fig. 8).

    x' = U flip(U^T x), with one direction a column of U.

    The map is orthogonal and is its own inverse. A basis that lacks directions is completed first.

    Args:
        images: (N, C, H, W).
        nads: NADs of single-channel images of the same size.

    Returns:
        (N, C, H, W).

    Raises:
        ValueError: if shapes disagree, or more than one direction in ten is missing from the basis.
    """
    require_fitting(images, nads)
    size = images.shape[2] * images.shape[3]
    if len(nads) < 0.9 * size:
        raise ValueError(
            f"flipping needs a basis of {size} directions, got {len(nads)}: compute all of them"
        )
    basis = nads.complete_basis().basis.to(images)  # (D, D), one direction a column
    coordinates = (images.flatten(2) @ basis).flip(-1)  # (N, C, D), D = H W
    return coordinates.matmul(basis.T).view_as(images)
