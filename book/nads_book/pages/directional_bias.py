"""The page ``01_directional_bias``: which waves networks learn, and which they cannot.

Two tasks are mirror images, of which LeNet learns one; all waves of the published grid (the paper's
Fig. 1), and how well two maps agree; how fast waves are learned (Fig. 2); what is left of the bias
without pooling (Fig. 3); what the reader trains.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure

import nads_core as nc
from nads_book import explorer, figures, published, statistics
from nads_book.claims import decides
from nads_book.experiments import Results
from nads_book.experiments.evidence import Estimate, evidence
from nads_book.experiments.formatting import LABELS, percent
from nads_book.published.waves import (
    LEARNED,
    Pairs,
    by_frequency,
    common_pairs,
    copied_cells,
    grid_frequencies,
    negative,
    seed_pairs,
    wrapped,
)
from nads_book.published.waves import published_accuracies as authors
from nads_book.statistics import accuracy_interval
from nads_book.studies import stored
from nads_book.studies.directions import LOSSES
from nads_core.data.fourier import Frequency
from nads_core.training import TrainingResult

CONVOLUTIONAL = ("lenet", "vgg11", "resnet18", "densenet121")
COARSE, FINE = (0, 2), (0, 8)
NEVER = 1e9  # steps to a loss that is not reached: more than any training has
EQUAL = 0.05  # largest difference that counts as none: of test images and of seeds
Map = Mapping[Frequency, float]


@cache
def sweep(name: str, figure: str = "fig1") -> Results:
    """Return the trainings of one network along waves, at the paper's size."""
    return stored(f"{figure}-{name}")


@cache
def accuracies(name: str, figure: str = "fig1") -> Map:
    """Return our test accuracies by wave, means over seeds."""
    return by_frequency(sweep(name, figure))


@cache
def training_accuracies() -> Map:
    """Return LeNet's accuracies on training images by wave."""
    return by_frequency(sweep("lenet"), "train_accuracy")


def in_percent(values: Map) -> dict[Frequency, float]:
    """Return shares in percent."""
    return {k: 100 * value for k, value in values.items()}


def learned(values: Map) -> set[Frequency]:
    """Return the waves that are learned."""
    return {k for k, value in values.items() if value > LEARNED}


def on_lines(k: Frequency) -> bool:
    """Return whether a wave has 8 or 16 cycles, across or down."""
    return any(abs(f) in (8, 16) for f in k)


# Two tasks, and what the reader trains


def require_waves(waves: Sequence[Frequency]) -> None:
    """Raise a ValueError for a wave that 32 pixels show as another one."""
    for wave in waves:
        if not all(-16 <= cycles <= 15 for cycles in wave):
            raise ValueError(f"wave must have from −16 to 15 cycles down and across, got {wave}")


def plot_tasks(waves: Sequence[Frequency], train: nc.SeparableDatasets) -> Figure:
    """Draw waves, and one image of each class of the last task.

    Args:
        waves: cycles down and across, of each task.
        train: training sets of the tasks.
    """
    require_waves(waves)
    pictures = {f"wave {k}": v[0] for k, v in zip(waves, train.directions, strict=True)}
    images, labels = train[len(waves) - 1]
    for label, sign in ((1, "+"), (0, "−")):
        pictures[f"an image with {sign}{waves[-1]}"] = images[labels == label][0, 0]
    return figures.plot_signed_images(pictures)


def plot_bet(
    waves: Sequence[Frequency], results: Mapping[str, TrainingResult], num_test: int
) -> Figure:
    """Draw the accuracies of networks on new images and on their training images.

    Args:
        waves: cycles down and across, of each task.
        results: trainings, by the name of the network.
        num_test: number of new images.
    """
    rows = {}
    for name, result in results.items():
        for k, (test, train) in zip(waves, _accuracies(result), strict=True):
            interval = accuracy_interval(test, num_test)
            rows[f"{LABELS.get(name, name)}, wave {k}"] = test, train, interval
    return figures.plot_accuracy_dots(rows)


def _accuracies(result: TrainingResult) -> list[tuple[float, float]]:
    """Return the accuracies of each network on new images and on its training images."""
    test, train = map(torch.as_tensor, (result.test_accuracy, result.train_accuracy))
    return list(zip(test.tolist(), train.tolist(), strict=True))


def stored_beside(k: Frequency) -> dict[str, tuple[float, float | None, tuple[float, float]]]:
    """Return the stored accuracies along the wave of the published grid that is closest to another
    wave.

    Args:
        k: cycles down and across.

    Returns:
        Network and wave -> test accuracy, training accuracy if it is stored, interval of the test
        accuracy.
    """

    def distance(other: Frequency) -> float:
        """Return how far the wave is in the plane; a wave and its negative are one."""
        steps = [wrapped(k[0] - y, k[1] - x) for y, x in (other, negative(other))]
        return float(min(np.hypot(*step) for step in steps))

    nearest = min(grid_frequencies(), key=distance)
    found: dict[str, Any] = {}
    for name, label in LABELS.items():
        accuracy = authors(name)[nearest]
        interval = accuracy_interval(accuracy, 10_000)
        found[f"{label}, published, {nearest}"] = accuracy, None, interval
    ours = accuracies("lenet")[nearest]
    own = ours, training_accuracies()[nearest], accuracy_interval(ours, 20_000)
    return found | {f"LeNet, ours, {nearest}": own}


