"""Repairing a small DenseNet and a narrow ResNet-18 by one-line changes."""

from functools import cache

import numpy as np
from matplotlib.figure import Figure

import nads_core as nc
from nads_book.evidence import Evidence, Facts, evidence
from nads_book.experiments import load_study
from nads_book.figures import style
from nads_book.studies import repair
from nads_book.studies.repair import (
    GOAL,
    NETWORKS,
    THRESHOLD,
    Repaired,
)

BOTH = "densenet, strided, flat"
SINGLE = ("densenet, flat", "densenet, strided")
LOW = 0.1  # of the mean energy, below which hardly any wave is learned


@cache
def repaired() -> Repaired:
    """Return the stored energies and accuracies."""
    content = load_study("repair.json")
    return Repaired.of(content["prediction"], content["rows"])


def named(name: str) -> str:
    """Return the name of a network as the page writes it."""
    return name.replace("densenet", "DenseNet").replace("resnet", "ResNet-18")


@style.styled
def plot_repairs() -> Figure:
    """Draw which of 16 waves are predicted to be learned, and which are, in a row per network."""
    figure, ((axis,),) = style.subplots(height=4.4, grid=None)
    predicted = np.stack([repaired().energies[name] > THRESHOLD for name in NETWORKS])
    learned = np.stack([repaired().learned(name) for name in NETWORKS])  # (networks, waves)
    right, wrong = style.colours()[:2]
    for label, cells, marker, colour in (
        ("predicted, learned", predicted & learned, "o", right),
        ("neither", ~(predicted | learned), ".", style.shade(0.6)),
        ("predicted, not learned", predicted & ~learned, "x", wrong),
        ("learned, not predicted", learned & ~predicted, "D", wrong),
    ):
        places, waves = np.nonzero(cells)
        axis.plot(waves, places, marker, color=colour, markersize=6, label=label)
    for place, wave in enumerate(repair.waves()):
        box = axis.inset_axes((place - 0.42, -1.5, 0.84, 0.84), transform=axis.transData)
        style.show_signed(box, nc.fourier_direction(wave)[0])
    axis.set(xlim=(-0.7, 15.7), ylim=(len(NETWORKS) - 0.5, -1.7), xlabel="wave")
    axis.set_xticks([0, 15], ["coarsest", "finest"])
    axis.set_yticks(range(len(NETWORKS)), map(named, NETWORKS))
    axis.spines[:].set_visible(False)
    style.legend(figure, axis, ncol=2)
    return figure


def facts(num_trainings: int = 64) -> Facts:
    """Return size and number of trainings of a claim; four networks along 16 waves by default."""
    return {"size": "narrow", "num_seeds": 2, "num_trainings": num_trainings}


def number_learned(name: str) -> int:
    """Return how many waves a network learns."""
    return int(repaired().learned(name).sum())


def repair_both() -> Evidence:
    """Decide whether both changes together let the DenseNet learn fewer than 12 waves."""
    number = number_learned(BOTH)
    return evidence(number < GOAL, number, **facts())


def repair_single() -> Evidence:
    """Decide whether the rule is right for all waves after each single change of the DenseNet."""
    found = repaired()
    right = [found.right(name) for name in SINGLE]
    holds = np.all(right) and found.learned("densenet, strided")[-1]
    return evidence(holds, np.sum(right), **facts())


def low_energy_unlearned() -> Evidence:
    """Decide whether at most one wave of low energy is learned, over all eight networks."""
    found = repaired()
    learned = np.concatenate([found.learned(name)[found.energies[name] < LOW] for name in NETWORKS])
    return evidence(learned.sum() <= 1, (~learned).sum(), **facts(256))
