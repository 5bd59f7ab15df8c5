"""The first-step law: a formula for accuracy from random weights, and what it misses."""

from functools import cache
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from nads_book.analysis import statistics
from nads_book.analysis.prediction import (
    Family,
    GainCorrection,
    informative,
    predicted_accuracy,
    signal_to_noise,
)
from nads_book.experiments import load_nads, load_study
from nads_book.figures.style import legend, panel_row, shade, styled
from nads_book.pages.nads_and_generalization.fall import family
from nads_book.studies import stored

FAMILIES = {
    "fig6-lenet": "NADs, σ = 1",
    "fig1-lenet": "waves, σ = 3",
    "random-lenet": "random directions, σ = 1",
}
PAIR = (213, 231)  # two NADs of equal energy and different accuracy, chosen after a look


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


# Along NADs and along waves


@cache
def fits() -> dict[str, np.ndarray]:
    """Return accuracies along LeNet's NADs by the law, and by two fitted curves."""
    accuracies = family().accuracies
    places = np.arange(len(accuracies))
    steps = [
        np.where(places < place, 1.0, np.median(accuracies[place:]))
        for place in range(1, len(accuracies))
    ]
    return {
        "first-step law": predicted_accuracy(ratios(FAMILIES["fig6-lenet"])),
        "a step, fitted": min(steps, key=lambda fit: float(np.abs(fit - accuracies).mean())),
        "closest falling curve, fitted": statistics.isotonic_fit(accuracies),
        "always 50 %": np.full(len(accuracies), 0.5),
    }


def distances(label: str) -> np.ndarray:
    """Return the distances of a fit from the accuracies between chance and perfect, in points."""
    accuracies = family().accuracies
    return 100 * np.abs(fits()[label] - accuracies)[informative(accuracies)]


# Candidates for what is missing


@cache
def candidates() -> Any:
    """Return the stored candidates: energies from other networks, gains, later steps, kernels."""
    return load_study("law.json")["candidates"]


def seen(name: str) -> dict[str, np.ndarray]:
    """Return the stored ratios, gains and accuracies of a family, by name of its job."""
    return {key: np.array(values) for key, values in candidates()["families"][name].items()}


def by_law(name: str, law: str) -> np.ndarray:
    """Return the accuracies that a law predicts for a family.

    Args:
        name: name of the family's job.
        law: "shipped", the first-step law; "independent", the same from other networks; or a law
            fitted to NADs, "with_gain" or "without_gain".
    """
    one, nads = seen(name), seen("fig6-lenet")
    if law in ("shipped", "independent"):
        return predicted_accuracy(one[law])
    gains, others = (
        each["gain"] if law == "with_gain" else np.ones(len(each["gain"])) for each in (one, nads)
    )
    fit = GainCorrection.fit(nads["independent"], others, nads["accuracy"])
    return fit.accuracies(one["independent"], gains)


def missed(name: str, law: str) -> float:
    """Return the mean distance of a law from a family's informative accuracies, in points."""
    accuracies = seen(name)["accuracy"]
    off = 100 * np.abs(by_law(name, law) - accuracies)
    return float(off[informative(accuracies)].mean())


def probes() -> list[dict[str, Any]]:
    """Return what was computed of the two NADs of `PAIR`."""
    found = {probe["index"]: probe for probe in candidates()["probes"]}
    return [found[index] for index in PAIR]
