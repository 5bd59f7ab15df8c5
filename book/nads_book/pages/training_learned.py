"""The page ``11_training``, what is learned: which waves under three optimisers; which NADs a
trained network uses.
"""

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from nads_book import figures
from nads_book.claims import decides
from nads_book.experiments import rows_of
from nads_book.experiments.evidence import Evidence, Facts, above, evidence
from nads_book.pages.scored_rows import registered, scored
from nads_book.statistics import MANY, resampled_correlations, with_interval
from nads_book.studies import forgetting
from nads_book.studies.forgetting import FACTORIAL, RATES, SEEDS, WAVES, Cell
from nads_book.studies.recipes import NETWORKS, wave_frequencies

USED, RECIPES = "used-nads", "recipes"
OPTIMISERS = {"sgd": "SGD", "momentum": "SGD with momentum", "adam": "Adam"}
LOWER = [cell for cell in FACTORIAL if cell.rate != RATES[cell.optimiser][-1]]
USERS = {"resnet": "ResNet-18, quarter width", "vgg11": "VGG-11"}
CONTROLS = {"wave": "waves of equal energy", "random": "random directions, equal change"}


# Which waves are learned under three optimisers


@cache
def tables() -> dict[Cell, np.ndarray]:
    """Return the test accuracies of each treatment, (seeds, waves)."""
    return forgetting.accuracies(rows_of("forgetting"))


def plot_optimisers() -> Figure:
    """Draw accuracy over energy at the start: a panel for each optimiser, a line for each rate;
    bands span the seeds.
    """
    energies = forgetting.wave_energies()
    sizes = ("lowest rate", "middle rate", "largest rate")
    panels: dict[str, Any] = {}
    for optimiser, title in OPTIMISERS.items():
        lines = panels[title] = {}
        for size, rate in zip(sizes, RATES[optimiser], strict=True):
            found = 100 * tables()[Cell(optimiser=optimiser, rate=rate)]
            lines[size] = energies, np.stack([found.mean(0), found.min(0), found.max(0)], 1)
    labels = ("energy at the start", "test accuracy (%)")
    return figures.plot_lines(panels, *labels, [0.01, 0.1], level=50, bands=True, ylim=(45, 101))


def counts(cells: Sequence[Cell]) -> Facts:
    """Return size, seeds and trainings of some treatments."""
    number = len(SEEDS) * WAVES * len(cells)
    return {"size": "paper", "num_seeds": len(SEEDS), "num_trainings": number}


@decides("whatever-the-optimiser")
def _():
    """Decide by the registered rule whether a treatment refutes that energies order what is learned
    in each.
    """
    found, energies = forgetting.refuting(tables()), forgetting.wave_energies()
    areas = [
        [forgetting.orders(energies, tables()[cell][[seed]])["area"] for seed in SEEDS]
        for cell in found
    ]
    return evidence(bool(found), min(map(max, areas)), **counts(FACTORIAL))


@decides("lower-rates-keep-order")
def _():
    """Decide whether energies order more than 90 % of the pairs at the two lower rates."""
    orders = forgetting.by_energy(tables())
    least = min(orders[cell]["area"] for cell in LOWER)
    return evidence(least > 0.9, least, **counts(LOWER))


@decides("optimisers-not-frequency")
def _():
    """Decide whether accuracies follow energy more closely than frequency at these rates, in the
    mean over treatments, by an interval that draws waves again.
    """
    rules = forgetting.wave_energies(), -wave_frequencies()
    leads = [
        np.subtract(*(resampled_correlations(rule, tables()[cell].mean(0), MANY) for rule in rules))
        for cell in LOWER
    ]
    return above(with_interval(np.mean(leads, 0)), **counts(LOWER))


@decides("recipes-keep-order")
def _():
    """Decide whether energies order more than 90 % of the pairs with batch norm and at twice the
    width, but not at half the width, while few waves are learned with other initial scales.
    """
    cells = scored(RECIPES).estimates

    def of(name: str, *recipes: str) -> list[float]:
        return [
            cells[f"{network}, {recipe}"][name][0] for network in NETWORKS for recipe in recipes
        ]

    areas, half = of("area", "batch norm", "twice the width"), of("area", "half width")
    learned = of("learned", "he", "mup")
    number = WAVES * (len(areas) + len(half) + len(learned))
    facts: Facts = {"size": "laptop", "num_seeds": 1, "num_trainings": number}
    return evidence(min(areas) > 0.9 >= max(half) and max(learned) <= 3, min(areas), **facts)


# Which NADs a trained network uses: predictions that change when a component's sign is turned


def plot_used() -> Figure:
    """Draw how many more predictions change along a NAD than along its controls."""
    panels: dict[str, Any] = {}
    for network, title in USERS.items():
        own = [row for row in rows_of(USED) if row["network"] == network]
        found = pd.json_normalize(own, "directions")
        panels[title] = {
            f"NAD over {label}": (found["energy"], found["nad.turn"] / found[f"{control}.turn"])
            for control, label in CONTROLS.items()
        }
    marks = dict.fromkeys(next(iter(panels.values())), "o")
    ticks: Facts = {"yticks": [0.25, 0.5, 1, 2], "yticklabels": ["¼", "½", "1", "2"]}
    return figures.plot_lines(
        panels,
        "energy of photos along the NAD",
        "ratio",
        [0.2, 1, 5, 20],
        level=1,
        marks=marks,
        yscale="log",
        **ticks,
    )


USED_FACTS: Facts = {"size": "narrow", "num_seeds": 2, "num_trainings": 2}


@decides("trained-follow-data")
def _():
    """Decide by the registered limits whether the ResNet-18 uses early NADs no more than waves, and
    show the geometric mean of the ratio over seeds and NADs 0 to 40, with Student's interval over
    NADs.
    """
    criterion = "resnet: does not use NADs more"
    return registered(USED, [criterion], scored(USED).estimates["resnet"]["wave"], **USED_FACTS)


@decides("vgg-more-than-waves", networks=["vgg11"])
@decides("errata-characterize", networks=USERS)
def _(networks: Iterable[str]) -> Evidence:
    """Decide whether networks use NADs more than waves of equal energy."""
    return above(min(scored(USED).estimates[name]["wave"] for name in networks), 1, **USED_FACTS)
