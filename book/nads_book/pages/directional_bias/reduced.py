"""Trainings of reduced size: what they find of LeNet's map, and of the maps of deep networks."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from nads_book import figures
from nads_book.analysis import frequency_maps, statistics, waves
from nads_book.analysis.frequency_maps import LEARNED, count_ordered, gains_along, ordered_pairs
from nads_book.benchmarks.stored import load_costs
from nads_book.evidence import Evidence, evidence
from nads_book.experiments.results import Results
from nads_book.pages.directional_bias.maps import (
    CONVOLUTIONAL,
    Map,
    accuracies,
    authors,
    learned,
    length,
    sweep,
)
from nads_book.report import LABELS, estimate, fixed, markdown_table, percent
from nads_core.data.fourier import Frequency

FEW = 100  # orders of so many waves or fewer decide nothing
ENOUGH = 16  # waves for an area or a correlation of all 130
VGG_BARS = {(0, 4): 0.9, (4, -2): 0.55}  # predicted before VGG-11 was trained by the paper's recipe


class Sample(NamedTuple):
    """A deep network of reduced size, trained along a sample of the waves."""

    name: str
    preset: str

    @property
    def label(self) -> str:
        """The network, with its width."""
        return LABELS[self.name] + (", a quarter as wide" if self.preset == "narrow" else "")

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
        """Return how many pairs of a learned and an unlearned wave scores put in the authors' order, and all."""
        pairs, ordered = ordered_pairs({k: scores[k] for k in self.ours}, self.theirs)
        return len(ordered), len(pairs)

    @property
    def decides(self) -> bool:
        """Whether there are enough waves, so that few orders at random have all pairs right."""
        seen = sum(self.theirs[k] > LEARNED for k in self.ours)
        return math.comb(len(self.ours), seen) >= FEW


SAMPLES = (
    Sample("vgg11", "laptop"),
    Sample("resnet18", "laptop"),
    Sample("resnet18", "narrow"),
    Sample("densenet121", "laptop"),
    Sample("densenet121", "narrow"),
)
DECISIVE = SAMPLES[:3]  # those that `decides`: a test holds them to it


# A smaller training of LeNet


def laptop_pairs(one: Map, other: Map) -> np.ndarray:
    """Return the accuracies of waves that one of two maps has learned, (2, n)."""
    pairs = np.array(frequency_maps.common_pairs(one, other))
    return pairs[pairs.max(1) > LEARNED].T


def seed_map(seed: int) -> Map:
    """Return our accuracies of LeNet with one seed, at the paper's size."""
    return frequency_maps.by_frequency(sweep("lenet"), seed=seed)


def laptop_order() -> Evidence:
    """Decide whether the smaller training orders waves as the paper's size does, with lower accuracies."""
    one, other = laptop_pairs(accuracies("lenet", "laptop"), seed_map(0))
    rank, *ends = statistics.correlation_interval(one, other)
    again = statistics.rank_correlation(*laptop_pairs(seed_map(1), seed_map(0)))
    holds = rank > again - 0.1 and again > 0.7 and (one - other).mean() < 0
    results = [sweep("lenet", "laptop"), sweep("lenet")]
    return evidence(holds, value=rank, interval=ends, results=results)


def laptop_vgg() -> Evidence:
    """Decide whether the smaller training of VGG-11 learns only a few of its waves."""
    values = accuracies("vgg11", "laptop")
    share = len(learned(values)) / len(values)
    return evidence(share < 0.25, value=share, results=[sweep("vgg11", "laptop")])


def table_of_laptop() -> str:
    """Return how well the smaller training of LeNet agrees with the paper's size."""
    compared = {
        "`laptop` and seed 0": (accuracies("lenet", "laptop"), seed_map(0)),
        "`laptop` and seed 1": (accuracies("lenet", "laptop"), seed_map(1)),
        "seed 1 and seed 0": (seed_map(1), seed_map(0)),
    }
    rows = []
    for what, (found, truth) in compared.items():
        one, other = laptop_pairs(found, truth)
        every = np.array(frequency_maps.common_pairs(found, truth)).T
        area = statistics.area_under_curve(every[0], every[1] > LEARNED)
        missed = ((one <= LEARNED) & (other > LEARNED)).sum()
        rank = estimate(statistics.correlation_interval(one, other))
        lower = fixed(100 * (one - other).mean(), sign=True)
        rows.append([what, one.size, rank, f"{area:.2f}", lower, missed])
    head = ["LeNet", "waves that one of them learned", "rank correlation of these"]
    head += [
        "area under the curve, all waves",
        "mean difference (points)",
        "learned by the second only",
    ]
    return markdown_table(rows, head)


