"""Tables of the lab notes."""

from functools import partial

from nads_book.analysis import published
from nads_book.pages.flip.match import regressed
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
from nads_book.report import LABELS, estimate, fixed, markdown_table, percent, points
from nads_book.studies.transform_summaries import by_kind


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


def table_of_maps(name: str) -> str:
    """Return match, smoothness and accuracies of each kind of map."""
    rows = [
        [
            kind.label,
            points(kind.test_accuracy, kind.half),
            fixed(kind.match, 2),
            fixed(kind.neighbours, 2),
            points(kind.train_accuracy),
            kind.num_networks,
        ]
        for kind in by_kind(maps(name))
    ]
    head = ["test accuracy (%)", "match", "smoothness", "training accuracy (%)", "networks"]
    return markdown_table(rows, [NAMES[name], *head])


def table_of_regressions() -> str:
    """Return what match and smoothness explain, with and without the maps onto the Fourier
    basis.
    """
    rows = []
    for name in SIZES:
        for label, without in (("all", ""), ("without Fourier", "fourier")):
            found = regressed(name, without)
            for key, effect in found.effects.items():
                shares = [percent(found.alone[key]), fixed(found.together, 2)]
                rows.append([f"{NAMES[name]}, {label}", key, estimate(effect, 1), *shares])
    head = [
        "points for one deviation, other held (Student)",
        "explains alone",
        "correlation of both",
    ]
    return markdown_table(rows, ["maps", "", *head])


LAB_TABLES = {
    "Paper and ours": table_of_paper,
    "What the flip and random signs cost": table_of_costs,
    "LeNet's maps": partial(table_of_maps, "lenet"),
    "ResNet-18's maps": partial(table_of_maps, "resnet18"),
    "Match and smoothness": table_of_regressions,
}
