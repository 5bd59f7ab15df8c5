"""NADs of the atlas's entries, and the known architectures whose NADs are most similar."""

import functools
from dataclasses import dataclass
from pathlib import Path

import nads_core as nc
from nads_book.atlas.entries import ATLAS
from nads_book.experiments import load_nads
from nads_core.directions import NADs

_PAPER = ("densenet121", "lenet", "resnet18", "vgg11")  # logistic regression prefers no direction
NADS_FOLDER = Path(__file__).with_name("nads")


@dataclass(frozen=True)
class SubspaceSimilarity:
    """Overlap of the leading subspaces of two architectures.

    Args:
        name: name of the other architecture.
        overlap: mean squared cosine of the principal angles.
        interval: interval of the overlap of the exact subspaces, see `overlap_interval`.
        num_directions: dimension of each subspace.
    """

    name: str
    overlap: float
    interval: tuple[float, float]
    num_directions: int

    def __str__(self) -> str:
        low, high = self.interval
        share = f"{self.overlap:.2f} ({low:.2f} to {high:.2f})"
        return f"{self.name:<24} {share} of the first {self.num_directions} directions"


def overlap_interval(first: NADs, second: NADs, k: int = 10) -> tuple[float, float]:
    """Return where the overlap of the exact subspaces of the first k directions lies, if both are
    known as well as is claimed.

    sqrt(1 - overlap) is a distance d between subspaces, the chordal one. With the distances e =
    sqrt(1 - `NADs.leading_certainty`) of both from their exact subspaces, the triangle inequality
    bounds that of the exact ones:

        max(0, d - e_1 - e_2) <= d_exact <= d + e_1 + e_2.
    """
    apart = max(0.0, 1 - first.overlap(second, k)) ** 0.5
    shares = [float(nads.leading_certainty[k - 1]) for nads in (first, second)]
    room = sum(max(0.0, 1 - share) ** 0.5 for share in shares)
    return max(0.0, 1 - (apart + room) ** 2), 1 - max(0.0, apart - room) ** 2


@functools.cache
def load_entry_nads(name: str) -> NADs:
    """Return the first 64 NADs of an entry of the atlas, such as "cnn", which are read once.

    Raises:
        ValueError: if the atlas has no such entry.
    """
    if name not in ATLAS:
        raise ValueError(f"the atlas has no {name}: choose from {', '.join(ATLAS)}")
    return nc.load_nads(NADS_FOLDER / f"{name}.npz")


def most_similar(nads: NADs, k: int = 10) -> list[SubspaceSimilarity]:
    """Return the similarity to the architectures of the paper and of the atlas, the closest first.

    Args:
        nads: NADs of inputs (1, 32, 32).
        k: number of leading directions to compare, at most 64: so many are stored of an entry.

    Raises:
        ValueError: for other inputs, NADs without uncertainty, or fewer than k directions.

    Example:
        >>> most_similar(load_nads("lenet"))[0].name
        'lenet'
    """
    if (shape := tuple(nads.directions.shape[1:])) != (1, 32, 32):
        raise ValueError(
            f"the known NADs are of inputs (1, 32, 32), these of {shape}: compute NADs of the "
            "network with one input channel of that size, or compare two of yours by `overlap`"
        )
    known = {name: load_nads(name) for name in _PAPER}
    known |= {f"atlas/{name}": load_entry_nads(name) for name in ATLAS}
    similarities = [
        SubspaceSimilarity(name, nads.overlap(other, k), overlap_interval(nads, other, k), k)
        for name, other in known.items()
    ]
    return sorted(similarities, key=lambda one: -one.overlap)
