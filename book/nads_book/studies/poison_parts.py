"""The poison of section 4.2 in parts: two holes, a small number, and one of a standard deviation.

The poison replaces a coordinate of each photo. So it removes what the photo has there, and it
writes a value, zero or near zero, that may be far from those of photos. A hole at the photos' mean
only removes; an added number removes nothing. Networks that other studies trained by the same
recipe are reused: `points_lost` joins them with those of this study.
``book/preregistered/poison_parts.toml`` has what was expected.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from nads_book.analysis.statistics import rank_correlation
from nads_book.experiments import (
    Context,
    Criteria,
    Estimates,
    FileStudy,
    Met,
    Results,
    Row,
    Rows,
    Scored,
    Unit,
    less,
    load_study,
    matching,
    within,
    without_intervals,
)
from nads_book.studies import stored
from nads_book.studies.replications import measured

# As stored by the studies of injected shortcuts: what is written, and its size; None is one
# deviation.
PARTS: dict[str, tuple[str, float | None]] = {
    "poison": ("replaced", 0.05),
    "hole at zero": ("hole", None),
    "hole at the mean": ("hole at mean", None),
    "number of .05": ("added", 0.05),
    "number of one deviation": ("added", None),
}
DEVIATION = "number of one deviation"
SEEDS = (3, 4, 5)


class Case(NamedTuple):
    """Networks and photos: their names in other results, and what this study adds, by part."""

    data: str
    network: str
    seeds: Sequence[int]
    added: Mapping[str, Sequence[int]]


ADDED_TO_RESNET = {
    DEVIATION: (0, 300, 30, 100, 1000, 60, 10),
    "hole at the mean": (0, 300, 1000),
    "number of .05": (0, 300, 1000),
}
CASES = {
    "lenet": Case("cifar10", "lenet", SEEDS, {}),
    "fashion": Case("fashion-mnist", "lenet", SEEDS, {DEVIATION: (0, 30, 300, 10, 100, 1000)}),
    "resnet": Case("cifar10", "resnet18", SEEDS[:1], ADDED_TO_RESNET),
}
SIZES = {"lenet": "laptop", "resnet18": "narrow"}  # of the stored trainings on CIFAR-10
BASE = {"images": "photos", "background": "kept"}


@cache
def stored_networks(network: str) -> Results:
    """Return the stored trainings on CIFAR-10 with shortcuts."""
    return stored(f"notes-{network}", SIZES[network])


def known_rows(case: str, rows: Rows) -> tuple[list[Row], list[Row]]:
    """Return networks with clean photos, and with parts of the poison, of other studies and of this
    one.
    """
    data, network, *_ = CASES[case]
    if data == "cifar10":
        every = matching(stored_networks(network).rows, **BASE)
        clean = matching(every, index=None)
    else:
        every = load_study("replications.json")["rows"]
        every = matching(every, data=data, network=network)
        clean = matching(every, map="as is")
    known = [row for row in every if row["index"] is not None and row["background"] == "kept"]
    return clean, known + matching(rows, case=case)


def points_lost(case: str, rows: Rows = ()) -> dict[str, dict[int, list[float]]]:
    """Return the points lost, one number per seed: part -> NAD index -> values.

    Args:
        case: key of `CASES`.
        rows: rows of this study.
    """
    clean, known = known_rows(case, rows)
    before = np.mean([row["test_accuracy"] for row in clean])
    names = {written: part for part, written in PARTS.items()}
    found: dict[str, dict[int, list[float]]] = {part: {} for part in PARTS}
    for row in sorted(known, key=lambda row: (row["index"], row["seed"])):
        part = found[names[row["written"], row["size"]]]
        part.setdefault(row["index"], []).append(100 * (before - row["test_accuracy"]))
    return found


def deviations(case: str, rows: Rows = ()) -> dict[int, float]:
    """Return the deviation of the photos' coordinates at each NAD: the size of the number."""
    return {row["index"]: row["deviation"] for row in known_rows(case, rows)[1]}


class PoisonParts(FileStudy):
    """What do the parts of the poison cost at equal relative size? See ``poison_parts.toml``.

    Networks of CIFAR-10 have the precision of the figure's. A precision that a row names replaces
    its run's.
    """

    name = "poison-parts"
    on_photos = True

    def units(self) -> list[Unit]:
        return [
            {"case": name, "index": index, "written": written, "size": size, "seed": seed}
            for name, case in CASES.items()
            for part, indices in case.added.items()
            for written, size in [PARTS[part]]
            for seed in case.seeds
            for index in indices
        ]

    def run(self, unit: Unit, context: Context) -> Row:
        data, network, *_ = CASES[unit["case"]]
        known = less(unit, "case") | BASE
        if data != "cifar10":
            return measured(known | {"data": data, "network": network, "map": None}, context.device)
        # As the other study trains them: same recipe, photos, weights and precision.
        results = stored_networks(network)
        study = results.experiment()
        chosen = study.choose_precision(results.precisions, context.device)
        place = Context(context.device, chosen, context.root, results.photos)
        row: Row = study.run(known, place)
        return less(row, *known) | {"mixed_precision": chosen}

    def score(self, rows: Rows) -> Scored:
        """Apply the registered rule (``poison_parts.toml``)."""
        return judge(
            {case: points_lost(case, rows) for case in CASES},
            {case: deviations(case, rows) for case in CASES},
            self.registered["criteria"],
        )


def judge(
    lost: Mapping[str, Mapping[str, Mapping[int, Sequence[float]]]],
    sizes: Mapping[str, Mapping[int, float]],
    criteria: Criteria,
) -> Scored:
    """Return how NADs and sizes order the costs of a number, and the registered criteria met.

    Args:
        lost: case -> part -> NAD index -> points lost, one number per seed.
        sizes: case -> NAD index -> size of one deviation.
        criteria: table of the registration.
    """
    means = {
        case: {part: {i: float(np.mean(x)) for i, x in own.items()} for part, own in parts.items()}
        for case, parts in lost.items()
    }
    estimates: Estimates = {}
    for case, parts in means.items():
        number = parts[DEVIATION]
        if len(number) > 2:
            orders = {"NAD": [-i for i in number], "size": [sizes[case][i] for i in number]}
            estimates[case] = without_intervals(
                {
                    f"rank correlation with {name}": rank_correlation(
                        np.array(list(number.values())), np.array(order), min_size=3
                    )
                    for name, order in orders.items()
                }
            )
    met: Met = {}
    for name, rule in criteria.items():
        parts = means[name.partition(",")[0]]
        if "indices" in rule:
            costs = [parts[DEVIATION].get(index, np.nan) for index in rule["indices"]]
            holds = all(within(cost, rule) for cost in costs)
        else:
            mean, zero = (
                parts[f"hole at {where}"].get(0, np.nan) for where in ("the mean", "zero")
            )
            costs = [mean / zero]
            holds = rule["low"] <= mean / zero <= rule["high"]
        met[name] = None if np.isnan(costs).any() else holds
    return Scored(estimates, met)
