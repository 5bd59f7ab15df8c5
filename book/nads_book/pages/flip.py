"""The page ``08_flip``: what it costs networks to have the order of NAD coordinates reversed."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure
from torch import Tensor

import nads_core as nc
from nads_book import figures, published
from nads_book.claims import decides
from nads_book.experiments import Results, formatting, load_nads
from nads_book.experiments.evidence import Estimate, above, around, evidence
from nads_book.experiments.formatting import LABELS
from nads_book.explorer import Changes
from nads_book.figures.style import colours, dotted, legend, panel_row, shade, show_badge, styled
from nads_book.statistics import pooled_variance
from nads_book.studies import load_results, stored
from nads_book.studies.transforms import orthogonal_map, transform
from nads_core.data import ImageSet

MAPS = {
    "as is": "as is",
    "random signs": "order kept, random signs",
    "flipped": "order reversed (the flip)",
    "shuffled": "order shuffled",
}
SIZES = {"lenet": "laptop", "resnet18": "narrow"}  # of networks that were trained on mapped photos
NAMES = LABELS | {"resnet18": "ResNet-18, quarter width"}
AS_THEY_ARE = "photos as they are"
ORDERS = {  # of coordinates -> marker
    AS_THEY_ARE: "o",
    "order kept": "^",
    "shuffled": "s",
    "order reversed": "v",
    "random": "D",
}
COLUMNS = {"match": "match", "correlation of neighbouring pixels": "neighbours"}
ROUGH = 0.05  # correlation of neighbouring pixels below which a map of ResNet-18 counts as rough


# Images, and networks that are trained on them now


def nads_of_flips(name: str = "lenet") -> nc.NADs:
    """Return the complete NADs by which the stored photos were flipped; today's, where a network
    has none stored.
    """
    results = load_results(f"fig8-{name}")
    return (results.experiment().nads if results else load_nads(name)).complete_basis()


def mapped(images: Tensor, nads: nc.NADs, name: str, seed: int = 0) -> Tensor:
    """Return images whose NAD coordinates are changed in each channel, an orthogonal map.

    Args:
        images: images (N, C, H, W).
        nads: complete NADs of that size.
        name: one of `MAPS`.
        seed: seed of random signs and orders.

    Raises:
        ValueError: for another name.
    """
    if name not in MAPS:
        raise ValueError(f"map must be one of {', '.join(MAPS)}, got {name!r}")
    order = {"flipped": "reversed", "shuffled": "shuffled"}.get(name, "kept")
    signs = name == "random signs"
    return transform(images, orthogonal_map(nads.basis, nads.basis, order, signs=signs, seed=seed))


def logistic_losses(matrix: Tensor, images: Tensor, labels: Tensor, seed: int = 0) -> Tensor:
    """Return the losses of logistic regression on transformed images, from correspondingly
    transformed weights.

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


def plot_yours(
    train: ImageSet, test: ImageSet, name: str, map: str, epochs: int, seed: int = 0
) -> Figure:
    """Train a network on images as they are, and on images that are mapped by its own NADs, and
    draw the accuracies on such test images beside the stored ones.

    Args:
        train: training images of 32 x 32 pixels.
        test: test images.
        name: network, such as "lenet".
        map: one of `MAPS`.
        epochs: number of epochs.
        seed: seed of the map and of the training.
    """
    nads, yours = nads_of_flips(name), {}
    recipe = replace(nc.CIFAR10_RECIPE, epochs=epochs)
    for version in ("as is", map):
        data, clean = (
            (mapped(nc.normalize(part.images), nads, version, seed), part.labels)
            for part in (train, test)
        )
        torch.manual_seed(seed)
        network = nc.ARCHITECTURES[name].build(train.images.shape[1], 32, len(train.class_names))
        trained = nc.train_network(network, data, clean, recipe=recipe, seed=seed, progress=False)
        yours[version] = [float(trained.test_accuracy or 0)]
    return plot_signs(yours)


# Stored networks on flipped photos


@cache
def flips() -> dict[str, Results]:
    """Return what each network scores on upright and on flipped photos, at the largest size that
    there is.
    """
    sizes = {"lenet": "paper", "vgg11": "laptop", "resnet18": "laptop"}
    return {name: stored(f"fig8-{name}", size) for name, size in sizes.items()}


def sides_of(results: Results, field: str = "test_accuracy") -> dict[str, list[float]]:
    """Return accuracies of the networks on upright photos and on flipped ones."""
    found = results.table.groupby("flipped")[field].agg(list)
    return {"as is": found[False], "flipped": found[True]}


