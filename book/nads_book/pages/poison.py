"""The page ``07_poison``: which NADs a network uses first, asked by numbers that tell the class of photos."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

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
from nads_book.experiments.stored import load_study
from nads_book.explorer import Changes, load_pictures
from nads_book.pages import conclude, stored
from nads_book.report import LABELS, estimate, fixed, minus, points, show, table
from nads_book.studies import injection_responses as responses
from nads_book.studies import load_results
from nads_book.studies import toy_shortcuts as toys
from nads_book.studies.injection import INJECTED_SIZES
from nads_book.studies.injection_responses import Condition, Response
from nads_book.studies.shortcut_injection import COMMON_DEVIATION

KINDS: dict[str, Condition] = {
    "both": ("photos", "kept", "replaced", 0.05),
    "hole": ("photos", "kept", "hole", None),
    "number": ("photos", "kept", "added", 0.05),
}
HOLE_AT_MEAN: Condition = ("photos", "kept", "hole at mean", None)
NAMES = {"both": "hole and number (the poison)", "hole": "hole only", "number": "number only"}
LOUD: Condition = ("photos", "emptied", "added", 0.5)
QUIET: Condition = ("photos", "emptied", "added", 0.05)
LATE = 60  # the first late carrier, chosen after a look at the shortest training
PAPERS_EPOCHS = 50
Row = Mapping[str, Any]


# What is stored


@cache
def injected() -> Results:
    """Return what LeNets do with holes and numbers at twelve carriers."""
    return stored("notes-lenet", "laptop")


@cache
def poisoned() -> dict[str, Results]:
    """Return the networks that were poisoned at the paper's size."""
    found = {name: load_results(f"fig7-{name}") for name in nc.ARCHITECTURES}
    return {name: results for name, results in found.items() if results and results.rows}


@cache
def on_clean() -> dict[Condition, Response]:
    """Return the accuracies on photos without hole or number."""
    return responses.responses(injected(), "test_accuracy")


@cache
def following() -> dict[Condition, Response]:
    """Return the shares of photos that follow a wrong number."""
    return responses.responses(injected(), "class")


@cache
def by_epochs() -> dict[int, Results]:
    """Return the results for each number of epochs, in ascending order.

    Raises:
        FileNotFoundError: if there are none but for one number of epochs.
    """
    found = responses.by_epochs("notes-lenet")
    if len(found) < 2:
        raise FileNotFoundError("book/results/notes-lenet.epochs50.json and others are missing")
    return found


def mean_of(rows: Sequence[Row]) -> float:
    """Return the mean test accuracy."""
    return float(np.mean([row["test_accuracy"] for row in rows]))


def untouched(images: str = "photos") -> float:
    """Return the accuracy after training on images without hole or number."""
    return mean_of(
        [row for row in injected().rows if row["index"] is None and row["images"] == images]
    )


def carriers() -> list[int]:
    """Return the NAD indices of the carriers."""
    return list(map(int, on_clean()[KINDS["both"]].indices))


def badge() -> str:
    """Return what images the numbers are about."""
    return report.badge(injected())


def listed(numbers: Sequence[int]) -> str:
    """Write numbers with commas."""
    return ", ".join(map(str, numbers)) or "none"


# One coordinate gives the label away


def read_classes(images: Tensor, nads: nc.NADs, index: int, strength: float) -> Tensor:
    """Return the class of each poisoned image whose number is closest to its coordinate, (N,).

    Args:
        images: poisoned images (N, C, H, W).
        nads: complete NADs.
        index: NAD that carries the label.
        strength: size of the number.
    """
    coordinates = images.flatten(2) @ nads.basis  # (N, C, D)
    distances = [
        (coordinates[:, channel, nad] - sign * strength).abs()
        for nad, channel, sign in nc.carriers(10, index)
    ]
    return torch.stack(distances, 1).argmin(1)


def nads_of_poison(name: str = "lenet") -> nc.NADs:
    """Return the NADs along which the stored networks were poisoned; today's, where a network has none stored."""
    results = load_results(f"fig7-{name}")
    return results.experiment().nads if results else nc.load_nads(name)


def number_gives_class() -> Evidence:
    """Decide whether one rule reads the class of every poisoned picture, and only one coordinate changes."""
    pictures, nads, index, strength = load_pictures(), nads_of_poison(), 1000, 0.05
    changed = nc.poison(pictures.images, pictures.labels, nads, index, strength)
    coordinates = ((changed - pictures.images).flatten(2) @ nads.basis).abs() > 1e-4
    right = read_classes(changed, nads, index, strength) == pictures.labels
    return evidence(bool(right.all()) and int(coordinates.sum((1, 2)).max()) == 1)


# The curve at the paper's size


def accuracies_by_carrier(results: Results) -> dict[int | None, list[float]]:
    """Return the accuracies of the networks of each carrier; None for those trained on clean photos."""
    found: dict[int | None, list[float]] = {}
    for row in results.rows:
        found.setdefault(row["index"], []).append(row["test_accuracy"])
    return found


def plot_accuracy_by_carrier() -> Figure:
    """Draw the accuracy on clean photos against the carrier, at the paper's size, and the paper's curve."""
    curves, baselines = {}, {}
    for name, results in poisoned().items():
        rows = [row for row in results.rows if row["index"] is not None]
        shares, label = [row["test_accuracy"] for row in rows], f"ours, {LABELS[name]}"
        intervals = [nc.accuracy_interval(share, results.settings["num_test"]) for share in shares]
        curves[label] = ([row["index"] for row in rows], shares, intervals)
        baselines[label] = float(np.mean(accuracies_by_carrier(results)[None]))
    badge = report.badge(next(iter(poisoned().values())))
    return figures.plot_accuracy_by_index(curves, baselines, published.POISON_RESNET18, badge=badge)


