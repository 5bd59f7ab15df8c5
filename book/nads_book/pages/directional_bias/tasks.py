"""Two tasks that are mirror images of each other, of which LeNet learns one; and what the reader
trains.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure

import nads_core as nc
from nads_book import figures
from nads_book.analysis.frequency_maps import LEARNED, by_frequency, common_pairs
from nads_book.analysis.statistics import accuracy_interval
from nads_book.analysis.waves import grid_frequencies, negative, wrapped
from nads_book.evidence import Evidence, evidence
from nads_book.pages.directional_bias.maps import accuracies, authors, sweep
from nads_book.report import LABELS
from nads_core.data.fourier import Frequency
from nads_core.training import TrainingResult

COARSE, FINE = (0, 2), (0, 8)


# What the reader trains


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
    last = len(waves) - 1
    images, labels = train[last]
    for label, sign in ((1, "+"), (0, "−")):
        pictures[f"an image with {sign}{waves[last]}"] = images[labels == label][0, 0]
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
    nearest = min(grid_frequencies(), key=lambda other: _distance(k, other))
    found: dict[str, Any] = {}
    for name, label in LABELS.items():
        accuracy = authors(name)[nearest]
        interval = accuracy_interval(accuracy, 10_000)
        found[f"{label}, published, {nearest}"] = accuracy, None, interval
    ours, train = accuracies("lenet")[nearest], by_frequency(sweep("lenet"), "train_accuracy")
    found[f"LeNet, ours, {nearest}"] = (ours, train[nearest], accuracy_interval(ours, 20_000))
    return found


def _distance(k: Frequency, other: Frequency) -> float:
    """Return how far apart two waves are in the plane of frequencies; a wave and its negative are
    one.
    """
    return min(
        float(np.hypot(*wrapped(k[0] - one[0], k[1] - one[1]))) for one in (other, negative(other))
    )


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


# What LeNet of the paper's size does


def train_and_test() -> tuple[np.ndarray, np.ndarray]:
    """Return our LeNets' accuracies on new images and on training images, in the same order of
    waves.
    """
    train = by_frequency(sweep("lenet"), "train_accuracy")
    new, seen = np.array(common_pairs(accuracies("lenet"), train)).T
    return new, seen


def plot_memorised() -> Figure:
    """Draw LeNet's accuracy on training images against that on new images, one dot per wave."""
    pair = ("test accuracy", "training accuracy", *train_and_test())
    return figures.plot_agreement({"LeNet": pair}, chance=True)


def two_tasks() -> Evidence:
    """Decide whether LeNet learns the coarse wave alone, and logistic regression all."""
    lenet, train = accuracies("lenet"), by_frequency(sweep("lenet"), "train_accuracy")
    holds = lenet[COARSE] > 0.65 and lenet[FINE] < LEARNED and train[FINE] > 0.65
    linear = min(accuracies("logreg").values()) > 0.95
    results = [sweep("lenet"), sweep("logreg")]
    return evidence(holds and linear, lenet[COARSE] - lenet[FINE], results=results)


def out_of_reach() -> Evidence:
    """Decide whether LeNet stays at chance along some waves, and logistic regression along none."""
    test, _ = train_and_test()
    holds = (test < LEARNED).any() and min(accuracies("logreg").values()) > 0.99
    results = [sweep("lenet"), sweep("logreg")]
    return evidence(holds, (test < LEARNED).mean(), results=results)


def fits_noise() -> Evidence:
    """Decide whether LeNet fits training images along waves on which it stays at chance."""
    test, train = train_and_test()
    median = np.median(train[test < LEARNED])
    return evidence(median > 0.65, median, results=[sweep("lenet")])
