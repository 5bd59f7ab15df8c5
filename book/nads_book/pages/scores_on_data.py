"""The page ``13_scores_on_data``: scores from random weights do not rank architectures on given data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor, nn
from torch.nn import functional as F

import nads_core as nc
from nads_book.analysis.statistics import SeedVariance, pooled_variance
from nads_book.evidence import Evidence, evidence
from nads_book.experiments.stored import load_registered, load_study
from nads_book.figures.style import COLOURS, legend, panel_row, shade, styled
from nads_book.mnist1d import load_mnist1d
from nads_book.pages import larger_images
from nads_book.report import estimate, fixed, markdown_table
from nads_book.studies import adam_flip
from nads_book.studies import pair_statistics as rules
from nads_book.studies.pair_statistics import Estimate, Table
from nads_core.data import ImageSet

MODELS = {"linear": "linear", "mlp": "MLP", "cnn": "CNN", "gru": "GRU"}  # of MNIST-1D
DATA = {
    "cifar10": "CIFAR-10",
    "fashion-mnist": "Fashion-MNIST",
    "imagenette": "Imagenette, 64 × 64",
}
ARCHITECTURES = {
    "lenet": "LeNet",
    "cnn": "small CNN",
    "mlp": "MLP",
    "vit": "ViT",
    "mixer": "Mixer",
    "resnet": "ResNet-18, quarter width",
}
ORDERS = ("random", "neighbours", "reversed")
WITHOUT_MLP = ("mlp",)
DECIDING_DRAWS = 100_000  # of the primary score alone
PRIMARY = "ridge"


# What is stored


@cache
def _scores() -> Any:
    return load_study("other-data-scores.json")


@cache
def _trained() -> Any:
    return load_study("other-data.json")


@cache
def _plan() -> dict[str, Any]:
    return load_registered("other_data")


@cache
def pairs() -> Table:
    """Return scores, baselines and accuracies of all pairs of an architecture and a variant of the data."""
    return Table.of(_scores(), _trained())


@cache
def primary(statistic: str, without: tuple[str, ...] = ()) -> Estimate:
    """Return the mean rank correlation of the primary score by the registered bootstrap, with many draws."""
    found = rules.compare(
        pairs(),
        without,
        statistics=(statistic,),
        only=(PRIMARY,),
        num_draws=DECIDING_DRAWS,
    )
    return found[statistic, PRIMARY]


@cache
def compared(without: tuple[str, ...] = ()) -> dict[tuple[str, str], Estimate]:
    """Return all registered statistics of all scores and baselines."""
    return rules.compare(pairs(), without)


# Series: what a permutation costs


def permutation(order: str = "random", seed: int = 0) -> Tensor:
    """Return an order of 40 numbers: "random", "neighbours" (each two exchanged) or "reversed".

    Raises:
        ValueError: for another name.
    """
    if order not in ORDERS:
        raise ValueError(f"order must be one of {', '.join(ORDERS)}, got {order!r}")
    if order == "random":
        return torch.randperm(40, generator=torch.Generator().manual_seed(seed))
    places = torch.arange(40)
    return places.flip(0) if order == "reversed" else places.view(20, 2).flip(1).flatten()


@cache
def _series(train: bool) -> ImageSet:
    return load_mnist1d(train=train)


def reordered(series: ImageSet, order: Tensor) -> ImageSet:
    """Return series of which the numbers are in another order."""
    return replace(series, images=series.images[..., order])


def accuracy_after(
    build: Callable[[], nn.Module], order: Tensor | None = None, steps: int = 1_000, seed: int = 0
) -> float:
    """Train a network on MNIST-1D with Adam, and return its test accuracy.

    Args:
        build: factory of a network from (N, 1, 40) to (N, 10).
        order: order of the 40 numbers; as they are by default.
        steps: number of steps of 100 series.
        seed: seed of weights and batches.
    """
    train, test = map(_series, (True, False))
    if order is not None:
        train, test = reordered(train, order), reordered(test, order)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = build()
        adam = torch.optim.Adam(network.parameters(), 0.01)
        for _ in range(steps):
            batch = torch.randint(len(train), (100,))
            loss = F.cross_entropy(network(train.images[batch]), train.labels[batch])
            adam.zero_grad()
            loss.backward()
            adam.step()
    return nc.accuracy(network, (test.images, test.labels))


def _published() -> dict[str, tuple[float, float]]:
    """Return the published accuracies in percent: model -> as is and permuted."""
    known = _plan()["mnist1d"]
    return {name: (known["as_is"][name], known["shuffled"][name]) for name in MODELS}


def _series_scores(name: str, score: str) -> list[tuple[float, float]]:
    """Return a score of a model of MNIST-1D as is and permuted, each with its standard error."""
    of = {
        (row["variant"], row["architecture"]): row["scores"][score]
        for row in _scores()["rows"]
        if row["data"] == rules.SERIES
    }
    return [(of[variant, name][0], of[variant, name][1]) for variant in (rules.AS_IS, "shuffled")]


def fall(name: str, score: str) -> Estimate:
    """Return by how much a score falls under the permutation, with two standard errors."""
    (before, error), (after, other) = _series_scores(name, score)
    value, half = before - after, 2 * float(np.hypot(error, other))
    return value, value - half, value + half


@styled
def plot_series(yours: Mapping[str, tuple[float, float]] | None = None) -> Figure:
    """Draw the accuracies of four models as is and permuted (stored), and the primary score of each.

    Args:
        yours: label -> accuracies in [0, 1] of networks that were trained now, as is and reordered.
    """
    figure, (axis,) = panel_row([""], 2.8, ylabel="accuracy (%)", grid="y")
    rows: dict[str, tuple[float, float]] = {
        MODELS[name]: (float(before), float(after))
        for name, (before, after) in _published().items()
    }
    rows |= {label: (100 * before, 100 * after) for label, (before, after) in (yours or {}).items()}
    for place, (before, after) in enumerate(rows.values()):
        axis.plot([place, place], [before, after], "-", color=shade(0.6), linewidth=1)
    for part, (label, marker) in enumerate({"as is": "o", "reordered": "v"}.items()):
        values = [row[part] for row in rows.values()]
        axis.plot(range(len(rows)), values, marker, color=COLOURS[part], label=label)
    for part, marker in enumerate("ov"):
        scores = [100 * _series_scores(name, PRIMARY)[part][0] for name in MODELS]
        axis.plot(
            np.arange(len(MODELS)) + 0.2, scores, marker, color=shade(0.45), fillstyle="none",
            label=None if part else "score before training",
        )  # fmt: skip
    axis.set(ylim=(0, 100), xticks=range(len(rows)), xticklabels=list(rows))
    legend(figure, axis, ncols=3)
    return figure


def plot_yours(
    build: Callable[[], nn.Module], order: str = "neighbours", steps: int = 1_000, seed: int = 0
) -> Figure:
    """Train the reader's network on series as they are and reordered, and draw it beside the published ones.

    Args:
        build: factory of a network from (N, 1, 40) to (N, 10).
        order: one of `ORDERS`.
        steps: number of steps of 100 series.
        seed: seed of the order, of weights and batches.
    """
    orders = (None, permutation(order, seed))
    before, after = (accuracy_after(build, each, steps, seed) for each in orders)
    return plot_series({f"yours,\n{order}": (before, after)})


def table_of_series() -> str:
    """Return published accuracies, ours, and the fall of two scores, for each model of MNIST-1D."""
    own = pairs().series_accuracies
    rows = []
    for name, label in MODELS.items():
        ours = " → ".join(
            fixed(100 * float(np.mean(own[variant, name]))) for variant in (rules.AS_IS, "shuffled")
        )
        ridge = estimate([100 * value for value in fall(name, PRIMARY)])
        published = " → ".join(map(str, _published()[name]))
        rows.append([label, published, ours, ridge, estimate(fall(name, "lift"))])
    head = ["model", "published (%)", "ours (%)", "fall of ridge (points)", "fall of the lift"]
    return markdown_table(rows, head)


def _series_tests() -> dict[str, bool]:
    known = {
        (variant, name): float(values[part])
        for name, values in _published().items()
        for part, variant in enumerate((rules.AS_IS, "shuffled"))
    }
    return rules.series_tests(pairs().series, known)


def _series_sizes() -> dict[str, Any]:
    return {"size": "paper", "num_seeds": 1, "num_trainings": 2 * len(MODELS)}


def ridge_falls() -> Evidence:
    """Decide whether the primary score of the CNN falls by more than two standard errors (registered)."""
    value, *ends = (100 * one for one in fall("cnn", PRIMARY))
    holds = _series_tests()["the CNN's score falls"]
    return evidence(holds, value=value, interval=ends, **_series_sizes())


def lift_falls() -> Evidence:
    """Decide whether the lift of the CNN falls."""
    value, *ends = fall("cnn", "lift")
    return evidence(ends[0] > 0, value=value, interval=ends, null=0, **_series_sizes())


# Pairs of an architecture and a data set


@styled
def plot_pairs() -> Figure:
    """Draw the rank of each architecture by its score and by its accuracy, on unchanged images."""
    found = pairs()
    titles = [DATA[name].partition(",")[0] for name in found.data]
    options: dict[str, Any] = {"xlabel": "rank by score", "sharey": True, "grid": None}
    figure, axes = panel_row(titles, 3.2, ylabel="rank by accuracy", **options)
    accuracies = found.means()[:, 0]  # as is: (data sets, architectures)
    scores = found.predictors[PRIMARY][:, 0]
    count = len(found.architectures)
    ranks = [rules.ranks(-values) + (count + 1) / 2 for values in (scores, accuracies)]
    for place, axis in enumerate(axes):
        axis.plot([0.5, count + 0.5], [0.5, count + 0.5], color=shade(0.75), linewidth=1, zorder=0)
        for x, y, name, accuracy in zip(
            *(part[place] for part in ranks), found.architectures, accuracies[place], strict=True
        ):
            axis.plot(x, y, "o", color=COLOURS[0], markersize=5)
            label = f"{ARCHITECTURES[name].partition(',')[0]} {100 * accuracy:.0f} %"
            left = x > count / 2
            axis.annotate(
                label, (x, y), (-6 if left else 6, 3), textcoords="offset points", fontsize=7,
                ha="right" if left else "left",
            )  # fmt: skip
        axis.set(xlim=(0.3, count + 0.7), ylim=(count + 0.7, 0.3))
        axis.set(xticks=range(1, count + 1), yticks=range(1, count + 1))
    return figure


def _pair_sizes(num_architectures: int) -> dict[str, Any]:
    found = pairs()
    cells = len(found.data) * len(found.variants)
    return {"size": "narrow", "num_seeds": 2, "num_trainings": 2 * cells * num_architectures}


def _registered(found: Estimate) -> bool | None:
    """Return False where the registered rule falsifies, None where more than this estimate is needed."""
    return False if rules.verdict(_plan()["criteria"]["enough"], found) == "falsified" else None


def ranks_the_best() -> Evidence:
    """Decide whether the primary score ranks architectures on given data (registered)."""
    value, *ends = found = primary("cells")
    sizes = _pair_sizes(len(pairs().architectures))
    return evidence(_registered(found), value=value, interval=ends, **sizes)


def ranks_the_losses() -> Evidence:
    """Decide whether the primary score ranks what a change of the data costs (registered, without the MLP)."""
    value, *ends = found = primary("costs", WITHOUT_MLP)
    sizes = _pair_sizes(len(pairs().architectures) - 1)
    return evidence(_registered(found), value=value, interval=ends, **sizes)


def _without_mlp(values: np.ndarray) -> np.ndarray:
    return values[..., np.array(pairs().architectures) != "mlp"]


def _in_units(statistic: str, name: str, without_mlp: bool) -> np.ndarray:
    """Return a predictor's correlation in each unit of a statistic, (data sets, units of one)."""
    cut = _without_mlp if without_mlp else np.asarray
    found = pairs()
    means = found.means()
    values = rules.prepared(found, name, statistic, means)
    each = rules.correlations(statistic, cut(values), cut(means))
    return each.reshape(len(found.data), -1)


