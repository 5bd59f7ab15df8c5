"""The page ``08_flip``: what it costs networks to have the order of NAD coordinates reversed, and why."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor

import nads_core as nc
from nads_book import figures, report
from nads_book.analysis import published, statistics
from nads_book.analysis.statistics import pooled_variance, regression
from nads_book.checks import errata
from nads_book.evidence import Evidence, evidence
from nads_book.experiments.results import Results
from nads_book.explorer import Changes
from nads_book.pages import conclude, stored
from nads_book.report import LABELS, effect, estimate, fixed, minus, show, table
from nads_book.studies import load_results
from nads_book.studies.transform_summaries import (
    AS_THEY_ARE,
    KindOfMap,
    Row,
    by_kind,
    contrast,
    half_interval,
    kind_of,
    order_of,
)

MAPS = {"lenet": "laptop", "resnet18": "narrow"}  # networks trained on mapped photos, and the size
NAMES = LABELS | {"resnet18": "ResNet-18 of a quarter of the width"}  # of these networks
LAPTOP = ("vgg11", "resnet18")  # networks whose flip was measured at this size only
COLUMNS = {"match": "match", "correlation of neighbouring pixels": "neighbours"}


# What is stored


@cache
def flips() -> dict[str, Results]:
    """Return what each network scores on upright and on flipped photos, at the largest size that there is."""
    found = {name: load_results(f"fig8-{name}") for name in nc.ARCHITECTURES}
    for name in LAPTOP:
        found[name] = found[name] or load_results(f"fig8-{name}", "laptop")
    return {name: results for name, results in found.items() if results and results.rows}


@cache
def maps(name: str) -> Results:
    """Return what a network scores on mapped photos."""
    return stored(f"maps-{name}", MAPS[name])


def at_full_size() -> dict[str, Results]:
    """Return those of `flips` at the paper's size."""
    return {name: results for name, results in flips().items() if results.preset == "paper"}


def sides_of(results: Results) -> dict[str, list[Row]]:
    """Return the networks on upright and those on flipped photos."""
    sides = {"upright": False, "flipped": True}
    return {
        label: [row for row in results.rows if row["flipped"] is side]
        for label, side in sides.items()
    }


def of_order(name: str, order: str, signs: bool = False) -> Row:
    """Return the fields of networks whose photos have coordinates along the network's own NADs in some order."""
    return {"source": name, "target": name, "order": order, "signs": signs}


def onto(target: str, order: str) -> Row:
    """Return the fields of networks whose photos have their principal components on the directions of a basis."""
    return {"source": "pca", "target": target, "order": order}


def three_ways(name: str) -> dict[str, list[Row]]:
    """Return the networks on photos as they are, with random signs of their coordinates, and flipped."""
    wanted = {
        "upright": of_order(name, "kept"),
        "random signs": of_order(name, "kept", signs=True),
        "flipped": of_order(name, "reversed"),
    }
    rows = maps(name).rows
    return {
        label: [row for row in rows if fields.items() <= row.items()]
        for label, fields in wanted.items()
    }


def mean(rows: Sequence[Row], key: str = "test_accuracy") -> float:
    """Return the mean of one field."""
    return float(np.mean([row[key] for row in rows]))


def compared(name: str, one: Row, other: Row) -> tuple[float, float, list[list[Row]]]:
    """Return `contrast`, for groups of networks that there are.

    Raises:
        ValueError: if one group is empty.
    """
    found = contrast(maps(name), one, other)
    if found is None:
        raise ValueError(f"{maps(name)} has no networks of {one} or of {other}")
    return found


def around(value: float, half: float) -> dict[str, Any]:
    """Return value and interval of a difference that must exclude zero."""
    return {"value": value, "interval": (value - half, value + half), "null": 0}


def plus(value: float, half: float) -> str:
    """Write a difference with its sign and half of its interval."""
    return f"{value:+.1f} ± {half:.1f}"


# The flip is a rotation


def transform(images: Tensor, matrix: Tensor) -> Tensor:
    """Apply a (D, D) matrix to every channel of images (N, C, H, W)."""
    return (images.flatten(2) @ matrix.T).view_as(images)


def rotation_errors(matrix: Tensor, images: Tensor) -> list[float]:
    """Return how far a (D, D) matrix is from orthogonal, from its own inverse, and from keeping distances of images."""
    matrix = matrix.double()
    identity = torch.eye(len(matrix), dtype=torch.float64)
    before, after = (
        torch.pdist(some.flatten(1).double())
        for some in (images, transform(images.double(), matrix))
    )
    errors = (matrix.T @ matrix - identity, matrix @ matrix - identity, after / before - 1)
    return [float(error.abs().max()) for error in errors]


