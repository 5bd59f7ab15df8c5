"""The linearly separable distribution D(v) of section 2: x = epsilon y v + w, with noise w orthogonal to v."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from nads_core.seeds import seed_sequence


def unit_direction(direction: Tensor | np.ndarray) -> Tensor:
    """Return a direction as a float32 tensor (C, H, W), refusing one that has not unit norm.

    Raises:
        ValueError: if the shape is not (C, H, W) or the norm is not 1.
    """
    direction = torch.as_tensor(direction, dtype=torch.float32)
    if direction.dim() != 3:
        raise ValueError(f"expected a direction of shape (C, H, W), got {tuple(direction.shape)}")
    norm = float(direction.norm())
    if not abs(norm - 1) < 1e-3:
        raise ValueError(f"direction has norm {norm:.4g}, expected 1: divide it by its norm")
    return direction


def separable_dataset(
    direction: Tensor | np.ndarray,
    num_samples: int,
    margin: float = 1.0,
    noise_std: float = 3.0,
    seed: int = 0,
) -> tuple[Tensor, Tensor]:
    """Draw from D(v): x = margin * y * v + w, w ~ N(0, noise_std^2 (I - v v^T)), y = -1 or +1 (section 2).

    The noise before projection and the labels depend on ``seed`` only, not on the direction.

    Args:
        direction: v, (C, H, W), unit norm.
        num_samples: how many, N.
        margin: epsilon, half the distance between the classes along v.
        noise_std: sigma, of the noise in every direction but v.
        seed: fixes noise and labels.

    Returns:
        Images (N, C, H, W) float32, and labels (N,) int64 in {0, 1} for y = -1 and +1.

    Raises:
        ValueError: for a direction that is not a unit image, or sizes that are not positive.
    """
    direction = unit_direction(direction)
    if not num_samples > 0:
        raise ValueError(f"num_samples must be positive, got {num_samples}")
    if not (margin > 0 and noise_std >= 0):
        raise ValueError(f"margin must be positive and noise_std not negative, got {margin} and {noise_std}")
    generator = torch.Generator().manual_seed(seed_sequence(seed))
    labels = torch.randint(2, (num_samples,), generator=generator)
    images = noise_std * torch.randn((num_samples, *direction.shape), generator=generator)
    signs = 2.0 * labels - 1.0
    along = images.flatten(1) @ direction.flatten()
    images += (margin * signs - along)[:, None, None, None] * direction
    return images, labels