def student(values: np.ndarray) -> Estimate:
    """Return the mean of a few units with Student's 95 % interval."""
    mean = float(values.mean())
    half = SeedVariance(float(values.std(ddof=1)), values.size - 1).half_width(values.size)
    return mean, mean - half, mean + half


def lead_over_smoothness() -> dict[str, float]:
    """Return by how much the score's rank correlation over variants exceeds that of smoothness: data set -> mean."""
    score, smooth = (_in_units("variants", name, True) for name in (PRIMARY, "smoothness"))
    return dict(zip(pairs().data, (score - smooth).mean(1).tolist(), strict=True))


def smoothness_ranks_better() -> Evidence:
    """Decide whether smoothness ranks variants better than the score; the units are the three data sets.

    Architectures share the order of smoothness of a data set, so that they are no units of their own.
    """
    value, *ends = student(np.array([*lead_over_smoothness().values()]))
    sizes = _pair_sizes(len(pairs().architectures) - 1)
    return evidence(value < 0, value=value, interval=ends, null=0, **sizes)


QUESTIONS = {
    "which architecture is best on given data?": ("cells", "parameters", ()),
    "which architecture loses most accuracy?": ("costs", "textbook", ()),
    "the same without the MLP": ("costs", "accuracy as is", WITHOUT_MLP),
    "which variant is hardest?": ("variants", "smoothness", ()),
    "all pairs": ("all", "logistic regression", ()),
}