def logistic_losses(matrix: Tensor, images: Tensor, labels: Tensor, seed: int = 0) -> Tensor:
    """Return the losses of logistic regression on transformed images, from correspondingly transformed weights.

    Args:
        matrix: (D, D) orthogonal matrix.
        images: normalised images (N, C, H, W), D = H W.
        labels: classes (N,), fewer than ten.
        seed: seed of the first weights and of the order of samples.
    """
    torch.manual_seed(seed)
    network = nc.LOGREG.build(images.shape[1], images.shape[-1], 10)
    weight = next(network.parameters())  # (10, C D)
    with torch.no_grad():
        weight.copy_(transform(weight.view(10, *images.shape[1:]), matrix).flatten(1))
    data = (transform(images, matrix), labels)
    recipe = replace(nc.CIFAR10_RECIPE, epochs=2)
    return nc.train_network(network, data, recipe=recipe, seed=seed, progress=False).losses


def flip_matrix(nads: nc.NADs) -> Tensor:
    """Return the flip, which exchanges the first NAD with the last, the second with the last but one, and so on."""
    return nads.basis.flip(1) @ nads.basis.T


def is_rotation(num_images: int = 250) -> Evidence:
    """Decide whether logistic regression trains on flipped images as on upright ones, and distances stay."""
    images = nc.load_images("generated", num_images=num_images, progress=False)
    normalised, matrix = nc.normalize(images.images), flip_matrix(nads_of_flips())
    upright, flipped = (
        logistic_losses(one, normalised, images.labels) for one in (torch.eye(len(matrix)), matrix)
    )
    gap = float((upright - flipped).abs().max())
    holds = gap < 0.01 and max(rotation_errors(matrix, images.images)) < 1e-3
    sentence = (
        f"Over {len(upright)} steps ({num_images} generated images) the two losses never differ by "
        "more than 0.01, and no distance changes by more than 1 in 1,000."
    )
    return evidence(holds, sentence)


def nads_of_flips(name: str = "lenet") -> nc.NADs:
    """Return the complete NADs by which the stored photos were flipped; today's, where a network has none stored."""
    results = load_results(f"fig8-{name}")
    return (results.experiment().nads if results else nc.load_nads(name)).completed()


# The cost


def widget() -> Changes:
    """Return the figure in which the reader flips a picture, with what the flip costs."""
    entries = []
    for name in MAPS:
        sides, settings = three_ways(name), maps(name).settings
        accuracies = {
            "upright": sides["upright"],
            "signs": sides["random signs"],
            "flipped": sides["flipped"],
        }
        caption = (
            f"Test accuracy of {NAMES[name]} ({report.badge(maps(name))}), trained and tested on "
            f"images changed like this: {settings['num_train']:,} photos, "
            f"{settings['recipe']['epochs']} epochs."
        )
        means = {label: mean(rows) for label, rows in accuracies.items()}
        entries.append({"key": name, "label": NAMES[name], "accuracies": means, "caption": caption})
    return Changes("flip", entries)


def plot_costs() -> Figure:
    """Draw the accuracies on upright and flipped photos, and the paper's."""
    tests: dict[str, Any] = {}
    trainings: dict[str, Any] = {}
    papers = {}
    for name, results in flips().items():
        panel = f"{LABELS[name]}, {results.settings['num_train']:,} photos"
        for key, panels in (("test_accuracy", tests), ("train_accuracy", trainings)):
            sides = sides_of(results)
            panels[panel] = {label: [row[key] for row in side] for label, side in sides.items()}
        if name in published.FLIP:
            papers[panel] = dict(zip(("upright", "flipped"), published.FLIP[name], strict=True))
    badge = report.badge(maps("lenet"))
    return figures.plot_representations(
        tests, 10_000, trainings, papers, images="photos", badge=badge
    )


def costs_at_full_size(name: str) -> Evidence:
    """Decide whether a network scores less on flipped photos, at the paper's size."""
    results = stored(f"fig8-{name}")
    sides = sides_of(results)
    upright, flipped = (mean(side) for side in sides.values())
    fitted = [100 * mean(side, "train_accuracy") for side in sides.values()]
    variance = pooled_variance([[row["test_accuracy"] for row in side] for side in sides.values()])
    loss = effect(upright, flipped, results.settings["num_test"]).replace("**", "")
    sentence = (
        f"**At the paper's size the flip {loss} of {LABELS[name]}'s accuracy.** Of the training "
        f"photos it gets {fitted[0]:.0f} % right upright, and {fitted[1]:.0f} % flipped."
    )
    facts = around(100 * (upright - flipped), 100 * variance.half_width(2, 2))
    return evidence(upright > flipped, sentence, results=[results], **facts)


def costs(name: str) -> Evidence:
    """Decide whether a network scores less on flipped photos, among the networks on mapped photos."""
    value, half, (upright, flipped) = compared(
        name, of_order(name, "kept"), of_order(name, "reversed")
    )
    return evidence(mean(upright) > mean(flipped), results=[maps(name)], **around(value, half))


def fits(name: str) -> dict[str, float]:
    """Return training accuracies in percent, and by how much they exceed test accuracies, upright and flipped."""
    sides = three_ways(name)
    trained = {
        label: 100 * mean(sides[label], "train_accuracy") for label in ("upright", "flipped")
    }
    gaps = {f"{label} gap": value - 100 * mean(sides[label]) for label, value in trained.items()}
    return trained | gaps


