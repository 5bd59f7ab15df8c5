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
from nads_book.experiments import Results, formatting, load_nads, table_of
from nads_book.experiments.evidence import Estimate, above, around, evidence
from nads_book.experiments.formatting import LABELS
from nads_book.explorer import Changes
from nads_book.figures.style import dotted, legend, panel_row, show_badge, styled
from nads_book.statistics import pooled_variance
from nads_book.studies import load_results, stored
from nads_book.studies.transforms import orthogonal_map, transform
from nads_core.data import ImageSet
from nads_core.runtime.arguments import require_choice

MAPS = ("as is", "random signs", "flipped", "shuffled")
WAYS = {  # order of coordinates, and whether they have random signs
    "as is": ("kept", False),
    "random signs": ("kept", True),
    "flipped": ("reversed", False),
}
KIND = ["source", "target", "order", "signs"]  # of a map, whatever the random draw
SIZES = {"lenet": "laptop", "resnet18": "narrow"}  # of networks that were trained on mapped photos
NAMES = LABELS | {"resnet18": "ResNet-18, quarter width"}
COLUMNS = {"match": "match", "correlation of neighbouring pixels": "neighbours"}
FASHION, DEEP = ("fashion-mnist", "lenet"), ("imagenette", "resnet")


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
    require_choice("map", name, MAPS)
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
    nads, versions = nads_of_flips(name), ("as is", map)
    data = [
        [(mapped(nc.normalize(part.images), nads, one, seed), part.labels) for one in versions]
        for part in (train, test)
    ]
    reached = nc.train_networks(
        name,
        *data,
        num_classes=len(train.class_names),
        recipe=replace(nc.CIFAR10_RECIPE, epochs=epochs),
        seed=seed,
        network_ids=[0, 0],  # the same first weights and batches
        progress=False,
    ).test_accuracy
    assert reached is not None
    return plot_signs({one: [float(reached[i])] for i, one in enumerate(versions)})


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
    panels = {}
    for name, results in flips().items():
        tests, trainings = sides_of(results), sides_of(results, "train_accuracy")
        panels[f"{LABELS[name]}, {results.settings['num_train']:,} photos"] = {
            side: figures.Accuracies(test, 10_000, trainings[side], [paper])
            for (side, test), paper in zip(tests.items(), published.FLIP[name], strict=True)
        }
    return figures.plot_accuracies(panels, 10, badge=formatting.badge(of_maps("lenet")))


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
    """Return the same as a table, with points (accuracy in percent)."""
    rows = of_maps(name).table
    return rows.assign(points=100 * rows["test_accuracy"])


def kinds() -> pd.DataFrame:
    """Return the means of match, smoothness and points over each kind of LeNet's maps."""
    groups = maps("lenet").fillna({"match": 0}).groupby(KIND)
    return groups[["match", "neighbours", "points"]].mean()


def three_ways(name: str) -> dict[str, pd.DataFrame]:
    """Return the networks on photos as they are, with random signs of their coordinates, and
    flipped.
    """
    groups = maps(name).groupby(KIND)
    return {way: groups.get_group((name, name, *what)) for way, what in WAYS.items()}


def difference(name: str, *ways: str) -> Estimate:
    """Return by how many points one of these ways beats another, with its interval.

    The variances of trainings on one map, and of draws of one kind of map, are pooled over kinds.
    Where a side has several draws of a map, the draws may decide.
    """
    one, other = sides = [three_ways(name)[way] for way in ways]
    cells = maps(name).groupby([*KIND, "draw"])["points"]
    trainings = pooled_variance(values for _, values in cells)
    draws = pooled_variance(values for _, values in cells.mean().groupby(KIND))
    half = trainings.half_width(*map(len, sides))
    if drawn := [count for side in sides if (count := side["draw"].nunique()) > 1]:
        half = max(half, draws.half_width(*drawn))
    return around(one["points"].mean() - other["points"].mean(), half)


def widget() -> Changes:
    """Return the figure in which the reader flips a picture, with what the flip costs once it was
    tried.
    """
    entries = []
    for name in SIZES:
        settings = of_maps(name).settings
        caption = (
            f"Test accuracy of {NAMES[name]} ({formatting.badge(of_maps(name))}), trained and "
            f"tested on images changed like this: {settings['num_train']:,} photos, "
            f"{settings['recipe']['epochs']} epochs."
        )
        means = [float(rows["test_accuracy"].mean()) for rows in three_ways(name).values()]
        accuracies = dict(zip(("upright", "signs", "flipped"), means, strict=True))
        entry = {"key": name, "label": NAMES[name], "caption": caption}
        entries.append(entry | {"accuracies": accuracies})
    return Changes("flip", entries)


