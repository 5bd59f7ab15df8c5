"""Which known architectures NADs resemble: overlaps with those that ship, and how far they are known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nads_core.directions.nads import NADs

CERTAIN_ENOUGH = 0.9  # certainty of a leading subspace, from which on it is compared
FEWEST = 4  # directions of a subspace that says something


@dataclass(frozen=True)
class SubspaceSimilarity:
    """How much of a leading subspace two architectures share.

    Args:
        name: of the other one, as `load_nads` takes it.
        overlap: mean squared cosine of the principal angles.
        interval: where the overlap of the exact subspaces lies, see `NADs.overlap_interval`.
        num_directions: of each subspace.
        chance: what subspaces at random have in common.
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


def likeness(name: str, own: NADs, other: NADs, k: int | None = None) -> SubspaceSimilarity | None:
    """Compare two architectures; None where they have no certain subspace of one size.

    Args:
        name: of the other one.
        own: with certificates.
        other: with certificates.
        k: how many directions; by default as many as both know best, by the less certain of the two.
    """
    sizes = min(len(own), len(other), own.basis.shape[0] - 1)
    assert own.certificates is not None and other.certificates is not None
    if k is None:
        known = own.certificates.leading_certainty[:sizes].minimum(other.certificates.leading_certainty[:sizes])
        known[: FEWEST - 1] = 0
        k = int(known.argmax()) + 1
        if known[k - 1] < CERTAIN_ENOUGH:
            return None
    return SubspaceSimilarity(name, own.overlap(other, k), own.overlap_interval(other, k), k, k / own.basis.shape[0])