def fits_in_words(name: str) -> str:
    """Say how a network fits upright and flipped training photos."""
    found = fits(name)
    text = (
        f"{NAMES[name]} fits {found['upright']:.0f} % of its training photos upright and "
        f"{found['flipped']:.0f} % flipped"
    )
    if min(found["upright"], found["flipped"]) > 98:
        text += (
            f", and the gap between training and test grows from {found['upright gap']:.0f} to "
            f"{found['flipped gap']:.0f} points"
        )
    return text


def show_overfitting() -> None:
    """Show in which networks the flip goes with overfitting, and what it costs these."""
    show(
        "The paper explains the cost by overfitting. On the smaller training sets of the next "
        "section, we see this in some networks and not in others: "
        f"{'; '.join(map(fits_in_words, MAPS))}."
    )
    for name in MAPS:
        conclude(f"flip-costs-{name}")


def predicted_cost(name: str) -> Evidence:
    """Decide whether the flip costs a network what had been predicted: 5 to 25 points."""
    results = stored(f"fig8-{name}", "laptop")
    upright, flipped = (mean(side) for side in sides_of(results).values())
    cost = 100 * (upright - flipped)
    outcome = "held" if 5 <= cost <= 25 else "failed"
    sentence = (
        f"**{LABELS[name]}**, {results.settings['num_train']:,} photos, "
        f"{results.settings['recipe']['epochs']} epochs, one training each: {100 * upright:.1f} % "
        f"upright, {100 * flipped:.1f} % flipped. Predicted cost: 5 to 25 points. Measured: "
        f"{cost:.1f}. The prediction **{outcome}**."
    )
    return evidence(5 <= cost <= 25, sentence, value=cost, results=[results])


# Random signs


class Costs(NamedTuple):
    """What changes cost a network, in points, each with half of its interval.

    Attributes:
        flip: cost of the flip.
        signs: cost of random signs.
        beyond: what the flip costs beyond random signs.
        neighbours: correlation of neighbouring pixels: upright, with random signs, flipped.
    """

    flip: tuple[float, float]
    signs: tuple[float, float]
    beyond: tuple[float, float]
    neighbours: tuple[float, float, float]


@cache
def costs_of_changes(name: str) -> Costs:
    """Return what the flip and random signs cost a network."""
    kept, signed = of_order(name, "kept"), of_order(name, "kept", signs=True)
    reversed_ = of_order(name, "reversed")
    flip, flip_half, _ = compared(name, kept, reversed_)
    signs, signs_half, _ = compared(name, kept, signed)
    beyond, beyond_half, (with_signs, flipped) = compared(name, signed, reversed_)
    upright = three_ways(name)["upright"]
    return Costs(
        flip=(flip, flip_half),
        signs=(signs, signs_half),
        beyond=(beyond, beyond_half),
        neighbours=(
            mean(upright, "neighbours"),
            mean(with_signs, "neighbours"),
            mean(flipped, "neighbours"),
        ),
    )


def plot_signs() -> Figure:
    """Draw accuracies on photos as they are, with random signs, and flipped."""
    tests, trainings = (
        {
            NAMES[name]: {
                label: [row[key] for row in rows] for label, rows in three_ways(name).items()
            }
            for name in MAPS
        }
        for key in ("test_accuracy", "train_accuracy")
    )
    badge = report.badge(maps("lenet"))
    return figures.plot_representations(tests, 5_000, trainings, images="photos", badge=badge)


def signs_cost(name: str) -> Evidence:
    """Decide whether signs cost LeNet more than half of what the flip costs, and ResNet-18 all of it."""
    (whole, _), (signs, _), (value, half), neighbours = costs_of_changes(name)
    if name == "lenet":
        holds = value < whole / 2
    else:
        holds = abs(value) + half < whole / 4 and neighbours[1] < 0.1
    sentence = (
        f"The flip costs {NAMES[name]} {fixed(whole)} points, and random signs cost "
        f"**{fixed(signs)}**: a difference of {fixed(value)} ± {half:.1f} points."
    )
    interval = (1 - (value + half) / whole, 1 - (value - half) / whole)
    share = 1 - value / whole
    return evidence(holds, sentence, value=share, interval=interval, null=0.5, results=[maps(name)])


def lowers_match_and_smoothness() -> Evidence:
    """Decide whether the flip lowers both the match with LeNet and the smoothness of photos, by more than .2."""
    sides = three_ways("lenet")
    upright, flipped = sides["upright"], sides["flipped"]
    smaller = min(mean(upright, key) - mean(flipped, key) for key in ("match", "neighbours"))
    return evidence(smaller > 0.2, value=smaller, results=[maps("lenet")])


def show_costs_of_signs() -> None:
    """Show what random signs cost, and hand the sentence of the paper to the errata page."""
    for name in MAPS:
        conclude(f"signs-cost-{name}")
    conclude("flip-takes-three")
    errata.paste("flip", *map(minus, errata_texts()))
    conclude("errata-flip")


