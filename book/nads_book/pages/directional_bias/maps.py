"""All waves of the published grid: the authors' accuracies and ours, and how well two maps agree (Fig. 1)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from itertools import combinations

import numpy as np
from matplotlib.figure import Figure

from nads_book import figures
from nads_book.analysis import frequency_maps, published, statistics
from nads_book.analysis.frequency_maps import LEARNED, Pairs
from nads_book.evidence import Evidence, evidence
from nads_book.experiments.results import Results
from nads_book.pages import stored
from nads_book.report import LABELS, markdown_table, minus, percent
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


@cache
def authors(name: str, right: bool | None = None) -> Map:
    """Return the authors' test accuracies by wave: the mean of k and -k, or one half of their grid."""
    return frequency_maps.of_tasks(published.fourier_accuracies(name), right)


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
    """Decide whether LeNet is at chance on the dark lines, and learns another wave that is as fine."""
    most = max(value for k, value in accuracies("lenet").items() if on_lines(k))
    return evidence(most < LEARNED and equally_long(), value=most, results=[sweep("lenet")])


def finer_is_harder() -> Evidence:
    """Decide whether accuracy beside the dark lines falls with the length of the frequency."""
    beside = off_lines(accuracies("lenet"))
    lengths = np.array([length(k) for k in beside])
    rank, *ends = statistics.correlation_interval(lengths, np.array([*beside.values()]))
    return evidence(rank < -0.5, value=rank, interval=ends, results=[sweep("lenet")])


def table_of_dark_lines() -> str:
    """Return LeNet's accuracies on and beside the dark lines, the authors' and ours."""
    rows = []
    for whose, found in {"published": authors("lenet"), "ours": accuracies("lenet")}.items():
        on = [value for k, value in found.items() if on_lines(k)]
        finest = max((k for k in found if found[k] > 0.6), key=length)
        last = f"{finest}, {length(finest):.1f} cycles: {percent(found[finest], 1)}"
        rows.append([whose, _range(on), _range(off_lines(found).values()), minus(last)])
    on, off = min(equally_long(), key=lambda pair: pair[0][0] < 0)
    found = [f"{k}: {percent(accuracies('lenet')[k], 1)}" for k in (on, off)]
    rows.append([f"ours, two waves of {length(on):.0f} cycles", *map(minus, found), "–"])
    head = ["LeNet", "8 or 16 cycles across or down", "all other waves", "finest wave above 60 %"]
    return markdown_table(rows, head)


# The maps of all networks


def plot_published_maps() -> Figure:
    """Draw the authors' test accuracies for every wave, of four networks (the paper's Fig. 1)."""
    panels = {LABELS[name]: in_percent(authors(name)) for name in CONVOLUTIONAL}
    return figures.plot_frequency_maps({"": panels})


def published_logreg() -> Evidence:
    """Decide whether the published logistic regression makes no error."""
    least = min(authors("logreg").values())
    return evidence(least == 1, value=least, size="paper")


def published_densenet() -> Evidence:
    """Decide whether the published DenseNet-121 is at chance for most waves, and nearly perfect for a few."""
    values = np.array([*authors("densenet121").values()])
    share = (values < LEARNED).mean()
    return evidence(share > 0.85 and 0 < (values > 0.9).sum() < 13, value=share, size="paper")


def own_preferences() -> Evidence:
    """Decide whether architectures differ by more waves than two trainings of LeNet do."""
    seeds = [frequency_maps.by_frequency(sweep("lenet"), seed=seed) for seed in (0, 1)]
    trainings = [learned(found) for found in (authors("lenet"), *seeds)]
    networks = [learned(authors(name)) for name in CONVOLUTIONAL]
    between, within = (
        [len(a ^ b) for a, b in combinations(sets, 2)] for sets in (networks, trainings)
    )
    return evidence(min(between) > max(within), value=min(between), size="paper")


def table_of_maps() -> str:
    """Return how many waves each network learns, by the authors' numbers and by ours."""
    rows = []
    for name, label in LABELS.items():
        found = {"published": authors(name)}
        found |= {} if name in DEEP else {"ours": accuracies(name)}
        for whose, values in found.items():
            shares = np.array([*values.values()])
            counts = len(shares), (shares < LEARNED).sum(), (shares > 0.99).sum()
            rows.append([label, whose, *counts, _range(shares)])
    return markdown_table(rows, ["", "numbers", "waves", "below 55 %", "above 99 %", "accuracy"])


