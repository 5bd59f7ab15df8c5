"""Trainings of reduced size: what they find of LeNet's map, and of the maps of deep networks."""

import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from nads_book import figures
from nads_book.analysis import frequency_maps, statistics, waves
from nads_book.analysis.frequency_maps import (
    LEARNED,
    common_pairs,
    count_ordered,
    gains_along,
    ordered_pairs,
)
from nads_book.benchmarks.stored import load_costs
from nads_book.evidence import Evidence, evidence
from nads_book.experiments import Results
from nads_book.pages.directional_bias.maps import (
    CONVOLUTIONAL,
    Map,
    accuracies,
    authors,
    learned,
    length,
    sweep,
)
from nads_book.report import LABELS, fixed, markdown_table, percent
from nads_core.data.fourier import Frequency

FEW = 100  # orders of so many waves or fewer decide nothing
VGG_BARS = {(0, 4): 0.9, (4, -2): 0.55}  # predicted before VGG-11 was trained by the paper's recipe


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


SAMPLES = (
    Sample("vgg11", "laptop"),
    Sample("resnet18", "laptop"),
    Sample("resnet18", "narrow"),
    Sample("densenet121", "laptop"),
    Sample("densenet121", "narrow"),
)
DECISIVE = SAMPLES[:3]  # those that `decides`: a test holds them to it
FULL = Sample("resnet18", "paper")
_SAME = 0.05  # largest difference of two accuracies that are called the same


# A smaller training of LeNet


def seed_map(seed: int) -> Map:
    """Return our accuracies of LeNet with one seed, at the paper's size."""
    return frequency_maps.by_frequency(sweep("lenet"), seed=seed)


def laptop_order() -> Evidence:
    """Decide whether the smaller training orders waves as the paper's size does, with lower
    accuracies.
    """
    (one, other), (again, first) = (
        np.array([pair for pair in common_pairs(found, seed_map(0)) if max(pair) > LEARNED]).T
        for found in (accuracies("lenet", "laptop"), seed_map(1))
    )
    rank = statistics.correlation_interval(one, other)
    of_seeds = statistics.rank_correlation(again, first)
    holds = rank[0] > of_seeds - 0.1 and of_seeds > 0.7 and (one - other).mean() < 0
    return evidence(holds, *rank, results=[sweep("lenet", "laptop"), sweep("lenet")])


def laptop_vgg() -> Evidence:
    """Decide whether the smaller training of VGG-11 learns only a few of its waves."""
    values = accuracies("vgg11", "laptop")
    share = len(learned(values)) / len(values)
    return evidence(share < 0.25, share, results=[sweep("vgg11", "laptop")])


# Deep networks


def plot_deep_networks() -> Figure:
    """Draw our accuracies of deep networks against the authors'."""
    panels = {}
    for sample in (*DECISIVE, FULL):
        pairs = np.array(common_pairs(sample.theirs, sample.ours)).T
        panels[sample.label.replace(", ", "\n")] = ("authors'", "ours", *pairs)
    return figures.plot_agreement(panels)


def resnet_repeats() -> Evidence:
    """Decide whether a ResNet-18 of the paper's size learns the same waves as the authors', with
    the same accuracies.
    """
    ours, theirs = FULL.ours, {k: FULL.theirs[k] for k in FULL.ours}
    largest = max(abs(ours[k] - theirs[k]) for k in ours)
    holds = learned(ours) == learned(theirs) and largest < _SAME
    return evidence(holds, 100 * largest, results=[FULL.results])


def resnet_same_waves() -> Evidence:
    """Decide whether a ResNet-18 of the paper's size learns the same waves as the authors'."""
    ours, theirs = FULL.ours, {k: FULL.theirs[k] for k in FULL.ours}
    differing = set(learned(ours)) ^ set(learned(theirs))
    return evidence(not differing, len(differing), results=[FULL.results])


def energy_orders_deep() -> Evidence:
    """Decide whether energies order at least as many pairs of waves as a training of reduced size
    does.
    """
    leads = [
        sample.ordered(sample.energies)[0] - sample.ordered(sample.ours)[0] for sample in DECISIVE
    ]
    return evidence(min(leads) >= 0, min(leads), results=[one.results for one in DECISIVE])


def best_other_map(sample: Sample) -> tuple[int, str]:
    """Return how many pairs the best published map of another network orders, and its name."""
    others = [name for name in CONVOLUTIONAL if name != sample.name]
    return max((sample.ordered(authors(name, right=True))[0], LABELS[name]) for name in others)


def own_order() -> Evidence:
    """Decide whether ResNet-18 alone has all pairs in the published order, which no other network's
    map has.
    """
    alone = set()
    for sample in DECISIVE:
        ordered, every = sample.ordered(sample.ours)
        if ordered == every > best_other_map(sample)[0]:
            alone.add(sample.name)
    return evidence(alone == {"resnet18"}, results=[one.results for one in DECISIVE])


def gain_of_width() -> tuple[np.ndarray, float]:
    """Return what ResNet-18 gains by its full width along waves that the authors' learned, and what
    it then lacks.
    """
    narrow, wide = accuracies("resnet18", "narrow"), accuracies("resnet18", "laptop")
    theirs = authors("resnet18", right=True)
    met = [k for k in wide if k in narrow and theirs[k] > LEARNED]
    gains, _ = gains_along(narrow, wide, met)
    return gains, float(gains_along(wide, theirs, met)[0].mean())


