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
from nads_book.report import LABELS, estimate, fixed, markdown_table, percent
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


def costs(name: str) -> Evidence:
    """Decide whether a network scores less on flipped photos, among the networks on mapped
    photos.
    """
    loss = difference(name, own(name, "kept"), own(name, "reversed"))
    return above(loss, results=[maps(name)])


def predicted_cost(name: str) -> Evidence:
    """Decide whether the flip costs a network what had been predicted: 5 to 25 points."""
    results = stored(f"fig8-{name}", "laptop")
    upright, flipped = map(mean, sides_of(results).values())
    cost = 100 * (upright - flipped)
    return evidence(5 <= cost <= 25, cost, results=[results])


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


def flip_takes_three() -> Evidence:
    """Decide whether the flip lowers both the match with LeNet and the smoothness of photos, by
    more than .2.
    """
    sides = three_ways("lenet")
    smaller = min(
        mean(sides["as is"], key) - mean(sides["flipped"], key) for key in ("match", "neighbours")
    )
    return evidence(smaller > 0.2, smaller, results=[maps("lenet")])


def table_of_paper() -> str:
    """Return the paper's accuracies and ours."""
    rows = []
    for name, accuracies in published.FLIP.items():
        ours, photos = "–", "–"
        if name in flips():
            sides = sides_of(flips()[name]).values()
            ours = " → ".join(percent(mean(side)) for side in sides)
            photos = f"{flips()[name].settings['num_train']:,}"
        rows.append([LABELS[name], " → ".join(map(percent, accuracies)), ours, photos])
    return markdown_table(rows, ["network", "paper: upright → flipped", "ours", "photos of ours"])


def table_of_costs() -> str:
    """Return what the flip and random signs cost each network, with smoothness and training
    accuracy.
    """
    rows = []
    for name in SIZES:
        changed = {"random signs": own(name, "kept", True), "flipped": own(name, "reversed")}
        for label, side in three_ways(name).items():
            cost = "–"
            if label in changed:
                cost = estimate(difference(name, own(name, "kept"), changed[label]), 1)
            fitted = percent(mean(side, "train_accuracy"))
            rows.append([NAMES[name], label, cost, fixed(mean(side, "neighbours"), 2), fitted])
    head = ["network", "photos", "points lost", "neighbours' correlation", "training accuracy"]
    return markdown_table(rows, head)


LAB_TABLES = {
    "Paper and ours": table_of_paper,
    "What the flip and random signs cost": table_of_costs,
}
CLAIMS = {
    "flip-costs-lenet": partial(costs, "lenet"),
    "flip-costs-resnet18": partial(costs, "resnet18"),
    "flip-predicted-vgg11": partial(predicted_cost, "vgg11"),
    "flip-predicted-resnet18": partial(predicted_cost, "resnet18"),
    "signs-cost-lenet": partial(signs_cost, "lenet"),
    "signs-cost-resnet18": partial(signs_cost, "resnet18"),
}
