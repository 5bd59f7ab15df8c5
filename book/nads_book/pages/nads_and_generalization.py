"""The page ``03_nads_and_generalization``: do random networks say what trained networks learn?

Energies of waves before training and accuracies after it; the experiment at equal energy; accuracy
along NADs; a formula for accuracy, and what it misses; rival theories; tasks that are not linear;
what the paper says of decays, supports and orders.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from torch import Tensor

import nads_core as nc
from nads_book import figures, published, statistics
from nads_book.claims import decides
from nads_book.experiments import Results, Scored, load_nads, load_study, matching
from nads_book.experiments.evidence import (
    Estimate,
    Evidence,
    Facts,
    around,
    below,
    evidence,
    exact_share,
    otherwise,
)
from nads_book.experiments.formatting import LABELS, fixed, percent
from nads_book.figures.style import (
    bars,
    colours,
    dotted,
    legend,
    panel_row,
    shade,
    styled,
    subplots,
)
from nads_book.pages.scored_rows import registered, rows_of, scored
from nads_book.published import waves
from nads_book.published.waves import LEARNED, published_accuracies
from nads_book.statistics import MANY, accuracy_interval, area_under_curve, with_interval
from nads_book.studies import gain, stored
from nads_book.studies.nonlinear_tasks import NETWORKS, NONLINEAR, TASKS
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
NUM_GROUPS = 3  # of energies, in the figure
AUTHORS_TESTS = 10_000  # test samples of the authors' accuracies
SIZES = {"lenet": "paper", "vgg11": "laptop", "resnet18": "narrow", "densenet121": "narrow"}
FAMILIES = {
    "fig6-lenet": "NADs, σ = 1",
    "fig1-lenet": "waves, σ = 3",
    "random-lenet": "random directions, σ = 1",
}
RIVALS, MEANS, TASK_STUDY = "rival-theory", "mean-kernels", "nonlinear-tasks"
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
NUM_DRAWS = 2_000
TASK_LABELS = {
    "xor": "XOR",
    "ring": "ring",
    "product": "sign of a product",
    "linear": "linear (control)",
}
DEEP_SWEEPS = (  # stored trainings along waves
    ("resnet18", "paper"),
    ("vgg11", "laptop"),
    ("resnet18", "laptop"),
    ("resnet18", "narrow"),
    ("densenet121", "laptop"),
    ("densenet121", "narrow"),
)


# Energies of waves


def energies(name: str, phase: str = "sine") -> np.ndarray:
    """Return the energies of all waves in random weights, (n,)."""
    return np.array([*waves.predicted_energies(name, phase).values()])


def accuracies(name: str) -> np.ndarray:
    """Return the published accuracies of the same waves, (n,)."""
    return np.array([published_accuracies(name)[key] for key in waves.predicted_energies(name)])


def rules(name: str) -> dict[str, np.ndarray]:
    """Return rules about the frequency that rank the waves of a network, (n,) each."""
    keys = np.array(list(waves.predicted_energies(name)))
    lengths = np.hypot(*keys.T)
    bands = [-np.abs(lengths - centre) for centre in np.arange(0, 23, 0.5)]
    # What LeNet's two poolings would pass if they were averages.
    passed = pooling.frequency_response(pooling.prefilter("average", 32, 4)).abs().numpy()
    return {
        "low frequency": -lengths,
        "fitted band": max(reversed(bands), key=lambda score: area(name, score)),
        "near an axis": -np.abs(keys).min(1).astype(float),
        "a multiple of four": (keys % 4 == 0).any(1).astype(float),
        "two averages": np.round(passed[keys].prod(1), 9),
    }


def area(name: str, score: np.ndarray, limit: float = LEARNED) -> float:
    """Return the share of pairs of waves in which a score ranks the learned one first."""
    return area_under_curve(score, accuracies(name) > limit)


def plot_maps() -> Figure:
    """Draw the energy of each wave in untrained networks above its published accuracy."""
    rows: dict[str, dict[str, Any]] = {"predicted": {}, "published": {}}
    for name in DEEP:
        logs = np.log(energies(name))
        places = (logs - logs.min()) / np.ptp(logs)  # from the smallest to the largest
        pairs = zip(waves.predicted_energies(name), places.tolist(), strict=True)
        rows["predicted"][LABELS[name]] = dict(pairs)
        known = published_accuracies(name).items()
        rows["published"][LABELS[name]] = {key: 100 * value for key, value in known}
    own = {"predicted": ("energy, log scale", ("smallest", "largest"))}
    return figures.plot_frequency_maps(rows, own=own)


@styled
def plot_energies(name: str, energy: Tensor, own: tuple[float, float] | None = None) -> Figure:
    """Draw published accuracies against energies that the reader computed.

    Args:
        name: architecture whose published accuracies are drawn.
        energy: energies of its waves, (n,), in the order of `published_accuracies`.
        own: energy and accuracy of a wave that the reader's network learned.
    """
    figure, (axis,) = panel_row(
        [LABELS[name]],
        2.9,
        xlabel="energy before training, relative to the mean",
        ylabel="test accuracy (%)",
    )
    axis.axhline(100 * LEARNED, **dotted(f"learned: above {100 * LEARNED:.0f} %"))
    shares = 100 * np.array([*published_accuracies(name).values()])
    axis.plot(energy, shares, "o", alpha=0.6, label="published")
    axis.set(xscale="log", ylim=(45, 102))
    if own:
        axis.plot(own[0], 100 * own[1], "*", color=shade(0), markersize=13, label="yours")
    legend(figure, axis, "outside lower center", ncols=3)
    return figure


@decides("energy-predicts")
def _():
    """Decide whether energies separate learned waves, better than those of another network."""
    smallest = min(
        area(name, energies(name, phase), limit)
        for name in DEEP
        for phase in ("sine", "cosine")
        for limit in np.arange(52, 61) / 100
    )
    ahead = all(
        area(name, energies(other)) < area(name, energies(name))
        for name in DEEP
        for other in DEEP
        if other != name
    )
    return evidence(smallest > 0.95 and ahead, smallest, size="paper")


@decides("rules-come-close")
def _():
    """Decide whether a rule chosen for each network comes close, and no rule works for all."""
    found = {
        name: {rule: area(name, score) for rule, score in rules(name).items()} for name in DEEP
    }
    table = pd.DataFrame(found)  # (rules, networks)
    smallest = min(table.loc[rule, name] for name, rule in RULES.items())
    alone = (table.min(axis=1) < 0.8).all()
    return evidence(smallest > 0.97 and alone, smallest, size="paper")


# At equal energy the gain counts: the registered experiment and its two replications


def designed(name: str) -> Results:
    """Return the stored networks of a design."""
    return stored(f"law-{name}", "narrow" if name == "resnet18" else "paper")


@cache
def judged(name: str) -> Scored:
    """Return what the registered rule says of a design."""
    return designed(name).experiment().score(designed(name).rows)


def slope(name: str, arm: str) -> Estimate:
    """Return the points that one standard deviation of the log gain is worth, with ends."""
    value, low, high = judged(name).estimates[arm]["slope"]
    return value, low, high


def off_law(name: str, arm: str) -> np.ndarray:
    """Return by how much the accuracy of each network exceeds the first-step law, (n,)."""
    rows, ratios = designed(name).rows, gain.load_design(name)["ratios"]
    return (
        gain.accuracies_of(rows, arm) - predicted_accuracy(ratios)[[row["index"] for row in rows]]
    )


def plot_arms(name: str = "lenet") -> Figure:
    """Draw the distance from the first-step law against the gain, at three energies."""
    design = gain.load_design(name)
    index = [row["index"] for row in designed(name).rows]
    levels = np.unique(design["levels"])
    panels: dict[str, Any] = {}
    for arm in judged(name).estimates:
        off = 100 * np.bincount(index, off_law(name, arm)) / np.bincount(index)  # by direction
        lines = panels[f"first filters {ARMS[arm]}"] = {}
        for shells in np.array_split(np.unique(design["shells"]), NUM_GROUPS):
            inside = np.isin(design["shells"], shells)
            cells = [inside & (design["levels"] == level) for level in levels]
            gains = [design["gains"][cell].mean() for cell in cells]
            halves = [2 * off[cell].std(ddof=1) / cell.sum() ** 0.5 for cell in cells]
            label = f"energy {design['energies'][inside].mean():.1f} of the mean"
            means = [off[cell].mean() for cell in cells]
            lines[label] = gains, list(map(around, means, halves))
    labels = ("gain of one 5 × 5 filter", "accuracy − law (points)")
    return figures.plot_lines(panels, *labels, [2, 4, 8], level=0)


@cache
def share_left(name: str) -> Estimate:
    """Return the share of the gain's effect that random first filters leave, with its interval.

    The two slopes share their directions, which are drawn together.
    """
    design = gain.load_design(name)
    index = np.array([row["index"] for row in designed(name).rows])
    columns = np.stack([*gain.causes(design).values()], 1)[index]
    columns = np.column_stack([(columns - columns.mean(0)) / columns.std(0), np.ones(len(index))])
    off = np.stack([off_law(name, arm) for arm in ("free", "frozen")], 1)  # (rows, 2)
    # Normal equations by direction: a draw of directions is a weighted sum of them.
    members = [index == direction for direction in range(len(design["gains"]))]
    left = np.stack([columns[one].T @ columns[one] for one in members])
    right = np.stack([columns[one].T @ off[one] for one in members])
    weights = statistics.drawn_counts(range(len(members)), MANY // 4)
    solved = np.linalg.solve(np.tensordot(weights, left, 1), np.tensordot(weights, right, 1))[:, 0]
    return with_interval(solved[:, 1] / solved[:, 0])


@decides("gain-where-filters-learn")
def _():
    """Decide whether LeNet sees the gain with learned first filters, and half as much without."""
    free, random, learned = (slope("lenet", arm) for arm in ARMS)
    holds = free[1] > 3 and learned[1] > 3 and random[2] < free[0] / 2
    return evidence(holds, *free, null=3, results=[designed("lenet")])


@decides("gain-in-resnet")
def _():
    """Decide whether a random first layer leaves the ResNet-18 half of the gain's effect."""
    free, random = (slope("resnet18", arm) for arm in ("free", "frozen"))
    half = free[0] / 2
    holds = free[1] > 3 and random[1] > half
    return evidence(holds, *random, null=half, results=[designed("resnet18")])