def plot_your_training(
    architecture: str | Callable[[], torch.nn.Module],
    wave: Frequency,
    recipe: nc.Recipe,
    num_images: int,
    seed: int = 0,
) -> Figure:
    """Train a network along a wave, and draw its accuracy beside the stored ones of the closest
    wave.

    Args:
        architecture: anything that `nads_core.train_networks` takes.
        wave: cycles down and across.
        recipe: recipe of the training.
        num_images: number of training images, and of new ones.
        seed: seed of weights and images.
    """
    require_waves([wave])
    direction = nc.fourier_direction(wave, 32)[None]
    train, test = (nc.SeparableDatasets(direction, num_images, seed=seed + i) for i in (0, 1))
    result = nc.train_networks(
        architecture, train, [test[0]], recipe=recipe, seed=seed, progress=False
    )
    ((accuracy, fitted),) = _accuracies(result)
    name = architecture if isinstance(architecture, str) else architecture.__name__
    yours = {f"yours: {name}, {wave}": (accuracy, fitted, accuracy_interval(accuracy, num_images))}
    return figures.plot_accuracy_dots(yours | stored_beside(wave))


@decides("two-tasks")
def _():
    """Decide whether LeNet learns the coarse wave alone, and logistic regression all."""
    lenet, train = accuracies("lenet"), training_accuracies()
    holds = lenet[COARSE] > 0.65 and lenet[FINE] < LEARNED and train[FINE] > 0.65
    linear = min(accuracies("logreg").values()) > 0.95
    results = [sweep("lenet"), sweep("logreg")]
    return evidence(holds and linear, lenet[COARSE] - lenet[FINE], results=results)


# What LeNet fits, and what it learns


def train_and_test() -> tuple[np.ndarray, np.ndarray]:
    """Return our LeNets' accuracies on new images and on training images, in the same order of
    waves.
    """
    new, seen = np.array(common_pairs(accuracies("lenet"), training_accuracies())).T
    return new, seen


def plot_memorised() -> Figure:
    """Draw LeNet's accuracy on training images against that on new images, one dot per wave."""
    pair = ("test accuracy", "training accuracy", *train_and_test())
    return figures.plot_agreement({"LeNet": pair}, chance=True)


@decides("out-of-reach")
def _():
    """Decide whether LeNet stays at chance along some waves, and logistic regression along none."""
    test, _ = train_and_test()
    holds = (test < LEARNED).any() and min(accuracies("logreg").values()) > 0.99
    results = [sweep("lenet"), sweep("logreg")]
    return evidence(holds, (test < LEARNED).mean(), results=results)


@decides("fits-noise")
def _():
    """Decide whether LeNet fits training images along waves on which it stays at chance."""
    test, train = train_and_test()
    median = np.median(train[test < LEARNED])
    return evidence(median > 0.65, median, results=[sweep("lenet")])


# The maps


def plot_lenet_map() -> Figure:
    """Draw our test accuracies of LeNet for every wave."""
    panels = {"LeNet": in_percent(accuracies("lenet"))}
    return figures.plot_frequency_maps({"": panels}, marked=(8, 16))


def plot_published_maps() -> Figure:
    """Draw the authors' test accuracies for every wave, of four networks (the paper's Fig. 1)."""
    panels = {LABELS[name]: in_percent(authors(name)) for name in CONVOLUTIONAL}
    return figures.plot_frequency_maps({"": panels})


@decides("dark-lines")
def _():
    """Decide whether LeNet is at chance on the dark lines, and learns another wave that is as
    fine.
    """
    ours, theirs = accuracies("lenet"), authors("lenet")
    most, published = (max(v for k, v in one.items() if on_lines(k)) for one in (ours, theirs))
    lines = {np.dot(k, k) for k in ours if on_lines(k)}  # squared lengths
    beside = {np.dot(k, k) for k in learned(ours) & learned(theirs) if not on_lines(k)}
    return evidence(
        max(most, published) < LEARNED and lines & beside, most, results=[sweep("lenet")]
    )


@decides("own-preferences")
def _():
    """Decide whether architectures differ by more waves than two trainings of LeNet do."""
    seeds = [by_frequency(sweep("lenet"), seed=seed) for seed in (0, 1)]
    trainings = [learned(found) for found in (authors("lenet"), *seeds)]
    networks = [learned(authors(name)) for name in CONVOLUTIONAL]
    between, within = (
        [len(a ^ b) for a, b in combinations(sets, 2)] for sets in (networks, trainings)
    )
    return evidence(min(between) > max(within), min(between), size="paper")


# How well two maps agree