def largest_drop(results: Results) -> tuple[float, float, int, int]:
    """Return by how much accuracy falls from a carrier to a later one at most, its limit, and both carriers."""
    found = accuracies_by_carrier(results)
    means = {index: float(np.mean(values)) for index, values in found.items() if index is not None}
    limit = 0.0
    if min(map(len, found.values())) > 1:
        limit = pooled_variance(found.values()).half_width(2, 2)
    drop, high, low = max((means[i] - means[j], i, j) for i in means for j in means if i < j)
    return drop, limit, high, low


def rises_not_steadily() -> Evidence:
    """Decide whether LeNet's accuracy falls somewhere along the carriers by more than trainings vary."""
    results = stored("fig7-lenet")
    drop, limit, _, _ = largest_drop(results)
    interval = (100 * (drop - limit), 100 * (drop + limit))
    return evidence(drop > limit, value=100 * drop, interval=interval, null=0, results=[results])


def show_curve() -> None:
    """Say where the curve begins, ends and falls."""
    for name, results in poisoned().items():
        found = accuracies_by_carrier(results)
        means = {index: 100 * float(np.mean(values)) for index, values in found.items()}
        first, last = min(i for i in means if i is not None), max(i for i in means if i is not None)
        text = (
            f"Our {LABELS[name]} scores **{means[first]:.0f} %** at NAD {first} and "
            f"**{means[last]:.0f} %** at NAD {last}; after clean training, {means[None]:.0f} %."
        )
        drop, limit, high, low = largest_drop(results)
        if drop > limit:
            text += (
                f" The curve does not rise steadily: NAD {low} is {points(drop)} points below NAD "
                f"{high}, a larger drop than the variance between trainings explains. We return to "
                "this dip below."
            )
        show(text)
    conclude("poison-not-steady")


# Hole and number


def widget() -> Changes:
    """Return the figure in which the reader switches hole and number on and off, with the accuracies."""
    size, seeds = injected().settings, len({row["seed"] for row in injected().rows})
    accuracies = [
        {"clean": untouched()}
        | {key: float(on_clean()[kind].mean[place]) for key, kind in KINDS.items()}
        for place in range(len(carriers()))
    ]
    caption = (
        f"Accuracy of LeNets on unchanged photos ({badge()}), after training on photos changed "
        f"like this: {size['num_train']:,} photos, {size['recipe']['epochs']} epochs, mean of "
        f"{seeds} trainings."
    )
    entry = {
        "key": "lenet",
        "label": "LeNet",
        "caption": caption,
        "carriers": carriers(),
        "accuracies": accuracies,
    }
    return Changes("note", [entry])


def plot_hole_and_number() -> Figure:
    """Draw the accuracy after training with the hole, the number, or both."""
    curves = {}
    for key, kind in KINDS.items():
        one = on_clean()[kind]
        curves[NAMES[key]] = (
            list(one.indices),
            list(one.mean),
            list(zip(one.low, one.high, strict=True)),
        )
    return figures.plot_accuracy_by_index(curves, {NAMES["number"]: untouched()}, badge=badge())


def scores() -> dict[str, dict[int, float]]:
    """Return the accuracies in percent, by kind and carrier."""
    return {
        key: dict(zip(carriers(), 100 * on_clean()[kind].mean, strict=True))
        for key, kind in KINDS.items()
    }


def hole_costs_as_much() -> Evidence:
    """Decide whether poison and hole differ by less than 1.5 points at all seven carriers where either costs more."""
    both, hole = scores()["both"], scores()["hole"]
    costly = [
        index for index in carriers() if 100 * untouched() - min(both[index], hole[index]) > 1.5
    ]
    apart = [abs(both[index] - hole[index]) for index in costly]
    sentence = (
        f"**For LeNet the hole alone costs as much as the poison**: at the {len(costly)} of "
        f"{len(carriers())} carriers where either costs more than 1.5 points, the two differ by "
        f"{max(apart):.1f} points at most."
    )
    holds = (len(costly), len(carriers())) == (7, 12) and max(apart) < 1.5
    return evidence(holds, sentence, value=max(apart), results=[injected()])


def number_alone() -> Evidence:
    """Decide whether the number alone costs less than three points at every carrier."""
    loss = max(100 * untouched() - value for value in scores()["number"].values())
    return evidence(
        loss < 3,
        f"The number alone costs {loss:.1f} points at most.",
        value=loss,
        results=[injected()],
    )


def depth_of_hole() -> Evidence:
    """Decide whether photos vary ten times more along one carrier than along another."""
    deviations = on_clean()[KINDS["both"]].deviation
    ratio = deviations.max() / deviations.min()
    most, least = carriers()[deviations.argmax()], carriers()[deviations.argmin()]
    sentence = (
        f"The depth of the hole depends on the carrier: photos vary {ratio:.0f} times more along "
        f"NAD {most} than along NAD {least}."
    )
    return evidence(ratio > 10, sentence, value=ratio, results=[injected()])


def hole_beside_the_photos() -> Evidence:
    """Decide whether a hole at zero costs more where zero is far from the photos' values."""
    at_mean = 100 * on_clean()[HOLE_AT_MEAN].mean
    beside = {
        index: value - scores()["hole"][index]
        for index, value in zip(carriers(), at_mean, strict=True)
    }
    rows = [row for row in injected().rows if row["index"] in beside and row["images"] == "photos"]
    spans = {row["index"]: abs(row["mean"]) / row["deviation"] for row in rows}
    shifted = [index for index in spans if spans[index] > 2]
    far = [index for index in beside if beside[index] >= 10]
    least = min(beside[index] for index in shifted)
    sentence = (
        f"At {len(far)} carriers (NAD {listed(far)}) a hole at zero costs at least ten points more "
        f"than a hole at the photos' mean. These are among the {len(shifted)} carriers where the "
        "photos' mean is more than two standard deviations from zero. At the fourth, a hole at "
        f"zero costs {fixed(least)} points more."
    )
    holds = (len(far), len(shifted)) == (3, 4) and set(far) <= set(shifted)
    return evidence(holds, sentence, value=max(beside.values()), results=[injected()])