# Deep networks


def plot_deep_networks() -> Figure:
    """Draw our accuracies of deep networks of reduced size against the authors'."""
    panels = {}
    for sample in DECISIVE:
        pairs = np.array(frequency_maps.common_pairs(sample.theirs, sample.ours)).T
        panels[sample.label] = ("authors' test accuracy", "ours", *pairs)
    return figures.plot_agreement(panels)


def energy_orders_deep() -> Evidence:
    """Decide whether energies order at least as many pairs of waves as a training of reduced size does."""
    leads = [
        sample.ordered(sample.energies)[0] - sample.ordered(sample.ours)[0] for sample in DECISIVE
    ]
    return evidence(min(leads) >= 0, value=min(leads), results=[one.results for one in DECISIVE])


def best_other_map(sample: Sample) -> tuple[int, str]:
    """Return how many pairs the best published map of another network orders, and its name."""
    others = [name for name in CONVOLUTIONAL if name != sample.name]
    return max((sample.ordered(authors(name, right=True))[0], LABELS[name]) for name in others)


def own_order() -> Evidence:
    """Decide whether ResNet-18 alone has all pairs in the published order, which no other network's map has."""
    alone = set()
    for sample in DECISIVE:
        ordered, every = sample.ordered(sample.ours)
        if ordered == every > best_other_map(sample)[0]:
            alone.add(sample.name)
    return evidence(alone == {"resnet18"}, results=[one.results for one in DECISIVE])


def gain_of_width() -> tuple[np.ndarray, float]:
    """Return what ResNet-18 gains by its full width along waves that the authors' learned, and what it then lacks."""
    narrow, wide = accuracies("resnet18", "narrow"), accuracies("resnet18", "laptop")
    theirs = authors("resnet18", right=True)
    met = [k for k in wide if k in narrow and theirs[k] > LEARNED]
    gains, _ = gains_along(narrow, wide, met)
    return gains, float(gains_along(wide, theirs, met)[0].mean())


def width_adds_little() -> Evidence:
    """Decide whether the full width brings less than half of what is missing to the authors' accuracies."""
    gains, lacking = gain_of_width()
    mean = float(gains.mean())
    half = statistics.pooled_variance([gains]).half_width(len(gains))  # Student's: few waves
    results = [sweep("resnet18", "narrow"), sweep("resnet18", "laptop")]
    holds = mean + half < lacking / 2
    return evidence(holds, value=mean, interval=(mean - half, mean + half), results=results)


@cache
def vgg_of_papers_recipe() -> dict[Frequency, dict[str, Any]]:
    """Return the VGG-11 that were trained by the paper's recipe, by wave."""
    rows = [row for one in load_costs("deep") for row in one["rows"]]
    return {(ky, kx): row for row in rows for ky, kx in [row["frequency"]]}


def vgg_lacks_training() -> Evidence:
    """Decide whether VGG-11 learns two waves by the paper's recipe that it does not learn at reduced size."""
    found = {k: row["test_accuracy"] for k, row in vgg_of_papers_recipe().items()}
    holds = all(accuracy > VGG_BARS[k] for k, accuracy in found.items())
    least = min(found.values())
    return evidence(holds, value=least, size="paper", num_seeds=1, num_trainings=len(found))


def table_of_pairs() -> str:
    """Return how many pairs of waves each score puts in the authors' order."""
    rows = []
    for sample in SAMPLES:
        scores = sample.ours, sample.energies, {k: -length(k) for k in sample.ours}
        counts = [count_ordered(score, sample.theirs) for score in scores]
        best, other = best_other_map(sample)
        seen = sum(sample.theirs[k] > LEARNED for k in sample.ours)
        number = f"{seen} + {len(sample.ours) - seen}{'' if sample.decides else ' (too few)'}"
        rows.append([sample.label, number, *counts, f"{best}, {other}", len(learned(sample.ours))])
    head = ["", "waves learned by the authors' network + others", "pairs in order: our training"]
    head += ["energy", "low frequency", "best other map", "learned by ours"]
    return markdown_table(rows, head)


def table_of_sampled_agreement() -> str:
    """Return areas and rank correlations, weighted to all 130 waves, where there are enough waves."""
    rows = []
    for sample in DECISIVE:
        ours, theirs, energies = sample.ours, sample.theirs, sample.energies
        lengths = {k: -length(k) for k in ours}
        for what, found, other in (
            ("ours, and published", ours, theirs),
            ("energy, and published", energies, theirs),
            ("energy, and ours", energies, ours),
            ("low frequency, and ours", lengths, ours),
        ):
            agreed = frequency_maps.sampled_agreement(sample.name, found, other, LEARNED)
            cells = estimate(agreed.area), estimate(agreed.correlation)
            rows.append([sample.label, f"{len(ours)} of 130", what, *cells])
    return markdown_table(
        rows, ["", "waves", "compared", "area under the curve", "rank correlation"]
    )


