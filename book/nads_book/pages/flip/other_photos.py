"""The flip and the poison on Fashion-MNIST and Imagenette, and the flip in a deeper network.

``book/preregistered/replications.toml`` has what was expected, and the criteria.
"""

from functools import cache
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from nads_book.analysis.statistics import SeedVariance, pooled_variance
from nads_book.evidence import Evidence, Facts, evidence
from nads_book.experiments import Row, load_study, matching
from nads_book.figures.style import colours, dotted, legend, name_rows, panel_row, styled
from nads_book.pages.flip.images import MAPS

FASHION, DEEP = ("fashion-mnist", "lenet"), ("imagenette", "resnet")
CELLS = {
    "Fashion-MNIST, LeNet": FASHION,
    "Imagenette, LeNet": ("imagenette", "lenet"),
    "Imagenette, ResNet-18": DEEP,
}


@cache
def rows_of(data: str, network: str) -> list[Row]:
    """Return the trainings of a network on a data set."""
    return matching(load_study("replications.json")["rows"], data=data, network=network)


def accuracies(data: str, network: str, **fields: Any) -> list[float]:
    """Return the test accuracies with given fields, in percent, one per seed."""
    return [100 * row["test_accuracy"] for row in matching(rows_of(data, network), **fields)]


@styled
def plot_elsewhere() -> Figure:
    """Draw the test accuracy under each map, a panel for each data set and network; logistic
    regression as a line.
    """
    figure, axes = panel_row(CELLS, 2.2, xlabel="test accuracy (%)", sharey=True, grid="x")
    for axis, (data, network) in zip(axes, CELLS.values(), strict=True):
        for place, name in enumerate(MAPS):
            values = accuracies(data, network, map=name)
            axis.barh(place, np.mean(values), color=colours()[0], alpha=0.35, height=0.6)
            axis.plot(values, [place] * len(values), "o", color=colours()[0])
        level = np.mean(accuracies(data, "logreg", map="as is"))
        axis.axvline(level, **dotted("logistic regression", 0.3))
        axis.set_xlim(0, 100)
    name_rows(axes[0], MAPS.values())
    legend(figure, axes)
    return figure


def spread(data: str, network: str) -> SeedVariance:
    """Return the variance between seeds, pooled over all conditions."""
    groups: dict[str, list[float]] = {}
    for row in rows_of(data, network):
        condition = str([row.get(key) for key in ("map", "index", "background", "written", "size")])
        groups.setdefault(condition, []).append(100 * row["test_accuracy"])
    return pooled_variance(groups.values())


def _sizes(cell: tuple[str, str]) -> Facts:
    rows = rows_of(*cell)
    seeds = len({row["seed"] for row in rows})
    return {"size": "narrow", "num_seeds": seeds, "num_trainings": len(rows)}


def maps_resnet() -> Evidence:
    """Decide whether all three maps cost the ResNet-18 more than 25 points, within four points of
    each other.
    """
    upright, *others = (float(np.mean(accuracies(*DEEP, map=name))) for name in MAPS)
    losses = [upright - other for other in others]
    difference = max(losses) - min(losses)
    holds = min(losses) > 25 and difference < 4
    return evidence(holds, difference, size="narrow", num_seeds=1, num_trainings=4)


def flip_fashion() -> Evidence:
    """Decide by the estimates, as registered, whether the flip costs LeNet at least three points,
    and two more than random signs.
    """
    upright, signs, flipped = (
        accuracies(*FASHION, map=name) for name in ("as is", "random signs", "flipped")
    )
    found = spread(*FASHION).difference(signs, flipped)
    holds = np.mean(upright) - np.mean(flipped) >= 3 and found[0] >= 2
    return evidence(holds, *found, **_sizes(FASHION))


def hole_fashion() -> Evidence:
    """Decide as registered whether a hole costs .8 to 1.2 times what the poison costs, and the
    number of .05 less than two points.
    """
    upright = np.mean(accuracies(*FASHION, map="as is"))
    indices = sorted({row["index"] for row in matching(rows_of(*FASHION), map=None)})

    def lost(written: str, size: float | None) -> np.ndarray:
        fields: Row = {"map": None, "background": "kept", "written": written, "size": size}
        each = [np.mean(accuracies(*FASHION, index=index, **fields)) for index in indices]
        return upright - np.array(each)

    poison, hole, number = lost("replaced", 0.05), lost("hole", None), lost("added", 0.05)
    ratio = hole.sum() / poison.sum()
    holds = poison.max() >= 5 and 0.8 <= ratio <= 1.2 and number.max() < 2
    return evidence(holds, ratio, **_sizes(FASHION))