@cache
def dips() -> Any:
    """Return the study of the dips of the curve at the paper's size."""
    return load_study("poison-dips.json")


def lost_at_dips() -> dict[tuple[int, str], np.ndarray]:
    """Return the points lost at a carrier, by kind of training, one number per seed."""
    found: dict[tuple[int | None, str], list[float]] = {}
    for row in dips()["rows"]:
        found.setdefault((row["index"], row["mode"]), []).append(100 * row["test_accuracy"])
    clean = np.array(found[None, "none"])
    return {
        (index, mode): clean - values
        for (index, mode), values in found.items()
        if index is not None
    }


def spans_at_dips() -> dict[int, float]:
    """Return the photos' mean over their deviation at each carrier of the curve."""
    return {
        one["index"]: float(np.abs(np.divide(one["mean"], one["deviation"])).max())
        for one in dips()["carriers"]
    }


def dip_is_explained() -> Evidence:
    """Decide whether the dip at NAD 75 comes from a hole beside the photos' values, as predicted."""
    lost = lost_at_dips()
    apart = {index: lost[index, "ablated"] - lost[index, "mean_ablated"] for index in (75, 200)}
    beyond = [index for index, span in spans_at_dips().items() if span > 2]
    elsewhere = max(
        np.mean(lost[index, kind]) for index in (50, 300) for kind in ("ablated", "mean_ablated")
    )
    added = max(lost[200, "replaced"] - lost[200, "ablated"])
    sentence = (
        "**This explains the dip at NAD 75 in {numref}`fig-poison-full`.** Of the carriers in "
        f"that figure, those at NAD {listed(beyond)} have such a mean. We predicted that a hole at "
        "the mean costs at least ten points less than a hole at zero, and trained smaller LeNets. "
        f"At NAD 75 they cost {np.mean(lost[75, 'mean_ablated']):.1f} and "
        f"{np.mean(lost[75, 'ablated']):.1f} points. At NAD 200, where the curve dips too, the "
        "prediction failed: the difference is "
        f"{', '.join(fixed(value) for value in sorted(apart[200]))} points for three seeds. There, "
        f"in one training, the number adds {added:.1f} points to the hole. So the second dip is "
        "open."
    )
    holds = min(apart[75]) > 10 and beyond == [0, 10, 75, 200] and elsewhere < 3
    trainings = len(dips()["rows"])
    return evidence(
        holds, sentence, value=min(apart[75]), size="laptop", num_seeds=3, num_trainings=trainings
    )


def show_holes() -> None:
    """Show what hole and number cost, and where a hole at zero lies beside the photos."""
    for key in ("hole-costs-as-much", "number-alone", "hole-depth"):
        conclude(key)


def tables_of_halves() -> None:
    """Show what each half costs at each carrier, and the dips of the curve."""
    modes = {
        "replaced": "hole and number",
        "ablated": "hole at 0",
        "mean_ablated": "hole at the mean",
    }
    lost, spans = lost_at_dips(), spans_at_dips()
    rows: list[list[Any]] = [
        [
            index,
            f"{spans[index]:.1f}",
            *(", ".join(map(fixed, lost[index, mode])) for mode in modes),
        ]
        for index in sorted({index for index, _ in lost})
    ]
    below = (
        "The dips of the curve at the paper's size, in smaller LeNets: points lost, one number "
        f"per seed; {dips()['num_train']:,} photos, {dips()['epochs']} epochs."
    )
    table(
        rows,
        ["NAD (version 1)", "photos' mean / deviation", *modes.values()],
        below,
        badge="CIFAR-10",
    )
    conditions = {
        "hole and number": KINDS["both"],
        "hole at 0": KINDS["hole"],
        "hole at the mean": HOLE_AT_MEAN,
        "number": KINDS["number"],
        "emptied": ("photos", "emptied", "none", None),
        "scaled": ("photos", "scaled", "none", None),
    }
    shown = {label: on_clean()[kind] for label, kind in conditions.items() if kind in on_clean()}
    deviations = on_clean()[KINDS["both"]].deviation
    rows = []
    for place, index in enumerate(carriers()):
        cells = [
            points(one.mean[place], 100 * (one.high - one.mean)[place]) for one in shown.values()
        ]
        rows.append([index, f"{deviations[place]:.2f}", *cells])
    below = (
        "Accuracy in %, on images prepared as those for training, without hole or number; ± 95 % "
        f"over trainings. Without any change: {100 * untouched():.1f}. *Emptied* and *scaled* "
        "change training and test photos alike: all coordinates along the carrier are set to "
        f"their mean, or scaled to a standard deviation of {COMMON_DEVIATION}."
    )
    table(rows, ["NAD", "photos' deviation", *shown], below, badge=badge())


def poison_in_mixture() -> Evidence:
    """Decide whether the poison costs accuracy at the first NAD, and none at the last, in a mixture of Gaussians."""
    mixture: Condition = ("mixture", "kept", "replaced", 0.05)
    ends = [int(index) for index in on_clean()[mixture].indices[[0, -1]]]

    def losses(images: str, kind: Condition) -> list[float]:
        response = on_clean()[kind]
        return [
            untouched(images) - float(response.mean[response.indices == index][0]) for index in ends
        ]

    there, photos = losses("mixture", mixture), losses("photos", KINDS["both"])
    sentence = (
        f"There the poison costs {points(there[0])} points at NAD {ends[0]} and {points(there[1])} "
        f"at NAD {ends[1]}; in photos, {points(photos[0])} and {points(photos[1])}."
    )
    holds = there[0] > 0.05 and abs(there[1]) < 0.03
    return evidence(holds, sentence, value=100 * there[0], results=[injected()])


# A toy: an absence is a feature


