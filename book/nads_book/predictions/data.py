"""Predictions about architectures and data: repair, pooling, search, scores, replications,
64 x 64.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nads_book.experiments import load_registered, load_study
from nads_book.predictions.prediction import Prediction, answered, in_words, ranged
from nads_book.studies import nas_contest, pair_statistics, replication_criteria
from nads_book.studies.nas import GAIN
from nads_book.studies.pooling import DATA, HIT, MIXTURES, PHOTOS, POOLINGS, Choices
from nads_book.studies.repair import CHANGED, GOAL, MOST_COST, NETWORKS, Repaired

# repair.toml


def repair_predictions() -> list[Prediction]:
    """Return what was expected of changed DenseNets and ResNets."""
    content = load_study("repair.json")
    found = Repaired.of(content["prediction"], content["rows"])
    learned = {name: int(found.learned(name).sum()) for name in NETWORKS}
    lost = {name: found.cost(name)[0] for name in NETWORKS}
    right = [found.right(name).mean() for name in CHANGED]
    reached = [
        n
        for n in learned
        if n.startswith("densenet,") and learned[n] >= GOAL and lost[n] <= MOST_COST
    ]
    waves, photos = in_words("repair").values()
    waves["densenet, flat"][1] += learned["densenet"]
    return [
        *(ranged(f"{name}: waves learned, of 16", learned[name], *waves[name]) for name in waves),
        *(ranged(f"{name}: points lost on photos", lost[name], *photos[name]) for name in photos),
        answered("a change of the DenseNet succeeds", False, bool(reached)),
        ranged("rule right in the six changed networks (%)", 100 * float(np.mean(right)), 80),
    ]


# pooling.toml


def pooling_predictions() -> list[Prediction]:
    """Return what was expected of the energy as a guide to a pooling, and of its control."""
    content, control = load_study("pooling.json"), load_study("pooling-control.json")
    found = Choices.of(content["prediction"], content["rows"], control["rows"])
    lost, ranks = found.lost, dict(zip(DATA, found.ranks, strict=True))
    chosen = lost["the highest energy"]
    flipped = [*POOLINGS][found.accuracies[DATA.index("flipped photos")].argmax()]
    mixtures = float(np.mean([ranks[name] for name in MIXTURES]))
    added = "Added after seeing the results of the six data sets, before the control was trained."
    of_random = float(chosen.mean() - lost["at random"].mean() / 2)
    of_max = float((chosen - lost["always max"]).mean())
    wide = float(lost["the wide network with max"].mean())
    best = "on flipped photos the best pooling is strided or none"
    return [
        ranged("mean rank correlation, six data sets", float(found.ranks.mean()), 0.4, 0.9),
        ranged("mean rank correlation, mixtures", mixtures, 0.6, 1),
        *(ranged(f"rank correlation, {name}", ranks[name], 0, 0.6) for name in PHOTOS),
        ranged("data sets at most 2 points below the best", int((chosen <= HIT).sum()), 3, 6),
        ranged("points lost by choosing, less half of those of a random choice", of_random, high=0),
        ranged("points lost by choosing, less those of always max pooling", of_max, high=0),
        answered(best, True, flipped in ("strided", "none"), shown=flipped),
        ranged("control: points lost by the wide network", wide, 22, 28, note=added),
    ]


# nas.toml


def search_predictions() -> list[Prediction]:
    """Return what was expected of the chosen score on the second half of the cells."""
    registered = load_registered("nas")
    cells = [cell for cell in nas_contest.proxies()["cifar10"] if not nas_contest.chosen_on(cell)]
    table = nas_contest.table_of("cifar10", cells)
    found = nas_contest.compare(table, registered["sealed"]["score"])
    value = {name: estimate[0] for name, estimate in found.items()}
    low = {name: estimate[1] for name, estimate in found.items()}
    upper, both = "upper half, alone", "with jacov and synflow above .88, by its interval"
    return [
        ranged("rank correlation of the chosen score", value["alone"], 0.35, 0.65),
        ranged("its lead over jacov", value["over jacov"], high=0),
        ranged("its lead over the number of parameters", value["over params"], high=0),
        ranged("gain over jacov and synflow", value["gain"], *GAIN),
        ranged("rank correlation in the upper half", value[upper], high=0.3),
        answered("alone above .75, by its interval", False, low["alone"] > 0.75),
        answered(both, False, low["with NADs"] > 0.88),
        answered("in the upper half above .50, by its interval", False, low[upper] > 0.5),
    ]


# other_data.toml


def pair_predictions() -> list[Prediction]:
    """Return what was expected of scores on other data, the criteria, and three sentences of the
    text.
    """
    registered = load_registered("other_data")
    scores, trained = load_study("other-data-scores.json"), load_study("other-data.json")
    scored = pair_statistics.judge(scores, trained)
    found = []
    for group, ranges in registered["predicted"].items():
        for statistic, limits in ranges.items():
            for name, (low, high) in limits.items():
                value = scored.estimates[f"{group}, {statistic}"][name][0]
                found.append(ranged(f"{group}, {statistic}: {name}", value, low, high))
    for name, expected in registered["mnist1d"]["expected"].items():
        met = scored.met[f"MNIST-1D, published: {name}"]
        found.append(answered(f"MNIST-1D: {name}", expected, met))
    words = {True: "supported", False: "falsified", None: "inconclusive"}
    for name, verdict in registered["criteria"]["expected"].items():
        outcome = words[scored.met[name]]
        met = "met" if outcome == verdict else "failed"
        found.append(Prediction(name, verdict, outcome, met))
    table = pair_statistics.Table.of(scores, trained)
    return found + in_prose(table, scores["rows"])


def in_prose(table: Any, rows: list[dict[str, Any]]) -> list[Prediction]:
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
    content = load_study("replications.json")
    scored = replication_criteria.judge(content["rows"], content["designs"])
    found = []
    for place, (data, network) in enumerate(replication_criteria.CELLS):
        label = f"{data}, {network}"
        for name, expected in registered["criteria"]["expected"].items():
            if place < len(expected):
                met = scored.met[f"{label}: {name}"]
                found.append(answered(f"{label}: {name}", expected[place], met))
        for name, (low, high) in registered["predicted"][label].items():
            value = scored.estimates[label].get(name, (np.nan,))[0]
            found.append(ranged(f"{label}: {name}", value, low, high))
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
