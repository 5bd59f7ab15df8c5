"""The poison of section 4.2 in parts: two holes, a small number, and one of a standard deviation.

The poison replaces a coordinate of each photo. So it removes what the photo has there, and it
writes a value, zero or near zero, that may be far from those of photos. A hole at the photos' mean
only removes; an added number removes nothing. Networks that other studies trained by the same
recipe are reused: `points_lost` joins them with those of this study.
``book/preregistered/poison_parts.toml`` has what was expected.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from nads_book.analysis.statistics import rank_correlation
from nads_book.experiments.results import Results
from nads_book.experiments.stored import load_registered, load_study
from nads_book.experiments.study import Context, Estimate, Evidence, Row, Unit
from nads_book.experiments.study_files import FileStudy
from nads_book.studies.injection import InjectionStudy
from nads_book.studies.replications import measured

# As stored by the studies of injected shortcuts: what is written, and its size; None is one deviation.
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


CASES = {
    "lenet": Case("cifar10", "lenet", SEEDS, {}),
    "fashion": Case("fashion-mnist", "lenet", SEEDS, {DEVIATION: (0, 30, 300, 10, 100, 1000)}),
    "resnet": Case(
        "cifar10",
        "resnet18",
        SEEDS[:1],
        {
            DEVIATION: (0, 300, 30, 100, 1000, 60, 10),
            "hole at the mean": (0, 300, 1000),
            "number of .05": (0, 300, 1000),
        },
    ),
}
SIZES = {"lenet": "laptop", "resnet18": "narrow"}  # of the stored trainings on CIFAR-10
BASE = {"images": "photos", "background": "kept"}


@cache
def stored_networks(network: str) -> Results:
    """Return the stored trainings on CIFAR-10 with shortcuts.

    Raises:
        FileNotFoundError: if there are none.
    """
    found = InjectionStudy.load(network, SIZES[network])
    if found is None:
        raise FileNotFoundError(
            f"results of notes-{network} at preset {SIZES[network]} are missing"
        )
    return found


def points_lost(case: str, rows: Sequence[Row] = ()) -> dict[str, dict[int, list[float]]]:
    """Return the points lost, one number per seed: part -> NAD index -> values.

    Args:
        case: key of `CASES`.
        rows: rows of this study.
    """
    data, network, *_ = CASES[case]
    if data == "cifar10":
        known = [row for row in stored_networks(network).rows if BASE.items() <= row.items()]
        clean = [row["test_accuracy"] for row in known if row["index"] is None]
    else:
        every = load_study("replications.json")["rows"]
        every = [row for row in every if (row["data"], row["network"]) == (data, network)]
        known = [row for row in every if row["background"] == "kept"]
        clean = [row["test_accuracy"] for row in every if row["map"] == "as is"]
    known = [row for row in known if row["index"] is not None]
    known += [row for row in rows if row["case"] == case]
    names = {written: part for part, written in PARTS.items()}
    found: dict[str, dict[int, list[float]]] = {part: {} for part in PARTS}
    for row in sorted(known, key=lambda row: (row["index"], row["seed"])):
        part = found[names[row["written"], row["size"]]]
        part.setdefault(row["index"], []).append(100 * (np.mean(clean) - row["test_accuracy"]))
    return found


def deviations(case: str, rows: Sequence[Row] = ()) -> dict[int, float]:
    """Return the deviation of the photos' coordinates at each NAD: the size of the number."""
    data, network, *_ = CASES[case]
    known = load_study("replications.json")["rows"] if data != "cifar10" else []
    known = [row for row in known if (row["data"], row["network"]) == (data, network)]
    if data == "cifar10":
        known = [row for row in stored_networks(network).rows if row["images"] == "photos"]
    known = [row for row in known if row["index"] is not None]
    known += [row for row in rows if row["case"] == case]
    return {row["index"]: row["deviation"] for row in known}


class PoisonParts(FileStudy):
    """What do the parts of the poison cost at equal relative size? See ``poison_parts.toml``."""

    name = "poison-parts"
    file = "poison-parts.json"
    summary = (
        "a number of one deviation, and a hole at the mean, at NADs of Fashion-MNIST and ResNet-18"
    )
    unit_fields = ("case", "index", "written", "size", "seed")
    on_photos = True

    def units(self) -> list[Unit]:
        return [
            {"case": name, "index": index, "written": PARTS[part][0], "size": PARTS[part][1]}
            | {"seed": seed}
            for name, case in CASES.items()
            for part, indices in case.added.items()
            for seed in case.seeds
            for index in indices
        ]

    def run(self, unit: Unit, context: Context) -> Row:
        data, network, *_ = CASES[unit["case"]]
        known = {name: value for name, value in unit.items() if name != "case"} | BASE
        if data != "cifar10":
            return measured(known | {"data": data, "network": network, "map": None}, context.device)
        # As the other study trains them: same recipe, photos, weights and precision.
        results = stored_networks(network)
        study = results.experiment()
        chosen = study.choose_precision(results, context.device)
        place = replace(context, source=results.photos, mixed_precision=chosen)
        place = replace(place, out=None, deadline=None, progress=False)
        row: Row = study.run(known, place)
        return {name: value for name, value in row.items() if name not in known}

    def score(self, rows: Sequence[Row]) -> Evidence:
        """Apply the registered rule (``poison_parts.toml``)."""
        return judge(
            {case: points_lost(case, rows) for case in CASES},
            {case: deviations(case, rows) for case in CASES},
            load_registered("poison_parts")["criteria"],
        )


def judge(
    lost: Mapping[str, Mapping[str, Mapping[int, Sequence[float]]]],
    sizes: Mapping[str, Mapping[int, float]],
    criteria: Mapping[str, Mapping[str, Any]],
) -> Evidence:
    """Return what each part costs relative to the poison, and which registered criteria are met.

    Args:
        lost: case -> part -> NAD index -> points lost, one number per seed.
        sizes: case -> NAD index -> size of one deviation.
        criteria: table of the registration.
    """
    estimates: dict[str, dict[str, Estimate]] = {}
    for case, parts in lost.items():
        means = {
            part: {index: float(np.mean(values)) for index, values in found.items()}
            for part, found in parts.items()
        }
        estimates[case] = {}
        for part, found in means.items():
            both = sorted(found.keys() & means["poison"].keys())
            if part != "poison" and both:
                ratio = sum(found[i] for i in both) / sum(means["poison"][i] for i in both)
                estimates[case][f"{part}, of the poison"] = (ratio, np.nan, np.nan)
        number = means[DEVIATION]
        if len(number) > 2:
            costs = np.array(list(number.values()))
            orders = {"NAD": [-i for i in number], "size": [sizes[case][i] for i in number]}
            for name, order in orders.items():
                value = rank_correlation(costs, np.array(order), min_size=3)
                estimates[case][f"rank correlation with {name}"] = (value, np.nan, np.nan)
    met: dict[str, bool | None] = {}
    for name, rule in criteria.items():
        found = lost[name.partition(",")[0]]
        if "indices" in rule:
            values = [found[DEVIATION].get(index) for index in rule["indices"]]
            costs = [np.mean(value) for value in values if value]
            low, high = rule.get("at_least", -np.inf), rule.get("less_than", np.inf)
            complete = len(costs) == len(values)
            met[name] = all(low <= cost < high for cost in costs) if complete else None
        elif 0 in found["hole at the mean"]:
            ratio = np.mean(found["hole at the mean"][0]) / np.mean(found["hole at zero"][0])
            met[name] = bool(rule["low"] <= ratio <= rule["high"])
        else:
            met[name] = None
    return Evidence(estimates, met)
