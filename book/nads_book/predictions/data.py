"""Predictions about data: scores of pairs, replications, 64 x 64."""

from __future__ import annotations

import numpy as np

from nads_book.experiments import load_registered, load_study, matching
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
    return found + in_prose(pair_statistics.Table.of(scores, trained))


def in_prose(table: pair_statistics.Table) -> list[Prediction]:
    """Return the predictions that the registration makes in its text alone.

    Args:
        table: scores and accuracies of the pairs; the first variant is "as is".
    """
    means, ridge = 100 * table.means(), 100 * table.predictors["ridge"]
    photos = np.isin(table.data, ["cifar10", "imagenette"])
    others = np.array(table.architectures) != pair_statistics.SAME
    costs = means[:, 0] - means[:, table.variants.index("random phases")]
    costs = costs[photos][:, others]
    outside = [f"{cost:.1f}" for cost in costs[(costs < 5) | (costs > 15)]]
    deep = np.isin(table.architectures, ["vit", "mixer", "resnet"])
    falls = (ridge[:, :1] - ridge[:, 1:])[..., deep]
    cnn = {
        row["variant"]: 100 * row["scores"]["ridge"][0]
        for row in matching(table.series, architecture="cnn")
    }
    fall = cnn[pair_statistics.AS_IS] - cnn["shuffled"]
    return [
        answered(
            "random phases cost all but the MLP 5 to 15 points on photos (CIFAR-10, Imagenette)",
            True,
            not outside,
            shown=f"{costs.size - len(outside)} of {costs.size}; outside: {', '.join(outside)}",
        ),
        answered(
            "scores of ViT, Mixer and ResNet hardly fall (at most 2 points)",
            True,
            bool(abs(falls).max() <= 2),
            shown=f"they fall by {_signed(falls.min())} to {_signed(falls.max())} points",
            note="“Hardly” was registered without a number.",
        ),
        ranged("MNIST-1D: fall of the CNN's ridge score (points)", fall, 2, 10),
    ]


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
