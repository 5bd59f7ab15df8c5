"""Which waves LeNet learns under three optimisers, beside energies of its random weights."""

from functools import cache
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from nads_book import figures
from nads_book.analysis.statistics import (
    mean_and_range,
)
from nads_book.atlas import load_atlas
from nads_book.evidence import Evidence, Facts, evidence
from nads_book.pages.scored_rows import rows_of
from nads_book.studies import forgetting
from nads_book.studies.forgetting import FACTORIAL, RATES, SEEDS, WAVES, Cell

NAMES = {"sgd": "SGD", "momentum": "SGD with momentum", "adam": "Adam"}
LOWER = [cell for cell in FACTORIAL if cell.rate != RATES[cell.optimiser][-1]]


@cache
def tables() -> dict[Cell, np.ndarray]:
    """Return the test accuracies of each treatment, (seeds, waves)."""
    return forgetting.accuracies(rows_of("forgetting"))


@cache
def by_energy() -> dict[Cell, dict[str, float]]:
    """Return how energies order the accuracies of each treatment."""
    return forgetting.by_energy(tables())


@cache
def by_frequency() -> dict[Cell, dict[str, float]]:
    """Return how low frequency, the baseline, orders the accuracies of each treatment."""
    coarse = -np.array([np.hypot(*wave) for wave in forgetting.waves()])
    return {cell: forgetting.orders(coarse, tables()[cell]) for cell in FACTORIAL}


def of_seed(cell: Cell, seed: int) -> dict[str, float]:
    """Return how energies order the accuracies of one seed."""
    return forgetting.orders(forgetting.wave_energies(), tables()[cell][[seed]])


def plot_optimisers() -> Figure:
    """Draw accuracy over energy at the start: a panel for each optimiser, a line for each rate;
    bands span the seeds.
    """
    energies = forgetting.wave_energies()
    sizes = ("lowest rate", "middle rate", "largest rate")
    panels: dict[str, Any] = {}
    for optimiser, title in NAMES.items():
        cells = [Cell(optimiser=optimiser, rate=rate) for rate in RATES[optimiser]]
        reached = [mean_and_range(100 * tables()[cell]) for cell in cells]
        panels[title] = {
            label: (energies, found) for label, found in zip(sizes, reached, strict=True)
        }
    labels = ("energy at the start", "test accuracy (%)")
    return figures.plot_lines(panels, *labels, [0.01, 0.1], level=50, bands=True, ylim=(45, 101))


# Claims

FACTS: Facts = {
    "size": "paper",
    "num_seeds": len(SEEDS),
    "num_trainings": len(SEEDS) * WAVES * len(FACTORIAL),
}


def whatever_the_optimiser() -> Evidence:
    """Decide by the registered rule whether a treatment refutes that energies order what is learned
    in each.
    """
    found = forgetting.refuting(tables())
    value = min(max(of_seed(cell, seed)["area"] for seed in SEEDS) for cell in found)
    return evidence(bool(found), value, null=0.8, **FACTS)


def lower_rates_keep_order() -> Evidence:
    """Decide whether energies order more than 90 % of the pairs at the two lower rates."""
    least = min(by_energy()[cell]["area"] for cell in LOWER)
    return evidence(least > 0.9, least, null=0.9, **FACTS)


def optimisers_not_frequency() -> Evidence:
    """Decide whether accuracies follow energy more closely than frequency at these rates."""
    leads = [by_energy()[c]["correlation"] - by_frequency()[c]["correlation"] for c in LOWER]
    return evidence(min(leads) > 0, min(leads), null=0, **FACTS)


def elsewhere() -> dict[Cell, dict[str, float]]:
    """Return how energies order accuracies of a small CNN, and of LeNet on classes that overlap."""
    atlas = load_atlas()
    own = atlas.waves[[*atlas.entries].index("cnn")]
    energies = {
        "cnn": np.array([own[wave] for wave in forgetting.waves()]),
        "lenet": forgetting.wave_energies(),
    }
    return {
        cell: forgetting.orders(energies[cell.architecture], found)
        for cell, found in tables().items()
        if cell not in FACTORIAL
    }


def order_elsewhere() -> Evidence:
    """Decide whether energies order more than 90 % of the pairs there, if two waves are learned."""
    areas = [found["area"] for found in elsewhere().values() if found["learned"] >= 2]
    number = len(elsewhere()) * WAVES * len(SEEDS)
    facts = FACTS | {"num_trainings": number}
    return evidence(min(areas) > 0.9, min(areas), null=0.9, **facts)