def plot_costs() -> Figure:
    """Draw the accuracies on upright and flipped photos, and the paper's."""
    tests, trainings, papers = {}, {}, {}
    for name, results in flips().items():
        panel = f"{LABELS[name]}, {results.settings['num_train']:,} photos"
        tests[panel], trainings[panel] = sides_of(results), sides_of(results, "train_accuracy")
        papers[panel] = dict(zip(tests[panel], published.FLIP[name], strict=True))
    badge = formatting.badge(of_maps("lenet"))
    return figures.plot_representations(tests, 10_000, trainings, papers, badge=badge)


@decides("flip-full-lenet")
def _():
    """Decide whether LeNet scores less on flipped photos, at the paper's size."""
    results = flips()["lenet"]
    sides = [100 * np.array(side) for side in sides_of(results).values()]
    return above(pooled_variance(sides).difference(*sides), results=[results])


@decides("errata-flip-training")
def _():
    """Decide whether training on both representations yields an error of about zero: at most 5 %.

    LeNet at the paper's size decides, by the larger error.
    """
    results = flips()["lenet"]
    sides = sides_of(results, "train_accuracy").values()
    most = max(100 * (1 - float(np.mean(side))) for side in sides)
    return evidence(most <= 5, most, results=[results])


# Stored networks on photos under other maps


@cache
def of_maps(name: str) -> Results:
    """Return what a network scores on mapped photos."""
    return stored(f"maps-{name}", SIZES[name])


@cache
def maps(name: str) -> pd.DataFrame:
    """Return the same as a table, with points (accuracy in percent), what each map does to the
    order of the coordinates, and its kind, whatever the random draw.
    """
    rows = of_maps(name).table
    own = rows["source"] == rows["target"]
    upright = own & (rows["order"] == "kept") & ~rows["signs"]
    does = rows["order"].map({"kept": "order kept", "reversed": "order reversed"})
    does = does.fillna("shuffled").mask(rows["target"] == "random", "random")
    kind = rows["source"] + ", " + rows["target"] + ", " + rows["order"]
    return rows.assign(
        points=100 * rows["test_accuracy"],
        does=does.mask(upright, AS_THEY_ARE),
        kind=kind.mask(own & rows["signs"], kind + ", signs").mask(upright, AS_THEY_ARE),
        own_signs=own & rows["signs"],
    )


def kinds_of(name: str) -> pd.DataFrame:
    """Return each kind of map, with means of match, smoothness and points."""
    groups = maps(name).fillna({"match": 0}).groupby("kind", sort=False)
    means = groups[["match", "neighbours", "points"]].mean()
    return means.join(groups[["source", "target", "order", "does", "own_signs"]].first())


def three_ways(name: str) -> dict[str, pd.DataFrame]:
    """Return the networks on photos as they are, with random signs of their coordinates, and
    flipped.
    """
    rows, own = maps(name), f"{name}, {name}"
    ways = {
        "as is": AS_THEY_ARE,
        "random signs": f"{own}, kept, signs",
        "flipped": f"{own}, reversed",
    }
    return {way: rows[rows["kind"] == kind] for way, kind in ways.items()}


def difference(name: str, *ways: str) -> Estimate:
    """Return by how many points one of these ways beats another, with its interval.

    The variances of trainings on one map, and of draws of one kind of map, are pooled over kinds.
    Where a side has several draws of a map, the draws may decide.
    """
    one, other = sides = [three_ways(name)[way] for way in ways]
    cells = maps(name).groupby(["kind", "draw"])["points"]
    trainings = pooled_variance(values for _, values in cells)
    draws = pooled_variance(values for _, values in cells.mean().groupby("kind"))
    half = trainings.half_width(*map(len, sides))
    if drawn := [count for side in sides if (count := side["draw"].nunique()) > 1]:
        half = max(half, draws.half_width(*drawn))
    return around(one["points"].mean() - other["points"].mean(), half)


def widget() -> Changes:
    """Return the figure in which the reader flips a picture, with what the flip costs once it was
    tried.
    """
    entries = []
    keys = {"upright": "as is", "signs": "random signs", "flipped": "flipped"}
    for name in SIZES:
        settings = of_maps(name).settings
        caption = (
            f"Test accuracy of {NAMES[name]} ({formatting.badge(of_maps(name))}), trained and tested "
            f"on images changed like this: {settings['num_train']:,} photos, "
            f"{settings['recipe']['epochs']} epochs."
        )
        found = three_ways(name)
        means = {key: float(found[label]["test_accuracy"].mean()) for key, label in keys.items()}
        entries.append({"key": name, "label": NAMES[name], "accuracies": means, "caption": caption})
    return Changes("flip", entries)