def width_adds_little() -> Evidence:
    """Decide whether the full width brings less than half of what is missing to the authors'
    accuracies.
    """
    gains, lacking = gain_of_width()
    gain = statistics.student_mean(gains)
    results = [sweep("resnet18", "narrow"), sweep("resnet18", "laptop")]
    return evidence(gain[2] < lacking / 2, *gain, results=results)


@cache
def vgg_of_papers_recipe() -> dict[Frequency, dict[str, Any]]:
    """Return the VGG-11 that were trained by the paper's recipe, by wave."""
    rows = [row for one in load_costs("deep") for row in one["rows"]]
    return {(ky, kx): row for row in rows for ky, kx in [row["frequency"]]}


def vgg_lacks_training() -> Evidence:
    """Decide whether VGG-11 learns two waves by the paper's recipe that it does not learn at
    reduced size.
    """
    found = {k: row["test_accuracy"] for k, row in vgg_of_papers_recipe().items()}
    before = accuracies("vgg11", "laptop")
    holds = all(before[k] < LEARNED and found[k] > bar for k, bar in VGG_BARS.items())
    least = min(found.values())
    return evidence(holds, least, size="paper", num_seeds=1, num_trainings=len(found))


def table_of_pairs() -> str:
    """Return how many pairs of waves each score puts in the authors' order."""
    rows = []
    for sample in (*SAMPLES, FULL):
        scores = sample.ours, sample.energies, {k: -length(k) for k in sample.ours}
        counts = [count_ordered(score, sample.theirs) for score in scores]
        best, other = best_other_map(sample)
        seen = sample.num_seen
        number = f"{seen} + {len(sample.ours) - seen}{'' if sample.decides else ' (too few)'}"
        rows.append([sample.label, number, *counts, f"{best}, {other}", len(learned(sample.ours))])
    head = ["", "waves learned by the authors' network + others", "pairs in order: our training"]
    head += ["energy", "low frequency", "best other map", "learned by ours"]
    return markdown_table(rows, head)


def table_of_predictions() -> str:
    """Return what was predicted before deep networks were trained along waves, and the outcomes."""
    rows: list[list[object]] = []

    def add(network: str, text: str, measured: object, met: bool | np.bool_) -> None:
        rows.append([network, text, measured, "met" if met else "failed"])

    for k, row in vgg_of_papers_recipe().items():
        accuracy, bar = row["test_accuracy"], VGG_BARS[k]
        text = f"above {percent(bar)} along {k}"
        add("VGG-11, the paper's recipe", text, percent(accuracy, 1), accuracy > bar)
    for name, share, fewest, most in (("resnet18", 0.9, 8, 11), ("densenet121", 1.0, 4, 4)):
        narrow, wide = Sample(name, "narrow"), Sample(name, "laptop")
        text = f"at least {percent(share)} of pairs in the published order"
        for sample in (narrow, wide):
            right, every = sample.ordered(sample.ours)
            add(sample.label, text, f"{right} of {every}", right >= share * every)
        pairs, ordered = ordered_pairs(narrow.energies, narrow.ours)
        text = "energies of the full width order at least 95 % of its own pairs"
        met = len(ordered) >= 0.95 * len(pairs)
        add(narrow.label, text, f"{len(ordered)} of {len(pairs)}", met)
        ours, theirs = len(learned(narrow.ours)), narrow.num_seen
        text = "learns fewer waves than the authors' network"
        add(narrow.label, text, f"{ours}, {theirs}", ours < theirs)
        count = len(learned({k: wide.ours[k] for k in narrow.ours}))
        add(wide.label, f"{fewest} to {most} waves learned", count, fewest <= count <= most)
        (gains, error), (way, _) = (
            gains_along(narrow.ours, to, narrow.ours) for to in (wide.ours, wide.theirs)
        )
        text = "less than half of the way from the narrow network to the authors'"
        measured = f"{fixed(gains.mean())} ± {error:.1f} of {fixed(way.mean())} points"
        add(wide.label, text, measured, gains.mean() < way.mean() / 2)
    head = ["network", "predicted before it was trained", "measured", "outcome"]
    return markdown_table(rows, head)


def table_of_others() -> str:
    """Return accuracies of trainings that decide no claim: logistic regression, and few
    DenseNet-121s.
    """
    kinds = [("logreg", "paper", figure) for figure in ("fig2", "fig3", "random")]
    kinds.append(("densenet121", "narrow", "fig2"))
    rows = []
    for kind in kinds:
        found = sweep(*kind)
        accuracy = [row["test_accuracy"] for row in found.rows]
        numbers = (percent(function(accuracy)) for function in (min, np.mean, max))
        rows.append([f"`{found.job}`", found.preset, len(accuracy), *numbers])
    head = ["job", "preset", "networks", "lowest accuracy", "mean", "highest"]
    return markdown_table(rows, head)


LAB_TABLES = {
    "Pairs of waves in the published order": table_of_pairs,
    "Trainings that decide no claim": table_of_others,
    "Predictions": table_of_predictions,
}
