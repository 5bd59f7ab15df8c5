"""What the flip and random signs cost, and the paper's sentences about it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from nads_book import figures, report
from nads_book.analysis import published
from nads_book.analysis.statistics import pooled_variance
from nads_book.checks import errata
from nads_book.evidence import Evidence, evidence
from nads_book.explorer import Changes
from nads_book.pages import stored
from nads_book.pages.flip.images import train_on_map
from nads_book.pages.flip.stored import (
    NAMES,
    SIZES,
    around,
    difference,
    flips,
    maps,
    mean,
    own,
    sides_of,
    three_ways,
)
from nads_book.report import LABELS, publish
from nads_core.data import ImageSet


def widget() -> Changes:
    """Return the figure in which the reader flips a picture, with what the flip costs once it was tried."""
    entries = []
    keys = {"upright": "as is", "signs": "random signs", "flipped": "flipped"}
    for name in SIZES:
        settings = maps(name).settings
        caption = (
            f"Test accuracy of {NAMES[name]} ({report.badge(maps(name))}), trained and tested on "
            f"images changed like this: {settings['num_train']:,} photos, "
            f"{settings['recipe']['epochs']} epochs."
        )
        means = {key: mean(three_ways(name)[label]) for key, label in keys.items()}
        entries.append({"key": name, "label": NAMES[name], "accuracies": means, "caption": caption})
    return Changes("flip", entries)


def plot_costs() -> Figure:
    """Draw the accuracies on upright and flipped photos, and the paper's."""
    panels = {
        f"{LABELS[name]}, {results.settings['num_train']:,} photos": name
        for name, results in flips().items()
    }
    tests, trainings = (
        {
            panel: {
                label: [row[key] for row in rows] for label, rows in sides_of(flips()[name]).items()
            }
            for panel, name in panels.items()
        }
        for key in ("test_accuracy", "train_accuracy")
    )
    papers = {
        panel: dict(zip(("as is", "flipped"), published.FLIP[name], strict=True))
        for panel, name in panels.items()
        if name in published.FLIP
    }
    badge = report.badge(maps("lenet"))
    return figures.plot_representations(
        tests, 10_000, trainings, papers, images="photos", badge=badge
    )


def plot_signs(yours: Mapping[str, float] | None = None) -> Figure:
    """Draw accuracies on photos as they are, with random signs, and flipped.

    Args:
        yours: map -> accuracy in [0, 1] of a network that was trained now, in a panel of its own.
    """
    tests = {
        NAMES[name]: {
            label: [row["test_accuracy"] for row in rows]
            for label, rows in three_ways(name).items()
        }
        for name in SIZES
    }
    if yours:
        tests["yours"] = {label: [accuracy] for label, accuracy in yours.items()}
    badge = report.badge(maps("lenet"))
    return figures.plot_representations(tests, 5_000, images="photos", badge=badge)


def plot_yours(
    train: ImageSet, test: ImageSet, name: str, map: str, epochs: int, seed: int = 0
) -> Figure:
    """Train a network on images as they are and mapped, and draw both beside the stored ones: see `train_on_map`."""
    accuracies = {
        each: train_on_map(train, test, name, each, epochs, seed)
        for each in dict.fromkeys(("as is", map))
    }
    return plot_signs(accuracies)


def costs_at_full_size(name: str) -> Evidence:
    """Decide whether a network scores less on flipped photos, at the paper's size."""
    results = stored(f"fig8-{name}")
    upright, flipped = (
        [row["test_accuracy"] for row in side] for side in sides_of(results).values()
    )
    half = pooled_variance([upright, flipped]).half_width(len(upright), len(flipped))
    loss = float(np.mean(upright) - np.mean(flipped))
    return evidence(loss > 0, results=[results], **around(100 * loss, 100 * half))


def fits_training_photos() -> Evidence:
    """Decide whether training on both representations yields an error of about zero: at most 5 %.

    LeNet at the paper's size decides.
    """
    results = stored("fig8-lenet")
    errors = [100 * (1 - mean(side, "train_accuracy")) for side in sides_of(results).values()]
    return evidence(max(errors) <= 5, value=max(errors), results=[results])


def costs(name: str) -> Evidence:
    """Decide whether a network scores less on flipped photos, among the networks on mapped photos."""
    value, half = difference(name, own(name, "kept"), own(name, "reversed"))
    return evidence(value > 0, results=[maps(name)], **around(value, half))


def predicted_cost(name: str) -> Evidence:
    """Decide whether the flip costs a network what had been predicted: 5 to 25 points."""
    results = stored(f"fig8-{name}", "laptop")
    upright, flipped = map(mean, sides_of(results).values())
    cost = 100 * (upright - flipped)
    return evidence(5 <= cost <= 25, value=cost, results=[results])


def signs_cost(name: str) -> Evidence:
    """Decide whether signs cost LeNet more than half of what the flip costs, and ResNet-18 all of it."""
    whole, _ = difference(name, own(name, "kept"), own(name, "reversed"))
    value, half = difference(name, own(name, "kept", signs=True), own(name, "reversed"))
    holds = value < whole / 2
    if name == "resnet18":
        rough = mean(three_ways(name)["random signs"], "neighbours") < 0.1
        holds = abs(value) + half < whole / 4 and rough
    share, width = 1 - value / whole, half / whole
    interval = (share - width, share + width)
    return evidence(holds, value=share, interval=interval, null=0.5, results=[maps(name)])


def lowers_match_and_smoothness() -> Evidence:
    """Decide whether the flip lowers both the match with LeNet and the smoothness of photos, by more than .2."""
    sides = three_ways("lenet")
    smaller = min(
        mean(sides["as is"], key) - mean(sides["flipped"], key) for key in ("match", "neighbours")
    )
    return evidence(smaller > 0.2, value=smaller, results=[maps("lenet")])


def show_errata() -> None:
    """Hand the paper's two sentences about training on flipped photos to the errata page."""
    training = [
        f"{NAMES[name]}: {percents['as is']:.0f} % of training photos right as they are, "
        f"{percents['flipped']:.0f} % flipped; test {100 * mean(sides['as is']):.0f} and "
        f"{100 * mean(sides['flipped']):.0f} %"
        for name, sides in ((name, three_ways(name)) for name in SIZES)
        for percents in [{key: 100 * mean(rows, "train_accuracy") for key, rows in sides.items()}]
    ]
    verdict = (
        "overfitting is what we see in a narrow ResNet-18; LeNet fits flipped images less; "
        "whether the order counts by itself is open"
    )
    errata.paste("flip", verdict, "; ".join(training) + ".")
    publish("errata-flip")
    errors = " and ".join(
        f"{100 - 100 * mean(side, 'train_accuracy'):.0f} % ({label})"
        for label, side in sides_of(stored("fig8-lenet")).items()
    )
    text = f"LeNet, 50,000 photos, 50 epochs: a training error of {errors}."
    errata.paste("flip-training", "no; LeNet does not fit flipped photos", text)
    publish("errata-flip-training")
