"""The page ``01_directional_bias``: which waves networks learn, and which they cannot.

Two tasks are mirror images, of which LeNet learns one; all waves of the published grid (the paper's
Fig. 1), and how well two maps agree; how fast waves are learned (Fig. 2); what is left of the bias
without pooling (Fig. 3); what the reader trains.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

import nads_core as nc
from nads_book import figures, published, statistics
from nads_book.claims import decides
from nads_book.experiments import Results
from nads_book.experiments.evidence import below, evidence
from nads_book.experiments.formatting import LABELS, percent
from nads_book.published.waves import (
    LEARNED,
    by_wave,
    copied_cells,
    negative,
    published_accuracies,
    wrapped,
)
from nads_book.studies import stored
from nads_book.studies.directions import FURTHEST, LOSSES
from nads_core.data.fourier import Frequency

CONVOLUTIONAL = ("lenet", "vgg11", "resnet18", "densenet121")
COARSE, FINE = (0, 2), (0, 8)
EQUAL = 0.05  # largest difference that counts as none: of test images and of seeds


@cache
def sweep(name: str, figure: str = "fig1") -> Results:
    """Return the trainings of one network along waves, at the paper's size."""
    return stored(f"{figure}-{name}")


@cache
def accuracies(name: str, figure: str = "fig1", field: str = "test_accuracy") -> pd.Series:
    """Return our accuracies by wave, means over seeds."""
    return by_wave(sweep(name, figure), field).mean(axis=1)


def authors(name: str, right: bool = False) -> pd.Series:
    """Return the authors' test accuracies by wave, see `published_accuracies`."""
    return pd.Series(published_accuracies(name, right)).rename_axis(["ky", "kx"])


# Two tasks, and what the reader trains


def plot_tasks(waves: Sequence[Frequency], train: nc.SeparableDatasets) -> Figure:
    """Draw waves, and one image of each class of the last task.

    Args:
        waves: cycles down and across, of each task.
        train: training sets of the tasks.
    """
    pictures = {f"wave {k}": v[0] for k, v in zip(waves, train.directions, strict=True)}
    images, labels = train[len(waves) - 1]
    for label, sign in ((1, "+"), (0, "−")):
        pictures[f"an image with {sign}{waves[-1]}"] = images[labels == label][0, 0]
    return figures.plot_signed_images(pictures)


def plot_bet(
    waves: Sequence[Frequency],
    results: Mapping[str, Any],
    num_test: int,
    others: Mapping[str, figures.Accuracies] | None = None,
) -> Figure:
    """Draw the accuracies of networks on new images and on their training images.

    Args:
        waves: cycles down and across, of each task.
        results: results of `nads_core.train_networks`, by the name of the network.
        num_test: number of new images.
        others: rows below these.
    """
    rows = {
        f"{LABELS.get(name, name)}, wave {k}": figures.Accuracies([test], num_test, [train])
        for name, found in results.items()
        for k, test, train in zip(waves, found.test_accuracy, found.train_accuracy, strict=True)
    }
    return figures.plot_accuracies({"": {**rows, **(others or {})}}, 50)


