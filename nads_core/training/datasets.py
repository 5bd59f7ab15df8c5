"""The format of datasets: a tensor of images and a tensor of labels."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

Dataset = tuple[Tensor, Tensor]  # images (N, C, H, W) and labels (N,)


def require_dataset(data: Dataset, name: str) -> None:
    """Raise a ValueError unless data are images and as many integer labels."""
    images, labels = data
    if images.dim() != 4 or labels.shape != images.shape[:1] or labels.dtype.is_floating_point:
        raise ValueError(
            f"{name} must be images (N, C, H, W) and integer labels (N,), got "
            f"{tuple(images.shape)} and {tuple(labels.shape)} {labels.dtype}"
        )


def image_shape(datasets: Sequence[Dataset]) -> tuple[int, ...]:
    """Return (C, H, W): from the attribute of a sequence that has one, otherwise from the first item."""
    return tuple(datasets.image_shape if hasattr(datasets, "image_shape") else datasets[0][0].shape[1:])


def num_samples(datasets: Sequence[Dataset]) -> int:
    """Return N: from the attribute of a sequence that has one, otherwise from the first item."""
    return getattr(datasets, "num_samples", None) or len(datasets[0][1])