@decides("gain-with-random-filters")
def _():
    """Decide whether random first filters leave the small CNN half of the gain's effect."""
    share = share_left("cnn")
    failed = not judged("cnn").met["gain matters less than half as much, frozen"]
    return evidence(failed and share[1] > 0.5, *share, null=0.5, results=[designed("cnn")])


@decides("not-energy-alone")
def _():
    """Decide by the registered criterion whether the gain improves on any curve of energy."""
    one = judged("lenet")
    value = one.estimates["free"]["with gain"][0]
    holds = one.met["closer than any function of energy, free"]
    return evidence(holds, value, results=[designed("lenet")])


# Accuracy along the NADs: ours and the authors'


class Curve(NamedTuple):
    """Accuracies along NADs: indices, accuracies (n,), and numbers of test samples (n,)."""

    keys: Sequence[Any]
    accuracies: np.ndarray
    num_test: np.ndarray


@cache
def family(name: str, preset: str = "paper") -> Family:
    """Return directions and accuracies of a stored sweep, such as "fig6-lenet"."""
    return Family.of(stored(name, preset))


@cache
def curves() -> dict[str, Curve]:
    """Return accuracies along NADs at the paper's size: our LeNet's and the authors'."""
    own = family("fig6-lenet")
    found = {"LeNet, ours": Curve(own.keys, own.accuracies, own.num_test)}
    for name in DEEP:
        values = published.nad_accuracies(name)
        tests = np.full(len(values), AUTHORS_TESTS)
        found[f"{LABELS[name]}, paper"] = Curve([*values], np.array([*values.values()]), tests)
    return found


