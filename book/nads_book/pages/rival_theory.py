"""A rival theory, lazy training, against energies (a section of ``03_nads_and_generalization``)."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from nads_book import figures
from nads_book.evidence import Evidence, otherwise
from nads_book.pages.scored_rows import registered, rows_of, scored
from nads_book.studies.rival_theory import predictions

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


def levels(network: str, family: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the percentages that kernel regression and training reach, by direction."""
    found = predictions(rows_of(STUDY), network, family)
    if found is None:
        raise ValueError(f"no seed of {network}, {family} is complete")
    return 100 * found.values["kernel"], 100 * found.trained


def lead(criterion: str, cell: str, key: str) -> Evidence:
    """Decide whether a registered criterion failed, and show a lead of one theory over another."""
    return otherwise(registered(STUDY, [criterion], scored(STUDY).estimates[cell][key]))


CLAIMS = {
    "kernel-orders-waves": lambda: lead(
        "waves, alignment not worse than energy", "lenet, waves", "alignment before energy"
    ),
}
