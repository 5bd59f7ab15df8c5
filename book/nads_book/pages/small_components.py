"""Photos with small components along the first NADs (a section of ``07_poison``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure

import nads_core as nc
from nads_book import figures
from nads_book.evidence import Evidence, evidence
from nads_book.experiments.stored import load_nads
from nads_book.figures.style import colours, legend, panel_row, styled
from nads_book.pages.scored_rows import rows_of, scored
from nads_book.report import estimate, fixed, markdown_table
from nads_book.studies.small_components import (
    FACTORS,
    NUM_GROUPS,
    NUM_NADS,
    NUM_TEST,
    components,
    shares,
    without,
)
from nads_core.data.images import CIFAR10_STD

STUDY = "small-components"
KINDS = {"nads": "along NADs 0 and 1", "random": "as much along random directions"}
CHANGES = {"flip": "flipped", "remove": "removed"}


@styled
def plot_groups() -> Figure:
    """Draw the share of predictions that change, by the size of the components."""
    figure, axes = panel_row(
        [f"both components {label}" for label in CHANGES.values()],
        2.8,
        xlabel="photos, by the size of their components (tenths)",
        ylabel="predictions that change (%)",
        sharey=True,
    )
    for axis, change in zip(axes, CHANGES, strict=True):
        for colour, (kind, label) in zip(colours(), KINDS.items(), strict=False):
            table = 100 * shares(rows_of(STUDY), kind, change)
            where = np.arange(1, NUM_GROUPS + 1)
            axis.plot(where, table.mean(0), "o-", color=colour, markersize=4, label=label)
            axis.fill_between(
                where, table.min(0), table.max(0), color=colour, alpha=0.2, linewidth=0
            )
        axis.set(xticks=[1, 4, 7, 10])
    legend(figure, axes, ncols=2)
    return figure


def table_groups() -> str:
    """Return the shares of predictions that change, and how much the photos change."""
    rows = rows_of(STUDY)
    relative = 100 * np.array([[group["relative"] for group in row["groups"]] for row in rows])
    lines = []
    for group in range(NUM_GROUPS):
        found = [
            100 * shares(rows, kind, change)[:, group].mean()
            for change in CHANGES
            for kind in KINDS
        ]
        lines.append([group + 1, fixed(relative[:, group].mean(), 1), *map(fixed, found)])
    head = [f"{label}, {kind} (%)" for label in CHANGES.values() for kind in ("NADs", "random")]
    return markdown_table(lines, ["tenth", "components, % of the photo's norm", *head])


def examples(seed: int = 0) -> list[dict[str, Any]]:
    """Return photos of the first tenth whose prediction changes when both components are flipped."""
    return next(row["examples"] for row in rows_of(STUDY) if row["seed"] == seed)


def plot_examples(count: int = 6) -> Figure:
    """Draw such photos, as they are and flipped, from the reader's copy of CIFAR-10.

    Args:
        count: number of photos.

    Raises:
        DatasetNotFoundError: if there are no photos: the repository has none.
    """
    chosen = examples()[:count]
    test = nc.load_images("cifar10", train=False, num_images=NUM_TEST, progress=False)
    images = test.images[[one["photo"] for one in chosen]]
    normalised = nc.normalize(images)
    directions = load_nads("lenet", 2).directions[:NUM_NADS]
    changed = without(normalised, components(normalised, directions), directions, FACTORS["flip"])
    flipped = images + (changed - normalised) * images.new_tensor(CIFAR10_STD)[:, None, None]
    names = test.class_names
    captions = [f"{names[one['before']]} → {names[one['flip']]}" for one in chosen]
    versions = {"as it is": images, "flipped": flipped, "change": torch.abs(flipped - images)}
    return figures.plot_versions(versions, captions)


def table_examples() -> str:
    """Return these photos with their predictions and by how much they change."""
    rows = [
        [one["photo"], one["before"], one["flip"], one["remove"], fixed(100 * one["relative"], 1)]
        for one in examples()
    ]
    head = ["test photo", "class before", "flipped", "removed", "components, % of its norm"]
    return markdown_table(rows, head)


def sizes() -> dict[str, Any]:
    """Return size and numbers of a claim."""
    return {
        "size": "laptop",
        "num_seeds": len(rows_of(STUDY)),
        "num_trainings": len(rows_of(STUDY)),
    }


def shown(criteria: tuple[str, ...], group: int) -> Evidence:
    """Decide by registered criteria, and show the share in a group when both are flipped."""
    met = [scored(STUDY).met[name] for name in criteria]
    value, low, high = scored(STUDY).estimates["nads, flip"][f"group {group}"]
    holds = None if None in met else all(met)
    return evidence(holds, value=100 * value, interval=(100 * low, 100 * high), **sizes())


def summary() -> str:
    """Return the shares in the first and the last tenth as text."""
    found = scored(STUDY).estimates["nads, flip"]
    first, last = (found[f"group {group}"] for group in (0, NUM_GROUPS - 1))
    texts = [estimate([100 * x for x in values], 1) for values in (first, last)]
    return f"{texts[0]} % in the first tenth, {texts[1]} % in the last"


LAB_TABLES: dict[str, Callable[[], str]] = {
    "Photos by the size of their components along NADs 0 and 1": table_groups,
    "Photos with small components whose prediction changes": table_examples,
}
CLAIMS: dict[str, Callable[[], Evidence]] = {
    "small-components": lambda: shown(("few change where components are small",), 0),
    "large-components": lambda: shown(("many change where they are large",), NUM_GROUPS - 1),
}
