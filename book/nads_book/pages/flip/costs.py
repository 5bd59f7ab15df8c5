"""What the flip and random signs cost, and the paper's sentences about it."""

from collections.abc import Mapping
from functools import partial

from matplotlib.figure import Figure

from nads_book import figures, report
from nads_book.analysis import published
from nads_book.analysis.statistics import pooled_variance
from nads_book.evidence import Evidence, above, around, evidence
from nads_book.explorer import Changes
from nads_book.pages.flip.images import train_on_map
from nads_book.pages.flip.stored import (
    NAMES,
    SIZES,
    difference,
    flips,
    maps,
    mean,
    own,
    sides_of,
    three_ways,
)
from nads_book.report import LABELS, percent
from nads_book.studies import stored
from nads_core.data import ImageSet


def widget() -> Changes:
    """Return the figure in which the reader flips a picture, with what the flip costs once it was
    tried.
    """
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
    tests, trainings, papers = {}, {}, {}
    for name, results in flips().items():
        panel = f"{LABELS[name]}, {results.settings['num_train']:,} photos"
        sides = sides_of(results)
        tests[panel], trainings[panel] = (
            {label: [row[key] for row in rows] for label, rows in sides.items()}
            for key in ("test_accuracy", "train_accuracy")
        )
        if name in published.FLIP:
            papers[panel] = dict(zip(sides, published.FLIP[name], strict=True))
    badge = report.badge(maps("lenet"))
    return figures.plot_representations(tests, 10_000, trainings, papers, badge=badge)


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
    return figures.plot_representations(tests, 5_000, badge=badge)


def plot_yours(
    train: ImageSet, test: ImageSet, name: str, map: str, epochs: int, seed: int = 0
) -> Figure:
    """Train a network on images as they are and mapped, and draw both beside the stored ones: see
    `train_on_map`.
    """
    accuracies = {
        each: train_on_map(train, test, name, each, epochs, seed)
        for each in dict.fromkeys(("as is", map))
    }
    return plot_signs(accuracies)


def flip_full_lenet() -> Evidence:
    """Decide whether LeNet scores less on flipped photos, at the paper's size."""
    results = stored("fig8-lenet")
    sides = [[100 * row["test_accuracy"] for row in side] for side in sides_of(results).values()]
    return above(pooled_variance(sides).difference(*sides), results=[results])


def errata_flip_training() -> Evidence:
    """Decide whether training on both representations yields an error of about zero: at most 5 %.

    LeNet at the paper's size decides.
    """
    results = stored("fig8-lenet")
    errors = {
        label: 100 * (1 - mean(side, "train_accuracy")) for label, side in sides_of(results).items()
    }
    shown = " and ".join(f"{error:.0f} % ({label})" for label, error in errors.items())
    text = f"LeNet, 50,000 photos, 50 epochs: a training error of {shown}."
    most = max(errors.values())
    return evidence(most <= 5, most, sentence=text, results=[results])


def errata_flip() -> Evidence:
    """Tell how well networks fit photos as they are and flipped, which decides nothing."""
    parts = []
    for name in SIZES:
        for label in ("as is", "flipped"):
            side = three_ways(name)[label]
            shares = [percent(mean(side, key)) for key in ("train_accuracy", "test_accuracy")]
            parts.append(
                f"{NAMES[name]}, {label}: {shares[0]} of training photos, test {shares[1]}"
            )
    return evidence(None, sentence="; ".join(parts) + ".", size="live")


def flip_costs() -> Evidence:
    """Decide whether both networks score less on flipped photos, by the smaller of two losses."""
    losses = [difference(name, own(name, "kept"), own(name, "reversed")) for name in SIZES]
    return above(min(losses), results=[maps(name) for name in SIZES])


def signs_cost(name: str) -> Evidence:
    """Decide whether signs cost LeNet more than half of what the flip costs, and ResNet-18 all of
    it.
    """
    whole, *_ = difference(name, own(name, "kept"), own(name, "reversed"))
    rest, low, high = difference(name, own(name, "kept", signs=True), own(name, "reversed"))
    holds = rest < whole / 2
    if name == "resnet18":
        rough = mean(three_ways(name)["random signs"], "neighbours") < 0.1
        holds = max(abs(low), abs(high)) < whole / 4 and rough
    share = around(1 - rest / whole, (high - rest) / whole)
    return evidence(holds, *share, null=0.5, results=[maps(name)])


CLAIMS = {
    "signs-cost-resnet18": partial(signs_cost, "resnet18"),
}