# How well two maps agree


def copied_half() -> Evidence:
    """Decide whether one half of each published map is a copy of the other."""
    counts = [frequency_maps.copied_cells(published.fourier_accuracies(n)) for n in CONVOLUTIONAL]
    least = min(equal / total for equal, total in counts)
    return evidence(least == 1, value=least, size="paper")


@cache
def pairs() -> dict[str, Pairs]:
    """Return pairs of single trainings of LeNet along one wave, or along two that are equally hard."""
    cells, one = published.fourier_accuracies("lenet"), authors("lenet", right=True)
    first = frequency_maps.by_frequency(sweep("lenet"), seed=0)
    return {
        "ours and published": frequency_maps.common_pairs(first, one),
        "ours, two seeds": frequency_maps.seed_pairs(sweep("lenet")),
        "ours, transposed waves": frequency_maps.transposed_pairs(first),
        "published, transposed waves": frequency_maps.transposed_pairs(one),
        "published, **k** and −**k**": frequency_maps.negative_pairs(cells),
    }


def learned_pairs(kind: str) -> Pairs:
    """Return those of `pairs` of which one training has learned the wave."""
    return [pair for pair in pairs()[kind] if max(pair) > LEARNED]


def plot_agreement() -> Figure:
    """Draw single trainings of LeNet against each other, along waves that one of the two has learned."""
    kinds = {
        "ours and published": ("our training", "published training"),
        "ours, two seeds": ("our first seed", "our second seed"),
    }
    panels = {}
    for kind, labels in kinds.items():
        panels[kind] = (*labels, *np.array(learned_pairs(kind)).T)
    return figures.plot_agreement(panels)


def difference(found: Pairs) -> tuple[float, float, float]:
    """Return the mean difference of the pairs in points, with its interval."""
    gaps = 100 * np.abs(np.diff(np.array(found)))[:, 0]
    return statistics.with_interval(
        statistics.resampled(np.mean, gaps, num_resamples=statistics.MANY)
    )


def between_trainings() -> Evidence:
    """Decide whether our LeNets differ from the published ones hardly more than from each other."""
    value, *ends = difference(learned_pairs("ours and published"))
    itself, *_ = difference(learned_pairs("ours, two seeds"))
    return evidence(value < 1.25 * itself, value=value, interval=ends, results=[sweep("lenet")])


def coarse_waves_differ() -> Evidence:
    """Decide whether our LeNets are more accurate than the published one along the coarsest waves."""
    coarse = [k for k in accuracies("lenet") if max(map(abs, k)) <= 2]
    ours, theirs = (
        np.mean([values[k] for k in coarse])
        for values in (accuracies("lenet"), authors("lenet", right=True))
    )
    gain = float(ours - theirs)
    return evidence(gain > 0.02, value=100 * gain, results=[sweep("lenet")])


def table_of_agreement() -> str:
    """Return how far single trainings of LeNet are from each other."""
    rows = []
    for kind, found in pairs().items():
        rows.append([kind, *frequency_maps.agreement(found).cells().split(" | ")])
        few = frequency_maps.agreement(learned_pairs(kind)).cells().split(" | ")
        rows.append([f"{kind}, where one is above 55 %", *few])
    head = [
        "single run against single run",
        "pairs",
        "mean difference (points)",
        "rank correlation",
    ]
    return markdown_table(rows, head)


def _range(shares: Iterable[float]) -> str:
    ends = [*shares]
    return f"{percent(min(ends), 1)} to {percent(max(ends), 1)}"


LAB_TABLES: dict[str, Callable[[], str]] = {
    "LeNet's dark lines": table_of_dark_lines,
    "The maps in numbers": table_of_maps,
    "Agreement of single trainings of LeNet": table_of_agreement,
}
CLAIMS: dict[str, Callable[[], Evidence]] = {
    "dark-lines": dark_lines,
    "finer-is-harder": finer_is_harder,
    "published-logreg": published_logreg,
    "published-densenet": published_densenet,
    "own-preferences": own_preferences,
    "copied-half": copied_half,
    "between-trainings": between_trainings,
    "coarse-waves-differ": coarse_waves_differ,
}