@styled
def plot_accuracy_by_nad() -> Figure:
    """Draw accuracies along the NADs above the eigenvalues, ours and the authors'."""
    theirs = {row["architecture"]: row for row in rows_of("published-spectra")}
    figure, axes = subplots(2, len(DEEP), 4.0, sharex=True, sharey="row", height_ratios=[2, 1])
    for name, (top, bottom) in zip(DEEP, axes.T, strict=True):
        known, grey = published.nad_accuracies(name), shade(0.55)
        shares = 100 * np.array([*known.values()])
        top.plot([*known], shares, ".", color=grey, markersize=2, label="paper")
        one = family(f"fig6-{name}", SIZES[name])
        lengths = bars(one.accuracies, list(map(accuracy_interval, one.accuracies, one.num_test)))
        look = {"color": colours()[0], "capsize": 1.5, "elinewidth": 0.8, "markersize": 3.5}
        top.errorbar(one.keys, 100 * one.accuracies, lengths, fmt="o", label="ours", **look)
        top.axhline(50, **dotted("chance"))
        values = load_nads(name).eigenvalues.numpy()
        bottom.plot(values / values[0], color=colours()[2])
        spectrum = np.array(theirs[name]["published"])
        bottom.plot(theirs[name]["key"], spectrum / spectrum.max(), "--", color=grey)
        bottom.set(xlabel="NAD index", yscale="log", ylim=(5e-6, 2))
        top.set(title=LABELS[name], xlabel="NAD index", ylim=(45, 102))
    axes[0, 0].set_ylabel("test accuracy (%)")
    axes[1, 0].set_ylabel("eigenvalue / first")
    axes[0, 0].legend()
    return figure