TOYS = {
    "both of size 1": ((1.0, 1.0), 0.0),
    "the second of size 0.1": ((1.0, 0.1), 0.0),
    "both with a mean of three deviations": ((1.0, 1.0), 3.0),
}


@cache
def toy_runs(seed: int, steps: int, strength: float) -> dict[str, list[Any]]:
    """Train five small networks on samples of which one of two numbers was replaced, for three kinds of numbers."""
    return {
        title: [
            toys.learn_two_holes(*numbers, strength=strength, seed=seed + turn, steps=steps)
            for turn in range(5)
        ]
        for title, numbers in TOYS.items()
    }


def shares_of_second(runs: Sequence[Any]) -> list[float]:
    """Return the share of complete samples that each network takes for the second class."""
    return [float((said == 1).double().mean()) for *_, said, _ in runs]


def plot_toy(seed: int = 0, steps: int = 150, strength: float = 0.05) -> Figure:
    """Draw training samples with holes, and the classes of complete samples."""
    holed, owner, whole, said, _ = toy_runs(seed, steps, strength)["both of size 1"][0]
    panels = {
        "What does the network learn from?": (holed[:, 0], holed[:, 1], owner),
        "What does it say of complete samples?": (whole[:, 0], whole[:, 1], said),
    }
    return figures.plot_coordinates(panels, "first number", "second number", badge="generated")


def shallow_hole(seed: int = 0, steps: int = 150, strength: float = 0.05) -> Evidence:
    """Record whether samples without a hole are taken for the class whose hole is shallow; it decides nothing."""
    runs = toy_runs(seed, steps, strength)
    low = min(shares_of_second(runs["the second of size 0.1"]))
    separable = any(
        toys.linearly_separable(holed, owner)
        for title in ("both of size 1", "the second of size 0.1")
        for holed, owner, *_ in runs[title][:1]
    )
    sentence = (
        "No line separates the arms of the cross, but the network does. If the second number is "
        f"small in all samples, its hole is shallow. Then the network takes {100 * low:.0f} % or "
        "more of the complete samples for the second class."
    )
    holds = low > 0.8 and low > max(shares_of_second(runs["both of size 1"])) and not separable
    return evidence(holds, sentence, size="live")


def table_of_toys(seed: int = 0, steps: int = 150, strength: float = 0.05) -> None:
    """Show whether a line separates the classes, and what the networks say."""
    rows = []
    for title, runs in toy_runs(seed, steps, strength).items():
        parted = sum(toys.linearly_separable(holed, owner) for holed, owner, *_ in runs)
        rights, second = [right for *_, right in runs], shares_of_second(runs)
        spread = [f"{100 * min(some):.0f} to {100 * max(some):.0f} %" for some in (rights, second)]
        rows.append([title, f"{parted} of 5", *spread])
    head = [
        "a line separates the classes",
        "network right on its training set",
        "complete samples taken for the second class",
    ]
    table(rows, ["five seeds each", *head], badge="generated")


# Emptied carriers


def plot_following() -> Figure:
    """Draw which carriers' numbers are followed, and how much photos vary there."""
    curves = {
        f"number of {size:g}": following()["photos", "emptied", "added", size]
        for size in INJECTED_SIZES
        if ("photos", "emptied", "added", size) in following()
    }
    titles = ("How much do photos vary?", "Who follows a wrong number?")
    return figures.plot_notes(curves, titles, "follow (points)", INJECTED_SIZES, badge=badge())


def late_numbers_are_ignored() -> Evidence:
    """Decide whether a number of 0.5 is followed up to NAD 30, and from NAD 60 on by no LeNet, after ten epochs."""
    response = following()[LOUD]
    shares = dict(zip(map(int, response.indices), 100 * response.mean, strict=True))
    ignored = [index for index, value in shares.items() if value < 5]
    each = responses.follow_shares(injected(), LOUD)
    heard = min(share for index in shares if index not in ignored for share in each[index])
    unheard = max(share for index in ignored for share in each[index])
    limits = (max(set(shares) - set(ignored)), min(ignored))
    sentence = (
        f"**After {injected().settings['recipe']['epochs']} epochs the direction matters.** A "
        f"number of 0.5 is followed by {shares[min(shares)]:.0f} % of the photos at NAD "
        f"{min(shares)}, and by less than 5 % at NAD {listed(sorted(ignored))}."
    )
    return evidence(
        heard > 0.5 > unheard and limits == (30, 60),
        sentence,
        value=100 * unheard,
        results=[injected()],
    )


def small_numbers_are_ignored() -> Evidence:
    """Decide whether a number of the poison's size is followed nowhere, however long the training."""
    every = list(by_epochs().values())
    shares = [
        value
        for results in every
        for some in responses.follow_shares(results, QUIET).values()
        for value in some
    ]
    sentence = (
        f"A number of the poison's size, 0.05, is followed by {100 * max(shares):.1f} points of "
        f"the photos at most, at every carrier, after up to {max(by_epochs())} epochs."
    )
    return evidence(max(shares) < 0.01, sentence, value=100 * max(shares), results=every)


def energies() -> dict[int, float]:
    """Return the energy of each carrier, relative to that of the first NAD."""
    values = injected().experiment().nads.eigenvalues
    indices = {row["index"] for row in offered()}
    return {index: float(values[index : index + 2].mean() / values[0]) for index in sorted(indices)}


def offered() -> list[Row]:
    """Return the LeNets that were offered a number on photos."""
    rows = injected().rows
    return [
        row
        for row in rows
        if "followed" in row and row["written"] == "added" and row["images"] == "photos"
    ]