def table_of_predictions() -> str:
    """Return what was predicted before deep networks were trained along waves, and the outcomes."""
    rows: list[list[object]] = []

    def add(network: str, prediction: str, met: bool, measured: object) -> None:
        rows.append([network, prediction, measured, "met" if met else "failed"])

    for k, row in vgg_of_papers_recipe().items():
        accuracy, text = row["test_accuracy"], f"above {percent(VGG_BARS[k])} along {k}"
        add("VGG-11, the paper's recipe", text, accuracy > VGG_BARS[k], percent(accuracy, 1))
    for name, share, fewest, most in (("resnet18", 0.9, 8, 11), ("densenet121", 1.0, 4, 4)):
        narrow, wide = Sample(name, "narrow"), Sample(name, "laptop")
        for sample in (narrow, wide):
            right, every = sample.ordered(sample.ours)
            text = f"at least {percent(share)} of pairs in the published order"
            add(sample.label, text, right >= share * every, f"{right} of {every}")
        pairs, ordered = ordered_pairs(narrow.energies, narrow.ours)
        met = len(ordered) >= 0.95 * len(pairs)
        text = "energies of the full width order at least 95 % of its own pairs"
        add(narrow.label, text, met, f"{len(ordered)} of {len(pairs)}")
        seen = len(learned(narrow.ours)), sum(narrow.theirs[k] > LEARNED for k in narrow.ours)
        add(
            narrow.label,
            "learns fewer waves than the authors' network",
            seen[0] < seen[1],
            f"{seen[0]}, {seen[1]}",
        )
        count = len(learned({k: wide.ours[k] for k in narrow.ours}))
        add(wide.label, f"{fewest} to {most} waves learned", fewest <= count <= most, count)
        (gains, error), (way, _) = (
            gains_along(narrow.ours, to, narrow.ours) for to in (wide.ours, wide.theirs)
        )
        text = "less than half of the way from the narrow network to the authors'"
        met = gains.mean() < way.mean() / 2
        add(
            wide.label,
            text,
            met,
            f"{fixed(gains.mean())} ± {error:.1f} of {fixed(way.mean())} points",
        )
    return markdown_table(
        rows, ["network", "predicted before it was trained", "measured", "outcome"]
    )


def table_of_trainings() -> str:
    """Return what was trained, and where."""
    kinds = [("lenet", "paper", figure) for figure in ("fig1", "fig2", "fig3")]
    kinds += [("logreg", "paper", figure) for figure in ("fig1", "fig2", "fig3")]
    kinds += [("lenet", "laptop", "fig1"), ("resnet18", "paper", "fig3")]
    kinds += [(*sample, "fig1") for sample in SAMPLES]
    kinds += [("vgg11", "laptop", "fig2"), ("resnet18", "narrow", "fig2")]
    kinds += [("densenet121", "narrow", "fig2"), ("resnet18", "narrow", "fig3")]
    rows = []
    for name, preset, figure in kinds:
        found = sweep(name, preset, figure)
        recipe = found.settings["recipe"]
        training = f"{found.settings['num_train']:,} × {recipe['epochs']}, batches of {recipe['batch_size']}"
        seeds = ", ".join(str(seed) for seed in sorted({row["seed"] for row in found.rows}))
        devices = ", ".join(sorted({run["device"] for run in found.provenance}))
        counts = f"{len(found.rows)} of {found.num_units}"
        rows.append([f"`{found.job}`", preset, counts, seeds, training, devices])
    head = ["job", "preset", "networks", "seeds", "images × epochs", "devices"]
    return markdown_table(rows, head)


LAB_TABLES: dict[str, Callable[[], str]] = {
    "A fifth of the training, LeNet": table_of_laptop,
    "Pairs of waves in the published order": table_of_pairs,
    "Agreement of samples of the map": table_of_sampled_agreement,
    "Predictions": table_of_predictions,
    "What was trained where": table_of_trainings,
}
CLAIMS: dict[str, Callable[[], Evidence]] = {
    "laptop-order": laptop_order,
    "laptop-vgg": laptop_vgg,
    "energy-orders-deep": energy_orders_deep,
    "own-order": own_order,
    "width-adds-little": width_adds_little,
    "vgg-lacks-training": vgg_lacks_training,
}
