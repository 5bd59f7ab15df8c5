"""The registered criteria of the replications: what the poison and the flip do on other photos.

``book/preregistered/replications.toml`` has what was expected before the first training, and the
criteria. The code that applies them was written while the networks were trained.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from nads_book.analysis.statistics import grouped, pooled_variance
from nads_book.experiments import (
    Criteria,
    Estimates,
    Facts,
    Met,
    Row,
    Rows,
    Scored,
    matching,
    without_intervals,
)
from nads_book.studies import stored
from nads_book.studies.injection_responses import following

Estimate = list[float]  # a value, alone or with its 95 % interval
CELLS = [("fashion-mnist", "lenet"), ("imagenette", "lenet"), ("imagenette", "resnet")]
_LEAST = 5.0  # points that a replacement has to cost somewhere, or nothing is decided about it
Map = tuple[str, str, bool]  # basis whose coordinates are mapped to NADs, order, random signs
MAPS: dict[str, Map] = {
    "as is": ("nads", "kept", False),
    "flipped": ("nads", "reversed", False),
    "random signs": ("nads", "kept", True),
    "shuffled": ("nads", "shuffled", False),
    "matched": ("pca", "kept", True),
    "opposed": ("pca", "reversed", True),
}
SHORTCUT_FIELDS = ("index", "background", "written", "size")


def rows_on_cifar10() -> list[Row]:
    """Return chapter 7's and 8's results on CIFAR-10 in the form of these: LeNet, logistic
    regression, ResNet-18.
    """
    names = {fields: name for name, fields in MAPS.items()}
    found: list[Row] = []
    for network, size in (("lenet", "laptop"), ("logreg", "laptop"), ("resnet18", "narrow")):
        cell = {"data": "cifar10", "network": network.removesuffix("18")}
        for row in stored(f"notes-{network}", size).rows if network != "logreg" else []:
            if row["images"] == "photos" and row["index"] is not None:
                found.append({**row, **cell, "map": None})
        own = "lenet" if network == "logreg" else network  # logistic regression has no NADs
        for row in matching(stored(f"maps-{network}", size).rows, draw=0, target=own):
            source = "nads" if row["source"] == own else row["source"]
            if name := names.get((source, row["order"], row["signs"])):
                found.append({**row, **cell, "map": name})
    return found


def percents(rows: Iterable[Row]) -> list[float]:
    """Return test accuracies in %."""
    return [100 * row["test_accuracy"] for row in rows]


def design_of(rows: Rows) -> Facts:
    """Return the design of some trainings, or units: carriers, maps, seeds, and the largest number
    on emptied carriers.
    """
    shortcuts = matching(rows, map=None)
    emptied = (row["size"] for row in matching(shortcuts, background="emptied"))
    return {
        "indices": sorted({row["index"] for row in shortcuts}),
        "maps": [name for name in dict.fromkeys(row["map"] for row in rows) if name],
        "seeds": list(dict.fromkeys(row["seed"] for row in rows)),
        "largest": max(filter(None, emptied), default=None),
    }


class Cell:
    """The trainings of one architecture on one data set.

    Args:
        rows: all results.
        data, network: names of the two.
        design: indices, maps, seeds and largest number of the design, so that an incomplete one
            decides nothing; None: use the available rows.
    """

    def __init__(
        self, rows: Iterable[Row], data: str, network: str, design: Mapping[str, Any] | None = None
    ):
        self.rows = matching(rows, data=data, network=network)
        planned = design or design_of(self.rows)
        self.seeds, self.planned_maps = set(planned["seeds"]), set(planned["maps"])
        self.indices, self.largest = list(planned["indices"]), planned["largest"]
        groups = grouped(
            (str([row["map"], *map(row.get, SHORTCUT_FIELDS)]), 100 * row["test_accuracy"])
            for row in self.rows
        )
        self.spread = pooled_variance(groups.values())

    def map_accuracies(self, name: str) -> list[float]:
        """Return the accuracies under a map, one for each seed, in %; empty until all seeds are
        trained.
        """
        return percents(self._complete(matching(self.rows, map=name)))

    def _complete(self, rows: list[Row]) -> list[Row]:
        """Return rows if all seeds are trained, and none otherwise."""
        return rows if {row["seed"] for row in rows} == self.seeds else []

    def shortcut_rows(
        self, index: int, background: str, written: str, size: float | None = None
    ) -> list[Row]:
        """Return the trainings with a shortcut at a NAD, one for each seed; empty until all seeds
        are trained.
        """
        wanted = dict(zip(SHORTCUT_FIELDS, (index, background, written, size), strict=True))
        return self._complete(matching(self.rows, map=None, **wanted))

    def difference(self, first: str, second: str) -> Estimate:
        """Return how many points the mean accuracy under a second map lies below that under a
        first.
        """
        return self._difference(self.map_accuracies(first), self.map_accuracies(second))

    def _difference(self, first: Sequence[float], second: Sequence[float]) -> Estimate:
        """Return the difference of two means, with an interval if both have several seeds."""
        fewest = min(len(first), len(second))
        if not fewest:
            return [np.nan]
        found = self.spread.difference(first, second)
        return list(found if fewest > 1 and self.spread.degrees else found[:1])

    def loss_of_shortcut(self, index: int, written: str, size: float | None = None) -> Estimate:
        """Return the points lost by a change of one coordinate of the training images."""
        accuracies = percents(self.shortcut_rows(index, "kept", written, size))
        return self._difference(self.map_accuracies("as is"), accuracies)

    def losses(self, written: str, size: float | None = None) -> np.ndarray:
        """Return the points lost at each index."""
        return np.array([self.loss_of_shortcut(index, written, size)[0] for index in self.indices])

    def hole_ratio(self, written: str = "hole") -> float:
        """Return the loss by a hole, at zero or ``at mean``, summed over indices, relative to that
        by the replacement.
        """
        if not self.indices:
            return float("nan")
        return float(self.losses(written).sum() / self.losses("replaced", 0.05).sum())

    def following(self, index: int) -> float:
        """Return the share of photos that follow the largest number on emptied carriers, above that
        without it.
        """
        rows = self.shortcut_rows(index, "emptied", "added", self.largest)
        shares = [following(row) for row in rows]
        return float(np.mean(shares)) if shares else float("nan")


CRITERIA = (
    "the hole, not the number",
    "early numbers are read, late ones are not",
    "the flip costs more than random signs",
    "logistic regression loses nothing",
    "the match counts",
)


def criteria(cell: Cell, linear: Cell) -> dict[str, bool | None]:
    """Return which criteria hold, None where that is undecided or not trained.

    Args:
        cell: trainings of an architecture.
        linear: trainings of logistic regression on the same data.
    """
    written = (("replaced", 0.05), ("hole", None), ("added", 0.05))
    replaced, hole, added = (cell.losses(*each) for each in written)
    shares = np.array([cell.following(index) for index in cell.indices])
    flip, signs, matched, opposed = (
        cell.difference("as is", name)[0]
        for name in ("flipped", "random signs", "matched", "opposed")
    )
    others = [linear.difference("as is", name)[0] for name in sorted(linear.planned_maps)]
    met: Met = dict.fromkeys(CRITERIA)
    removed, read, costs, nothing, counts = CRITERIA
    if known([*replaced, *hole, *added]) and replaced.max() >= _LEAST:
        met[removed] = bool(0.8 <= cell.hole_ratio() <= 1.2 and added.max() < 2)
    if known(shares):
        rises = max(b - a for place, a in enumerate(shares) for b in shares[place:])
        met[read] = bool(shares[0] > 0.5 and shares[-1] < 0.1 and rises <= 0.1)
    if known([flip, signs]):
        met[costs] = bool(flip >= 3 and flip - signs >= 2)
    if len(others) > 1 and known(others):
        met[nothing] = max(map(abs, others)) < 2
    if known([matched, opposed]):
        met[counts] = bool(opposed - matched >= 2)
    return met


def known(values: Sequence[float] | np.ndarray) -> bool:
    """Return whether there are numbers, and all are finite."""
    return bool(len(values)) and bool(np.isfinite(values).all())


def measured(cell: Cell) -> dict[str, float]:
    """Return what was predicted as a range: accuracies in %, points lost."""
    found = {
        name: float(np.mean(cell.map_accuracies(name) or np.nan)) for name in cell.planned_maps
    }
    return found | {
        f"replacement at {index}": cell.loss_of_shortcut(index, "replaced", 0.05)[0]
        for index in cell.indices
    }


def judge(rows: Rows, designs: Criteria) -> Scored:
    """Apply the criteria to each data set and network, and return the measured values.

    Args:
        rows: trainings on other photos.
        designs: design of each cell by its name, such as "imagenette, lenet".
    """
    everything = [*rows, *rows_on_cifar10()]
    estimates: Estimates = {}
    met: Met = {}
    for data, network in [("cifar10", "lenet"), *CELLS]:
        label = f"{data}, {network}"
        cell = Cell(everything, data, network, designs.get(label))
        linear = Cell(everything, data, "logreg", designs.get(f"{data}, logreg"))
        met |= {f"{label}: {name}": holds for name, holds in criteria(cell, linear).items()}
        estimates[label] = without_intervals(measured(cell))
    return Scored(estimates, met)
