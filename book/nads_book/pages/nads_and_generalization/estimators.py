"""Which estimator of C orders the waves as LeNet learns them?"""

from functools import cache
from typing import Any

import numpy as np

from nads_book.analysis import published, statistics
from nads_book.evidence import Estimate, Evidence, Facts, evidence
from nads_book.experiments import load_study
from nads_book.pages.nads_and_generalization.law import FAMILIES, families

NAMES = {
    "point": "gradient at a point",
    "smoothed": "smoothed gradient",
    "mixed": "mixed derivative",
    "dipole": "dipole",
}
JOBS = {"DFT": "fig1-lenet", "our NADs": "fig6-lenet"}


@cache
def study() -> Any:
    """Return the stored energies of waves and NADs, by estimator."""
    return {row["estimator"]: row for row in load_study("estimator-orders.json")["rows"]}


@cache
def draws(kind: str, label: str) -> np.ndarray:
    """Return a rank correlation with accuracy, followed by those of directions drawn again.

    Args:
        kind: "DFT", the waves, or "our NADs".
        label: estimator, or "the authors' training", another training of the same waves.
    """
    one = families()[FAMILIES[JOBS[kind]]]
    if label == "the authors' training":
        cells = published.fourier_accuracies("lenet")
        scores = np.array([cells[key] for key in one.keys])  # type: ignore[index]
    else:
        scores = np.array(study()[label][kind])
    return statistics.resampled_correlations(scores, one.accuracies)


def correlation(kind: str, label: str) -> Estimate:
    """Return the rank correlation of energies and accuracies, with its interval."""
    return statistics.with_interval(draws(kind, label))


def ahead(label: str, reference: str = "smoothed") -> Estimate:
    """Return the lead of one estimator over another on the waves, on the same draws."""
    return statistics.with_interval(draws("DFT", reference) - draws("DFT", label))


FACTS: Facts = {"size": "paper", "num_seeds": 2}


def point_orders_worse() -> Evidence:
    """Decide whether the gradient at a point orders waves worse than the smoothed gradient."""
    lead = ahead("point")
    holds = lead[1] > 0 and draws("our NADs", "point")[0] > draws("DFT", "point")[0] + 0.2
    return evidence(holds, *lead, null=0, **FACTS)
