"""Similarity of the leading subspaces of two architectures, with its interval."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from torch import Tensor

from nads_core.directions.certificates import DirectionUncertainty

CERTAIN_ENOUGH = 0.9  # certainty of a leading subspace, from which on it is compared
FEWEST = 4  # directions of a subspace that says something


@dataclass(frozen=True)
class SubspaceSimilarity:
    """How much of a leading subspace two architectures share.

    Args:
        name: name of the other architecture, as `load_nads` takes it.
        overlap: mean squared cosine of the principal angles.
        interval: interval of the overlap of the exact subspaces, see `NADs.overlap_interval`.
        num_directions: dimension of each subspace.
        chance: mean overlap of two random subspaces.
    """

    name: str
    overlap: float
    interval: tuple[float, float]
    num_directions: int
    chance: float

    def __str__(self) -> str:
        low, high = self.interval
        share = f"{self.overlap:.2f} ({low:.2f} to {high:.2f})"
        return f"{self.name:<24} {share} of the first {self.num_directions} directions"


class Directions(Protocol):
    """The part of `NADs` that a comparison needs."""

    @property
    def basis(self) -> Tensor:
        """Directions as columns, (D, n)."""

    @property
    def certificates(self) -> DirectionUncertainty | None:
        """Uncertainty of the directions."""

    def overlap(self, other: Any, k: int) -> float:
        """Return the overlap of two leading subspaces."""

    def overlap_interval(self, other: Any, k: int) -> tuple[float, float]:
        """Return the interval of the overlap of the exact subspaces."""


def subspace_similarity(
    name: str, first: Directions, second: Directions, k: int | None = None
) -> SubspaceSimilarity | None:
    """Compare two architectures; None where they have no certain subspace of one size.

    Args:
        name: name of the second architecture.
        first: NADs with certificates.
        second: NADs with certificates.
        k: number of directions; by default the one whose less certain subspace is the most certain.
    """
    dimension = first.basis.shape[0]
    sizes = min(first.basis.shape[1], second.basis.shape[1], dimension - 1)
    assert first.certificates is not None and second.certificates is not None
    if k is None:
        known = first.certificates.leading_certainty[:sizes].minimum(second.certificates.leading_certainty[:sizes])
        known[: FEWEST - 1] = 0
        k = int(known.argmax()) + 1
        if known[k - 1] < CERTAIN_ENOUGH:
            return None
    return SubspaceSimilarity(name, first.overlap(second, k), first.overlap_interval(second, k), k, k / dimension)