def repeats(label: str) -> np.ndarray:
    """Return accuracies of directions that were trained twice, (n, 2).

    Ours are two seeds along NADs. The authors' are the waves k and -k, one task that they trained
    twice; where ky = 0 or -16 their table has a copy instead.
    """
    if label == "LeNet, ours":
        rows = stored("fig6-lenet").table
        return rows.pivot_table("test_accuracy", "index", "seed").dropna().to_numpy()
    cells = published.fourier_accuracies(
        next(name for name in DEEP if label == f"{LABELS[name]}, paper")
    )
    twice = [(ky, kx) for ky, kx in cells if ky > 0 and (kx >= 0 or kx == -16)]
    return np.array([(cells[k], cells[waves.negative(k)]) for k in twice])


@cache
def inflation(label: str) -> Estimate:
    """Return how much repeated trainings differ, in standard errors of their test sets."""
    pairs = repeats(label)
    pairs = pairs[pairs.sum(1) < 2]
    ours = label == "LeNet, ours"
    num_test = stored("fig6-lenet").settings["num_test"] if ours else AUTHORS_TESTS
    squares = np.square(np.diff(pairs, axis=1)[:, 0]) / (pairs * (1 - pairs)).sum(1) * num_test
    return with_interval(statistics.resampled(lambda x: float(np.sqrt(x.mean())), squares))


@cache
def trends() -> dict[str, float]:
    """Return the rank correlation of accuracy and index of each curve."""
    return {
        label: statistics.rank_correlation(np.array(curve.keys, float), curve.accuracies)
        for label, curve in curves().items()
    }


