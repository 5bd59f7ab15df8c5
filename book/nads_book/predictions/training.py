"""Predictions about training: forgetting, geometry, used NADs, and the missing term of the law."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from nads_book.experiments import load_study
from nads_book.predictions.prediction import (
    Prediction,
    answered,
    in_words,
    of_numbers,
    ranged,
    resolved,
)
from nads_book.studies import experiment, forgetting, stored
from nads_book.studies.used_nads import ratios

LAW, SIGNAL = "G_0 S G_0", "signal"
NETWORKS = {
    "lenet": "LeNet",
    "cnn": "small CNN",
    "mlp": "MLP",
    "linear": "deep linear network",
    "resnet": "ResNet-18",
    "resnet-nonorm": "ResNet-18 without batch norm",
}


# forgetting.toml


def forgetting_predictions() -> list[Prediction]:
    """Return what was expected of optimisers, rates, label noise and weight decay."""
    study = experiment("forgetting")
    rows = load_study("forgetting.json")["rows"]
    scored = study.score(rows)
    found = [*of_numbers(study.registered["effects"], scored.estimates)]
    tables = forgetting.accuracies(rows)
    orders = forgetting.by_energy(tables).values()
    areas = [one["area"] for one in orders if one["learned"] >= 2 and not np.isnan(one["area"])]
    below = sorted(area for area in areas if area <= 0.9)
    shown = f"{len(areas) - len(below)} of {len(areas)} treatments"
    if below:
        shown += f"; the others have {', '.join(f'{area:.2f}' for area in below)}"
    every = "every treatment in which at least two waves are learned has an area above .9"
    found.append(answered(every, True, not below, shown=shown))
    refuted = len(forgetting.refuting(tables))
    text = "no treatment has an area below .8 in both seeds, with three waves learned and three not"
    note = "The registered claim on optimisers falls with one such treatment."
    found.append(answered(text, True, not refuted, shown=f"{refuted} treatments have", note=note))
    adam = scored.estimates["adam"]["correlation"][0]
    found.append(ranged("correlation with Adam, less that with SGD", adam, -0.1))
    return found


# geometry.toml


class Trajectories:
    """Stored cosines of changes with laws: (network, data, step) -> row."""

    def __init__(self, rows: Sequence[Mapping[str, Any]]):
        self.rows = {(row["network"], row["data"], row["step"]): row for row in rows}

    def change(self, *key: Any, of: str = "change") -> Mapping[str, Any]:
        """Return what is stored of a change, or of the moment itself."""
        return (self.rows.get(key) or {}).get(of) or {}

    def cosine(
        self, network: str, data: str, step: Any, law: str = LAW, of: str = "change"
    ) -> list[float]:
        """Return the cosine of a change, or of the moment itself, with a law, and its interval."""
        return _numbers(self.change(network, data, step, of=of).get("cosine", {}).get(law))

    def ahead(self, network: str, data: str, step: Any, rival: str) -> list[float]:
        """Return by how much the cosine with G_0 S G_0 exceeds that with a rival, in absolute
        values.
        """
        return _numbers(self.change(network, data, step).get("law ahead", {}).get(rival))

    def lead(self, network: str, data: str, step: Any) -> list[float]:
        """Return by how much the cosine with the signal exceeds that with G_0 S G_0, in absolute
        values.
        """
        value, low, high = (-one for one in self.ahead(network, data, step, SIGNAL))
        return [value, high, low]


def geometry_predictions() -> list[Prediction]:
    """Return what was expected of the change of the second moment while networks train."""
    content = load_study("geometry.json")
    known, middle = Trajectories(content["rows"]), "wave in the middle"
    late = [step for step in content["steps"] if step >= 10]
    to_100 = [step for step in content["steps"] if step <= 100]
    first, lead = (
        "first change on photos, cosine with G₀SG₀",
        "smallest lead of the signal over G₀SG₀",
    )
    measured: dict[str, Callable[[str], list[float]]] = {
        first: lambda name: known.cosine(name, "photos", "small"),
        f"{first}, lead over S": lambda name: known.ahead(name, "photos", "small", "S"),
        f"{lead} from step 10 on, photos": lambda name: extreme(
            min, (known.lead(name, "photos", step) for step in late)
        ),
        f"{lead} from step 10 on, learned wave": lambda name: extreme(
            min, (known.lead(name, "learned wave", step) for step in late)
        ),
        f"cosine with the signal at step 10, {middle}": lambda name: known.cosine(
            name, middle, 10, SIGNAL
        ),
        "random labels, largest cosine with G₀SG₀ from step 10 to 100": lambda name: extreme(
            max, (known.cosine(name, "random labels", step) for step in late if step in to_100)
        ),
        f"smallest cosine of G with G₀ until step 100, {middle}": lambda name: extreme(
            min, (known.cosine(name, middle, step, "G_0", "moment") for step in to_100)
        ),
    }
    return [
        resolved(
            f"{NETWORKS[network]}: {one['text']}",
            measured[one["text"]](network),
            *one["range"],
            note=one.get("note", ""),
        )
        for one in in_words("geometry")
        for network in one["networks"]
    ]


def extreme(choose: Callable[..., list[float]], values: Iterable[list[float]]) -> list[float]:
    """Return the smallest or largest of the known estimates, with its interval."""
    return choose((one for one in values if not np.isnan(one[0])), default=[np.nan] * 3)


# used_nads.toml


def used_predictions() -> list[Prediction]:
    """Return what was expected of the NADs that trained networks use."""
    found = []
    for row in load_study("used-nads.json")["rows"]:
        network = row["network"]
        label = f"{USING[network]}, seed {row['seed']}"

        def logs(control: str, early: bool, row: Any = row) -> np.ndarray:
            return np.log(ratios([row], row["network"], control, early=early)[0])

        waves, later = logs("wave", True), logs("wave", False)
        over_random = float(np.exp(logs("random", True).mean()))
        over_waves = float(np.exp(waves.mean()))
        single = np.exp([*waves, *later])
        inside = int(((single >= 0.7) & (single <= 1.5)).sum())
        found += [
            ranged(f"{label}: NADs 0 to 40 over random directions", over_random, 2.0, 10.0),
            ranged(f"{label}: NADs 0 to 40 over waves of equal energy", over_waves, 0.7, 1.5),
            answered(
                f"{label}: ratios over waves from .7 to 1.5 at nearly all NADs (at least nine in "
                "ten)",
                True,
                inside >= 0.9 * len(single),
                shown=f"{inside} of {len(single)}",
                note="“Nearly all” was registered without a number.",
            ),
        ]
        if network == "vgg11":
            after = float(np.exp(later.mean()))
            text = f"{label}: ratio over waves larger for NADs 0 to 40 than for later ones"
            shown = f"{over_waves:.2f} and {after:.2f}"
            found.append(answered(text, True, over_waves > after, shown=shown))
    return found


USING = {"resnet": "narrow ResNet-18", "vgg11": "VGG-11"}


# law.toml


def gain_predictions() -> list[Prediction]:
    """Return what was expected of slopes and errors, and the registered criteria."""
    found: list[Prediction] = []
    for network in in_words("law"):
        results, label = stored(*network["results"]), network["label"]
        scored = results.experiment().score(results.rows)
        found += of_numbers(network["expected"], scored.estimates, label=f"{label}, ")
        found += [answered(f"{label}: {name}", True, met) for name, met in scored.met.items()]
    return found


def _numbers(values: Sequence[float | None] | None) -> list[float]:
    return [np.nan if value is None else value for value in values or (None, None, None)]
