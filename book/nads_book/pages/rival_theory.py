"""A rival theory, lazy training, against energies (a section of ``03_nads_and_generalization``)."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from nads_book import figures
from nads_book.evidence import Evidence, otherwise
from nads_book.pages.scored_rows import registered, rows_of, scored
from nads_book.studies.rival_theory import predictions

STUDY, MEANS = "rival-theory", "mean-kernels"
THEORIES = {
    "energy": "energy of random networks",
    "gain": "energy with gain",
    "mean": "tangent kernels, mean of 20",
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
    found, means = scored(STUDY).estimates, scored(MEANS).estimates
    panels: dict[str, Any] = {}
    for cell, label in CELLS.items():
        network, _, family = label.partition(", ")
        own = {**found[cell], "mean": means[cell]["alignment"]}
        values = {text: own[name] for name, text in THEORIES.items()}
        panels.setdefault(network, {})[family] = values
    return figures.plot_intervals(panels, ["rank correlation with accuracy"] * len(panels))


def levels(network: str, family: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the percentages that kernel regression and training reach, by direction."""
    found = 100 * predictions(rows_of(STUDY), network, family)
    return found["kernel"].to_numpy(), found["trained"].to_numpy()


def lead(study: str) -> Evidence:
    """Decide whether alignments order LeNet's waves as well as energies by the registered rule, and
    show their lead.
    """
    found = scored(study).estimates["lenet, waves"]["alignment before energy"]
    return registered(study, ["waves, alignment not worse than energy"], found)


CLAIMS = {
    "kernel-orders-waves": lambda: otherwise(lead(STUDY)),
    "mean-kernel-orders-waves": lambda: lead(MEANS),
}