@cache
def regressed() -> dict[str, Any]:
    """Regress following a number on the carrier's energy and other causes, for each treatment of the photos."""
    energy = energies()
    causes: dict[str, Callable[[Row], float]] = {
        "log energy": lambda row: float(np.log10(energy[row["index"]])),
        "log size of the number": lambda row: float(
            np.log10(row["deviation"] if row["size"] is None else row["size"])
        ),
    }
    depth = {"log deviation of the photos": lambda row: float(np.log10(row["deviation"]))}
    kinds = {
        "emptied": ("emptied", causes),
        "scaled to one size": ("scaled", causes),
        "as they are": ("kept", causes | depth),
    }
    found = {}
    for title, (background, predictors) in kinds.items():
        rows = [row for row in offered() if row["background"] == background]
        if len({row["index"] for row in rows}) >= 8:
            values = 100 * np.array(
                [row["followed"]["class"] - row["unprompted"]["class"] for row in rows]
            )
            columns = {
                label: np.array([number(row) for row in rows])
                for label, number in predictors.items()
            }
            found[title] = regression(values, columns, [row["index"] for row in rows], seed=0)
    return found


def following_rises_with_energy() -> Evidence:
    """Decide whether numbers along carriers with more energy are followed more, on emptied carriers."""
    one = regressed()["emptied"]["log energy"]
    sentence = (
        f"On emptied carriers, the share that follows rises by {fixed(one.value, 0)} points "
        f"({fixed(one.low, 0)} to {fixed(one.high, 0)}) per standard deviation of the carrier's "
        "log energy, at a fixed size of the number, after "
        f"{injected().settings['recipe']['epochs']} epochs."
    )
    interval = (one.low, one.high)
    return evidence(
        one.value > 0, sentence, value=one.value, interval=interval, null=0, results=[injected()]
    )


def energy_goes_with_depth() -> Evidence:
    """Decide whether a carrier's energy and the photos' deviation along it are hard to distinguish."""
    energy, deviations = energies(), on_clean()[KINDS["both"]].deviation
    joint = statistics.rank_correlation(
        np.array([energy[index] for index in carriers()]), deviations
    )
    sentence = (
        f"Energy and the photos' deviation have a rank correlation of {fixed(joint, 2, sign=True)} "
        f"over these {len(carriers())} carriers, so photos as they are hardly distinguish the two."
    )
    return evidence(joint > 0.8, sentence, value=joint, results=[injected()])


def show_regressions() -> None:
    """Show what following depends on."""
    rows = [
        [title, label, estimate((one.value, one.low, one.high), 0, sign=True)]
        for title, effects in regressed().items()
        for label, one in effects.items()
    ]
    head = [
        "photos along the carrier",
        "",
        "points of following for one standard deviation (95 %, carriers drawn again)",
    ]
    table(rows, head, badge=badge())
    conclude("follow-with-energy")
    conclude("energy-or-depth")


# Longer trainings


@cache
def follow_shares(size: float, epochs: int) -> dict[int, list[float]]:
    """Return the share of photos that follow a number, by carrier and seed, at carriers of all trainings."""
    found = responses.follow_shares(by_epochs()[epochs], ("photos", "emptied", "added", size))
    shared = set.intersection(
        *(
            set(responses.follow_shares(results, ("photos", "emptied", "added", one)))
            for results in by_epochs().values()
            for one in INJECTED_SIZES[1:]
        )
    )
    return {index: found[index] for index in sorted(shared)}


def followers(size: float, epochs: int) -> dict[int, int]:
    """Return how many LeNets follow a number, by more than half of the photos, at late carriers."""
    shares = follow_shares(size, epochs)
    return {
        index: sum(value > 0.5 for value in values)
        for index, values in shares.items()
        if index >= first_late()
    }


def late_shares(size: float, epochs: int) -> list[float]:
    """Return the shares that follow at late carriers."""
    return [
        value
        for index, values in follow_shares(size, epochs).items()
        if index >= first_late()
        for value in values
    ]


def first_late() -> int:
    """Return the first carrier whose number of 0.5 is ignored after the shortest training."""
    shares = follow_shares(0.5, min(by_epochs()))
    return min(index for index, values in shares.items() if np.mean(values) < 0.05)


def counts(size: float) -> str:
    """Say how many LeNets follow a number at late carriers, after each training."""
    texts = []
    for epochs in by_epochs():
        shares = late_shares(size, epochs)
        texts.append(
            f"{sum(value > 0.5 for value in shares)} of {len(shares)} after {epochs} epochs"
        )
    return ", ".join(texts)


def table_of_following(size: float) -> None:
    """Show the share that follows a number after trainings of different lengths."""
    every = {epochs: follow_shares(size, epochs) for epochs in by_epochs()}
    rows = [
        [
            index,
            *(
                ", ".join(fixed(100 * value, 0) for value in shares[index])
                for shares in every.values()
            ),
        ]
        for index in next(iter(every.values()))
    ]
    below = (
        f"Photos that follow a wrong number of {size:g} (% of the test photos, one value per seed; "
        "LeNet, emptied carriers). Each training has a schedule of its own length."
    )
    table(rows, ["NAD", *(f"{epochs} epochs" for epochs in every)], below, badge=badge())


def read_after(epochs: int, expected: Mapping[int, int]) -> Evidence:
    """Decide at which late carriers how many LeNets follow a number of 0.5."""
    shares = late_shares(0.5, epochs)
    share = float(np.mean(np.array(shares) > 0.5))
    interval = nc.accuracy_interval(share, len(shares))
    holds = followers(0.5, epochs) == expected
    return evidence(holds, value=share, interval=interval, results=[by_epochs()[epochs]])


def border_depends() -> Evidence:
    """Decide whether what is followed depends on epochs and size of the number, not on the index alone."""
    shortest, longest = min(by_epochs()), max(by_epochs())
    counted = followers(0.5, longest)
    last = max(index for index, number in counted.items() if number)
    between = [
        index for index, number in counted.items() if first_late() < index < last and not number
    ]
    smaller = max(value for epochs in by_epochs() for value in late_shares(0.2, epochs))
    after = max(late_shares(0.5, shortest)) < 0.5 < max(late_shares(0.5, longest))
    sentence = (
        f"**LeNets that follow a number of 0.5 from NAD {first_late()} on: {counts(0.5)}.** So the "
        "epochs and the size of the number matter: none follows one of 0.2. The index does not "
        f"decide alone: after {longest} epochs {counted[last]} of 3 LeNets follows at NAD {last}, "
        f"and none at {listed(between)}."
    )
    value = sum(share > 0.5 for share in late_shares(0.5, longest))
    return evidence(
        bool(between) and after and smaller < 0.5,
        sentence,
        value=value,
        results=[*by_epochs().values()],
    )


