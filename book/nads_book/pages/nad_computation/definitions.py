"""Dipoles or averaged gradients: where they differ, and which predicts what is learned."""

from functools import cache
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from nads_book import figures, report
from nads_book.analysis import published
from nads_book.analysis.frequency_maps import of_tasks
from nads_book.analysis.statistics import area_under_curve, rank_correlation, with_interval
from nads_book.evidence import Evidence, evidence
from nads_book.experiments.stored import load_study

KINDS = {"gradients": "gradient 1", "dipoles": "dipole 100"}
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


def plot_definitions() -> Figure:
    """Draw the energy that dipoles find elsewhere, for three networks."""
    networks = {
        "three max poolings": "max pooling, 3",
        "three average poolings": "average pooling, 3",
        "no pooling": "no pooling, 3",
    }
    moments = {label: stored()["moments"][network] for label, network in networks.items()}
    return figures.plot_definitions(moments, reference=KINDS["gradients"])


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


def disputed_pairs() -> tuple[list[int], list[int]]:
    """Return how many disputed pairs are learned as gradients say, as dipoles say, and neither.

    A pair is disputed if the definitions rank its waves differently. The second list counts hard
    pairs only, in which the wave that gradients name has the higher frequency.
    """
    facts, moments = stored()["trainings"][TRAINED], stored()["moments"][TRAINED]
    waves, accuracies = facts["waves"], np.array(facts["accuracies"])
    energy = {
        kind: np.array([moments["shares"][label][ky][kx] for ky, kx in waves])
        for kind, label in KINDS.items()
    }
    counts, hard = [0, 0, 0], [0, 0, 0]
    for i in range(8):  # gradients prefer the first eight waves, dipoles the others
        for j in range(8, 16):
            gradients, dipoles = (energy[kind][i] - energy[kind][j] for kind in KINDS)
            if gradients <= 0 or dipoles >= 0:
                continue
            gaps = accuracies[:, i] - accuracies[:, j]  # of both seeds
            both = accuracies[:, [i, j]]
            error = np.sqrt((both * (1 - both)).sum(1) / facts["num_test"])
            verdict = 0 if (gaps > 2 * error).all() else 1 if (gaps < -2 * error).all() else 2
            counts[verdict] += 1
            hard[verdict] += np.hypot(*waves[i]) > np.hypot(*waves[j])
    return counts, [int(count) for count in hard]


def shared_slope() -> Evidence:
    """Decide whether gradients name the better learned wave far more often than dipoles."""
    (gradients, dipoles, neither), _ = disputed_pairs()
    trainings = np.array(stored()["trainings"][TRAINED]["accuracies"]).size
    share = gradients / (gradients + dipoles + neither)
    return evidence(
        gradients > 10 * dipoles, share, size="laptop", num_seeds=2, num_trainings=trainings
    )


@cache
def vgg_scores() -> dict[str, np.ndarray]:
    """Return area and rank correlation of each definition for VGG-11: kind -> (2, 1 + draws).

    The first column is the estimate; the others draw the waves and the groups of networks again.
    """
    deep = stored()["deep"]["vgg11"]
    accuracies = of_tasks(published.fourier_accuracies("vgg11"))
    right = np.array([accuracies[tuple(wave)] for wave in deep["waves"]])
    learned = right > 0.55

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


CLAIMS = {
    "max-pooling-moves": max_pooling_moves,
    "definitions-need-pooling": definitions_need_pooling,
    "shared-slope": shared_slope,
    "vgg-definitions": vgg_definitions,
}
LAB_TABLES = {
    "What VGG-11 learns, by either definition": table_vgg,
}