def plot_signs(yours: Mapping[str, Sequence[float]] | None = None) -> Figure:
    """Draw accuracies on photos as they are, with random signs, and flipped.

    Args:
        yours: map -> accuracies in [0, 1] of networks that were trained now, in a panel of its own.
    """
    found = {
        NAMES[name]: {way: rows["test_accuracy"] for way, rows in three_ways(name).items()}
        for name in SIZES
    }
    panels = {
        name: {way: figures.Accuracies(shares, 5_000) for way, shares in ways.items()}
        for name, ways in (found | ({"yours": yours} if yours else {})).items()
    }
    return figures.plot_accuracies(panels, 10, badge=formatting.badge(of_maps("lenet")))


@styled
def plot_maps() -> Figure:
    """Draw LeNet's accuracy under each kind of map against match and smoothness."""
    found = kinds().reset_index()
    order = "order " + found["order"].mask(found["target"] == "random", "of a random basis")
    figure, axes = panel_row(["", ""], 3.2, ylabel="test accuracy (%)", sharey=True)
    # Logistic regression was trained at this size.
    level = 100 * stored("maps-logreg", "laptop").table["test_accuracy"].mean()
    for axis, (xlabel, key) in zip(axes, COLUMNS.items(), strict=True):
        for marker, (label, some) in zip("^Dvos", found.groupby(order), strict=False):
            axis.plot(some[key], some["points"], marker, alpha=0.75, label=label)
        axis.axhline(level, **dotted("logistic regression", 0.2))
        axis.set_xlabel(xlabel)
    legend(figure, axes[0], ncols=3)
    show_badge(figure, formatting.badge(of_maps("lenet")))
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
    whole, least, _ = difference(name, "as is", "flipped")
    rest, low, high = difference(name, "random signs", "flipped")
    rough = three_ways(name)["random signs"]["neighbours"].mean() < 0.1
    # The low end of the flip's cost stands for its variance: it makes the interval wider
    share = 1 - rest / whole, 1 - high / least, 1 - low / least
    return evidence(0.75 < share[1] and share[2] < 1.25 and rough, *share, results=[of_maps(name)])


@decides("match-with-smoothness")
def _():
    """Decide whether match and smoothness are so correlated over LeNet's maps that they cannot be
    distinguished.
    """
    changed = kinds().drop(("lenet", "lenet", *WAYS["as is"]))
    together = changed["match"].corr(changed["neighbours"], "spearman")
    return evidence(together > 0.9, together, results=[of_maps("lenet")])


# Other photos: `book/preregistered/replications.toml` has what was expected, and the criteria


@cache
def elsewhere(data: str, network: str) -> pd.DataFrame:
    """Return the trainings of a network on a data set, with points."""
    rows = table_of("replications")
    rows = rows[(rows["data"] == data) & (rows["network"] == network)]
    return rows.assign(points=100 * rows["test_accuracy"])


@decides("maps-resnet")
def _():
    """Decide whether all three maps cost the ResNet-18 more than 25 points, within four points of
    each other.
    """
    means = elsewhere(*DEEP).groupby("map")["points"].mean()[list(MAPS)]
    losses = means["as is"] - means.drop("as is")
    apart = losses.max() - losses.min()
    holds = losses.min() > 25 and apart < 4
    rows = elsewhere(*DEEP).dropna(subset="map")
    return evidence(holds, apart, rows=rows, size="narrow")


@decides("flip-fashion")
def _():
    """Decide by the estimates, as registered, whether the flip costs LeNet at least three points,
    and two more than random signs.
    """
    rows = elsewhere(*FASHION)
    condition = ["map", "index", "background", "written", "size"]
    variance = pooled_variance(each for _, each in rows.groupby(condition, dropna=False)["points"])
    upright, signs, flipped = (rows["points"][rows["map"] == name] for name in WAYS)
    found = variance.difference(signs, flipped)
    holds = upright.mean() - flipped.mean() >= 3 and found[0] >= 2
    return evidence(holds, *found, rows=rows, size="narrow")
