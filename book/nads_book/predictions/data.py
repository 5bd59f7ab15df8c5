"""Predictions about architectures and data: repair, pooling, search, scores, replications,
64 x 64.
"""

from __future__ import annotations

from typing import Any

from nads_book.experiments import Facts, load_registered, load_study
from nads_book.predictions.prediction import Prediction, answered, of_numbers, ranged
from nads_book.studies import experiment, pair_statistics, replication_criteria

# other_data.toml


def pair_predictions() -> list[Prediction]:
    """Return what was expected of scores on other data, the criteria, and three sentences of the
    text.
    """
    registered = load_registered("other_data")
    scores, trained = load_study("other-data-scores.json"), load_study("other-data.json")["rows"]
    scored = experiment("other-data").score(trained)
    found = [*of_numbers(registered["predicted"], scored.estimates)]
    for name, expected in registered["mnist1d"]["expected"].items():
        text = f"MNIST-1D: {name}"
        found.append(answered(text, expected, scored.met[text]))
    words = {True: "supported", False: "falsified", None: "inconclusive"}
    for name, verdict in registered["criteria"]["expected"].items():
        outcome = words[scored.met[name]]
        met = "met" if outcome == verdict else "failed"
        found.append(Prediction(name, verdict, outcome, met))
    table = pair_statistics.Table.of(scores, trained)
    return found + in_prose(table, scores["rows"])


def in_prose(table: Any, rows: list[Facts]) -> list[Prediction]:
    """Return the predictions that the registration makes in its text alone, which no script had
    scored.

    Args:
        table: accuracies of the pairs.
        rows: rows of scores.
    """
    means = 100 * table.means()
    as_is, phases = (table.variants.index(name) for name in (pair_statistics.AS_IS, PHASES))
    costs = {
        (data, name): means[d, as_is, a] - means[d, phases, a]
        for d, data in enumerate(table.data)
        if data != "fashion-mnist"
        for a, name in enumerate(table.architectures)
        if name != pair_statistics.SAME
    }
    outside = [f"{cost:.1f}" for cost in costs.values() if not 5 <= cost <= 15]
    primary = {
        (row["data"], row["variant"], row["architecture"]): 100 * row["scores"]["ridge"][0]
        for row in rows
    }
    falls = [
        primary[data, pair_statistics.AS_IS, name] - primary[data, variant, name]
        for data in table.data
        for variant in table.variants
        if variant != pair_statistics.AS_IS
        for name in ("vit", "mixer", "resnet")
    ]
    series = pair_statistics.SERIES
    fall = primary[series, pair_statistics.AS_IS, "cnn"] - primary[series, "shuffled", "cnn"]
    return [
        answered(
            "random phases cost all but the MLP 5 to 15 points on photos (CIFAR-10, Imagenette)",
            True,
            not outside,
            shown=f"{len(costs) - len(outside)} of {len(costs)}; outside: {', '.join(outside)}",
        ),
        answered(
            "scores of ViT, Mixer and ResNet hardly fall (at most 2 points)",
            True,
            bool(max(map(abs, falls)) <= 2),
            shown=f"they fall by {_signed(min(falls))} to {_signed(max(falls))} points",
            note="“Hardly” was registered without a number.",
        ),
        ranged("MNIST-1D: fall of the CNN's ridge score (points)", fall, 2, 10),
    ]


PHASES = "random phases"


# replications.toml


def replication_predictions() -> list[Prediction]:
    """Return what was expected on Fashion-MNIST and Imagenette: the criteria, and the ranges."""
    registered = load_registered("replications")
    scored = experiment("replications").score(load_study("replications.json")["rows"])
    found = [*of_numbers(registered["predicted"], scored.estimates)]
    for place, (data, network) in enumerate(replication_criteria.CELLS):
        label = f"{data}, {network}"
        for name, expected in registered["criteria"]["expected"].items():
            if place < len(expected):
                met = scored.met[f"{label}: {name}"]
                found.append(answered(f"{label}: {name}", expected[place], met))
    return found


# nads64.toml


def large_predictions() -> list[Prediction]:
    """Return what was expected of two runs at 64 x 64."""
    registered = load_registered("nads64")["criteria"]
    content = load_study("nads64.json")
    last = max(content["rows"], key=lambda row: row["num_networks"])
    difference = last["agreement_found"] - last["agreement_predicted"]
    few, many = (str(content[name]) for name in ("few", "many"))
    shares = [
        each["num_certain"] / run["forecasts"][many][0]["num_certain"]
        for run in content["runs"]
        for each in run["forecasts"][few]
        if str(each["num_networks"]) == many
    ]
    low, high = registered["forecast"]
    note = "Nothing stored shows that the runs began after the criteria."
    return [
        answered(
            f"agreement within {registered['agreement']:g} of what one run predicts",
            registered["expected"]["agreement"],
            bool(abs(difference) <= registered["agreement"]),
            shown=f"off by {_signed(difference, 3)}",
            note=note,
        ),
        answered(
            f"forecast from 2,048 networks within {low:g} and {high:g} times the number found",
            registered["expected"]["forecast"],
            all(low <= share <= high for share in shares),
            shown=", ".join(f"{share:.2f}" for share in shares),
            note=note,
        ),
    ]


def _signed(value: float, digits: int = 1) -> str:
    return f"{value:+.{digits}f}".replace("-", "−")