def seeds_decide() -> Evidence:
    """Decide whether two LeNets differ by more than 20 points at some carrier, after the paper's epochs."""
    shares = follow_shares(0.5, PAPERS_EPOCHS)
    spans = {index: max(values) - min(values) for index, values in shares.items()}
    widest = max(spans, key=lambda index: spans[index])
    sentence = (
        f"At {sum(span > 0.2 for span in spans.values())} of {len(spans)} carriers the seed "
        f"decides after {PAPERS_EPOCHS} epochs: two LeNets differ by more than 20 points (by "
        f"{100 * spans[widest]:.0f} at NAD {widest})."
    )
    results = [by_epochs()[PAPERS_EPOCHS]]
    return evidence(spans[widest] > 0.2, sentence, value=100 * spans[widest], results=results)


def show_longer_trainings() -> None:
    """Show what is followed after longer trainings."""
    table_of_following(0.5)
    for key in ("late-read-50", "late-read-100", "border-depends", "seeds-decide", "border-limit"):
        conclude(key)


def hole_costs_over_epochs() -> tuple[list[int], list[float], list[float]]:
    """Return the carriers of all trainings, and what a hole costs there after the shortest and the paper's."""
    indices, costs = list(follow_shares(0.5, PAPERS_EPOCHS)), []
    for epochs in (min(by_epochs()), PAPERS_EPOCHS):
        results = by_epochs()[epochs]
        hole = responses.responses(results, "test_accuracy")[KINDS["hole"]]
        clean = mean_of(
            [row for row in results.rows if row["index"] is None and row["images"] == "photos"]
        )
        loss = dict(zip(map(int, hole.indices), clean - hole.mean, strict=True))
        costs.append([loss[index] for index in indices])
    return indices, costs[0], costs[1]


def hole_costs_the_same() -> Evidence:
    """Decide whether what a hole costs depends little on the epochs."""
    indices, before, after = hole_costs_over_epochs()
    moved = float(np.abs(np.subtract(before, after)).max())
    sentence = (
        f"What a hole costs depends little on the epochs: at NAD {indices[0]}, {points(before[0])} "
        f"points after {min(by_epochs())} and {points(after[0])} after {PAPERS_EPOCHS}. Over "
        f"{len(indices)} carriers the two costs differ by at most {points(moved)} points."
    )
    both = [by_epochs()[min(by_epochs())], by_epochs()[PAPERS_EPOCHS]]
    return evidence(moved < 0.05, sentence, value=100 * moved, results=both)


def longer_text() -> str:
    """Say what is followed at late carriers."""
    longest = max(by_epochs())
    each = ", ".join(f"{number} at {index}" for index, number in followers(0.5, longest).items())
    return (
        f"On emptied carriers at NAD {first_late()} or later ({len(followers(0.5, longest))} "
        "carriers), LeNets that follow a number of 0.5 (by more than half of the photos): "
        f"{counts(0.5)}. By NAD, after {longest}: {each}. LeNets that follow one of 0.2: "
        f"{counts(0.2)}. NAD {first_late()} as the first late one was chosen after a look at the "
        "shortest training."
    )


def show_details_of_longer_trainings() -> None:
    """Show what was trained how long, and what a hole costs after it."""
    texts = []
    for epochs, results in by_epochs().items():
        least = 100 * min(
            row["train_accuracy"] for row in results.rows if row["images"] == "photos"
        )
        texts.append(
            f"{epochs} epochs: {len(results.rows)} of {results.num_units} networks, training "
            f"accuracy at least {least:.0f} %"
        )
    show(f"{'; '.join(texts)}.")
    show(longer_text())
    table_of_following(0.2)
    conclude("hole-cost-epochs")
    longest, num_train = max(by_epochs()), injected().settings["num_train"]
    last = max(index for index, number in followers(0.5, longest).items() if number)
    same = {
        tuple(value > 0.5 for value in follow_shares(0.5, epochs)[last])
        for epochs in list(by_epochs())[1:]
    }
    if len(same) == 1:
        show(
            f"The seeds are the same for all epochs, and the LeNet that follows at NAD {last} is always the same."
        )
    share = longest * num_train / (PAPERS_EPOCHS * 50_000)
    show(
        f"{longest} epochs of {num_train:,} photos are {share:.0%} of the paper's number of steps. "
        "What longer training does is open."
    )


# A narrow ResNet-18


