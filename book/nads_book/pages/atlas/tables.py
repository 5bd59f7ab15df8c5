"""Tables of the lab notes."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np

from nads_book import predictions
from nads_book.analysis.statistics import area_under_curve
from nads_book.atlas import Measured, load_atlas
from nads_book.experiments.stored import load_study
from nads_book.pages.atlas import changes, trained
from nads_book.report import estimate, fixed, markdown_table, percent

BORDERS = (
    "cnn",
    "cnn-circular",
    "cnn-valid",
    "cnn-depth12",
    "densenet",
    "densenet-circular",
    "resnet",
    "resnet-circular",
)
LEVELS = {"vit-patch2": 2, "vit": 4, "vit-patch8": 8, "vit-noposition": 4, "mixer": 4}
LEVELS |= {"vit-sine": 4, "cnn": 8, "convnext": 4}


def written(found: Measured) -> str:
    """Return a measure with its interval."""
    size = abs(found.value)
    digits = 0 if size >= 100 else 1 if size >= 10 else 2
    return estimate((found.value, *found.interval), digits)


def table_of_entries() -> str:
    """Return each entry with its effective number, its effect, and how many networks resolve the effect."""
    atlas = load_atlas()
    rows = []
    for name, entry in atlas.entries.items():
        effect = known = "–"
        if entry.base:
            effect = written(atlas.effect(name))
            needed = atlas.networks_to_know(name)
            if needed <= atlas.facts[name]["num_networks"]:
                known = f"{max(100, round(needed, -2)):,.0f}"
        number = written(changes.measured(name, "effective"))
        rows.append([name, entry.change, number, effect, known])
    head = ["entry", "change", "effective number", "effect, 1 − cosine", "networks that resolve it"]
    return markdown_table(rows, head)


def table_of_predictions() -> str:
    """Return each registered prediction with its outcome."""
    return predictions.table(predictions.of_the_atlas())


def table_of_factors() -> str:
    """Return the largest effect of each factor in the small CNN and in ResNet-18."""
    found = {base: changes.largest_by_factor(base) for base in ("cnn", "resnet")}
    factors = dict.fromkeys([*found["cnn"], *found["resnet"]])
    rows = [
        [factor, *(fixed(found[base].get(factor, np.nan), 3) for base in found)]
        for factor in factors
    ]
    return markdown_table(rows, ["factor", "small CNN", "ResNet-18"])


def table_of_levels() -> str:
    """Return how far two levels explain networks on patches."""
    rows = [
        [
            name,
            size**2,
            written(changes.measured(name, "effective")),
            written(changes.measured(name, "unlike levels")),
            percent(changes.share_in_first(name, size**2), 1),
        ]
        for name, size in LEVELS.items()
    ]
    head = ["entry", "P²", "effective number", "not explained", "energy in the first P²"]
    return markdown_table(rows, head)


def table_of_resnets() -> str:
    """Return the effective number and the lattice of ResNets, and the size of their branches."""
    rows = []
    for name in load_atlas().entries:
        if name.startswith("resnet"):
            row = [written(changes.measured(name, key)) for key in ("effective", "comb", "nyquist")]
            rows.append([name, *row])
    for weights, ratios in changes.ratios_of_branches().items():
        text = f"{fixed(min(ratios))} to {fixed(max(ratios))}"
        rows.append([f"branch / shortcut, {weights}'s weights, three networks", text, "–", "–"])
    head = ["entry", "effective number", "waves at multiples of 4", "checkerboard / constant"]
    return markdown_table(rows, head)


def table_of_repeats() -> str:
    """Return how often three runs of a ResNet-18 with tanh differ by more than their intervals allow."""
    stored: Any = load_study("atlas-again.json")["resnet-tanh"]
    again = [{key: Measured(*found) for key, found in run["measures"].items()} for run in stored]
    runs = [load_atlas().measures["resnet-tanh"], *again]
    ratios = [written(run["nyquist"]) for run in runs]
    apart = [
        abs(one[key].value - other[key].value) > 2.14 * np.hypot(one[key].error, other[key].error)
        for one, other in combinations(runs, 2)
        for key in again[0]
    ]  # Student's quantile with 14 degrees of freedom
    beyond = f"{sum(apart)} of {len(apart)} (expected: {0.05 * len(apart):.0f})"
    head = ["checkerboard / constant, run 1", "run 2", "run 3", "differences beyond 95 %"]
    return markdown_table([[*ratios, beyond]], head)


def table_of_borders() -> str:
    """Return the energy of border pixels."""
    entries = load_atlas().entries
    rows = [
        [f"{entries[name].change} ({name})", written(changes.measured(name, "border"))]
        for name in BORDERS
    ]
    return markdown_table(rows, ["entry", "energy of border pixels, relative to all"])


def table_of_learned() -> str:
    """Return how many waves each entry learned, and how energies separate them."""
    found = trained.trained()
    rows = []
    for name in found.names:
        part = found.of(name)
        area = area_under_curve(found.energies[part], found.learned[part])
        count = f"{int(found.learned[part].sum())} of {int(part.sum())}"
        least, most = found.accuracies[part].min(), found.accuracies[part].max()
        rows.append([name, count, fixed(area, 2), f"{percent(least)} to {percent(most)}"])
    return markdown_table(rows, ["entry", "waves learned", "area under the curve", "accuracies"])


def table_of_predictors() -> str:
    """Return the mean errors of what predicts accuracies, in points."""
    learned = trained.trained().learned
    rows = [
        [label, *(fixed(100 * errors[part].mean()) for part in (learned, ~learned))]
        for label, errors in trained.errors_of_predictors().items()
    ]
    head = ["what predicts", f"error, {learned.sum()} learned waves", f"{(~learned).sum()} others"]
    return markdown_table(rows, head)


def table_of_control() -> str:
    """Return the trainings at other rates and in more epochs of the networks that learned nothing."""
    rows = [
        [
            row["entry"],
            str(tuple(row["wave"])),
            f"{row['learning_rate']:g}" if "learning_rate" in row else "–",
            row.get("epochs", "–"),
            percent(row["accuracy"], 1),
        ]
        for row in load_study("atlas-trained.json")["control"]
    ]
    return markdown_table(rows, ["entry", "wave", "learning rate", "epochs", "accuracy"])


LAB_TABLES: dict[str, Callable[[], str]] = {
    "All entries": table_of_entries,
    "Largest effect of each factor (1 − cosine)": table_of_factors,
    "Predictions and results": table_of_predictions,
    "Networks on patches": table_of_levels,
    "ResNets": table_of_resnets,
    "A ResNet-18 with tanh, three runs": table_of_repeats,
    "Borders": table_of_borders,
    "Waves that trained networks learned": table_of_learned,
    "What predicts accuracies (points)": table_of_predictors,
    "Other rates and more epochs": table_of_control,
}
