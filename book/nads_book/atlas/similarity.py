"""NADs of the atlas's entries, and the known architectures whose NADs are most similar."""

import functools
from dataclasses import dataclass
from pathlib import Path

import nads_core as nc
from nads_book.atlas.entries import ATLAS
from nads_book.experiments import load_nads
from nads_core.directions import NADs, Uncertainty
from nads_core.directions.certainty import CERTAIN

FEWEST = 4  # smallest dimension of leading subspaces that is chosen to be compared
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


def load_known_nads(name: str) -> NADs:
    """Return the NADs of an architecture of the paper, "lenet", or of the atlas, "atlas/cnn"."""
    in_atlas, entry = name.startswith("atlas/"), name.removeprefix("atlas/")
    return load_entry_nads(entry) if in_atlas else load_nads(name)


def most_similar(nads: NADs, k: int | None = None) -> list[SubspaceSimilarity]:
    """Return the similarity to the architectures of the paper and of the atlas, the closest first.

    Args:
        nads: NADs of inputs (1, 32, 32).
        k: number of leading directions to compare; by default for each the one that both know
            best. Architectures of which no leading subspace is certain by 0.9 are left out then.
            Overlaps of different sizes stand in one list by default: four directions are shared
            more easily than forty, so a ranking needs one k. Of an entry 64 directions are stored,
            and a larger k leaves it out.

    Raises:
        ValueError: for other inputs, or NADs without uncertainty.

    Example:
        >>> most_similar(load_nads("lenet"))[0].name
        'lenet'
    """
    if (shape := tuple(nads.directions.shape[1:])) != (1, 32, 32):
        raise ValueError(
            f"the known NADs are of inputs (1, 32, 32), these of {shape}: compute NADs of the "
            "network with one input channel of that size, or compare two of yours by `overlap`"
        )
    own, similarities = _uncertainty(nads), []
    for name in (*_PAPER, *(f"atlas/{entry}" for entry in ATLAS)):
        other = load_known_nads(name)
        size = _best_known(own, _uncertainty(other)) if k is None else k
        if size is not None and size <= len(other):
            similarities.append(
                SubspaceSimilarity(
                    name,
                    nads.overlap(other, size),
                    overlap_interval(nads, other, size),
                    size,
                    chance=size / len(nads.basis),
                )
            )
    return sorted(similarities, key=lambda one: -one.overlap)


def _uncertainty(nads: NADs) -> Uncertainty:
    if nads.uncertainty is None:
        raise ValueError(
            "these NADs have no uncertainty, so similarities have no interval: compute them again"
        )
    return nads.uncertainty


def _best_known(one: Uncertainty, other: Uncertainty) -> int | None:
    """Return the dimension whose leading subspace both know best; None if it is not certain."""
    size = min(len(one), len(other), 1023)
    certainty = one.leading_certainty[:size].minimum(other.leading_certainty[:size])
    certainty[: FEWEST - 1] = 0
    k = int(certainty.argmax()) + 1
    return k if certainty[k - 1] >= CERTAIN else None
