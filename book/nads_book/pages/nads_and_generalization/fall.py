"""Accuracy along the NADs: how it falls, ours and the authors', and what the paper says of it."""

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure

from nads_book.analysis import published, statistics
from nads_book.analysis.prediction import Family
from nads_book.analysis.statistics import OrderTest, accuracy_interval
from nads_book.analysis.waves import negative
from nads_book.evidence import Estimate, Evidence, evidence
from nads_book.experiments import Results, load_nads, load_study
from nads_book.figures.style import bars, colours, dotted, shade, styled, subplots
from nads_book.pages.nads_and_generalization.waves import DEEP
from nads_book.report import LABELS, fixed
from nads_book.studies import stored

AUTHORS_TESTS = 10_000  # test samples of the authors' accuracies
SIZES = {"lenet": "paper", "vgg11": "laptop", "resnet18": "narrow", "densenet121": "narrow"}


class Curve(NamedTuple):
    """Accuracies along NADs: indices, accuracies (n,), and numbers of test samples (n,)."""

    keys: Sequence[int]
    accuracies: np.ndarray
    num_test: np.ndarray


@cache
def lenets() -> Results:
    """Return the LeNets that were trained along NADs, at the paper's size."""
    return stored("fig6-lenet")


@cache
def family(name: str = "lenet", preset: str = "paper") -> Family:
    """Return the directions and accuracies of a stored sweep along NADs."""
    return Family.of(stored(f"fig6-{name}", preset))


@cache
def curves() -> dict[str, Curve]:
    """Return accuracies along NADs at the paper's size: our LeNet's and the authors'."""
    own = family()
    found = {"LeNet, ours": Curve(own.keys, own.accuracies, own.num_test)}  # type: ignore[arg-type]
    for name in DEEP:
        values = published.nad_accuracies(name)
        tests = np.full(len(values), AUTHORS_TESTS)
        accuracies = np.array(list(values.values()))
        found[f"{LABELS[name]}, paper"] = Curve(list(values), accuracies, tests)
    return found


@styled
def plot_accuracy_by_nad() -> Figure:
    """Draw accuracies along the NADs above the eigenvalues, ours and the authors'."""
    theirs = {row["architecture"]: row for row in load_study("published-spectra.json")["rows"]}
    figure, axes = subplots(2, len(DEEP), 4.0, sharex=True, sharey="row", height_ratios=[2, 1])
    for name, (top, bottom) in zip(DEEP, axes.T, strict=True):
        known, grey = published.nad_accuracies(name), shade(0.55)
        shares = 100 * np.array([*known.values()])
        top.plot([*known], shares, ".", color=grey, markersize=2, label="paper")
        if name in SIZES:
            one = family(name, SIZES[name])
            shares = one.accuracies
            lengths = bars(shares, list(map(accuracy_interval, shares, one.num_test)))
            look = {"color": colours()[0], "capsize": 1.5, "elinewidth": 0.8, "markersize": 3.5}
            top.errorbar(one.keys, 100 * shares, lengths, fmt="o", label="ours", **look)
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


# A trend, and not monotonic


def two_seeds() -> dict[int, list[float]]:
    """Return the accuracies of our LeNets along each NAD that was trained with both seeds."""
    rows = sorted(lenets().rows, key=lambda row: row["seed"])
    found = statistics.grouped((row["index"], row["test_accuracy"]) for row in rows)
    return {index: values for index, values in found.items() if len(values) == 2}


def repeats(label: str) -> np.ndarray:
    """Return accuracies of directions that were trained twice, (n, 2).

    Ours are two seeds along NADs. The authors' are the waves k and -k, one task that they trained
    twice; where ky = 0 or -16 their table has a copy instead.
    """
    if label == "LeNet, ours":
        return np.array([*two_seeds().values()])
    cells = published.fourier_accuracies(
        next(name for name in DEEP if label == f"{LABELS[name]}, paper")
    )
    twice = [(ky, kx) for ky, kx in cells if ky > 0 and (kx >= 0 or kx == -16)]
    return np.array([(cells[k], cells[negative(k)]) for k in twice])


@cache
def inflation(label: str) -> Estimate:
    """Return how much repeated trainings differ, in standard errors of their test sets."""
    num_test = lenets().settings["num_test"] if label == "LeNet, ours" else AUTHORS_TESTS
    pairs = repeats(label)
    pairs = pairs[pairs.sum(1) < 2]
    squares = np.square(np.diff(pairs, axis=1)[:, 0]) / (pairs * (1 - pairs)).sum(1) * num_test
    return statistics.with_interval(
        statistics.resampled(lambda x: float(np.sqrt(x.mean())), squares)
    )


@cache
def order_tests() -> dict[str, OrderTest]:
    """Test each curve for a monotonic fall, with the upper end of `inflation` as noise."""
    return {
        label: statistics.order_test(
            curve.accuracies.tolist(), curve.num_test, inflation=max(1.0, inflation(label)[2])
        )
        for label, curve in curves().items()
    }


def not_monotonic() -> list[str]:
    """Return the curves whose deviations from the closest falling curve exceed the noise."""
    return [label for label, test in order_tests().items() if test.spread > test.sampling_spread]


@cache
def trends() -> dict[str, float]:
    """Return the rank correlation of accuracy and index of each curve."""
    return {
        label: statistics.rank_correlation(np.array(curve.keys, float), curve.accuracies)
        for label, curve in curves().items()
    }


def falls_as_trend() -> Evidence:
    """Decide whether accuracy falls as a trend in every curve."""
    flattest = max(trends(), key=trends().__getitem__)
    curve = curves()[flattest]
    trend = statistics.with_interval(
        statistics.resampled_correlations(np.array(curve.keys), curve.accuracies)
    )
    return evidence(trends()[flattest] < -0.4, *trend, null=0, results=[lenets()])


def errata_monotone() -> Evidence:
    """Decide whether accuracy falls monotonically, as the paper writes: not where one curve rises
    beyond noise.
    """
    found, beyond = trends().values(), not_monotonic()
    text = (
        f"Rank correlation with the index {fixed(min(found), 2)} to {fixed(max(found), 2)}. "
        "Deviations from the closest falling curve exceed what the noise of test sets and of "
        f"repeated trainings explains in {len(beyond)} of {len(found)} curves: {'; '.join(beyond)}."
    )
    return evidence(False if beyond else None, sentence=text, size="paper")


# First and last NAD, and others


def fig6_lenet_close() -> Evidence:
    """Decide whether our LeNet's accuracies are within three points of the authors', on average."""
    paper = published.nad_accuracies("lenet")
    own = zip(family().keys, family().accuracies, strict=True)
    gaps = [100 * abs(value - paper[index]) for index, value in own if index in paper]
    return evidence(np.mean(gaps) < 3, np.mean(gaps), results=[lenets()])