def plot_signs(yours: Mapping[str, Sequence[float]] | None = None) -> Figure:
    """Draw accuracies on photos as they are, with random signs, and flipped.

    Args:
        yours: map -> accuracies in [0, 1] of networks that were trained now, in a panel of its own.
    """
    tests = {
        NAMES[name]: {way: rows["test_accuracy"].tolist() for way, rows in three_ways(name).items()}
        for name in SIZES
    }
    shown = tests | ({"yours": yours} if yours else {})
    return figures.plot_representations(shown, 5_000, badge=formatting.badge(of_maps("lenet")))


@styled
def plot_maps(name: str) -> Figure:
    """Draw the accuracy of each kind of map against match and smoothness; lines connect an order
    with its reverse.
    """
    kinds = kinds_of(name)
    if name == "resnet18":  # whose photos as they are lie far above all maps
        kinds = kinds.drop(AS_THEY_ARE)
    orders = [kinds[(kinds["order"] == one) & ~kinds["own_signs"]] for one in ("kept", "reversed")]
    pairs = orders[0].merge(orders[1], on=["source", "target"], suffixes=("_kept", "_reversed"))
    figure, axes = panel_row(["", ""], 3.2, ylabel="test accuracy (%)", sharey=True)
    for axis, (xlabel, key) in zip(axes, COLUMNS.items(), strict=True):
        x, y = (pairs[[f"{one}_kept", f"{one}_reversed"]].T for one in (key, "points"))
        axis.plot(x, y, color=shade(0.6), linewidth=0.8, zorder=0)
        for colour, (order, marker) in zip(colours(), ORDERS.items(), strict=False):
            some = kinds[kinds["does"] == order]
            if len(some):
                look = {"color": colour, "alpha": 0.75, "label": order}
                axis.plot(some[key], some["points"], marker, **look)
        if name == "lenet":  # logistic regression was trained at its size
            level = stored("maps-logreg", "laptop").table["test_accuracy"].mean()
            axis.axhline(100 * level, **dotted("logistic regression", 0.2))
        axis.set_xlabel(xlabel)
    legend(figure, axes[0], ncols=3)
    show_badge(figure, formatting.badge(of_maps(name)))
    return figure


@decides("errata-flip")
def _():
    """Decide nothing: whether the order counts by itself is open."""
    return evidence(None, results=[of_maps(name) for name in SIZES])


@decides("flip-costs")
def _():
    """Decide whether both networks score less on flipped photos, by the smaller of two losses."""
    losses = [difference(name, "as is", "flipped") for name in SIZES]
    return above(min(losses), results=[of_maps(name) for name in SIZES])


@decides("signs-cost-resnet18")
def _():
    """Decide whether signs cost ResNet-18 all that the flip costs."""
    name = "resnet18"
    whole, *_ = difference(name, "as is", "flipped")
    rest, low, high = difference(name, "random signs", "flipped")
    rough = three_ways(name)["random signs"]["neighbours"].mean() < 0.1
    holds = max(abs(low), abs(high)) < whole / 4 and rough
    share = around(1 - rest / whole, (high - rest) / whole)
    return evidence(holds, *share, null=0.5, results=[of_maps(name)])


@decides("match-with-smoothness")
def _():
    """Decide whether match and smoothness are so correlated over LeNet's maps that they cannot be
    distinguished.
    """
    changed = kinds_of("lenet").drop(AS_THEY_ARE)
    together = changed["match"].corr(changed["neighbours"], "spearman")
    return evidence(together > 0.9, together, results=[of_maps("lenet")])


@decides("match-open")
def _():
    """Decide whether match and accuracy have a rank correlation over ResNet-18's maps after which
    neighbouring pixels are uncorrelated.
    """
    kinds = kinds_of("resnet18")
    rough = kinds[kinds["neighbours"].abs() < ROUGH]
    rho = rough[["match", "points"]].round(9).corr("spearman").loc["match", "points"]
    # Fisher's transform: artanh(rho) has a standard error of about 1 / sqrt(n - 3).
    half = 1.96 / (len(rough) - 3) ** 0.5
    low, high = np.tanh(np.arctanh(rho) + np.array([-half, half]))
    unsettled = low <= 0 <= high
    results = [of_maps("resnet18")]
    return evidence(None if unsettled else True, rho, low, high, null=0, results=results)
