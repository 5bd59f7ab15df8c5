"""The first-step law: a formula for accuracy from random weights, and what it misses."""

from functools import cache

import numpy as np
from matplotlib.figure import Figure

from nads_book.analysis.prediction import (
    Family,
    predicted_accuracy,
    signal_to_noise,
)
from nads_book.experiments import load_nads
from nads_book.figures.style import legend, panel_row, shade, styled
from nads_book.studies import stored

FAMILIES = {
    "fig6-lenet": "NADs, σ = 1",
    "fig1-lenet": "waves, σ = 3",
    "random-lenet": "random directions, σ = 1",
}


@cache
def families() -> dict[str, Family]:
    """Return the directions along which LeNets were trained at the paper's size."""
    return {label: Family.of(stored(name)) for name, label in FAMILIES.items()}


@cache
def ratios(label: str) -> np.ndarray:
    """Return the signal-to-noise ratios that the law predicts from the shipped NADs, (n,)."""
    one = families()[label]
    return signal_to_noise(load_nads("lenet"), one.directions, one.num_train, one.noise_std)


@styled
def plot_law() -> Figure:
    """Draw accuracies of LeNets against the ratios of the law, which is the line in ink."""
    figure, (axis,) = panel_row(
        [""], 2.7, xlabel="predicted signal to noise", ylabel="test accuracy (%)"
    )
    for marker, (label, one) in zip("osD", families().items(), strict=True):
        shares = 100 * one.accuracies
        axis.plot(ratios(label), shares, marker, markersize=3, alpha=0.7, label=label)
    scores = np.geomspace(0.01, 50, 200)
    law = 100 * predicted_accuracy(scores)
    axis.plot(scores, law, color=shade(0), label="first-step law", zorder=3)
    axis.set(xscale="log", ylim=(45, 102), xlim=scores[[0, -1]])
    legend(figure, axis, "outside lower center", ncols=3, markerscale=1.5)
    return figure


# Candidates for what is missing