@decides("falls-as-trend")
def _():
    """Decide whether accuracy falls as a trend in every curve."""
    flattest = max(trends(), key=trends().__getitem__)
    curve = curves()[flattest]
    trend = with_interval(statistics.resampled_correlations(np.array(curve.keys), curve.accuracies))
    holds = trends()[flattest] < -0.4
    return evidence(holds, *trend, null=0, results=[stored("fig6-lenet")])


@decides("errata-monotone")
def _():
    """Decide whether accuracy falls monotonically, as the paper writes: not where one curve rises
    beyond noise, for which the upper end of `inflation` stands.
    """
    found, beyond = trends().values(), []
    for label, curve in curves().items():
        noise = max(1.0, inflation(label)[2])
        spread, by_chance = statistics.order_test(curve.accuracies, curve.num_test, noise)
        beyond += [label] if spread > by_chance else []
    text = (
        f"Rank correlation with the index {fixed(min(found), 2)} to {fixed(max(found), 2)}. "
        "Deviations from the closest falling curve exceed what the noise of test sets and of "
        f"repeated trainings explains in {len(beyond)} of {len(found)} curves: {'; '.join(beyond)}."
    )
    return evidence(False if beyond else None, sentence=text, size="paper")


@decides("fig6-lenet-close")
def _():
    """Decide whether our LeNet's accuracies are within three points of the authors', on average."""
    paper, one = published.nad_accuracies("lenet"), curves()["LeNet, ours"]
    own = zip(one.keys, one.accuracies, strict=True)
    gaps = [100 * abs(value - paper[index]) for index, value in own if index in paper]
    return evidence(np.mean(gaps) < 3, np.mean(gaps), results=[stored("fig6-lenet")])


# The first-step law, and what it misses


@styled
def plot_law() -> Figure:
    """Draw accuracies of LeNets against the ratios of the law, which is the line in ink."""
    figure, (axis,) = panel_row(
        [""], 2.7, xlabel="predicted signal to noise", ylabel="test accuracy (%)"
    )
    for marker, (name, label) in zip("osD", FAMILIES.items(), strict=True):
        one = family(name)
        ratios = signal_to_noise(load_nads("lenet"), one.directions, one.num_train, one.noise_std)
        look = {"markersize": 3, "alpha": 0.7, "label": label}
        axis.plot(ratios, 100 * one.accuracies, marker, **look)
    scores = np.geomspace(0.01, 50, 200)
    law = 100 * predicted_accuracy(scores)
    axis.plot(scores, law, color=shade(0), label="first-step law", zorder=3)
    axis.set(xscale="log", ylim=(45, 102), xlim=scores[[0, -1]])
    legend(figure, axis, "outside lower center", ncols=3, markerscale=1.5)
    return figure


@decides("samples-and-noise")
def _():
    """Decide whether few samples with little noise are worse than the law says, for most NADs."""
    rows = pd.DataFrame(load_study("law-trained.json")["rows"])
    usual = rows["epochs"].fillna(nc.SEPARABLE_RECIPE.epochs) == nc.SEPARABLE_RECIPE.epochs
    keys = ["num_train", "noise_std"]
    once, longer = (
        rows[chosen].pivot_table("accuracy", "index", keys) for chosen in (usual, ~usual)
    )
    predicted = pd.DataFrame(load_study("law.json")["prediction"]["rows"])
    law = predicted.pivot_table("law", "index", keys)
    few, many = (1_000, 1.0), (10_000, 2.0)
    nads = once.index[once[few].notna()]
    expected = law[few][nads] > law[many][nads]
    # Few samples after the usual epochs, and after ten times as many.
    right, as_long = (
        expected == (reached[few][nads] > once[many][nads]) for reached in (once, longer)
    )
    share = exact_share(right.tolist())
    facts: Facts = {"num_seeds": 1, "num_trainings": 2 * len(nads)}
    holds = max(share[0], as_long.mean()) < 0.5
    return evidence(holds, *share, null=0.5, size="paper", **facts)