class Deep:
    """What a narrow ResNet-18 does with holes and numbers."""

    def __init__(self) -> None:
        self.results = stored("notes-resnet18", "narrow")
        follow, right = (
            responses.responses(self.results, measure) for measure in ("class", "test_accuracy")
        )
        self.curves = {
            "follow 0.2 (points)": follow["photos", "emptied", "added", 0.2],
            "follow 0.5": follow[LOUD],
            "accuracy, emptied (%)": right["photos", "emptied", "none", None],
            "hole and number": right[KINDS["both"]],
            "hole": right[KINDS["hole"]],
        }
        self.carriers = list(map(int, self.curves["hole"].indices))
        self.loud = 100 * self.curves["follow 0.5"].mean
        self.accuracies: dict[tuple[int | None, Any], list[float]] = {}
        for row in self.results.rows:
            key = (row["index"], responses.condition_of(row)[1:])
            self.accuracies.setdefault(key, []).append(row["test_accuracy"])
        ((_, self.clean),) = [one for one in self.accuracies.items() if one[0][0] is None]
        self.variance = pooled_variance(self.accuracies.values())

    def accuracy(self, index: int, kind: str) -> list[float]:
        """Return the accuracies at one carrier, of a kind of `KINDS`."""
        return self.accuracies[index, KINDS[kind][1:]]

    def cost(self, before: Sequence[float], after: Sequence[float]) -> str:
        """Write what is lost, in points, between two kinds of training."""
        half = 100 * self.variance.half_width(len(before), len(after))
        return points(float(np.mean(before) - np.mean(after)), half)

    def roughness(self) -> list[float]:
        """Return the correlation of neighbouring pixels of the carriers."""
        basis = self.results.experiment().nads.basis
        columns = [place for index in self.carriers for place in (index, index + 1)]
        return [toys.neighbouring_correlation(basis[:, place]) for place in columns]

    def sentence(self) -> str:
        """Say what it follows, and what a hole costs it."""
        settings, first = self.results.settings, self.carriers[0]
        followed = ", ".join(
            f"{value:.0f} points at NAD {index}"
            for index, value in zip(self.carriers, self.loud, strict=True)
        )
        hole, both = self.accuracy(first, "hole"), self.accuracy(first, "both")
        rough, trainings = self.roughness(), len({row["seed"] for row in self.results.rows})
        return minus(
            f"ResNet-18 of a quarter of the width ({settings['num_train']:,} photos, "
            f"{settings['recipe']['epochs']} epochs, {trainings} trainings of each kind) follows a "
            f"number of 0.5 on an emptied carrier by {followed}. At NAD {first} a hole costs it "
            f"{self.cost(self.clean, hole)} points, and the number in it {self.cost(hole, both)} "
            "more. Neighbouring pixels of these carriers have nearly the same correlation "
            f"({min(rough):.2f} to {max(rough):.2f}), so this measure of smoothness does not "
            "decide here."
        )

    def table(self) -> None:
        """Show its numbers at each carrier."""
        rows = []
        for place, index in enumerate(self.carriers):
            cells = [
                points(one.mean[place], 100 * (one.high - one.mean)[place])
                for one in self.curves.values()
            ]
            rows.append([index, *cells, self.cost(self.clean, self.accuracy(index, "hole"))])
        head = ["carrier's NAD", *self.curves, "cost of the hole (points)"]
        table(rows, head, badge=report.badge(self.results))


@cache
def deep() -> Deep:
    """Return what a narrow ResNet-18 does."""
    return Deep()


def equal_roughness() -> Evidence:
    """Decide whether the narrow ResNet-18 follows at the first carrier only, though all are equally rough."""
    one = deep()
    holds = (
        max(one.roughness()) - min(one.roughness()) < 0.15
        and one.loud[0] > 50
        and max(one.loud[1:]) < 5
    )
    return evidence(holds, one.sentence(), value=max(one.loud[1:]), results=[one.results])


def show_deep() -> None:
    """Show what a narrow ResNet-18 does, and hand the sentence of the paper to the errata page."""
    conclude("equal-roughness")
    deep().table()
    errata.paste("poison-order", *errata_of_order())
    conclude("errata-poison-order")


def errata_of_order() -> tuple[str, str]:
    """Return what became of the paper's sentence on the order of NADs, and the numbers."""
    one = regressed()["emptied"]["log energy"]
    if one.low > 0:
        verdict = (
            "as a trend for LeNet where nothing is missing (order and smoothness go together "
            "there); the paper's own experiment mixes order and depth"
        )
    else:
        verdict = "not seen for LeNet where nothing is missing; Fig. 7 mixes order and depth"
    numbers = (
        f"LeNet, {len(injected().rows)} networks trained with holes or numbers. Where the carriers "
        f"were emptied in all images, following a number rises by {one.value:.0f} points "
        f"({one.low:.0f} to {one.high:.0f}) for one standard deviation of the carrier's log "
        f"energy, after {injected().settings['recipe']['epochs']} epochs. {longer_text()} In the "
        f"paper's own experiment a deeper hole comes with an earlier carrier. {deep().sentence()}"
    )
    return verdict, numbers


def order_as_a_trend() -> Evidence:
    """Decide whether following rises with energy, so that the paper's sentence holds as a trend."""
    return evidence(regressed()["emptied"]["log energy"].low > 0, results=[injected()])


# Use of the NADs behind the carrier


def using() -> Results:
    """Return the poisoned networks whose use of NADs was measured."""
    return stored("fig7-lenet")


def plot_use() -> Figure:
    """Draw the predictions that change with the sign of one NAD component, for several carriers."""
    rows = {row["index"]: row for row in reversed(using().rows)}
    shown = {"trained on clean photos": None} | {
        f"carrier at NAD {index}": index for index in (0, 10, 100)
    }
    curves = {}
    for label, index in shown.items():
        if index in rows:
            use = rows[index]["use"]
            intervals = [nc.accuracy_interval(share, use["num_images"]) for share in use["flip"]]
            curves[label] = (use["indices"], list(use["flip"]), intervals)
    panels = {"Which NADs does the network use?": curves}
    return figures.plot_use(panels, shown, badge=report.badge(using()))


def changed_predictions(row: Row, clean: Row, index: int) -> list[tuple[float, float]]:
    """Return how many predictions change before and behind a carrier, and how many of a clean network."""
    used, reference = (
        np.rint(one["use"]["num_images"] * np.array(one["use"]["flip"])) for one in (row, clean)
    )
    where = np.array(row["use"]["indices"])
    return [
        (used[side].sum(), reference[side].sum()) for side in (where < index, where > index + 1)
    ]


def counts_by_carrier() -> dict[int, list[list[tuple[float, float]]]]:
    """Return `changed_predictions` of each carrier, one entry per seed."""
    clean = {row["seed"]: row for row in using().rows if row["index"] is None}
    found: dict[int, list[list[tuple[float, float]]]] = {}
    for row in using().rows:
        if row["index"] is not None and row["seed"] in clean:
            counted = changed_predictions(row, clean[row["seed"]], row["index"])
            found.setdefault(row["index"], []).append(counted)
    return found