def table_of_questions() -> str:
    """Return the mean rank correlation of the primary score and of a baseline, for each question."""
    rows = []
    for question, (statistic, baseline, without) in QUESTIONS.items():
        found = compared(without)
        values = [estimate(found[statistic, name]) for name in (PRIMARY, baseline)]
        units = "–"
        if statistic != "all":
            without_mlp = bool(without) or statistic == "variants"
            units = estimate(student(_in_units(statistic, PRIMARY, without_mlp).ravel()))
        rows.append([question, values[0], units, f"{baseline}: {values[1]}"])
    head = ["question", "score (registered bootstrap)", "score (Student over units)", "baseline"]
    return markdown_table(rows, head)


def table_of_scores() -> str:
    """Return both registered correlations of all five scores."""
    rows = [
        [name, estimate(compared()["cells", name]), estimate(compared(WITHOUT_MLP)["costs", name])]
        for name in _scores()["names"]
    ]
    return markdown_table(rows, ["score", "best architecture", "loss, without the MLP"])


def table_by_data() -> str:
    """Return the correlation of losses and the lead over smoothness, for each data set."""
    losses = _in_units("costs", PRIMARY, True).mean(1)
    rows = [
        [DATA[name], fixed(value, 2), fixed(lead_over_smoothness()[name], 2)]
        for name, value in zip(pairs().data, losses, strict=True)
    ]
    head = ["data", "correlation of losses, without the MLP", "lead of the score over smoothness"]
    return markdown_table(rows, head)