def stored_beside(wave: Frequency) -> dict[str, figures.Accuracies]:
    """Return the published accuracies along the closest wave of their grid."""
    nearest = wrapped(wave[0] // 2 * 2, wave[1] // 2 * 2)  # all cycles of the grid are even
    if nearest not in published_accuracies("lenet"):
        nearest = negative(nearest)
    return {
        f"{label}, published, {nearest}": figures.Accuracies(
            [published_accuracies(name)[nearest]], 10_000
        )
        for name, label in LABELS.items()
    }


@decides("two-tasks")
def _():
    """Decide whether LeNet learns the coarse wave alone, and logistic regression all."""
    lenet, train = accuracies("lenet"), accuracies("lenet", field="train_accuracy")
    holds = lenet[COARSE] > 0.65 and lenet[FINE] < LEARNED and train[FINE] > 0.65
    linear = accuracies("logreg").min() > 0.95
    results = [sweep("lenet"), sweep("logreg")]
    return evidence(holds and linear, lenet[COARSE] - lenet[FINE], results=results)


# What LeNet fits, and what it learns


def plot_memorised() -> Figure:
    """Draw LeNet's accuracy on training images against that on new images, one dot per wave."""
    test, train = accuracies("lenet"), accuracies("lenet", field="train_accuracy")
    lines = {"LeNet": (100 * test, 100 * train), "equal": ([45, 102], [45, 102])}
    labels = ("test accuracy (%)", "training accuracy (%)")
    return figures.plot_lines({"": lines}, *labels, marks={"LeNet": "o", "equal": "-"})


@decides("out-of-reach")
def _():
    """Decide whether LeNet stays at chance along some waves, and logistic regression along none."""
    at_chance = accuracies("lenet") < LEARNED
    holds = at_chance.any() and accuracies("logreg").min() > 0.99
    results = [sweep("lenet"), sweep("logreg")]
    return evidence(holds, at_chance.mean(), results=results)


@decides("fits-noise")
def _():
    """Decide whether LeNet fits training images along waves on which it stays at chance."""
    train = accuracies("lenet", field="train_accuracy")
    median = train[accuracies("lenet") < LEARNED].median()
    return evidence(median > 0.65, median, results=[sweep("lenet")])


# The maps


def plot_lenet_map() -> Figure:
    """Draw our test accuracies of LeNet for every wave."""
    panels = {"LeNet": 100 * accuracies("lenet")}
    return figures.plot_frequency_maps({"": panels})


def plot_published_maps() -> Figure:
    """Draw the authors' test accuracies for every wave, of four networks (the paper's Fig. 1)."""
    panels = {LABELS[name]: 100 * authors(name) for name in CONVOLUTIONAL}
    return figures.plot_frequency_maps({"": panels})


@decides("dark-lines")
def _():
    """Decide whether LeNet is at chance on the dark lines, and learns another wave that is as
    fine.
    """
    both = pd.DataFrame({"ours": accuracies("lenet"), "theirs": authors("lenet")})
    cycles = np.array(both.index.tolist())
    on_lines, lengths = np.isin(abs(cycles), (8, 16)).any(1), np.square(cycles).sum(1)
    beside = (both > LEARNED).all(axis=1).to_numpy() & ~on_lines
    as_fine = np.isin(lengths[on_lines], lengths[beside]).any()
    most = both[on_lines].max()
    return evidence(most.max() < LEARNED and as_fine, most["ours"], results=[sweep("lenet")])


@decides("own-preferences")
def _():
    """Decide whether architectures differ by more waves than two trainings of LeNet do."""
    networks = pd.DataFrame({name: authors(name) for name in CONVOLUTIONAL}) > LEARNED
    trainings = by_wave(sweep("lenet")).join(authors("lenet").rename("published")) > LEARNED
    between, within = (
        [(learned[a] != learned[b]).sum() for a, b in combinations(learned, 2)]
        for learned in (networks, trainings)
    )
    return evidence(min(between) > max(within), min(between), size="paper")


# How well two maps agree


def differences(first: pd.Series, second: pd.Series) -> pd.Series:
    """Return the differences of two trainings in points, at the waves that one of the two has
    learned.
    """
    pairs = first.to_frame("first").join(second.rename("second")).dropna()
    pairs = pairs[pairs.max(axis=1) > LEARNED]
    return 100 * (pairs["first"] - pairs["second"]).abs()


@decides("copied-half")
def _():
    """Decide whether one half of each published map is a copy of the other."""
    counts = [copied_cells(published.fourier_accuracies(name)) for name in CONVOLUTIONAL]
    least = min(equal / total for equal, total in counts)
    return evidence(least == 1, least, size="paper")


@decides("between-trainings")
def _():
    """Decide whether our LeNets differ from the published ones less than twice as much as from
    each other, by an interval of the ratio that draws waves again.
    """
    seeds, theirs = by_wave(sweep("lenet")), authors("lenet", right=True)
    # The mean of both seeds, by wave
    gaps = pd.DataFrame({seed: differences(seeds[seed], theirs) for seed in seeds}).mean(axis=1)
    pairs = pd.concat([gaps, differences(seeds[0], seeds[1])], axis=1).to_numpy()
    ratios = statistics.resampled(
        lambda theirs, own: float(np.nanmean(theirs) / np.nanmean(own)),
        *pairs.T,
        num_resamples=statistics.MANY,
    )
    return below(statistics.with_interval(ratios), 2, results=[sweep("lenet")])


@decides("resnet-same-waves")
def _():
    """Decide whether a ResNet-18 of the paper's size learns the same waves as the authors'."""
    ours = accuracies("resnet18")
    theirs = authors("resnet18", right=True)[ours.index]
    differing = ((ours > LEARNED) != (theirs > LEARNED)).sum()
    return evidence(not differing, differing, results=[sweep("resnet18")])


@decides("furthest-wave-again")
def _():
    """Decide whether along the wave on which ours is furthest from the authors' further trainings
    are within five points of theirs (registered), and show the largest distance.
    """
    results = [sweep("resnet18"), sweep("resnet18", "again")]
    theirs = authors("resnet18", right=True)[FURTHEST[0]]
    first, further = ((by_wave(one).loc[FURTHEST[0]] - theirs).abs() for one in results)
    holds = first[0] > 2 * EQUAL and further.max() < EQUAL
    rows = results[1].table
    rows = rows[rows["frequency"].map(tuple) == FURTHEST[0]]
    return evidence(holds, 100 * further.max(), rows=rows)


# Speed


@cache
def steps() -> pd.DataFrame:
    """Return LeNet's steps to each loss by wave, medians over seeds, infinite where the loss is
    never reached.
    """
    rows = sweep("lenet", "fig2").table
    counts = pd.DataFrame(rows["iterations"].tolist(), columns=LOSSES)
    counts = counts.astype(float).where(counts >= 0, np.inf)
    counts[["ky", "kx"]] = rows["frequency"].tolist()
    return counts.groupby(["ky", "kx"]).median()


def plot_speed() -> Figure:
    """Draw the steps until LeNet's training loss is small, for three thresholds."""
    speeds = -np.log10(steps())  # of waves that are never learned there is none
    panels = {f"loss {loss:g}": speeds[loss].replace(-np.inf, np.nan) for loss in LOSSES}
    return figures.plot_frequency_maps({"": panels}, "log₁₀ (1 / steps)", (-3.3, -1.5))


@decides("one-bias-twice")
def _():
    """Decide whether waves that are slow with little noise are those that are not learned with
    much.
    """
    found, reached = steps(), accuracies("lenet")[steps().index]
    same, across = (
        [statistics.rank_correlation(found[loss], other) for loss in LOSSES]
        for other in (found[0.1], reached)
    )
    results = [sweep("lenet", "fig2"), sweep("lenet")]
    return evidence(min(same) > 0.9 and max(across) < -0.7, max(across), results=results)


# Without pooling


def plot_without_pooling() -> Figure:
    """Draw our test accuracies of LeNet with and without pooling."""
    panels = {
        "LeNet": 100 * accuracies("lenet"),
        "LeNet without pooling": 100 * accuracies("lenet", "fig3"),
    }
    return figures.plot_frequency_maps({"": panels})


@decides("pooling-part")
def _():
    """Decide whether no wave stays at chance without pooling, and some do with it."""
    least = accuracies("lenet", "fig3").min()
    holds = least > 0.6 and accuracies("lenet").min() < LEARNED
    return evidence(holds, least, results=[sweep("lenet", "fig3"), sweep("lenet")])


@decides("errata-equalized")
def _():
    """Decide whether LeNet's accuracies are equal over frequencies without pooling, as the paper
    writes.
    """
    values = accuracies("lenet", "fig3")
    spread = values.max() - values.min()
    text = (
        f"LeNet without pooling reaches {percent(values.min(), 1)} to {percent(values.max(), 1)} "
        f"over {len(values)} waves; the paper's Fig. 3 shows "
        f"{percent(published.NO_POOLING['lenet'][0])} everywhere. Our layers ran in bfloat16, "
        "which was not compared with float32; the caption does not state σ, and we use 3."
    )
    results = [sweep("lenet", "fig3")]
    return evidence(spread <= EQUAL, 100 * spread, sentence=text, results=results)