def behind_text() -> str:
    """Say how much NADs behind the carrier are used."""
    ratios = ratios_behind()
    last = max(
        index
        for index, values in counts_by_carrier().items()
        if any(c >= 100 for _, (_, c) in values)
    )
    return (
        f"behind the carrier, a turned sign changes {min(ratios):.2f} to {max(ratios):.2f} times "
        "as many predictions of poisoned LeNets as of LeNets trained on clean photos (up to NAD "
        f"{last}; behind later carriers too few change)"
    )


def ratios_behind() -> list[float]:
    """Return the relative use of the NADs behind each carrier, where at least 100 predictions change."""
    every = [counted for values in counts_by_carrier().values() for counted in values]
    return [used / clean for _, (used, clean) in every if clean >= 100]


def nads_behind_are_used() -> Evidence:
    """Decide whether poisoned LeNets respond to the NADs behind the carrier at least half as much as clean ones."""
    text = behind_text()
    text = text[0].upper() + text[1:]
    sentence = (
        f"**{text}.** This counts all NADs behind the carrier together. Ignored NADs would give 0."
    )
    return evidence(
        min(ratios_behind()) > 0.5, sentence, value=min(ratios_behind()), results=[using()]
    )


def far_nads_are_used_less() -> Evidence:
    """Decide whether LeNets poisoned at NAD 0, 5 or 10 respond less to the NADs from 100 on."""
    clean = {row["seed"]: row for row in using().rows if row["index"] is None}
    rows = [row for row in using().rows if row["index"] in (0, 5, 10) and row["seed"] in clean]
    behind = [changed_predictions(row, clean[row["seed"]], 98)[1] for row in rows]
    ratios = [used / reference for used, reference in behind]
    sentence = (
        "**Far behind an early carrier, use falls.** For carriers at NAD 0, 5 and 10, turned "
        f"signs from NAD 100 on change {min(ratios):.2f} to {max(ratios):.2f} times as many "
        "predictions. This agrees with a part of the paper's explanation."
    )
    return evidence(max(ratios) < 0.75, sentence, value=max(ratios), results=[using()])


def table_of_use() -> None:
    """Show the use before and behind each carrier."""

    def spread(pairs: Sequence[tuple[float, float]]) -> str:
        texts = []
        for used, clean in pairs:
            if used + clean:
                ratio = f"{used / clean:.2f}" if clean >= 100 else "too few"
                texts.append(f"{ratio} ({used:,.0f} / {clean:,.0f})")
        return " and ".join(texts) or "none there"

    rows = [
        [index, *(spread(pairs) for pairs in zip(*values, strict=True))]
        for index, values in sorted(counts_by_carrier().items())
    ]
    head = ["carrier's NAD", "before it (poisoned / clean)", "behind it (one ratio per seed)"]
    table(rows, head, badge=report.badge(using()))


# Paper and ours


def table_of_paper() -> None:
    """Show the paper's accuracies and ours."""
    paper = published.POISON_RESNET18
    ours = {
        f"ours, {LABELS[name]}": accuracies_by_carrier(results)
        for name, results in poisoned().items()
    }

    def entry(found: dict[int | None, list[float]], index: int | None) -> str:
        return f"{100 * np.mean(found[index]):.0f} %" if index in found else "–"

    rows = [
        [index, f"{100 * paper[index]:.0f} %", *(entry(found, index) for found in ours.values())]
        for index in (0, 10, 100, 300, 400, 1000)
        if index in paper
    ]
    rows.append(["none", "not shown", *(entry(found, None) for found in ours.values())])
    below = "Accuracy on clean photos; all 50,000 training photos, 50 epochs."
    table(rows, ["NAD", "paper, ResNet-18", *ours], below, badge="CIFAR-10")


def show_trainings() -> None:
    """Show what was trained, and where."""
    for name, results in poisoned().items():
        show(
            f"{LABELS[name]}: {report.size_of_run(results)}, {report.place_of_run(results)}. "
            f"LeNets with holes or numbers: {report.size_of_run(injected(), 'training images')}, "
            f"NADs of version {injected().settings['nads']['version']}."
        )


CLAIMS: dict[str, Callable[[], Evidence]] = {
    "note-gives-class": number_gives_class,
    "poison-not-steady": rises_not_steadily,
    "hole-costs-as-much": hole_costs_as_much,
    "number-alone": number_alone,
    "hole-depth": depth_of_hole,
    "hole-beside": hole_beside_the_photos,
    "dip-explained": dip_is_explained,
    "poison-in-mixture": poison_in_mixture,
    "shallow-hole": shallow_hole,
    "late-unread-10": late_numbers_are_ignored,
    "small-unread": small_numbers_are_ignored,
    "follow-with-energy": following_rises_with_energy,
    "energy-or-depth": energy_goes_with_depth,
    "late-read-50": lambda: read_after(50, {60: 3, 100: 1, 200: 0, 300: 1, 1000: 0}),
    "late-read-100": lambda: read_after(100, {60: 3, 100: 3, 200: 0, 300: 1, 1000: 0}),
    "border-depends": border_depends,
    "seeds-decide": seeds_decide,
    "border-limit": lambda: evidence(None, results=[by_epochs()[max(by_epochs())]]),
    "hole-cost-epochs": hole_costs_the_same,
    "equal-roughness": equal_roughness,
    "errata-poison-order": order_as_a_trend,
    "used-behind": nads_behind_are_used,
    "used-less-far": far_nads_are_used_less,
    "errata-poison-separable": lambda: evidence(False),  # by the counter-example of the page
    "errata-poison-ignores": lambda: evidence(None, size="live"),
    "shallow-classes": lambda: evidence(None, size="live"),
}
