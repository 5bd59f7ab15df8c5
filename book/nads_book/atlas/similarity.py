"""NADs of the atlas's entries, and the known architectures whose NADs are most similar."""

import functools
from pathlib import Path

from nads_book.atlas.entries import ATLAS
from nads_book.experiments import load_nads
from nads_core.directions.nads import NADs, Similarities, SubspaceSimilarity
from nads_core.directions.uncertainty import CERTAIN, DirectionUncertainty

FEWEST = 4  # smallest dimension of leading subspaces that is chosen to be compared
_PAPER = ("densenet121", "lenet", "resnet18", "vgg11")  # logistic regression prefers no direction
NADS_FOLDER = Path(__file__).with_name("nads")


@functools.cache
def load_entry_nads(name: str) -> NADs:
    """Return the first 64 NADs of an entry of the atlas, such as "cnn", which are read once.

    Raises:
        ValueError: if the atlas has no such entry.
    """
    if name not in ATLAS:
        raise ValueError(f"the atlas has no {name}: choose from {', '.join(ATLAS)}")
    return NADs.load(NADS_FOLDER / f"{name}.npz")


def load_known_nads(name: str) -> NADs:
    """Return the NADs of an architecture of the paper, "lenet", or of the atlas, "atlas/cnn"."""
    in_atlas, entry = name.startswith("atlas/"), name.removeprefix("atlas/")
    return load_entry_nads(entry) if in_atlas else load_nads(name)


def most_similar(nads: NADs, k: int | None = None) -> Similarities:
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
            "network with one input channel of that size, or compare two of yours by `compare`"
        )
    own, similarities = _uncertainty(nads), []
    for name in (*_PAPER, *(f"atlas/{entry}" for entry in ATLAS)):
        other = load_known_nads(name)
        size = _best_known(own, _uncertainty(other)) if k is None else k
        if size is not None and size <= len(other):
            similarities.append(SubspaceSimilarity.of(name, nads, other, size))
    return Similarities(sorted(similarities, key=lambda one: -one.overlap))


def _uncertainty(nads: NADs) -> DirectionUncertainty:
    if nads.uncertainty is None:
        raise ValueError(
            "these NADs have no uncertainty, so similarities have no interval: compute them again"
        )
    return nads.uncertainty


def _best_known(one: DirectionUncertainty, other: DirectionUncertainty) -> int | None:
    """Return the dimension whose leading subspace both know best; None if it is not certain."""
    size = min(len(one), len(other), 1023)
    certainty = one.leading_certainty[:size].minimum(other.leading_certainty[:size])
    certainty[: FEWEST - 1] = 0
    k = int(certainty.argmax()) + 1
    return k if certainty[k - 1] >= CERTAIN else None
