"""Predictions about training: forgetting, geometry, used NADs, and the missing term of the law."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from nads_book.experiments.stored import load_registered, load_study
from nads_book.predictions.prediction import Prediction, answered, pointed, ranged, resolved
from nads_book.studies import experiment, forgetting, load_results

LAW, SIGNAL = "G_0 S G_0", "signal"
SMALL_NETWORKS = ("linear", "mlp", "lenet", "cnn")
NETWORKS = {
    "lenet": "LeNet",
    "cnn": "small CNN",
    "mlp": "MLP",
    "linear": "deep linear network",
    "resnet": "ResNet-18",
    "resnet-nonorm": "ResNet-18 without batch norm",
}
MISSING = [np.nan] * 3


# forgetting.toml


def forgetting_predictions() -> list[Prediction]:
    """Return what was expected of optimisers, rates, label noise and weight decay."""
    study = experiment("forgetting")
    rows = load_study("forgetting.json")["rows"]
    scored = study.score(rows)
    found = [
        ranged(f"{name}: effect on {RESPONSES[response]}", estimates[response][0], *limits)
        for name, ranges in load_registered("forgetting")["effects"].items()
        for response, limits in ranges.items()
        for estimates in [scored.estimates[name]]
    ]
    areas = areas_of_treatments(forgetting.accuracies(rows))
    below = sorted(area for area in areas if area <= 0.9)
    shown = f"{len(areas) - len(below)} of {len(areas)} treatments"
    if below:
        shown += f"; the others have {', '.join(f'{area:.2f}' for area in below)}"
    found.append(
        answered(
            "every treatment in which at least two waves are learned has an area above .9",
            True,
            not below,
            shown=shown,
        )
    )
    refuted = refuting_treatments(forgetting.accuracies(rows))
    found.append(
        answered(
            "no treatment has an area below .8 in both seeds, with three waves learned and three not",
            True,
            not refuted,
            shown=f"{refuted} treatments have",
            note="The registered claim on optimisers falls with one such treatment.",
        )
    )
    adam = scored.estimates["adam"]["correlation"][0]
    found.append(ranged("correlation with Adam, less that with SGD", adam, -0.1))
    return found


RESPONSES = {
    "middle": "the accuracy of the waves in the middle (points)",
    "correlation": "the rank correlation with energy",
}


def areas_of_treatments(tables: Mapping[Any, np.ndarray]) -> list[float]:
    """Return the areas of all treatments in which at least two waves are learned, and not all."""
    energies = forgetting.wave_energies()
    orders = [forgetting.orders(energies, tables[cell]) for cell in forgetting.FACTORIAL]
    return [
        order["area"] for order in orders if order["learned"] >= 2 and not np.isnan(order["area"])
    ]


def refuting_treatments(tables: Mapping[Any, np.ndarray]) -> int:
    """Return how many treatments order waves badly in both seeds, where enough are learned and enough are not."""
    energies = forgetting.wave_energies()
    count = 0
    for cell in forgetting.FACTORIAL:
        runs = [forgetting.orders(energies, table[None]) for table in tables[cell]]
        decided = all(3 <= run["learned"] <= forgetting.WAVES - 3 for run in runs)
        count += decided and all(run["area"] < 0.8 for run in runs)
    return count


# geometry.toml


class Trajectories:
    """Stored cosines of changes with laws: (network, data, step) -> row."""

    def __init__(self, rows: Sequence[Mapping[str, Any]]):
        self.rows = {(row["network"], row["data"], row["step"]): row for row in rows}

    def cosine(
        self, network: str, data: str, step: Any, law: str = LAW, of: str = "change"
    ) -> list[float]:
        """Return the cosine of a change, or of the moment itself, with a law, and its interval."""
        row = self.rows.get((network, data, step)) or {}
        return _numbers(((row.get(of) or {}).get("cosine") or {}).get(law))

    def lead(self, network: str, data: str, step: Any) -> list[float]:
        """Return by how much the cosine with the signal exceeds that with G_0 S G_0, in absolute values."""
        row = self.rows.get((network, data, step)) or {}
        ahead = ((row.get("change") or {}).get("law ahead") or {}).get(SIGNAL)
        value, low, high = (-one for one in _numbers(ahead))
        return [value, high, low]

    def over_data(self, network: str) -> list[float]:
        """Return by how much G_0 S G_0 is closer to the first change on photos than S."""
        row = self.rows.get((network, "photos", "small")) or {}
        return _numbers(((row.get("change") or {}).get("law ahead") or {}).get("S"))


def geometry_predictions() -> list[Prediction]:
    """Return what was expected of the change of the second moment while networks train."""
    content = load_study("geometry.json")
    known = Trajectories(content["rows"])
    late = [step for step in content["steps"] if step >= 10]
    to_100 = [step for step in content["steps"] if step <= 100]
    exact = "By finite differences; `exact_first_step` decides it by derivatives."
    found = []

    def add(text: str, networks: Sequence[str], *arguments: Any, **options: Any) -> None:
        for network in networks:
            value = arguments[0](network)
            label = f"{NETWORKS[network]}: {text}"
            found.append(resolved(label, value, *arguments[1:], **options))

    def first(network: str) -> list[float]:
        return known.cosine(network, "photos", "small")

    first_change = "first change on photos, cosine with G₀SG₀"
    add(first_change, ["linear"], first, high=-0.9)
    add(first_change, ["mlp", "lenet", "cnn"], first, high=-0.7, note=exact)
    add(f"{first_change}, lead over S", ["lenet", "cnn"], known.over_data, 0.0)
    add(first_change, ["resnet-nonorm"], first, -0.7, 0.0)
    add(first_change, ["resnet"], first, -0.5, 0.5)
    for data in ("photos", "learned wave"):
        leads = worst(lambda name, step, data=data: known.lead(name, data, step), late, min)  # type: ignore[misc]
        text = f"smallest lead of the signal over G₀SG₀ from step 10 on, {data}"
        add(text, SMALL_NETWORKS, leads, 0.0)
    middle = "wave in the middle"
    add(
        f"cosine with the signal at step 10, {middle}",
        ["lenet", "cnn"],
        lambda name: known.cosine(name, middle, 10, SIGNAL),
        high=0.5,
    )
    random = worst(
        lambda name, step: known.cosine(name, "random labels", step),
        [step for step in late if step <= 100],
        max,
    )
    text = "random labels, largest cosine with G₀SG₀ from step 10 to 100"
    add(text, ["linear", "mlp", "lenet"], random, 0.7)
    start = worst(lambda name, step: known.cosine(name, middle, step, "G_0", "moment"), to_100, min)
    add(f"smallest cosine of G with G₀ until step 100, {middle}", ["lenet"], start, 0.5)
    return found


def worst(
    values: Callable[[str, int], list[float]],
    steps: Sequence[int],
    choose: Callable[..., list[float]],
) -> Callable[[str], list[float]]:
    """Return a function that gives the smallest or largest estimate of a network over steps, with its interval."""

    def of(network: str) -> list[float]:
        found = [value for step in steps if not np.isnan((value := values(network, step))[0])]
        return choose(found, key=lambda value: value[0]) if found else MISSING

    return of


# used_nads.toml


def used_predictions() -> list[Prediction]:
    """Return what was expected of the NADs that trained networks use."""
    found = []
    rows = load_study("used-nads.json")["rows"]
    for row in rows:
        label = f"narrow {NARROW[row['network']]}, seed {row['seed']}"
        early = mean_ratio(row, "random", 0, 40)
        found.append(ranged(f"{label}: NADs 0 to 40 over random directions", early, 2.0, 10.0))
        early = mean_ratio(row, "wave", 0, 40)
        found.append(ranged(f"{label}: NADs 0 to 40 over waves of equal energy", early, 0.7, 1.5))
        single = [one["nad"]["turn"] / one["wave"]["turn"] for one in row["directions"]]
        inside = sum(0.7 <= ratio <= 1.5 for ratio in single)
        found.append(
            answered(
                f"{label}: ratios over waves from .7 to 1.5 at nearly all NADs (at least nine in ten)",
                True,
                inside >= 0.9 * len(single),
                shown=f"{inside} of {len(single)}",
                note="“Nearly all” was registered without a number.",
            )
        )
        if row["network"] == "vgg11":
            late = mean_ratio(row, "wave", 41, np.inf)
            found.append(
                answered(
                    f"{label}: ratio over waves larger for NADs 0 to 40 than for later ones",
                    True,
                    early > late,
                    shown=f"{early:.2f} and {late:.2f}",
                )
            )
    return found


NARROW = {"resnet": "ResNet-18", "vgg11": "VGG-11"}


def mean_ratio(row: Mapping[str, Any], control: str, first: float, last: float) -> float:
    """Return by which factor turned NADs change more predictions than a control, their geometric mean."""
    logs = [
        np.log(one["nad"]["turn"] / one[control]["turn"])
        for one in row["directions"]
        if first <= one["index"] <= last
    ]
    return float(np.exp(np.mean(logs)))


# law.toml


def gain_predictions() -> list[Prediction]:
    """Return what was expected of slopes and errors, and the registered criteria."""
    found = []
    for name, preset, label in LAWS:
        results = load_results(name, preset)
        if results is None:
            continue
        scored = experiment(name, preset).score(results.rows)
        for arm, ends in SLOPES[label].items():
            value = scored.estimates[arm]["slope"]
            text = f"{label}, {ARMS[arm]} first filters: points per deviation of log gain"
            if isinstance(ends, tuple):
                found.append(ranged(text, value[0], *ends))
            else:
                found.append(pointed(text, ends, value))
        for (arm, rule), guess in ERRORS.get(label, {}).items():
            text = f"{label}, {ARMS[arm]} first filters: error of {RULES[rule]} (points)"
            found.append(pointed(text, guess, scored.estimates[arm][rule]))
        found += [answered(f"{label}: {name}", True, met) for name, met in scored.met.items()]
    return found


LAWS = (
    ("law-lenet", "paper", "LeNet"),
    ("law-cnn", "paper", "small CNN"),
    ("law-resnet18", "narrow", "narrow ResNet-18"),
)
ARMS = {"free": "free", "frozen": "random", "taught": "learned and then fixed"}
SLOPES: dict[str, dict[str, tuple[float, float] | float]] = {  # a range, or a number without one
    "LeNet": {"free": (4, 8), "taught": (4, 9), "frozen": (0, 2.5)},
    "small CNN": {"free": 4.0, "taught": 4.0, "frozen": (-np.inf, 2)},
    "narrow ResNet-18": {"free": 5.0, "frozen": (-np.inf, 2.5)},
}
RULES = {
    "law, all": "the law",
    "without_gain, all": "the refitted law without gain",
    "with_gain, all": "the law with gain",
    "fitted_with_gain, held_out": "the law with gain, fitted to other directions",
    "isotonic, held_out": "the closest function of energy",
    "step, held_out": "a step in energy",
}
ERRORS: dict[str, dict[tuple[str, str], float]] = {
    "LeNet": {
        ("free", "law, all"): 9,
        ("free", "without_gain, all"): 7,
        ("free", "with_gain, all"): 5,
        ("free", "fitted_with_gain, held_out"): 3.5,
        ("free", "isotonic, held_out"): 6,
        ("free", "step, held_out"): 7.5,
        ("frozen", "law, all"): 5,
        ("frozen", "step, held_out"): 6,
        ("frozen", "with_gain, all"): 8,
        ("taught", "law, all"): 10,
        ("taught", "with_gain, all"): 6,
    },
}


def _numbers(values: Sequence[float | None] | None) -> list[float]:
    return [np.nan if value is None else value for value in values or (None, None, None)]
