"""Choosing the pooling for a data set: five small CNNs, six data sets.

``book/preregistered/pooling.toml`` has what was expected, and the criteria.
"""

from functools import cache

import numpy as np
from matplotlib.figure import Figure

from nads_book.analysis.statistics import exact_mean, rank_correlation
from nads_book.evidence import Evidence, evidence
from nads_book.experiments import load_study, matching
from nads_book.figures import style

POOLINGS = ("max", "average", "blurred", "strided", "none")
DATA = ("low", "middle", "near an axis", "high", "photos", "flipped photos")
UPRIGHT, FLIPPED = DATA.index("photos"), DATA.index("flipped photos")


@cache
def choices() -> tuple[np.ndarray, np.ndarray]:
    """Return the energy of the signal in random networks, and test accuracies in percent, means
    over seeds: (data sets, poolings) each.
    """
    content = load_study("pooling.json")
    energies = [[content["prediction"][name][data][0] for name in POOLINGS] for data in DATA]
    accuracies = [
        [
            np.mean(
                [row["test_accuracy"] for row in matching(content["rows"], pooling=name, data=data)]
            )
            for name in POOLINGS
        ]
        for data in DATA
    ]
    return np.array(energies), 100 * np.array(accuracies)


@style.styled
def plot_poolings() -> Figure:
    """Draw accuracy over the energy of the signal, for upright and for flipped photos."""
    panels = {
        "upright photos": (UPRIGHT, (1, 10, 100)),
        "flipped photos": (FLIPPED, (0.1, 0.2, 0.5)),
    }
    figure, axes = style.panel_row(
        panels,
        3.2,
        xlabel="energy of the classes, random networks",
        ylabel="test accuracy (%)",
        sharey=True,
    )
    energies, accuracies = choices()
    for axis, (place, ticks) in zip(axes, panels.values(), strict=True):
        below = "average" if place == UPRIGHT else "blurred"  # where labels would overlap
        for name, *point in zip(POOLINGS, energies[place], accuracies[place], strict=True):
            colour, shift = style.colours()[name == "none"], (0, -13 if name == below else 6)
            axis.plot(*point, "o", color=colour, markersize=6)
            text = axis.annotate(name.replace("none", "no pooling"), point, shift, ha="center")
            text.set(anncoords="offset points", color=colour)
        axis.margins(x=0.25, y=0.15)
        style.log_ticks(axis, ticks)
    return figure


def energy_chooses_pooling() -> Evidence:
    """Decide by the registered rule whether energies were not shown to choose the pooling.

    They choose it if the choice of the highest energy loses fewer points than always max pooling,
    and the interval of the mean rank correlation, from all draws of data sets, excludes zero.
    """
    energies, accuracies = choices()
    lost = accuracies.max(1, keepdims=True) - accuracies
    chosen = lost[np.arange(len(DATA)), energies.argmax(1)].mean()
    pairs = zip(energies, accuracies, strict=True)
    rank = exact_mean(np.array([rank_correlation(*pair, min_size=5) for pair in pairs]))
    shown = chosen < lost[:, POOLINGS.index("max")].mean() and not rank[1] <= 0 <= rank[2]
    return evidence(not shown, *rank, size="paper", num_seeds=2, num_trainings=2 * lost.size)


def flipped_need_another() -> Evidence:
    """Decide whether no pooling is the best on flipped photos and the worst on upright ones."""
    energies, accuracies = choices()
    upright, flipped = accuracies[UPRIGHT], accuracies[FLIPPED]
    none = POOLINGS.index("none")
    holds = energies[FLIPPED].argmax() == flipped.argmax() == upright.argmin() == none
    number = 4 * len(POOLINGS)
    return evidence(
        holds, upright.max() - upright[none], size="laptop", num_seeds=2, num_trainings=number
    )