@cache
def draws(kind: str, estimator: str) -> np.ndarray:
    """Return a rank correlation of stored energies with accuracy, followed by those of directions
    drawn again.

    Args:
        kind: "DFT", the waves, or "our NADs".
        estimator: estimator of the second moment.
    """
    (row,) = matching(load_study("estimator-orders.json")["rows"], estimator=estimator)
    one = family("fig1-lenet" if kind == "DFT" else "fig6-lenet")
    return statistics.resampled_correlations(np.array(row[kind]), one.accuracies)


@decides("point-orders-worse")
def _():
    """Decide whether the gradient at a point orders waves worse than the smoothed gradient."""
    lead = with_interval(draws("DFT", "smoothed") - draws("DFT", "point"))
    holds = lead[1] > 0 and draws("our NADs", "point")[0] > draws("DFT", "point")[0] + 0.2
    return evidence(holds, *lead, null=0, size="paper", num_seeds=2)


# A rival theory, lazy training


def plot_theories() -> Figure:
    """Draw the rank correlation of each theory with the accuracy after training."""
    found, means = scored(RIVALS).estimates, scored(MEANS).estimates
    panels: dict[str, Any] = {}
    for cell, label in CELLS.items():
        network, _, directions = label.partition(", ")
        own = {**found[cell], "mean": means[cell]["alignment"]}
        values = {text: own[name] for name, text in THEORIES.items()}
        panels.setdefault(network, {})[directions] = values
    return figures.plot_intervals(panels, ["rank correlation with accuracy"] * len(panels))


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


# Tasks that are not linear along NADs


def each_seed(network: str, task: str) -> pd.DataFrame:
    """Return the test accuracies at each pair of NADs, (pairs, seeds)."""
    rows = pd.DataFrame(rows_of(TASK_STUDY))
    own = rows[(rows["network"] == network) & (rows["task"] == task)]
    return own.pivot_table("test_accuracy", "first", "seed")


def plot_tasks() -> Figure:
    """Draw the accuracy in each task against the NADs that the label depends on; bars span the
    seeds.
    """
    panels: dict[str, Any] = {}
    for network, label in {"lenet": "LeNet", "cnn": "small CNN"}.items():
        panel = panels[label] = {}
        for task in TASKS:
            points = 100 * each_seed(network, task)
            found = statistics.mean_and_range(points.T.to_numpy())
            panel[TASK_LABELS[task]] = dict(zip(points.index, found, strict=True))
    label = "first of the two NADs"
    return figures.plot_by_index(panels, "accuracy (%)", xlabel=label, level=50)


def order_of(network: str, task: str) -> list[float]:
    """Return the rank correlation of NADs with what is learned, and its 95 % interval from drawing
    the trainings again.
    """
    reached = np.sort(each_seed(network, task))  # (pairs, trainings)
    rng, places = np.random.default_rng(0), np.arange(len(reached))
    chosen = rng.integers(reached.shape[1], size=(NUM_DRAWS, *reached.shape))
    drawn = np.take_along_axis(reached[None], chosen, 2).mean(2)
    ranks = [statistics.rank_correlation(means, places) for means in drawn]
    value = statistics.rank_correlation(reached.mean(1), places)
    return [value, *np.percentile(ranks, [2.5, 97.5])]


@decides("nonlinear-order")
def _():
    """Decide whether accuracy falls along NADs for both networks in all three tasks, by the weakest
    of the six rank correlations.
    """
    found = [order_of(network, task) for network in NETWORKS for task in NONLINEAR]
    rows = [row for row in rows_of(TASK_STUDY) if row["task"] in NONLINEAR]
    return below(max(found), size="laptop", rows=rows)


# What the paper says of decays, supports, orders and random directions


class Fall(NamedTuple):
    """NADs with half of the energy, and the index from which on published accuracy is under
    75 %.
    """

    half: int
    authors: int


