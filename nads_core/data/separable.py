"""The linearly separable distribution D(v) of section 2: x = epsilon y v + w, with noise w
orthogonal to v.
"""

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from nads_core.runtime.arguments import Shape, require_integers, require_unit_norm
from nads_core.runtime.seeds import seed_sequence


def separable_dataset(
    direction: Tensor | np.ndarray,
    num_samples: int,
    margin: float = 1.0,
    noise_std: float = 3.0,
    seed: int = 0,
) -> tuple[Tensor, Tensor]:
    """Draw from D(v): x = margin * y * v + w, w ~ N(0, noise_std^2 (I - v v^T)), y = -1 or +1
    (section 2).

    The noise before projection and the labels depend on ``seed`` only, not on the direction.

    Args:
        direction: v, (C, H, W), unit norm.
        num_samples: number of samples, N.
        margin: epsilon, half the distance between the classes along v.
        noise_std: sigma, of the noise in every direction but v.
        seed: seed of noise and labels.

    Returns:
        Images (N, C, H, W) float32, and labels (N,) int64 in {0, 1} for y = -1 and +1.

    Raises:
        ValueError: for a direction that is not a unit image, or sizes that are not positive.
    """
    return SeparableDatasets(
        torch.as_tensor(direction)[None], num_samples, margin, noise_std, seed
    )[0]


@lru_cache(maxsize=4)  # a training and a test set, for the many directions of one sweep
def _noise_and_labels(
    image_shape: Shape, num_samples: int, seed: int, paired: bool
) -> tuple[Tensor, Tensor]:
    """Return standard normal noise (N, D) before its projection, D = C H W, and labels (N,)."""
    generator = torch.Generator().manual_seed(seed_sequence(seed))
    noise = torch.empty(num_samples // (1 + paired), math.prod(image_shape), dtype=torch.float32)
    if paired:
        noise = noise.normal_(generator=generator).repeat(2, 1)
        labels = torch.arange(2).repeat_interleave(num_samples // 2)
    else:
        labels = torch.randint(2, (num_samples,), generator=generator)
        noise.normal_(generator=generator)
    return noise, labels


@dataclass(frozen=True, eq=False)
class SeparableDatasets(Sequence[tuple[Tensor, Tensor]]):
    """One dataset D(v_b) for each of B directions, on the same labels and the same noise before its
    projection.

    Each is a rank-one change of the noise, so that B datasets need the memory of one dataset and B
    directions.

    Args:
        directions: (B, C, H, W), each of unit norm.
        num_samples: N, in each dataset.
        margin: epsilon, half the distance between the classes along v_b.
        noise_std: sigma, of the noise in every direction but v_b.
        seed: seed of noise and labels.
        paired: whether each noise occurs twice, with y = -1 and with y = +1. Samples n and n + N/2
            then differ only in their coordinate along v, and an accuracy near guessing has a
            smaller error than on independent samples: a classifier that ignores v is right on one
            sample of each pair and wrong on the other.

    Raises:
        ValueError: for a direction that is not a unit image, or sizes that are not positive, or odd
            and ``paired``.

    Example:
        >>> data = SeparableDatasets(torch.eye(4).view(4, 1, 2, 2), num_samples=10)
        >>> len(data), data[3][0].shape
        (4, torch.Size([10, 1, 2, 2]))
    """

    directions: Tensor
    num_samples: int
    margin: float = 1.0
    noise_std: float = 3.0
    seed: int = 0
    paired: bool = False

    def __post_init__(self) -> None:
        directions = torch.as_tensor(self.directions, dtype=torch.float32).clone()
        if directions.dim() != 4 or not len(directions):
            together = f"all together of shape (B, C, H, W), got {tuple(directions.shape)}"
            raise ValueError(f"expected directions of shape (C, H, W), {together}")
        require_unit_norm(directions.flatten(1))
        object.__setattr__(self, "directions", directions)
        require_integers(num_samples=self.num_samples)
        require_integers(least=0, seed=self.seed)
        if self.paired and self.num_samples % 2:
            raise ValueError(f"paired=True needs an even num_samples, got {self.num_samples}")
        if not (0 < self.margin < math.inf and 0 <= self.noise_std < math.inf):
            got = f"{self.margin} and {self.noise_std}"
            raise ValueError(f"expected finite margin > 0 and noise_std >= 0, got {got}")

    @property
    def image_shape(self) -> Shape:
        """(C, H, W)."""
        return tuple(self.directions.shape[1:])

    @property
    def labels(self) -> Tensor:
        """Return a copy of the labels, (N,) int64 in {0, 1}, which are the same for every
        direction.
        """
        return self._drawn()[1].clone()

    def __len__(self) -> int:
        return len(self.directions)

    def _drawn(self) -> tuple[Tensor, Tensor]:
        return _noise_and_labels(self.image_shape, self.num_samples, self.seed, self.paired)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        """Return images (N, C, H, W) and labels (N,) of one dataset."""
        index = operator.index(index)
        if not -len(self) <= index < len(self):
            raise IndexError(f"there are {len(self)} datasets, got index {index}")
        noise, labels = self._drawn()
        noise, signs = self.noise_std * noise, 2 * labels.float() - 1  # (N, D), (N,)
        direction = self.directions[index].flatten()[None]  # (1, D)
        # x = epsilon y v + (w - (v.w) v) is w plus a multiple of v
        along = self.margin * signs - direction @ noise.T  # (1, N), the multiples
        images = torch.addcmul(noise, along.T, direction)  # (N, D)
        return images.view(-1, *self.image_shape), labels.clone()