@cache
def learned_pairs(kind: str) -> Pairs:
    """Return pairs of single trainings of LeNet along one wave, of which one has learned the wave.

    Args:
        kind: "ours, two seeds", or "ours and published".
    """
    if kind == "ours, two seeds":
        pairs = seed_pairs(sweep("lenet"))
    else:
        pairs = common_pairs(by_frequency(sweep("lenet"), seed=0), authors("lenet", right=True))
    return [pair for pair in pairs if max(pair) > LEARNED]


def plot_agreement() -> Figure:
    """Draw single trainings of LeNet against each other, along waves that one of the two has
    learned.
    """
    kinds = {
        "ours and published": ("our training", "published training"),
        "ours, two seeds": ("our first seed", "our second seed"),
    }
    return figures.plot_agreement(
        {kind: (*labels, *np.array(learned_pairs(kind)).T) for kind, labels in kinds.items()}
    )


def difference(kind: str) -> Estimate:
    """Return the mean difference of `learned_pairs` in points, with its interval."""
    gaps = 100 * np.abs(np.diff(np.array(learned_pairs(kind))))[:, 0]
    draws = statistics.resampled(np.mean, gaps, num_resamples=statistics.MANY)
    return statistics.with_interval(draws)


@decides("copied-half")
def _():
    """Decide whether one half of each published map is a copy of the other."""
    counts = [copied_cells(published.fourier_accuracies(name)) for name in CONVOLUTIONAL]
    least = min(equal / total for equal, total in counts)
    return evidence(least == 1, least, size="paper")


@decides("between-trainings")
def _():
    """Decide whether our LeNets differ from the published ones hardly more than from each other."""
    found = difference("ours and published")
    holds = found[0] < 1.25 * difference("ours, two seeds")[0]
    return evidence(holds, *found, results=[sweep("lenet")])


@decides("resnet-same-waves")
def _():
    """Decide whether a ResNet-18 of the paper's size learns the same waves as the authors'."""
    ours, theirs = accuracies("resnet18"), authors("resnet18", right=True)
    differing = learned(ours) ^ learned({k: theirs[k] for k in ours})
    return evidence(not differing, len(differing), results=[sweep("resnet18")])


# Speed


@cache
def steps() -> dict[float, Map]:
    """Return LeNet's steps to each loss by wave, medians over seeds, infinite where the loss is
    never reached.
    """
    counts = by_frequency(sweep("lenet", "fig2"), "iterations")
    return {loss: {k: found[i] for k, found in counts.items()} for i, loss in enumerate(LOSSES)}


def plot_speed() -> Figure:
    """Draw the steps until LeNet's training loss is small, for three thresholds."""
    panels = {f"loss {loss:g}": found for loss, found in steps().items()}
    return figures.plot_frequency_maps(
        {"": panels}, "steps", (30, 2_000), scale="log", over="never"
    )


def rank_correlation(a: Map, b: Map) -> float:
    """Return the rank correlation of two maps; what is never reached is last."""
    pairs = np.minimum(common_pairs(a, b), NEVER)
    return statistics.rank_correlation(*pairs.T)


@decides("one-bias-twice")
def _():
    """Decide whether waves that are slow with little noise are those that are not learned with
    much.
    """
    same = [rank_correlation(found, steps()[0.1]) for found in steps().values()]
    most = max(rank_correlation(found, accuracies("lenet")) for found in steps().values())
    results = [sweep("lenet", "fig2"), sweep("lenet")]
    return evidence(min(same) > 0.9 and most < -0.7, most, results=results)


# Without pooling


def show_playground() -> explorer.Playground:
    """Show a network for images of 16 x 16 pixels, beside one without pooling, which the reader
    trains.
    """
    return explorer.Playground(chips=["pooling"], second=("pooling", "none"))


def plot_without_pooling() -> Figure:
    """Draw our test accuracies of LeNet with and without pooling."""
    panels = {
        "LeNet": in_percent(accuracies("lenet")),
        "LeNet without pooling": in_percent(accuracies("lenet", "fig3")),
    }
    return figures.plot_frequency_maps({"": panels})


@decides("pooling-part")
def _():
    """Decide whether no wave stays at chance without pooling, and some do with it."""
    least = min(accuracies("lenet", "fig3").values())
    holds = least > 0.6 and min(accuracies("lenet").values()) < LEARNED
    return evidence(holds, least, results=[sweep("lenet", "fig3"), sweep("lenet")])


@decides("errata-equalized")
def _():
    """Decide whether LeNet's accuracies are equal over frequencies without pooling, as the paper
    writes.
    """
    values = accuracies("lenet", "fig3").values()
    spread = max(values) - min(values)
    text = (
        f"LeNet without pooling reaches {percent(min(values), 1)} to {percent(max(values), 1)} "
        f"over {len(values)} waves; the paper's Fig. 3 shows "
        f"{percent(published.NO_POOLING['lenet'][0])} everywhere. Our layers ran in bfloat16, "
        "which was not compared with float32; the caption does not state σ, and we use 3."
    )
    results = [sweep("lenet", "fig3")]
    return evidence(spread <= EQUAL, 100 * spread, sentence=text, results=results)
