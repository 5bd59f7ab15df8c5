"""Tables of the lab notes."""

from __future__ import annotations

import numpy as np

from nads_book import report
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
from nads_book.report import LABELS, estimate, fixed, markdown_table
from nads_book.studies.transform_summaries import by_kind


def table_of_paper() -> str:
    """Return the paper's accuracies and ours."""
    rows = []
    for name, accuracies in published.FLIP.items():
        paper = " → ".join(f"{100 * value:.0f} %" for value in accuracies)
        ours = photos = "–"
        if name in flips():
            sides = sides_of(flips()[name]).values()
            ours = " → ".join(f"{100 * mean(side):.0f} %" if side else "–" for side in sides)
            photos = f"{flips()[name].settings['num_train']:,}"
        rows.append([LABELS[name], paper, ours, photos])
    return markdown_table(rows, ["network", "paper: upright → flipped", "ours", "photos of ours"])


def table_of_costs() -> str:
    """Return what the flip and random signs cost each network, with smoothness and training accuracy."""
    rows = []
    for name in SIZES:
        kept, signs, back = own(name, "kept"), own(name, "kept", True), own(name, "reversed")
        changes = {"random signs": (kept, signs), "flipped": (kept, back)}
        for label, side in three_ways(name).items():
            cost = "–"
            if label in changes:
                value, half = difference(name, *changes[label])
                cost = estimate((value, value - half, value + half), 1)
            fitted = f"{100 * mean(side, 'train_accuracy'):.0f} %"
            rows.append([NAMES[name], label, cost, fixed(mean(side, "neighbours"), 2), fitted])
    head = ["network", "photos", "points lost", "neighbours' correlation", "training accuracy"]
    return markdown_table(rows, head)


def table_of_maps(name: str) -> str:
    """Return match, smoothness and accuracies of each kind of map."""
    rows = [
        [
            kind.label,
            f"{100 * kind.test_accuracy:.1f}"
            + (f" ± {kind.half:.1f}" * bool(np.isfinite(kind.half))),
            f"{kind.match:.2f}",
            fixed(kind.neighbours, 2),
            f"{100 * kind.train_accuracy:.1f}",
            kind.num_networks,
        ]
        for kind in by_kind(maps(name))
    ]
    head = ["test accuracy (%)", "match", "smoothness", "training accuracy (%)", "networks"]
    return markdown_table(rows, [NAMES[name], *head])


def table_of_regressions() -> str:
    """Return what match and smoothness explain, with and without the maps onto the Fourier basis."""
    rows = []
    for name in SIZES:
        for label, without in (("all", ""), ("without Fourier", "fourier")):
            found = regressed(name, without)
            for key, effect in found.effects.items():
                shares = [f"{100 * found.alone[key]:.0f} %", fixed(found.together, 2)]
                rows.append([f"{NAMES[name]}, {label}", key, estimate(effect, 1), *shares])
    head = [
        "points for one deviation, other held (Student)",
        "explains alone",
        "correlation of both",
    ]
    return markdown_table(rows, ["maps", "", *head])


def table_of_trainings() -> str:
    """Return what was trained, where and when."""
    rows = []
    for name, results in [*flips().items(), *((name, maps(name)) for name in SIZES)]:
        size = report.size_of_run(results)
        rows.append([LABELS[name], results.job, size, report.place_of_run(results)])
    return markdown_table(rows, ["network", "job", "what was trained", "where"])
