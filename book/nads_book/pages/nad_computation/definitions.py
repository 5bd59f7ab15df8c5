"""Dipoles or averaged gradients: where they differ, and which predicts what is learned."""

from functools import cache
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from nads_book.evidence import Evidence, evidence
from nads_book.experiments import load_study
from nads_book.figures.style import styled, subplots

KINDS = {"gradients": "gradient 1", "dipoles": "dipole 100"}
ARMS = np.array([1, 10, 100, 300])  # of dipoles


@cache
def stored() -> Any:
    """Return the comparison of the two definitions."""
    return {row["network"]: row for row in load_study("definitions.json")["rows"]}


def moved() -> dict[str, tuple[float, float]]:
    """Return the energy that dipoles find elsewhere, and what sampling alone gives, by network."""
    return {
        label: tuple(facts["moved"]["gradient 1 | dipole 100"]) for label, facts in stored().items()
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
        found = stored()[network]["moved"]
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
