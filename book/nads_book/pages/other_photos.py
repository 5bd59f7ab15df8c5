"""The page ``14_other_photos``: the poison and the flip on Fashion-MNIST and Imagenette, and in a
deeper network.
"""

from collections.abc import Mapping
from functools import cache, partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from nads_book import figures
from nads_book.analysis.statistics import pooled_variance
from nads_book.evidence import Evidence, Facts, evidence
from nads_book.experiments import load_study
from nads_book.figures.style import (
    colours,
    dotted,
    legend,
    name_rows,
    panel_row,
    styled,
)
from nads_book.pages.flip.images import MAPS, train_on_map
from nads_book.pages.scored_rows import registered
from nads_book.studies import poison_parts
from nads_book.studies import replication_criteria as replication
from nads_book.studies.replication_criteria import Cell, Estimate
from nads_core.data import ImageSet

LENETS = {
    "CIFAR-10": ("cifar10", "lenet"),
    "Fashion-MNIST": ("fashion-mnist", "lenet"),
    "Imagenette": ("imagenette", "lenet"),
}
DEEP = "Imagenette, ResNet-18"
CELLS = LENETS | {DEEP: ("imagenette", "resnet")}
SHORTCUTS: dict[str, tuple[Any, ...]] = {
    "poison": ("replaced", 0.05),
    "hole at zero": ("hole",),
    "hole at the mean": ("hole at mean",),
    "number of .05": ("added", 0.05),
}
DEVIATIONS = {"CIFAR-10": "lenet", "Fashion-MNIST": "fashion"}  # cases of the study of parts
HOLE, READ = "the hole, not the number", "early numbers are read, late ones are not"
FLIP, MATCH = "the flip costs more than random signs", "the match counts"


# What is stored


@cache
def _study() -> Any:
    return load_study("replications.json")


def _cells(names: Mapping[str, tuple[str, str]]) -> dict[str, Cell]:
    rows = [*_study()["rows"], *replication.rows_on_cifar10()]
    designs = _study()["designs"]
    return {label: Cell(rows, *name, designs.get(", ".join(name))) for label, name in names.items()}


@cache
def cells() -> dict[str, Cell]:
    """Return the trainings of each architecture on each data set."""
    return _cells(CELLS)


@cache
def linear() -> dict[str, Cell]:
    """Return the trainings of logistic regression on each data set."""
    return _cells({label: (data, "logreg") for label, (data, _) in LENETS.items()})


def _titled(label: str) -> str:
    return label if "," in label else f"{label}, LeNet"


def _sizes(label: str) -> Facts:
    cell = cells()[label]
    seeds = len(cell.map_accuracies("as is"))
    return {"size": "narrow", "num_seeds": seeds, "num_trainings": len(cell.rows)}


# Orthogonal maps: the flip and others


@styled
def plot_maps(
    labels: tuple[str, ...] = (DEEP,), yours: Mapping[str, float] | None = None
) -> Figure:
    """Draw the test accuracy under each map, a panel for each data set and network; logistic
    regression as a line.

    Args:
        labels: names of `CELLS`.
        yours: map -> accuracy in [0, 1] of networks that were trained now, in a panel of their own.
    """
    panels = [*map(_titled, labels), *(["yours"] if yours else [])]
    figure, axes = panel_row(panels, 2.2, xlabel="test accuracy (%)", sharey=True, grid="x")
    names = list(MAPS)
    for axis, label in zip(axes, labels, strict=False):
        for place, name in enumerate(names):
            values = cells()[label].map_accuracies(name)
            axis.barh(place, np.mean(values), color=colours()[0], alpha=0.35, height=0.6)
            axis.plot(values, [place] * len(values), "o", color=colours()[0])
        level = np.mean(linear()[label.partition(",")[0]].map_accuracies("as is"))
        axis.axvline(level, **dotted("logistic regression", 0.3))
    for name, accuracy in (yours or {}).items():
        axes[-1].barh(names.index(name), 100 * accuracy, color=colours()[1], height=0.6)
    for axis in axes:
        axis.set_xlim(0, 100)
    name_rows(axes[0], MAPS.values())
    legend(figure, axes)
    return figure


def plot_yours(
    train: ImageSet, test: ImageSet, name: str = "shuffled", epochs: int = 5, seed: int = 0
) -> Figure:
    """Train a LeNet on images as they are and mapped, and draw both beside the stored ones.

    Args:
        train: training images of 32 x 32 pixels.
        test: test images.
        name: one of `MAPS`.
        epochs: number of epochs.
        seed: seed of the map and of the training.
    """
    accuracies = {
        each: train_on_map(train, test, "lenet", each, epochs, seed)
        for each in dict.fromkeys(("as is", name))
    }
    return plot_maps(("CIFAR-10", "Fashion-MNIST"), accuracies)


def criterion_holds(label: str, criterion: str) -> Evidence:
    """Decide whether a registered criterion holds on a data set, by the estimates as registered."""
    cell = cells()[label]
    found: list[float]
    if criterion == HOLE:
        found = [cell.hole_ratio()]
    elif criterion == READ:
        found = [100 * cell.following(cell.indices[0])]
    else:
        names = ("random signs", "flipped") if criterion == FLIP else ("matched", "opposed")
        less, more = (cell.difference("as is", name)[0] for name in names)
        interval = cell.difference(*names)[1:]
        found = [more - less, *(interval if len(interval) == 2 else [])]
    name = f"{', '.join(CELLS[label])}: {criterion}"
    return registered("replications", [name], found, **_sizes(label))


def maps_resnet() -> Evidence:
    """Decide whether all three maps cost the ResNet-18 more than 25 points, within four points of
    each other.
    """
    losses = [cells()[DEEP].difference("as is", name)[0] for name in MAPS if name != "as is"]
    difference = max(losses) - min(losses)
    holds = min(losses) > 25 and difference < 4
    return evidence(holds, difference, size="narrow", num_seeds=1, num_trainings=4)


# The poison, the hole and the number


def losses_by_part(label: str) -> dict[str, dict[int, Estimate]]:
    """Return the points lost by each part of the poison: part -> NAD index -> estimate.

    A number of one deviation was added on CIFAR-10 and Fashion-MNIST only.
    """
    cell = cells()[label]
    found = {
        name: {index: cell.loss_of_shortcut(index, *change) for index in cell.indices}
        for name, change in SHORTCUTS.items()
    }
    if label in DEVIATIONS:
        lost = poison_parts.points_lost(DEVIATIONS[label], load_study("poison-parts.json")["rows"])
        loud = lost[poison_parts.DEVIATION]
        variance = pooled_variance(loud.values())
        found[poison_parts.DEVIATION] = {
            index: [*variance.around(np.mean(values), len(values))]
            for index, values in loud.items()
        }
    return found


def plot_holes() -> Figure:
    """Draw the points lost by NAD, a panel for each data set."""
    panels = {label: losses_by_part(label) for label in LENETS}
    return figures.plot_by_index(panels, "points of accuracy lost")


def plot_following() -> Figure:
    """Draw the share of photos that follow a large number, by NAD, where all photos lack their own
    coordinates.
    """
    shares = {
        _titled(label): {index: [100 * cell.following(index)] for index in cell.indices}
        for label, cell in cells().items()
    }
    label = "photos that follow the number (%)"
    return figures.plot_by_index({"": shares}, label, xlabel="NAD", level=50)


CLAIMS = {
    "hole-fashion": partial(criterion_holds, "Fashion-MNIST", HOLE),
    "flip-fashion": partial(criterion_holds, "Fashion-MNIST", FLIP),
}