def errata_texts() -> tuple[str, str]:
    """Return what became of the paper's explanation by overfitting, and the numbers."""
    over = [NAMES[name] for name in MAPS if min(fits(name)["upright"], fits(name)["flipped"]) > 98]
    under = [NAMES[name] for name in MAPS if fits(name)["flipped"] < fits(name)["upright"] - 10]
    parts, costs_text = [], []
    if over:
        parts.append(f"overfitting is what we see in {' and '.join(over)}")
    if under:
        parts.append(f"{' and '.join(under)} fits flipped images less, too")
    for name in MAPS:
        (whole, whole_half), (signs, signs_half), (value, half), _ = costs_of_changes(name)
        parts.append(
            f"of the {whole:.1f} points that the flip costs {NAMES[name]}, {value:.1f} ± "
            f"{half:.1f} are beyond what random signs cost"
        )
        costs_text.append(
            f"{NAMES[name]}: flip {fixed(whole)} ± {whole_half:.1f}, random signs {fixed(signs)} ± "
            f"{signs_half:.1f}, beyond them {fixed(value)} ± {half:.1f}"
        )
    parts.append("whether the order counts by itself is open")
    numbers = (
        f"Points of test accuracy lost, {'; '.join(costs_text)}. "
        f"{'; '.join(map(fits_in_words, MAPS))}. At full scale see *Paper and ours* there."
    )
    return "; ".join(parts), numbers


def table_of_signs() -> None:
    """Show the costs of the flip and of random signs."""
    rows = []
    for name in MAPS:
        found = costs_of_changes(name)
        labels = {
            "the flip": found.flip,
            "random signs: the picture, and some or all smoothness": found.signs,
            "the flip beyond random signs": found.beyond,
        }
        rows += [
            [NAMES[name], label, f"{fixed(cost)} ± {half:.1f}"]
            for label, (cost, half) in labels.items()
        ]
    table(
        rows,
        ["network", "what is taken", "cost (points, ± 95 %)"],
        badge=report.badge(maps("lenet")),
    )


# Match and smoothness


def plot_maps(name: str, upright: bool = True) -> Figure:
    """Draw the accuracy of each kind of map against match and smoothness; lines connect an order with its reverse.

    Args:
        name: network.
        upright: whether photos as they are belong to it.
    """
    results = maps(name)
    kinds = {kind.label: kind for kind in by_kind(results)}
    example: dict[str, Row] = {}
    for row in results.rows:
        example.setdefault(kind_of(row), row)
    orders = [AS_THEY_ARE, "order kept", "shuffled", "order reversed", "random"]
    groups = {
        order: [kinds[label] for label, row in example.items() if order_of(row) == order]
        for order in (orders if upright else orders[1:])
    }
    if not upright:
        groups = {AS_THEY_ARE: [], **groups}
    places = {}
    for label, row in example.items():
        own = row["source"] == row["target"]
        if not (own and row["signs"]) and (upright or label != AS_THEY_ARE):
            places[row["source"], row["target"], row["order"]] = kinds[label]
    pairs = [
        (one, places[source, target, "reversed"])
        for (source, target, order), one in places.items()
        if order == "kept" and (source, target, "reversed") in places
    ]

    def points(some: Sequence[KindOfMap], key: str) -> tuple[list[float], list[float]]:
        return [getattr(kind, key) for kind in some], [kind.test_accuracy for kind in some]

    panels = {
        label: {order: points(some, key) for order, some in groups.items()}
        for label, key in COLUMNS.items()
    }
    lines = [[points(pair, key) for pair in pairs] for key in COLUMNS.values()]
    level = {}
    if name == "lenet":  # logistic regression was trained at its size
        rows = stored("maps-logreg", "laptop").rows
        level = {"logistic regression": mean(rows)}
    return figures.plot_scatter(
        panels, "test accuracy (%)", level, lines, badge=report.badge(results)
    )


class Regression(NamedTuple):
    """What match and smoothness say about the accuracy of kinds of maps.

    Attributes:
        effects: points for one standard deviation of each, the other held.
        alone: share of the variance that each explains alone.
        together: rank correlation of the two.
        num_kinds: number of kinds of maps.
    """

    effects: Mapping[str, Any]
    alone: Mapping[str, float]
    together: float
    num_kinds: int


@cache
def regressed(name: str, without: str = "") -> Regression:
    """Regress the accuracy of a network on match and smoothness, over maps that take the picture.

    Args:
        name: network.
        without: basis whose maps are left out.
    """
    results = maps(name)
    lost = [
        row for row in results.rows if order_of(row) != AS_THEY_ARE and row["target"] != without
    ]
    chosen = {kind_of(row) for row in lost}
    kinds = [kind for kind in by_kind(results) if kind.label in chosen]
    predictors = {
        "match": np.array([kind.match for kind in kinds]),
        "smoothness": np.array([kind.neighbours for kind in kinds]),
    }
    accuracies = 100 * np.array([kind.test_accuracy for kind in kinds])
    effects = regression(accuracies, predictors, [kind.label for kind in kinds], seed=0)
    alone = {
        key: float(np.corrcoef(values, accuracies)[0, 1] ** 2) for key, values in predictors.items()
    }
    together = statistics.rank_correlation(predictors["match"], predictors["smoothness"])
    return Regression(effects, alone, together, len(kinds))


