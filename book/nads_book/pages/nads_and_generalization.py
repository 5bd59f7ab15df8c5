"""The page ``03_nads_and_generalization``: do random networks say what trained networks learn?

Energies of waves before training and accuracies after it; the experiment at equal energy; accuracy
along NADs; a formula for accuracy, and what it misses; rival theories. `statements` has what the
paper says.
"""

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from torch import Tensor

from nads_book import figures, published, statistics
from nads_book.claims import decides
from nads_book.experiments import Results, Scored, load_nads, load_study, rows_of, table_of
from nads_book.experiments.evidence import Evidence, below, evidence, exact_share, otherwise
from nads_book.experiments.formatting import LABELS
from nads_book.pages.scored_rows import registered, scored
from nads_book.published import waves
from nads_book.published.waves import LEARNED, by_wave, published_accuracies
from nads_book.statistics import accuracy_interval, area_under_curve, with_interval
from nads_book.studies import gain, stored
from nads_book.theory import pooling
from nads_book.theory.first_step import Family, predicted_accuracy, signal_to_noise

DEEP = ("lenet", "vgg11", "resnet18", "densenet121")
RULES = {  # the rule about the frequency that was chosen for each architecture
    "lenet": "two averages",
    "vgg11": "two averages",
    "resnet18": "a multiple of four",
    "densenet121": "near an axis",
}
ARMS = {"free": "free", "frozen": "random", "taught": "learned"}  # first filters, as stored
AUTHORS_TESTS = 10_000  # test samples of the authors' accuracies
SIZES = {"lenet": "paper", "vgg11": "laptop", "resnet18": "narrow", "densenet121": "narrow"}
CURVES = {"ours": "LeNet, ours"} | {name: f"{LABELS[name]}, paper" for name in DEEP}
DECADES = 0.01, 0.1, 1, 10  # ticks
RIVALS, MEANS, PHOTO_NOISE = "rival-theory", "mean-kernels", "photo-noise"
FAMILIES = {
    "fig6-lenet": "NADs, σ = 1",
    "fig1-lenet": "waves, σ = 3",
    "random-lenet": "random directions, σ = 1",
}


# Energies of waves


def energies(name: str, phase: str = "sine") -> np.ndarray:
    """Return the energies of all waves in random weights, (n,)."""
    return np.array([*waves.predicted_energies(name, phase).values()])


def learned(name: str, limit: float = LEARNED) -> np.ndarray:
    """Return which waves a published network has learned, (n,)."""
    reached = [published_accuracies(name)[key] for key in waves.predicted_energies(name)]
    return np.array(reached) > limit


def plot_maps() -> Figure:
    """Draw the energy of each wave in untrained networks above its published accuracy."""
    rows: dict[str, dict[str, Any]] = {"predicted": {}, "published": {}}
    for name in DEEP:
        logs = np.log(pd.Series(waves.predicted_energies(name)))
        rows["predicted"][LABELS[name]] = (logs - logs.min()) / np.ptp(logs.to_numpy())
        rows["published"][LABELS[name]] = 100 * pd.Series(published_accuracies(name))
    return figures.plot_frequency_maps(rows, own={"predicted": "log energy, scaled"})


def plot_energies(name: str, energy: Tensor, own: tuple[float, float] | None = None) -> Figure:
    """Draw published accuracies against energies that the reader computed.

    Args:
        name: architecture whose published accuracies are drawn.
        energy: energies of its waves, (n,), in the order of `published_accuracies`.
        own: energy and accuracy of a wave that the reader's network learned.
    """
    shares = 100 * np.array([*published_accuracies(name).values()])
    lines: dict[str, Any] = {"published": (energy, shares)}
    if own:
        lines["yours"] = [own[0]], [100 * own[1]]
    return figures.plot_lines(
        {LABELS[name]: lines},
        "energy before training, relative to the mean",
        "test accuracy (%)",
        DECADES,
        level=100 * LEARNED,
        marks={"published": "o", "yours": "*"},
        ylim=(45, 102),
    )


@decides("energy-predicts")
def _():
    """Decide whether energies separate learned waves, better than those of another network, and
    show the smallest area with an interval that draws waves again.
    """
    cases = [
        (energies(name, phase), learned(name, limit))
        for name in DEEP
        for phase in ("sine", "cosine")
        for limit in np.arange(52, 61) / 100
    ]
    worst = min(cases, key=lambda case: area_under_curve(*case))
    found = with_interval(statistics.resampled(area_under_curve, *worst))
    areas = pd.DataFrame(
        {a: {b: area_under_curve(energies(b), learned(a)) for b in DEEP} for a in DEEP}
    )
    ahead = (areas.idxmax() == areas.columns).all()
    return evidence(found[1] > 0.95 and ahead, *found, null=0.95, size="paper")


