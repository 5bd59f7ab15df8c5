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
from nads_book.evidence import Evidence, above, evidence
from nads_book.experiments import load_nads, load_study
from nads_book.figures.style import legend, panel_row, shade, styled
from nads_book.pages.nads_and_generalization.fall import family, lenets, two_seeds
from nads_book.pages.nads_and_generalization.paper import random_family
from nads_book.report import fixed, markdown_table
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


def law_or_step() -> Evidence:
    """Decide whether the law or a fitted step is closer to LeNet's accuracies along NADs."""
    law, step, chance = map(distances, ("first-step law", "a step, fitted", "always 50 %"))
    lead = statistics.with_interval(statistics.resampled(np.mean, step - law))
    holds = law.mean() < chance.mean() and abs(law.mean() - step.mean()) < 2
    return evidence(holds, *lead, null=0, results=[lenets()])


def law_low_for_waves() -> Evidence:
    """Decide whether the easiest wave is learned more than ten points better than the law says."""
    one = families()[FAMILIES["fig1-lenet"]]
    best = one.accuracies.argmax()
    beyond = one.accuracies[best] - predicted_accuracy(ratios(FAMILIES["fig1-lenet"]))[best]
    return evidence(beyond > 0.1, 100 * beyond, results=[stored("fig1-lenet")])


def misses_repeat() -> Evidence:
    """Decide whether two seeds deviate from the law in the same way."""
    pairs = dict(sorted(two_seeds().items()))
    nads = lenets().experiment().nads  # those along which the networks were trained
    says = predicted_accuracy(
        signal_to_noise(nads, nads.directions[[*pairs]], lenets().settings["num_train"], 1.0)
    )
    reached = np.array([*pairs.values()]).T  # (seeds, NADs)
    off = (reached - says)[:, informative(reached.mean(0))]

    def correlation(one: np.ndarray, other: np.ndarray) -> float:
        return float(np.corrcoef(one, other)[0, 1])

    alike = statistics.with_interval(statistics.resampled(correlation, *off))
    return evidence(alike[0] > 0.8, *alike, null=0, results=[lenets()])


def equal_energy() -> Evidence:
    """Decide whether LeNet learns the NAD of mean energy better than every random direction."""
    values = load_nads("lenet").eigenvalues.double().numpy()
    twin = int(np.abs(values - values.mean()).argmin())
    measured = np.interp(twin, family().keys, statistics.isotonic_fit(family().accuracies))
    beyond = 100 * (measured - random_family().accuracies.max())
    return evidence(beyond > 0, beyond, results=[lenets(), stored("random-lenet")])


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


def directions_count() -> Evidence:
    """Decide whether energies from other networks bring the law closer, along uncertain NADs."""
    lenet, one = load_nads("lenet"), seen("fig6-lenet")
    trained = lenets().experiment().nads
    keys = sorted({row["index"] for row in lenets().rows})
    closeness, place = lenet.coordinates(trained.directions[keys].double()).square().max(-1)
    certain = dict(zip(keys, (closeness * lenet.certainty[place] >= 0.9).tolist(), strict=True))
    tail = np.array([not certain.get(int(key), True) for key in one["key"]])
    own, others = (
        100 * np.abs(by_law("fig6-lenet", law) - one["accuracy"])[tail]
        for law in ("shipped", "independent")
    )
    closer = statistics.with_interval(statistics.resampled(np.mean, own - others))
    return above(closer, size="paper", num_seeds=2)


def probes() -> list[dict[str, Any]]:
    """Return what was computed of the two NADs of `PAIR`."""
    found = {probe["index"]: probe for probe in candidates()["probes"]}
    return [found[index] for index in PAIR]


def later_steps() -> Evidence:
    """Decide whether later steps of the linear model leave most of a gap unexplained."""
    one, other = probes()
    gap = one["accuracy"] - other["accuracy"]
    most = np.abs(np.subtract(one["later_steps"], other["later_steps"])).max()
    return evidence(gap > 2 * most, gap / most, size="paper", num_seeds=2)


def kernel_parts() -> Evidence:
    """Decide whether the whole tangent kernel leaves most of the same gap unexplained."""
    one, other = probes()
    gap = abs(one["kernels"][-1] - other["kernels"][-1])
    holds = gap < (one["accuracy"] - other["accuracy"]) / 4
    return evidence(holds, 100 * gap, size="paper", num_seeds=2)


def gain_to_waves() -> Evidence:
    """Decide whether the gain brings a law that was fitted to NADs closer to waves."""
    without, with_gain = (missed("fig1-lenet", law) for law in ("without_gain", "with_gain"))
    holds = with_gain < without / 1.5
    return evidence(holds, without - with_gain, size="paper", num_seeds=2)


def point_gradient_flat() -> Evidence:
    """Decide whether the gradient at a point has almost the same energy for all waves."""
    found = load_study("estimator-orders.json")["energies"]["DFT"]
    flat, uneven = (max(found[label]) / min(found[label]) for label in ("point", "smoothed"))
    return evidence(flat < 1.5 and uneven > 3, flat)


# Tables of the lab notes


def table_of_fits() -> str:
    """Return the distances of the law and of fitted curves along LeNet's NADs."""
    rows = [
        [
            label,
            fixed(100 * np.abs(fit - family().accuracies).mean()),
            fixed(distances(label).mean()),
        ]
        for label, fit in fits().items()
    ]
    return markdown_table(rows, ["points", "all NADs", "between chance and perfect"])


def table_of_laws() -> str:
    """Return the distances of four laws from the accuracies of each family."""
    laws = {
        "shipped": "shipped NADs",
        "independent": "other networks",
        "without_gain": "refitted to NADs, no gain",
        "with_gain": "refitted to NADs, with the gain",
    }
    rows = [
        [label, *(fixed(missed(name, law)) for name in FAMILIES)] for law, label in laws.items()
    ]
    return markdown_table(rows, ["points, the law from …", *FAMILIES.values()])


LAB_TABLES = {
    "Along LeNet’s NADs: distance of the law and of fitted curves": table_of_fits,
    "Four laws, between chance and perfect": table_of_laws,
}