def table_of_accuracies() -> str:
    """Return the mean test accuracy in percent of each pair of images, and its score."""
    found = pairs()
    accuracies, scores = 100 * found.means(), 100 * found.predictors[PRIMARY]
    rows = [
        [DATA[data], variant]
        + [f"{fixed(y)} ({fixed(x)})" for x, y in zip(scores[d, v], accuracies[d, v], strict=True)]
        for d, data in enumerate(found.data)
        for v, variant in enumerate(found.variants)
    ]
    return markdown_table(rows, ["data", "variant", *map(ARCHITECTURES.get, found.architectures)])


# Adam and the flip

effective_inputs = adam_flip.effective_inputs


@cache
def _mlp_losses() -> dict[tuple[str, str, str], list[float]]:
    """Return the points that variants cost the MLP: (optimiser, data, variant) -> one per seed."""
    found = {}
    for optimiser, rows in {
        "Adam": _trained()["rows"],
        "SGD": load_study("other-data-control.json")["rows"],
    }.items():
        own = [row for row in rows if row["architecture"] == "mlp"]
        of = {(row["data"], row["variant"], row["seed"]): row["test_accuracy"] for row in own}
        for data in ("cifar10", "fashion-mnist"):
            for variant in ("shuffled", "flipped", "random phases"):
                found[optimiser, data, variant] = [
                    100 * (of[data, rules.AS_IS, seed] - of[data, variant, seed])
                    for seed in (0, 1)
                    if {(data, rules.AS_IS, seed), (data, variant, seed)} <= of.keys()
                ]
    return found


def adam_loses() -> Evidence:
    """Decide whether the flip of CIFAR-10 costs an MLP more with Adam than with SGD."""
    losses = _mlp_losses()
    adam, sgd = (np.array(losses[name, "cifar10", "flipped"]) for name in ("Adam", "SGD"))
    half = pooled_variance(losses.values()).half_width(len(adam), len(sgd))
    gap = float(adam.mean() - sgd.mean())
    sizes: dict[str, Any] = {"size": "narrow", "num_seeds": 2, "num_trainings": 8}
    return evidence(gap - half > 0, value=gap, interval=(gap - half, gap + half), null=0, **sizes)