@decides("rules-come-close")
def _():
    """Decide whether a rule chosen for each network comes close, and no rule works for all."""
    keys = np.array([*waves.predicted_energies("lenet")])  # of all networks
    # What LeNet's two poolings would pass if they were averages.
    passed = pooling.frequency_response(pooling.prefilter("average", 32, 4)).abs().numpy()
    rules = {
        "near an axis": -np.abs(keys).min(1),
        "a multiple of four": (keys % 4 == 0).any(1),
        "two averages": np.round(passed[keys].prod(1), 9),
    }
    areas = pd.DataFrame(
        {
            name: {rule: area_under_curve(score, learned(name)) for rule, score in rules.items()}
            for name in DEEP
        }
    )
    smallest = min(areas.loc[rule, name] for name, rule in RULES.items())
    alone = (areas.min(axis=1) < 0.8).all()
    return evidence(smallest > 0.97 and alone, smallest, size="paper")


# At equal energy the gain counts: the registered experiment and its replication


def designed(name: str) -> Results:
    """Return the stored networks of a design."""
    return stored(f"law-{name}", "narrow" if name == "resnet18" else "paper")


@cache
def judged(name: str) -> Scored:
    """Return what the registered rule says of a design. The slope of an arm is the points that one
    standard deviation of the log gain is worth.
    """
    return designed(name).experiment().score(designed(name).rows)


def plot_arms() -> Figure:
    """Draw LeNet's distance from the first-step law against the gain, at three energies."""
    design = gain.load_design("lenet")
    rows = designed("lenet").rows
    directions = pd.DataFrame({name: design[name] for name in ("levels", "gains", "energies")})
    directions["group"] = design["shells"] // 3  # of energies
    panels: dict[str, Any] = {}
    for arm in judged("lenet").estimates:
        reached = pd.Series(gain.accuracies_of(rows, arm)).groupby([row["index"] for row in rows])
        directions["off"] = 100 * (reached.mean() - predicted_accuracy(design["ratios"]))
        lines = panels[f"first filters {ARMS[arm]}"] = {}
        for _, group in directions.groupby("group"):
            cells = group.groupby("levels")
            value, half = cells["off"].mean(), 2 * cells["off"].sem()
            label = f"energy {group['energies'].mean():.1f} of the mean"
            estimates = np.stack([value, value - half, value + half], 1)
            lines[label] = cells["gains"].mean().to_numpy(), estimates
    labels = ("gain of one 5 × 5 filter", "accuracy − law (points)")
    return figures.plot_lines(panels, *labels, [2, 4, 8], level=0)


@decides("gain-where-filters-learn")
def _():
    """Decide whether LeNet sees the gain with learned first filters, and half as much without."""
    free, random, learned = (judged("lenet").estimates[arm]["slope"] for arm in ARMS)
    holds = free[1] > 3 and learned[1] > 3 and random[2] < free[0] / 2
    return evidence(holds, *free, null=3, results=[designed("lenet")])


@decides("gain-in-resnet")
def _():
    """Decide whether a random first layer leaves the ResNet-18 half of the gain's effect."""
    free, random = (judged("resnet18").estimates[arm]["slope"] for arm in ("free", "frozen"))
    half = free[0] / 2
    holds = free[1] > 3 and random[1] > half
    return evidence(holds, *random, null=half, results=[designed("resnet18")])


@decides("gain-in-stage")
def _():
    """Decide whether half of the gain's effect is left with a random first stage of ResNet-18."""
    stage = stored("stage-resnet18", "narrow")
    value = stage.experiment().score(stage.rows).estimates["stage"]["slope"]
    half = judged("resnet18").estimates["free"]["slope"][0] / 2
    return evidence(value[1] > half, *value, null=half, results=[stage, designed("resnet18")])


@decides("not-energy-alone")
def _():
    """Decide by the registered criterion whether the gain improves on any curve of energy."""
    one = judged("lenet")
    distance = one.estimates["free"]["with gain"]
    holds = one.met["closer than any function of energy, free"]
    return evidence(holds, *distance, results=[designed("lenet")])


# Accuracy along the NADs: ours and the authors'


@cache
def family(name: str, preset: str = "paper") -> Family:
    """Return directions and accuracies of a stored sweep, such as "fig6-lenet"."""
    return Family.of(stored(name, preset))


@cache
def curve(name: str) -> pd.DataFrame:
    """Return accuracies and numbers of test samples along NADs at the paper's size, of one of
    `CURVES`.
    """
    if name == "ours":
        own = family("fig6-lenet")
        return pd.DataFrame({"accuracy": own.accuracies, "num_test": own.num_test}, own.keys)
    values = pd.Series(published.nad_accuracies(name))
    return values.to_frame("accuracy").assign(num_test=AUTHORS_TESTS)