def match_goes_with_smoothness() -> Evidence:
    """Decide whether match and smoothness are so correlated over LeNet's maps that they cannot be distinguished."""
    found = regressed("lenet")
    sentence = (
        f"**Over {found.num_kinds} kinds of maps, match and smoothness have a rank correlation of "
        f"{found.together:.2f}.** Their effects are hard to distinguish."
    )
    return evidence(found.together > 0.9, sentence, value=found.together, results=[maps("lenet")])


def equally_rough() -> Evidence:
    """Decide whether LeNet scores more on that of two equally rough sets which matches less."""
    value, half, sides = compared("lenet", onto("resnet18", "kept"), onto("resnet18", "reversed"))
    kept_match, reversed_match = (mean(side, "match") for side in sides)
    first, last = (
        100 * share_on_lines("resnet18", part) for part in (slice(0, 32), slice(-32, None))
    )
    sentence = (
        f"LeNet scores {-value:.1f} ± {half:.1f} points more on the set that matches less (match "
        f"{reversed_match:.3f} against {kept_match:.3f}). One reason may be the frequencies that "
        f"LeNet hardly sees: they hold {first:.0f} % of the energy of ResNet-18's first NADs, and "
        f"{last:.0f} % of the energy of its last ones."
    )
    holds = value + half < 0 and 0.05 > kept_match > reversed_match
    return evidence(holds, minus(sentence), results=[maps("lenet")], **around(-value, half))


def share_on_lines(name: str, part: slice) -> float:
    """Return the share of the energy of some NADs at 8 and 16 cycles up or across, which LeNet hardly sees."""
    directions = nc.load_nads(name, 2).completed().basis.T[part].view(-1, 32, 32)
    cycles = (torch.fft.fftfreq(32) * 32).abs()
    lines = (cycles % 8 == 0) & (cycles > 0)
    energies = torch.fft.fft2(directions.double(), norm="ortho").abs().square()
    return float((energies * (lines[:, None] | lines)).sum() / directions.square().sum())


def smoothness_counts(name: str) -> Evidence:
    """Decide whether smoother maps score more, with the match held."""
    found = regressed(name)
    smooth, match = found.effects["smoothness"], found.effects["match"]
    sentence = (
        f"**{NAMES[name]}**: over {found.num_kinds} kinds of maps, smoothness alone explains "
        f"{100 * found.alone['smoothness']:.0f} % of the variance and match alone "
        f"{100 * found.alone['match']:.0f} %. Smoothness is worth {smooth.value:+.1f} points "
        f"({smooth.low:+.1f} to {smooth.high:+.1f}) with the match held, and the match "
        f"{match.value:+.1f} ({match.low:+.1f} to {match.high:+.1f}) with smoothness held. Such "
        "intervals are rough: the kinds are few, and one map with a match of 1 weighs much."
    )
    facts = {"value": smooth.value, "interval": (smooth.low, smooth.high), "null": 0}
    return evidence(smooth.high > 0, minus(sentence), results=[maps(name)], **facts)


def match_over_fourier() -> Evidence:
    """Decide whether principal components on LeNet's NADs score more than on the Fourier basis."""
    value, half, _ = compared("lenet", onto("lenet", "kept"), onto("fourier", "kept"))
    sentence = (
        "Principal components on LeNet's own NADs are less smooth than on the Fourier basis, but "
        f"they match better: LeNet's accuracy differs by {fixed(value, sign=True)} ± {half:.1f} "
        "points."
    )
    return evidence(value > 0, sentence, results=[maps("lenet")], **around(value, half))


def order_within_octaves() -> Evidence:
    """Decide whether the order within an octave of indices is worth less than 1.5 points to LeNet."""
    value, half, _ = compared("lenet", onto("lenet", "kept"), onto("lenet", "shuffled in octaves"))
    sentence = (
        f"The order within an octave of indices is worth {fixed(value, sign=True)} ± {half:.1f} "
        "points to LeNet: such an experiment is about bands, not single directions."
    )
    interval = (value - half, value + half)
    return evidence(
        abs(value) + half < 1.5, sentence, results=[maps("lenet")], value=value, interval=interval
    )


def table_of_regressions() -> None:
    """Show what match and smoothness explain, with and without the maps onto the Fourier basis."""
    rows = []
    for name in MAPS:
        for label, without in (("all", ""), ("without the Fourier basis", "fourier")):
            found = regressed(name, without)
            for key, one in found.effects.items():
                points = estimate((one.value, one.low, one.high), 1, True)
                explained = f"{100 * found.alone[key]:.0f} %"
                rows.append(
                    [
                        f"{NAMES[name]}, {label}",
                        key,
                        points,
                        explained,
                        fixed(found.together, 2, True),
                    ]
                )
    head = [
        "maps that take the picture",
        "",
        "points for one standard deviation, the other held (95 %, kinds of maps drawn again)",
        "variance that it explains alone",
        "rank correlation of the two",
    ]
    table(rows, head, badge=report.badge(maps("lenet")))