def table_of_optimisers() -> str:
    """Return the points that variants cost the MLP with Adam and with SGD."""
    losses = _mlp_losses()
    rows = [
        [DATA[data], variant]
        + [", ".join(map(fixed, losses[name, data, variant])) for name in ("Adam", "SGD")]
        for _, data, variant in dict.fromkeys(("", *key[1:]) for key in losses)
    ]
    return markdown_table(rows, ["data", "variant", "Adam (points lost)", "SGD"])


# Predictions


def table_of_predictions() -> str:
    """Return each registered prediction with what was found."""
    rows = []

    def add(text: str, expected: str, found: str, met: bool) -> None:
        rows.append([text, expected, found, "met" if met else "**failed**"])

    answer = {True: "yes", False: "no"}
    expected = _plan()["mnist1d"]["expected"]
    for text, holds in _series_tests().items():
        met = holds == expected[text]
        add(f"MNIST-1D: {text}", answer[expected[text]], answer[holds], met)
    points = 100 * fall("cnn", PRIMARY)[0]
    add("MNIST-1D: ridge of the CNN falls", "2 to 10 points", fixed(points, 2), 2 <= points <= 10)
    for label, values in (("all six", compared()), ("without mlp", compared(WITHOUT_MLP))):
        for statistic, group in _plan()["predicted"][label].items():
            for name, (low, high) in group.items():
                value = values[statistic, name][0]
                text = f"{label.replace('mlp', 'MLP')}: {statistic}, {name}"
                limits = f"{fixed(low, 2)} to {fixed(high, 2)}"
                add(text, limits, fixed(value, 2), low <= value <= high)
    verdicts = rules.verdicts(compared(), compared(WITHOUT_MLP), _plan()["criteria"]["enough"])
    for text, found in verdicts.items():
        guess = _plan()["criteria"]["expected"][text]
        add(text, guess, found, guess == found)
    for text, guess, values, (low, high) in _expected_in_prose():
        inside = sum(low <= value <= high for value in values)
        listed = ", ".join(map(fixed, values))
        add(text, guess, listed, inside == len(values))
    return markdown_table(rows, ["prediction", "expected", "found", "outcome"])


def _expected_in_prose() -> list[tuple[str, str, list[float], tuple[float, float]]]:
    """Return predictions that were registered in prose: text, expected, points per pair, and limits."""
    found, photos = pairs(), ("cifar10", "imagenette")

    def lost(
        values: np.ndarray, variant: str, names: list[str], data: tuple[str, ...]
    ) -> list[float]:
        place = found.variants.index(variant)
        losses = 100 * (values[:, 0] - values[:, place])
        return [
            float(losses[found.data.index(one), found.architectures.index(name)])
            for one in data
            for name in names
        ]

    others = [name for name in found.architectures if name != "mlp"]
    blind = ["vit", "mixer", "resnet"]
    scores = found.predictors[PRIMARY]
    return [
        (
            "Random phases cost all but the MLP accuracy on photos",
            "5 to 15 points",
            lost(found.means(), "random phases", others, photos),
            (5, 15),
        ),
        (
            "Scores of ViT, Mixer and ResNet-18 hardly fall when photos are shuffled",
            "hardly (here: within 1 point)",
            lost(scores, "shuffled", blind, photos),
            (-1, 1),
        ),
    ]


LAB_TABLES: dict[str, Callable[[], str]] = {
    "MNIST-1D: accuracies and scores": table_of_series,
    "Rank correlations of the primary score and of baselines": table_of_questions,
    "All five registered scores": table_of_scores,
    "Losses and smoothness by data set": table_by_data,
    "Accuracies and scores of all pairs (%)": table_of_accuracies,
    "The MLP with Adam and with SGD": table_of_optimisers,
    "Predictions and results": table_of_predictions,
}
CLAIMS: dict[str, Callable[[], Evidence]] = {
    "series-ridge-falls": ridge_falls,
    "series-lift-falls": lift_falls,
    "pairs-best": ranks_the_best,
    "pairs-loss": ranks_the_losses,
    "pairs-smoothness": smoothness_ranks_better,
    "adam-basis": adam_loses,
    **larger_images.CLAIMS,  # until 16_scale has a module
}