@cache
def falls() -> dict[str, Fall]:
    """Return where each network falls: by eigenvalues, and as published."""
    found = {}
    for name in DEEP:
        curve = curves()[f"{LABELS[name]}, paper"]
        authors = statistics.first_below(curve.keys, curve.accuracies, 0.75)
        found[LABELS[name]] = Fall(waves.half_of_energy(load_nads(name)), authors)
    return found


def _falls() -> str:
    found = (f"{name} {one.half} and {one.authors}" for name, one in falls().items())
    return (
        "NADs with half of the energy (ours), and the index below which the authors’ accuracy is "
        f"75 %: {', '.join(found)}."
    )


@decides("errata-decay")
def _():
    """Tell where networks fall, which does not decide the paper's sentence on decays."""
    return evidence(None, sentence=_falls(), size="paper")


@decides("errata-stronger-bias")
def _():
    """Decide whether ResNet-18 and DenseNet-121 fall before LeNet and VGG-11."""
    weak, strong = (
        [falls()[name] for name in names]
        for names in (("LeNet", "VGG-11"), ("ResNet-18", "DenseNet-121"))
    )
    earlier = min(weak, key=lambda one: one.authors).authors < max(one.authors for one in strong)
    holds = max(one.half for one in strong) < min(one.half for one in weak)
    return evidence(None if earlier else holds, sentence=_falls(), size="paper")


def _listed(found: Mapping[str, float]) -> str:
    return ", ".join(f"{LABELS[name]} {fixed(value, 2)}" for name, value in found.items())


@decides("errata-supports")
def _():
    """Decide whether the first ten NADs have their energy on learned waves."""
    found = {}
    for name in DEEP:
        cells = published.fourier_accuracies(name)
        rows, columns = np.array(list(cells)).T + 16
        energy = nc.spectrum(load_nads(name).directions[:10, 0]).numpy()[:, rows, columns]
        learned = np.array(list(cells.values())) > LEARNED
        found[name] = float(energy[:, learned].sum() / energy.sum())
    text = (
        f"Share of their energy on the waves of Fig. 1 that lies on learned ones: {_listed(found)}."
    )
    return evidence(min(found.values()) > 0.9, sentence=text, size="paper")


@decides("errata-ordering")
def _():
    """Decide whether NADs are not ordered by frequency; open where one network's nearly are."""
    radius = np.hypot(*np.meshgrid(np.arange(-16, 16), np.arange(-16, 16)))
    found = {}
    for name in DEEP:
        mean = (nc.spectrum(load_nads(name).directions[:, 0]).numpy() * radius).sum((1, 2))
        found[name] = statistics.rank_correlation(np.arange(len(mean), dtype=float), mean)
    text = (
        "Rank correlation of a NAD’s index and its mean frequency (1 would be a uniform ordering): "
        f"{_listed(found)}."
    )
    return evidence(None if max(found.values()) >= 0.9 else True, sentence=text, size="paper")


@decides("errata-random")
def _():
    """Tell how equal LeNet's accuracies along random directions are; deep networks were not run."""
    one = family("random-lenet")
    span = [percent(end, 1) for end in (one.accuracies.min(), one.accuracies.max())]
    text = (
        f"LeNet along {len(one)} random directions at σ = {one.noise_std:g}: {' to '.join(span)}."
    )
    return evidence(None, sentence=text, size="paper")


@decides("errata-train-accuracy")
def _():
    """Tell how well deep networks fit their training sets, most of them of reduced size, which
    decides nothing.
    """
    found = []
    for job, preset in DEEP_SWEEPS:
        shares = stored(f"fig1-{job}", preset).table["train_accuracy"]
        found.append(
            f"{LABELS[job]} ({preset}), {percent(shares.min())} to {percent(shares.max())}, "
            f"{(shares > 0.99).sum()} of {len(shares)} networks above 99 %"
        )
    text = f"Training accuracies along waves: {'; '.join(found)}."
    return evidence(None, sentence=text, size="laptop")