def table_of_maps(name: str) -> None:
    """Show match, smoothness and accuracies of each kind of map."""
    rows = []
    for kind in by_kind(maps(name)):
        half = f" ± {kind.half:.1f}" if np.isfinite(kind.half) else ""
        rows.append(
            [
                kind.label,
                f"{kind.match:.2f}",
                fixed(kind.neighbours, 2),
                f"**{100 * kind.test_accuracy:.1f} %**{half}",
                f"{100 * kind.train_accuracy:.1f} %",
                kind.num_networks,
            ]
        )
    head = ["match", "smoothness", "test accuracy (± 95 %)", "training accuracy", "networks"]
    table(rows, [NAMES[name], *head], badge=report.badge(maps(name)))


# ResNet-18: maps of equal smoothness


class RoughMaps(NamedTuple):
    """The kinds of maps after which neighbouring pixels are uncorrelated, by their match with ResNet-18."""

    large: list[KindOfMap]
    middle: list[KindOfMap]
    small: list[KindOfMap]

    @property
    def rest(self) -> list[KindOfMap]:
        """All but those that match best."""
        return self.middle + self.small


@cache
def rough_maps() -> RoughMaps:
    """Return the equally rough kinds of maps of ResNet-18.

    Raises:
        ValueError: if fewer than half of its maps are rough, so that smoothness is not held fixed.
    """
    kinds = by_kind(maps("resnet18"))
    if sum(abs(kind.neighbours) < 0.03 for kind in kinds) <= len(kinds) / 2:
        raise ValueError(
            "after most maps onto ResNet-18's NADs, neighbouring pixels must be uncorrelated"
        )
    rough = [kind for kind in kinds if abs(kind.neighbours) < 0.05]
    limits = ((0.2, 2.0), (0.05, 0.2), (-1.0, 0.05))
    return RoughMaps(
        *([kind for kind in rough if low <= kind.match < high] for low, high in limits)
    )


def difference(one: Sequence[KindOfMap], other: Sequence[KindOfMap]) -> tuple[float, float]:
    """Return the difference of two groups of kinds of ResNet-18's maps in points, and half of its interval."""
    results = maps("resnet18")
    labels = [{kind.label for kind in side} for side in (one, other)]
    rows = [[row for row in results.rows if kind_of(row) in side] for side in labels]
    return 100 * (mean(rows[0]) - mean(rows[1])), half_interval(results, *rows)


def match_is_open() -> Evidence:
    """Decide whether match and accuracy have no significant rank correlation over equally rough maps."""
    from scipy.stats import spearmanr

    rough = [kind for kind in by_kind(maps("resnet18")) if abs(kind.neighbours) < 0.05]
    rho, p_value = spearmanr([kind.match for kind in rough], [kind.test_accuracy for kind in rough])
    # Fisher's transform: artanh(rho) has a standard error of about 1 / sqrt(n - 3).
    interval = np.tanh(np.arctanh(rho) + np.array([-1.96, 1.96]) / np.sqrt(len(rough) - 3))
    sentence = (
        f"**Over {len(rough)} equally rough kinds of maps, match and accuracy have a rank "
        f"correlation of {rho:.2f} (p = {p_value:.2f}).**"
    )
    return evidence(
        p_value > 0.05,
        minus(sentence),
        value=rho,
        interval=[*interval],
        null=0,
        results=[maps("resnet18")],
    )


def best_matches_score_higher() -> Evidence:
    """Decide whether the maps that match best score higher than the others, though accuracy does not follow further."""
    groups = rough_maps()
    best, graded = difference(groups.large, groups.rest), difference(groups.middle, groups.small)
    steeper = [kind.match for kind in sorted(groups.large, key=lambda kind: kind.test_accuracy)]
    count = "two" if len(groups.large) == 2 else len(groups.large)
    matches = " and ".join(f"{match:.2f}" for match in sorted(steeper))
    largest = max(kind.match for kind in groups.middle)
    sentence = (
        f"But the {count} that match best ({matches}) score {best[0]:.1f} ± {best[1]:.1f} points "
        f"more than the other {len(groups.rest)}, whose match is {largest:.2f} or less. Accuracy "
        "does not follow the match any further: the better match of the two scores lower, and "
        f"among the others a larger match gains nothing ({plus(*graded)}). So a large match may "
        "help, or something else that these two maps share. Intervals are over trainings; each "
        "map was drawn once."
    )
    holds = best[0] > best[1] and steeper == sorted(steeper, reverse=True)
    return evidence(holds, minus(sentence), results=[maps("resnet18")], **around(*best))


def predictions_for_the_order() -> dict[str, tuple[float, float]]:
    """Return by how much the order kept beats what it was predicted to beat, in points with half of the interval."""
    kept = onto("resnet18", "kept")
    others = {
        "*better than a random basis*": {"target": "random"},
        "*better than a shuffled order*": onto("resnet18", "shuffled"),
        "*better than an order shuffled within octaves*": onto("resnet18", "shuffled in octaves"),
    }
    return {what: compared("resnet18", kept, other)[:2] for what, other in others.items()}