def plot_accuracy_by_nad() -> Figure:
    """Draw accuracies along the NADs, ours and the authors'."""
    panels: dict[str, Any] = {}
    for name in DEEP:
        known, one = curve(name)["accuracy"], family(f"fig6-{name}", SIZES[name])
        intervals = list(map(accuracy_interval, one.accuracies, one.num_test))
        ours = 100 * np.column_stack([one.accuracies, intervals])
        panels[LABELS[name]] = {"paper": (known.index, 100 * known), "ours": (one.keys, ours)}
    labels = ("NAD index", "test accuracy (%)")
    marks = {"paper": ".", "ours": "o"}
    return figures.plot_lines(panels, *labels, level=50, marks=marks, ylim=(45, 102))


@cache
def trends() -> dict[str, float]:
    """Return the rank correlation of accuracy and index of each curve."""
    tables = {name: curve(name) for name in CURVES}
    return {
        name: statistics.rank_correlation(one.index, one["accuracy"])
        for name, one in tables.items()
    }


@decides("falls-as-trend")
def _():
    """Decide whether accuracy falls as a trend in every curve."""
    flattest = curve(max(trends(), key=trends().__getitem__))
    drawn = statistics.resampled_correlations(flattest.index, flattest["accuracy"].to_numpy())
    return below(with_interval(drawn), results=[stored("fig6-lenet")])


@decides("fig6-lenet-close")
def _():
    """Decide whether our LeNet's accuracies are within five points of the authors', on average."""
    gaps = 100 * (curve("ours")["accuracy"] - curve("lenet")["accuracy"]).abs().dropna()
    found = with_interval(statistics.resampled(np.mean, gaps))
    return below(found, 5, results=[stored("fig6-lenet")])


# The first-step law, and what it misses


def plot_law() -> Figure:
    """Draw accuracies of LeNets against the ratios of the law, which is the line."""
    lines: dict[str, Any] = {}
    for name, label in FAMILIES.items():
        one = family(name)
        ratios = signal_to_noise(load_nads("lenet"), one.directions, one.num_train, one.noise_std)
        lines[label] = ratios, 100 * one.accuracies
    marks = dict.fromkeys(lines, "o") | {"first-step law": "-"}
    scores = np.geomspace(0.01, 50, 200)
    lines["first-step law"] = scores, 100 * predicted_accuracy(scores)
    labels = ("predicted signal to noise", "test accuracy (%)")
    return figures.plot_lines({"": lines}, *labels, DECADES, marks=marks, ylim=(45, 102))


@decides("samples-and-noise")
def _():
    """Decide whether few samples with little noise are worse than the law says, for most NADs."""
    rows = table_of("law-trained").fillna({"epochs": 20})
    predicted = pd.DataFrame(load_study("law.json")["prediction"]["rows"])
    keys, few, many = ["num_train", "noise_std"], (1_000, 1.0), (10_000, 2.0)
    usual, longer = (
        rows[rows["epochs"] == epochs].pivot_table("accuracy", "index", keys)
        for epochs in (20, 200)
    )
    nads = usual.index[usual[few].notna()]
    law = predicted.pivot_table("law", "index", keys).loc[nads]
    expected = law[few] > law[many]
    # Few samples after the usual epochs, and after ten times as many.
    right, as_long = (
        expected == (reached.loc[nads, few] > usual.loc[nads, many]) for reached in (usual, longer)
    )
    share = exact_share(right.tolist())
    holds, trainings = max(share[0], as_long.mean()) < 0.5, 2 * len(nads)
    return evidence(holds, *share, null=0.5, size="paper", num_seeds=1, num_trainings=trainings)


# Photos' noise, and a rival theory


@decides("photo-noise-order")
def _():
    """Decide by the registered rule whether energies order what is learned in photos' noise, and
    show the smallest rank correlation.
    """
    found = scored(PHOTO_NOISE)
    least = min((one["energy"] for one in found.estimates.values()), key=lambda one: one[0])
    trainings = sum(len(row["test_accuracy"]) for row in rows_of(PHOTO_NOISE))
    return registered(PHOTO_NOISE, [*found.met], least, num_seeds=1, num_trainings=trainings)


@decides("narrow-again")
def _():
    """Decide whether two trainings of a narrow ResNet-18 order waves with a rank correlation of .9
    (registered).
    """
    results = [stored(f"{study}-resnet18", "narrow") for study in ("fig1", "again")]
    both = pd.concat(map(by_wave, results), axis=1, join="inner").to_numpy()
    found = with_interval(statistics.resampled_correlations(*both.T))
    holds = None if found[1] <= 0.9 <= found[2] else found[0] > 0.9
    return evidence(holds, *found, rows=pd.concat([one.table for one in results]))


@decides("mean-kernel-orders-waves", study=MEANS)
def alignments_order(study: str) -> Evidence:
    """Decide whether alignments order LeNet's waves as well as energies by the registered rule, and
    show their lead.
    """
    found = scored(study).estimates["lenet, waves"]["alignment before energy"]
    return registered(study, ["waves, alignment not worse than energy"], found)


@decides("kernel-orders-waves")
def _():
    """Decide whether those of one network do not."""
    return otherwise(alignments_order(RIVALS))
