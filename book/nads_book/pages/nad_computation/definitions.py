"""Dipoles or averaged gradients: where they differ, and which predicts what is learned."""

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from nads_book import report
from nads_book.analysis.frequency_maps import LEARNED, published_accuracies
from nads_book.analysis.statistics import area_under_curve, rank_correlation, with_interval
from nads_book.evidence import Evidence, Facts, evidence
from nads_book.experiments import load_study
from nads_book.figures.style import styled, subplots

KINDS = {"gradients": "gradient 1", "dipoles": "dipole 100"}
ARMS = np.array([1, 10, 100, 300])  # of dipoles
TRAINED = "max pooling, 3"  # the network that was trained along the waves in dispute
NUM_DRAWS = 4_000  # of waves and groups of networks


@cache
def stored() -> Any:
    """Return the comparison of the two definitions."""
    return load_study("definitions.json")


def moved() -> dict[str, tuple[float, float]]:
    """Return the energy that dipoles find elsewhere, and what sampling alone gives, by network."""
    return {
        label: tuple(facts["moved"]["gradient 1 | dipole 100"])
        for label, facts in stored()["moments"].items()
    }


@styled
def plot_definitions() -> Figure:
    """Draw the energy that dipoles find elsewhere than gradients, for three networks."""
    networks = {
        "three max poolings": "max pooling, 3",
        "three average poolings": "average pooling, 3",
        "no pooling": "no pooling, 3",
    }
    figure, ((axis,),) = subplots(height=3.2)
    for number, (label, network) in enumerate(networks.items()):
        found = stored()["moments"][network]["moved"]
        pairs = [found[f"{KINDS['gradients']} | dipole {arm}"] for arm in ARMS]
        shares, chance = np.array(pairs).T
        axis.errorbar(ARMS * 1.03**number, shares, 2 * chance, elinewidth=0.7)
        axis.annotate(label, (1.2 * ARMS[-1], shares[-1]), va="center", annotation_clip=False)
    axis.set(xlabel="step of the dipole", ylabel="share of energy elsewhere")
    axis.set(xscale="log", ylim=(0, None))
    return figure


def max_pooling_moves() -> Evidence:
    """Decide whether the definitions differ more with each max pooling, and less with averages."""
    shares = moved()
    one, two, most = (shares[f"max pooling, {n}"][0] for n in (1, 2, 3))
    averages, sampling = shares["average pooling, 3"]
    return evidence(one < two < most > averages > 3 * sampling, most, size="narrow")


def definitions_need_pooling() -> Evidence:
    """Decide whether the definitions agree without pooling, nearly as well as sampling allows."""
    plain, sampling = moved()["no pooling, 3"]
    averages, chance = moved()["average pooling, 3"]
    return evidence(plain < 2 * sampling and averages > 3 * chance, plain, size="narrow")


class Disputed(NamedTuple):
    """Numbers of pairs of waves that the definitions rank differently.

    Attributes:
        pairs: all of them.
        gradients, dipoles: those that are learned as gradients say, and as dipoles say.
        finer: those in which the wave that gradients name has the higher frequency.
    """

    pairs: int
    gradients: int
    dipoles: int
    finer: int


def disputed() -> Disputed:
    """Count the pairs of waves in dispute; gradients prefer the first eight waves, dipoles the
    others.
    """
    facts, moments = stored()["trainings"][TRAINED], stored()["moments"][TRAINED]
    waves = np.array(facts["waves"])
    shares = [np.array(moments["shares"][label])[*waves.T] for label in KINDS.values()]

    def both(values: Any) -> tuple[np.ndarray, np.ndarray]:
        return np.array(values)[..., :8, None], np.array(values)[..., None, 8:]  # (..., 8, 8)

    one, other = both(facts["accuracies"])
    by_gradients, by_dipoles = np.subtract(*both(shares))
    pairs = (by_gradients > 0) & (by_dipoles < 0)
    error = np.sqrt((one * (1 - one) + other * (1 - other)) / facts["num_test"])
    gaps = (one - other) / error  # (seeds, 8, 8)
    kinds = (True, (gaps > 2).all(0), (gaps < -2).all(0), np.greater(*both(np.hypot(*waves.T))))
    return Disputed(*(int((pairs & kind).sum()) for kind in kinds))


def shared_slope() -> Evidence:
    """Decide whether gradients name the better learned wave far more often than dipoles, and mostly
    the wave of lower frequency.
    """
    found = disputed()
    trainings = np.array(stored()["trainings"][TRAINED]["accuracies"]).size
    holds = found.gradients > 10 * found.dipoles and found.finer < found.pairs / 2
    facts: Facts = {"size": "laptop", "num_seeds": 2, "num_trainings": trainings}
    return evidence(holds, found.gradients / found.pairs, **facts)


@cache
def vgg_scores() -> dict[str, np.ndarray]:
    """Return area and rank correlation of each definition for VGG-11: kind -> (2, 1 + draws).

    The first column is the estimate; the others draw the waves and the groups of networks again.
    """
    deep = stored()["deep"]["vgg11"]
    accuracies = published_accuracies("vgg11")
    right = np.array([accuracies[tuple(wave)] for wave in deep["waves"]])
    learned = right > LEARNED

    def scores(energies: np.ndarray, which: np.ndarray) -> tuple[float, float]:
        kept = which[learned[which]]
        return (
            area_under_curve(energies[which], learned[which]),
            rank_correlation(energies[kept], right[kept]),
        )

    groups = {kind: np.array(deep["shares"][label]) for kind, label in KINDS.items()}
    groups["low frequency"] = np.tile(-np.hypot(*np.array(deep["waves"]).T), (8, 1))
    found = {kind: [scores(all_.mean(0), np.arange(len(right)))] for kind, all_ in groups.items()}
    draws = np.random.default_rng(0)
    for _ in range(NUM_DRAWS):
        which = draws.integers(len(right), size=len(right))
        for kind, all_ in groups.items():
            found[kind].append(scores(all_[draws.integers(8, size=8)].mean(0), which))
    return {kind: np.array(values).T for kind, values in found.items()}


def vgg_definitions() -> Evidence:
    """Decide which definition predicts better what VGG-11 learns."""
    lead = vgg_scores()["gradients"][0] - vgg_scores()["dipoles"][0]
    found = with_interval(lead)
    return evidence(found[0] > 0, *found, null=0, size="paper")


def table_vgg() -> str:
    """Return how well each definition predicts what VGG-11 learns, and two predictions of it."""
    scores = vgg_scores()
    lead = scores["gradients"] - scores["dipoles"]
    rows = [
        [kind, *(report.estimate(with_interval(one), 3) for one in values)]
        for kind, values in (scores | {"gradients ahead of dipoles by": lead}).items()
    ]
    met = [
        "met" if ahead >= least else "failed"
        for ahead, least in zip(lead[:, 0], (0.03, 0.05), strict=True)
    ]
    rows.append(["predicted: ahead by .03 and by .05", *met])
    return report.markdown_table(rows, ["VGG-11", "learned or not, area", "rank correlation"])


LAB_TABLES = {
    "What VGG-11 learns, by either definition": table_vgg,
}