def order_beats_shuffled() -> Evidence:
    """Decide whether the order kept beats all three."""
    found = list(predictions_for_the_order().values())
    value, half = found[2]
    holds = all(value > half for value, half in found)
    return evidence(
        holds, value=value, interval=(value - half, value + half), results=[maps("resnet18")]
    )


def smoothness_is_open() -> Evidence:
    """Record that two pairs of a smooth and a rough set disagree, so that nothing is decided."""
    return evidence(None, results=[maps("resnet18")])


def flips_by_other_nads() -> list[tuple[float, float]]:
    """Return by how much ResNet-18's flip by its own NADs differs from flips by LeNet's NADs and of frequencies."""
    own = of_order("resnet18", "reversed")
    return [
        compared("resnet18", own, of_order(other, "reversed"))[:2] for other in ("lenet", "fourier")
    ]


def own_flip() -> Evidence:
    """Decide whether the flip by a network's own NADs is the worst: open while no difference is resolved."""
    found = flips_by_other_nads()
    unresolved = all(abs(value) < half for value, half in found)
    return evidence(None if unresolved else False, value=found[0][0], results=[maps("resnet18")])


def show_match_of_resnet18() -> None:
    """Show what is known about the match where smoothness is held fixed."""
    for key in (
        "match-open",
        "best-matches",
        "order-beats-shuffled",
        "smoothness-open",
        "own-flip",
    ):
        conclude(key)
        if key == "order-beats-shuffled":
            show(
                f"Our predictions for the order kept: {'; '.join(map(in_words, predictions_for_the_order().items()))}."
            )
            smooth = [
                compared("resnet18", onto(target, "kept"), onto(target, "reversed"))[:2]
                for target in ("fourier", "lenet")
            ]
            show(
                minus(
                    "It is also open whether smoothness counts. In two pairs of maps, a smooth "
                    "and a rough set match ResNet-18 about equally. The lead of the smooth set is "
                    f"{plus(*smooth[0])} points on the Fourier basis, and {plus(*smooth[1])} "
                    "points on LeNet's NADs."
                )
            )


def in_words(prediction: tuple[str, tuple[float, float]]) -> str:
    """Say what became of a prediction."""
    what, (value, half) = prediction
    outcome = "held" if value > half else "failed" if value < -half else "is not resolved"
    return f"{what} {outcome} ({minus(plus(value, half))} points)"


def checkerboard_cosine(name: str) -> float:
    """Return the cosine of C and of C after every image is multiplied by a checkerboard."""
    nads, rows = nc.load_nads(name).completed(), torch.arange(32)
    values = nads.eigenvalues.double()
    board = (1.0 - 2 * ((rows[:, None] + rows) % 2)).flatten()
    overlaps = (nads.basis.T @ (board[:, None] * nads.basis)).double().square()
    return float(values @ overlaps @ values / values.square().sum())


def show_details_of_resnet18() -> None:
    """Show the regression over ResNet-18's maps, the symmetry of two of them, and flips by other NADs."""
    rest = [
        kind
        for kind in by_kind(maps("resnet18"))
        if kind.label != AS_THEY_ARE and kind not in rough_maps().large
    ]
    predictors = {
        "match": np.array([kind.match for kind in rest]),
        "neighbours": np.array([kind.neighbours for kind in rest]),
    }
    accuracies = 100 * np.array([kind.test_accuracy for kind in rest])
    without = regression(accuracies, predictors, [kind.label for kind in rest], seed=0)["match"]
    match = regressed("resnet18").effects["match"]
    by_lenet, by_frequency = flips_by_other_nads()
    unresolved = own_flip().holds is None
    show(
        minus(
            "The regression over all maps that take the picture gives the match "
            f"{match.value:+.1f} points per standard deviation ({match.low:+.1f} to "
            f"{match.high:+.1f}), with smoothness held. This rests on the two best matches: "
            f"without them it is {without.value:+.1f} ({without.low:+.1f} to {without.high:+.1f}). "
            "The two Fourier sets are related by a symmetry: one is nearly the other times a "
            "checkerboard, and ResNet-18's C hardly changes when images are multiplied by a "
            f"checkerboard (cosine {checkerboard_cosine('resnet18'):.3f}; LeNet's "
            f"{checkerboard_cosine('lenet'):.3f}). Is the flip by a network's own NADs the worst? "
            f"{'No difference is resolved' if unresolved else 'There are differences'}: with its "
            f"own flip, ResNet-18's accuracy differs by {plus(*by_lenet)} points from that with a "
            f"flip by LeNet's NADs, and by {plus(*by_frequency)} from that with a flip of "
            "frequencies."
        )
    )
    table_of_maps("resnet18")
    for name in MAPS:
        draws = len({row["draw"] for row in maps(name).rows})
        remark = f", at most {draws} draw{'s' * (draws > 1)} of each map"
        show(f"{NAMES[name]}: {report.size_of_run(maps(name), 'training images', remark)}.")


