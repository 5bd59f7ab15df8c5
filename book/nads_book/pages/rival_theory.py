"""A rival theory, lazy training, against energies (a section of ``03_nads_and_generalization``)."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from nads_book import figures
from nads_book.evidence import Evidence, evidence
from nads_book.pages.scored_rows import registered, rows_of, scored
from nads_book.report import estimate, fixed, markdown_table
from nads_book.studies.rival_theory import cells, keys, predictions

STUDY = "rival-theory"
THEORIES = {
    "energy": "energy of random networks",
    "gain": "energy with gain",
    "alignment": "tangent kernel, alignment",
    "kernel": "tangent kernel, regression",
    "frequency": "low frequency first",
}
CELLS = {
    "lenet, waves": "LeNet, waves",
    "lenet, designed": "LeNet, designed directions",
    "cnn, waves": "small CNN, waves",
    "cnn, designed": "small CNN, designed directions",
}


def plot_theories() -> Figure:
    """Draw the rank correlation of each theory with the accuracy after training."""
    found = scored(STUDY).estimates
    panels: dict[str, Any] = {}
    for cell, label in CELLS.items():
        network, _, family = label.partition(", ")
        values = {text: found[cell][name] for name, text in THEORIES.items()}
        panels.setdefault(network, {})[family] = values
    return figures.plot_intervals(panels, ["rank correlation with accuracy"] * len(panels))


def table_theories() -> str:
    """Return rank correlations of theories with trained accuracies, and leads over energies."""
    found = scored(STUDY).estimates
    rows = [
        [text, *(estimate(found[cell][name]) for cell in CELLS)] for name, text in THEORIES.items()
    ]
    for name in ("alignment", "kernel", "gain", "frequency"):
        key = f"{name} before energy"
        cells_of = [estimate(found[cell][key], sign=True) for cell in CELLS]
        rows.append([f"{THEORIES[name]}, lead over energy", *cells_of])
    return markdown_table(rows, ["rank correlation", *CELLS.values()])


def levels(network: str, family: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the percentages that kernel regression and training reach, by direction."""
    found = predictions(rows_of(STUDY), network, family)
    if found is None:
        raise ValueError(f"no seed of {network}, {family} is complete")
    return 100 * found.values["kernel"], 100 * found.trained


def table_levels() -> str:
    """Return how far kernel regression gets, and training, on the same directions."""
    rows = []
    for cell in cells():
        numbers = [fixed(x, 0) for level in levels(*cell) for x in (level.mean(), level.max())]
        rows.append([CELLS[", ".join(cell)], len(keys(*cell)), *numbers])
    head = ["", "directions", "kernel, mean (%)", "kernel, best", "trained, mean", "trained, best"]
    return markdown_table(rows, head)


def lead(criterion: str, cell: str, key: str) -> Evidence:
    """Decide by a registered criterion, and show a lead of one theory over another."""
    return registered(STUDY, [criterion], scored(STUDY).estimates[cell][key])


def lazy_below() -> Evidence:
    """Decide whether kernel regression stays far below trained LeNets along waves (registered)."""
    kernel, _ = levels("lenet", "waves")
    return registered(STUDY, ["waves, kernel far below training"], [float(kernel.max())])


def rival_criteria() -> Evidence:
    """Decide whether four of the seven registered criteria failed."""
    met = scored(STUDY).met
    failed = sum(holds is False for holds in met.values())
    return evidence((failed, len(met)) == (4, 7), failed, size="laptop")


LAB_TABLES = {
    "Theories against trained accuracies": table_theories,
    "How far kernel regression gets": table_levels,
}
CLAIMS = {
    "kernel-orders-waves": lambda: lead(
        "waves, alignment not worse than energy", "lenet, waves", "alignment before energy"
    ),
    "energy-before-frequency": lambda: lead(
        "waves, energy ahead of frequency", "lenet, waves", "frequency before energy"
    ),
    "kernel-sees-gain": lambda: lead(
        "designed, alignment ahead of energy", "lenet, designed", "alignment before energy"
    ),
}
