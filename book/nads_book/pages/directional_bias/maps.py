"""All waves of the published grid: the authors' accuracies and ours, and how well two maps agree
(Fig. 1).
"""

from collections.abc import Mapping
from functools import cache
from itertools import combinations

import numpy as np
from matplotlib.figure import Figure

from nads_book import figures
from nads_book.analysis import frequency_maps, published, statistics
from nads_book.analysis.frequency_maps import LEARNED, Pairs
from nads_book.analysis.frequency_maps import published_accuracies as authors
from nads_book.evidence import Estimate, Evidence, evidence
from nads_book.experiments import Results
from nads_book.report import LABELS
from nads_book.studies import stored
from nads_core.data.fourier import Frequency

DEEP = ("vgg11", "resnet18", "densenet121")
CONVOLUTIONAL = ("lenet", *DEEP)
Map = Mapping[Frequency, float]


@cache
def sweep(name: str, preset: str = "paper", figure: str = "fig1") -> Results:
    """Return the trainings of one network along waves."""
    return stored(f"{figure}-{name}", preset)


@cache
def accuracies(name: str, preset: str = "paper", figure: str = "fig1") -> Map:
    """Return our test accuracies by wave, means over seeds."""
    return frequency_maps.by_frequency(sweep(name, preset, figure))


def in_percent(values: Map) -> dict[Frequency, float]:
    """Return shares in percent."""
    return {k: 100 * value for k, value in values.items()}


def learned(values: Map) -> set[Frequency]:
    """Return the waves that are learned."""
    return {k for k, value in values.items() if value > LEARNED}


def on_lines(k: Frequency) -> bool:
    """Return whether a wave has 8 or 16 cycles, across or down."""
    return any(abs(f) in (8, 16) for f in k)


def off_lines(values: Map) -> dict[Frequency, float]:
    """Return what is known of the other waves."""
    return {k: value for k, value in values.items() if not on_lines(k)}


def length(k: Frequency) -> float:
    """Return the number of cycles along a wave's own direction."""
    return float(np.hypot(*k))


# LeNet's map


def plot_lenet_map() -> Figure:
    """Draw our test accuracies of LeNet for every wave."""
    panels = {"LeNet": in_percent(accuracies("lenet"))}
    return figures.plot_frequency_maps({"": panels}, marked=(8, 16))


def equally_long() -> list[tuple[Frequency, Frequency]]:
    """Return pairs of a wave on a dark line and a learned one of the same length beside it."""
    ours, theirs = accuracies("lenet"), authors("lenet")
    beside = [k for k in off_lines(ours) if min(ours[k], theirs[k]) > LEARNED]
    return [
        (on, off)
        for on in ours
        for off in beside
        if on_lines(on) and np.dot(on, on) == np.dot(off, off)
    ]


def dark_lines() -> Evidence:
    """Decide whether LeNet is at chance on the dark lines, and learns another wave that is as
    fine.
    """
    most, published = (
        max(value for k, value in found.items() if on_lines(k))
        for found in (accuracies("lenet"), authors("lenet"))
    )
    holds = max(most, published) < LEARNED and equally_long()
    return evidence(holds, most, results=[sweep("lenet")])


# The maps of all networks


def plot_published_maps() -> Figure:
    """Draw the authors' test accuracies for every wave, of four networks (the paper's Fig. 1)."""
    panels = {LABELS[name]: in_percent(authors(name)) for name in CONVOLUTIONAL}
    return figures.plot_frequency_maps({"": panels})


def own_preferences() -> Evidence:
    """Decide whether architectures differ by more waves than two trainings of LeNet do."""
    seeds = [frequency_maps.by_frequency(sweep("lenet"), seed=seed) for seed in (0, 1)]
    trainings = [learned(found) for found in (authors("lenet"), *seeds)]
    networks = [learned(authors(name)) for name in CONVOLUTIONAL]
    between, within = (
        [len(a ^ b) for a, b in combinations(sets, 2)] for sets in (networks, trainings)
    )
    return evidence(min(between) > max(within), min(between), size="paper")


# How well two maps agree


def copied_half() -> Evidence:
    """Decide whether one half of each published map is a copy of the other."""
    counts = [frequency_maps.copied_cells(published.fourier_accuracies(n)) for n in CONVOLUTIONAL]
    least = min(equal / total for equal, total in counts)
    return evidence(least == 1, least, size="paper")


@cache
def learned_pairs(kind: str) -> Pairs:
    """Return pairs of single trainings of LeNet along one wave, of which one has learned the wave.

    Args:
        kind: "ours, two seeds", or "ours and published".
    """
    if kind == "ours, two seeds":
        pairs = frequency_maps.seed_pairs(sweep("lenet"))
    else:
        first = frequency_maps.by_frequency(sweep("lenet"), seed=0)
        pairs = frequency_maps.common_pairs(first, authors("lenet", right=True))
    return [pair for pair in pairs if max(pair) > LEARNED]


def plot_agreement() -> Figure:
    """Draw single trainings of LeNet against each other, along waves that one of the two has
    learned.
    """
    kinds = {
        "ours and published": ("our training", "published training"),
        "ours, two seeds": ("our first seed", "our second seed"),
    }
    return figures.plot_agreement(
        {kind: (*labels, *np.array(learned_pairs(kind)).T) for kind, labels in kinds.items()}
    )


def difference(kind: str) -> Estimate:
    """Return the mean difference of `learned_pairs` in points, with its interval."""
    gaps = 100 * np.abs(np.diff(np.array(learned_pairs(kind))))[:, 0]
    return statistics.with_interval(
        statistics.resampled(np.mean, gaps, num_resamples=statistics.MANY)
    )


def between_trainings() -> Evidence:
    """Decide whether our LeNets differ from the published ones hardly more than from each other."""
    found = difference("ours and published")
    holds = found[0] < 1.25 * difference("ours, two seeds")[0]
    return evidence(holds, *found, results=[sweep("lenet")])


def resnet_same_waves() -> Evidence:
    """Decide whether a ResNet-18 of the paper's size learns the same waves as the authors'."""
    ours, theirs = accuracies("resnet18"), authors("resnet18", right=True)
    differing = set(learned(ours)) ^ set(learned({k: theirs[k] for k in ours}))
    return evidence(not differing, len(differing), results=[sweep("resnet18")])