# Paper and ours


def table_of_paper() -> None:
    """Show the paper's accuracies and ours."""
    rows = []
    for name, accuracies in published.FLIP.items():
        paper = " → ".join(f"{100 * value:.0f} %" for value in accuracies)
        ours, photos = "not run", "–"
        if name in flips():
            sides = sides_of(flips()[name]).values()
            ours = " → ".join(f"{100 * mean(side):.0f} %" if side else "–" for side in sides)
            photos = f"{flips()[name].settings['num_train']:,}"
        rows.append([LABELS[name], paper, ours, photos])
    below = (
        "Test accuracy, upright → flipped; *photos* is the number of photos that ours learned from."
    )
    table(rows, ["network", "paper", "ours", "photos"], below, badge="CIFAR-10")


def show_trainings(name: str = "lenet") -> None:
    """Show what was trained at the paper's size, and how similar the flips of two versions of the NADs are.

    Args:
        name: network whose NADs are compared.
    """
    for key, results in at_full_size().items():
        show(f"{LABELS[key]}: {report.size_of_run(results)}, {report.place_of_run(results)}.")
    nads, newest = nads_of_flips(name), nc.load_nads(name).completed()
    known = ""
    if newest.certificates:
        certain = int((newest.certainty >= 0.9).sum())
        known = f"{certain} of {len(newest)} NADs are certain above 0.9. "
    if nads.fingerprint == newest.fingerprint:
        show(f"{known}These results are about the newest NADs.")
        return
    cosines = (nads.basis.T @ newest.basis).square()
    exchanged = float((cosines * cosines.flip(0, 1)).sum()) / len(
        nads
    )  # of pairs, whatever their signs
    trace = float((flip_matrix(nads) * flip_matrix(newest)).sum()) / len(nads)  # of two rotations
    show(
        f"{known}A flip exchanges pairs of directions. Of these pairs, **{100 * exchanged:.0f} %** "
        f"agree between version {nads.provenance['version']} and version "
        f"{newest.provenance['version']} of the NADs, up to signs (the same flip would give 100 %, "
        "an unrelated one 0.1 %). The normalised trace of the two rotations, tr(Q₁ᵀQ₂)/D, is "
        f"{fixed(trace, 2)}; for equal rotations it would be 1."
    )


def representations(nads: nc.NADs, images: Tensor, generator: torch.Generator) -> dict[str, Tensor]:
    """Return eight orthogonal maps of images, each (D, D).

    Args:
        nads: complete NADs.
        images: normalised images (N, C, H, W), whose principal components some maps move.
        generator: source of random signs, orders and rotations.
    """
    basis, size = nads.basis, len(nads.basis)
    signs = 2.0 * torch.randint(2, (size,), generator=generator) - 1
    values = images.flatten(0, 1).flatten(1)
    components = torch.linalg.eigh(values.T @ values)[1].flip(
        1
    )  # principal components, largest first
    directions, frequencies = nc.fourier_basis(images.shape[-1])
    fourier = directions.flatten(1)[frequencies.square().sum(1).argsort(stable=True)].T
    return {
        "upright": torch.eye(size),
        "random signs": (basis * signs) @ basis.T,
        "PCA on NADs": basis @ components.T,
        "shuffled": basis[:, torch.randperm(size, generator=generator)] @ basis.T,
        "random rotation": torch.linalg.qr(torch.randn(size, size, generator=generator))[0],
        "flipped": flip_matrix(nads),
        "PCA on NADs, flipped": basis.flip(1) @ components.T,
        "Fourier, flipped": fourier.flip(1) @ fourier.T,
    }


CLAIMS: dict[str, Callable[[], Evidence]] = {
    "flip-is-rotation": is_rotation,
    "flip-full-lenet": lambda: costs_at_full_size("lenet"),
    "flip-costs-lenet": lambda: costs("lenet"),
    "flip-costs-resnet18": lambda: costs("resnet18"),
    "flip-predicted-vgg11": lambda: predicted_cost("vgg11"),
    "flip-predicted-resnet18": lambda: predicted_cost("resnet18"),
    "signs-cost-lenet": lambda: signs_cost("lenet"),
    "signs-cost-resnet18": lambda: signs_cost("resnet18"),
    "flip-takes-three": lowers_match_and_smoothness,
    "errata-flip": lambda: evidence(None, size="live"),
    "match-with-smoothness": match_goes_with_smoothness,
    "equally-rough": equally_rough,
    "smoothness-lenet": lambda: smoothness_counts("lenet"),
    "smoothness-resnet18": lambda: smoothness_counts("resnet18"),
    "match-over-fourier": match_over_fourier,
    "octave-order": order_within_octaves,
    "match-open": match_is_open,
    "best-matches": best_matches_score_higher,
    "order-beats-shuffled": order_beats_shuffled,
    "smoothness-open": smoothness_is_open,
    "own-flip": own_flip,
}
