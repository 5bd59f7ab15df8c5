"""MNIST-1D: what an order of the inputs costs four models, and what scores say of it before
training.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor, nn

import nads_core as nc
from nads_book.evidence import Evidence, Facts, evidence
from nads_book.figures.style import legend, panel_row, shade, styled
from nads_book.mnist1d import load_mnist1d
from nads_book.pages.scores_on_data.stored import PRIMARY, pairs, plan, scores
from nads_book.studies import pair_statistics as rules
from nads_book.studies.pair_statistics import Estimate
from nads_core.data import ImageSet
from nads_core.training import training_steps

MODELS = {"linear": "linear", "mlp": "MLP", "cnn": "CNN", "gru": "GRU"}  # of MNIST-1D
ORDERS = ("random", "neighbours", "reversed")


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
        batches = (torch.randint(len(train), (100,)) for _ in range(steps))
        for _ in training_steps(network, (train.images, train.labels), adam, batches):
            pass
    return nc.accuracy(network, (test.images, test.labels))


def published() -> dict[str, tuple[float, float]]:
    """Return the published accuracies in percent: model -> as is and permuted."""
    known = plan()["mnist1d"]
    return {name: (known["as_is"][name], known["shuffled"][name]) for name in MODELS}


def series_scores(name: str, score: str) -> list[tuple[float, float]]:
    """Return a score of a model of MNIST-1D as is and permuted, each with its standard error."""
    of = {
        (row["variant"], row["architecture"]): row["scores"][score]
        for row in scores()["rows"]
        if row["data"] == rules.SERIES
    }
    return [(of[variant, name][0], of[variant, name][1]) for variant in (rules.AS_IS, "shuffled")]


def fall(name: str, score: str) -> Estimate:
    """Return by how much a score falls under the permutation, with two standard errors."""
    (before, error), (after, other) = series_scores(name, score)
    value, half = before - after, 2 * float(np.hypot(error, other))
    return value, value - half, value + half


@styled
def plot_series(yours: Mapping[str, tuple[float, float]] | None = None) -> Figure:
    """Draw the accuracies of four models as is and permuted (stored), and the primary score of
    each.

    Args:
        yours: label -> accuracies in [0, 1] of networks that were trained now, as is and reordered.
    """
    figure, (axis,) = panel_row([""], 2.8, xlabel="model", ylabel="accuracy (%)", grid="y")
    rows: dict[str, tuple[float, float]] = {
        MODELS[name]: (float(before), float(after)) for name, (before, after) in published().items()
    }
    rows |= {label: (100 * before, 100 * after) for label, (before, after) in (yours or {}).items()}
    axis.vlines(range(len(rows)), *zip(*rows.values(), strict=True), color=shade(0.6), zorder=0)
    for part, (label, marker) in enumerate({"as is": "o", "reordered": "v"}.items()):
        values = [row[part] for row in rows.values()]
        axis.plot(range(len(rows)), values, marker, markersize=6, label=label)
        scores = [100 * series_scores(name, PRIMARY)[part][0] for name in MODELS]
        (dots,) = axis.plot(np.arange(len(MODELS)) + 0.2, scores, marker, color=shade(0.45))
        dots.set(fillstyle="none", markersize=6, label="" if part else "score before training")
    axis.set(ylim=(0, 100), xticks=range(len(rows)), xticklabels=list(rows))
    legend(figure, axis, ncols=3)
    return figure


def plot_yours(
    build: Callable[[], nn.Module], order: str = "neighbours", steps: int = 1_000, seed: int = 0
) -> Figure:
    """Train the reader's network on series as they are and reordered, and draw it beside the
    published ones.

    Args:
        build: factory of a network from (N, 1, 40) to (N, 10).
        order: one of `ORDERS`.
        steps: number of steps of 100 series.
        seed: seed of the order, of weights and batches.
    """
    orders = (None, permutation(order, seed))
    before, after = (accuracy_after(build, each, steps, seed) for each in orders)
    return plot_series({f"yours,\n{order}": (before, after)})


def series_tests() -> dict[str, bool]:
    """Return which of the registered tests on published accuracies the primary score passes."""
    known = {
        (variant, name): float(values[part])
        for name, values in published().items()
        for part, variant in enumerate((rules.AS_IS, "shuffled"))
    }
    return rules.series_tests(pairs().series, known)


SIZES: Facts = {"size": "paper", "num_seeds": 1, "num_trainings": 2 * len(MODELS)}


def series_ridge_falls() -> Evidence:
    """Decide whether the primary score of the CNN falls by more than two standard errors
    (registered).
    """
    points = (100 * one for one in fall("cnn", PRIMARY))
    return evidence(series_tests()["the CNN's score falls"], *points, **SIZES)
