"""Trainings of reduced size: what they find of LeNet's map, and of the maps of deep networks."""

import math
from typing import NamedTuple

from nads_book.analysis import waves
from nads_book.analysis.frequency_maps import LEARNED, ordered_pairs
from nads_book.evidence import Evidence, evidence
from nads_book.experiments import Results
from nads_book.pages.directional_bias.maps import (
    Map,
    accuracies,
    authors,
    learned,
    sweep,
)
from nads_book.report import LABELS

FEW = 100  # orders of so many waves or fewer decide nothing


class Sample(NamedTuple):
    """A deep network of reduced size, trained along a sample of the waves."""

    name: str
    preset: str

    @property
    def label(self) -> str:
        """The network, with its width or size."""
        sizes = {"narrow": ", a quarter as wide", "paper": ", the paper's size"}
        return LABELS[self.name] + sizes.get(self.preset, "")

    @property
    def ours(self) -> Map:
        """Our accuracies, one training each."""
        return accuracies(self.name, self.preset)

    @property
    def theirs(self) -> Map:
        """The authors' accuracies, one training each."""
        return authors(self.name, right=True)

    @property
    def energies(self) -> Map:
        """The energies of these waves in random weights."""
        energies = waves.predicted_energies(self.name)
        return {k: energies[k] for k in self.ours}

    @property
    def results(self) -> Results:
        """The stored trainings."""
        return sweep(self.name, self.preset)

    def ordered(self, scores: Map) -> tuple[int, int]:
        """Return how many pairs of a learned and an unlearned wave scores put in the authors'
        order, and all.
        """
        pairs, ordered = ordered_pairs({k: scores[k] for k in self.ours}, self.theirs)
        return len(ordered), len(pairs)

    @property
    def num_seen(self) -> int:
        """How many of the waves the authors' network learned."""
        return sum(self.theirs[k] > LEARNED for k in self.ours)

    @property
    def decides(self) -> bool:
        """Whether there are enough waves, so that few orders at random have all pairs right."""
        return math.comb(len(self.ours), self.num_seen) >= FEW


FULL = Sample("resnet18", "paper")


# A smaller training of LeNet


# Deep networks


def resnet_same_waves() -> Evidence:
    """Decide whether a ResNet-18 of the paper's size learns the same waves as the authors'."""
    ours, theirs = FULL.ours, {k: FULL.theirs[k] for k in FULL.ours}
    differing = set(learned(ours)) ^ set(learned(theirs))
    return evidence(not differing, len(differing), results=[FULL.results])
