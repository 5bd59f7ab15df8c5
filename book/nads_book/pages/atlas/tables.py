"""Tables of the lab notes."""

from itertools import combinations
from typing import Any

import numpy as np

from nads_book.analysis.statistics import area_under_curve
from nads_book.atlas import Measured, load_atlas
from nads_book.experiments import load_study
from nads_book.pages.atlas import changes, trained
from nads_book.report import estimate, fixed, markdown_table, percent


def written(found: Measured) -> str:
    """Return a measure with its interval."""
    size = abs(found.value)
    digits = 0 if size >= 100 else 1 if size >= 10 else 2
    return estimate((found.value, *found.interval), digits)


def table_of_entries() -> str:
    """Return each entry with its effective number, its effect, and how many networks resolve the
    effect.
    """
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


def table_of_repeats() -> str:
    """Return how often three runs of a ResNet-18 with tanh differ by more than their intervals
    allow.
    """
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


LAB_TABLES = {
    "All entries": table_of_entries,
    "A ResNet-18 with tanh, three runs": table_of_repeats,
    "Waves that trained networks learned": table_of_learned,
}
