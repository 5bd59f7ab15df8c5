"""The page ``08_flip``: what it costs networks to have the order of NAD coordinates reversed, and
why.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure
from scipy.stats import permutation_test, rankdata
from torch import Tensor

import nads_core as nc
from nads_book import figures, published
from nads_book.claims import decides
from nads_book.experiments import Results, Row, formatting, load_nads, load_study, results_path
from nads_book.experiments.evidence import Estimate, Evidence, Facts, above, around, evidence
from nads_book.experiments.formatting import LABELS, percent
from nads_book.explorer import Changes
from nads_book.figures.style import (
    colours,
    dotted,
    legend,
    name_rows,
    panel_row,
    shade,
    show_badge,
    styled,
)
from nads_book.statistics import pooled_variance, rank_correlation
from nads_book.studies import load_results, run_experiment, stored
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
FASHION, DEEP = ("fashion-mnist", "lenet"), ("imagenette", "resnet")
CELLS = {
    "Fashion-MNIST, LeNet": FASHION,
    "Imagenette, LeNet": ("imagenette", "lenet"),
    "Imagenette, ResNet-18": DEEP,
}


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


def flip_matrix(nads: nc.NADs) -> Tensor:
    """Return the flip, which exchanges the first NAD with the last, the second with the last but
    one, and so on.
    """
    return orthogonal_map(nads.basis, nads.basis, "reversed")


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


def train_on_map(
    train: ImageSet, test: ImageSet, name: str, map: str, epochs: int, seed: int = 0
) -> float:
    """Train a network on images that are mapped by its own NADs, and return its accuracy on mapped
    test images.

    Args:
        train: training images of 32 x 32 pixels.
        test: test images.
        name: network, such as "lenet".
        map: one of `MAPS`.
        epochs: number of epochs.
        seed: seed of the map and of the training.
    """
    nads = nads_of_flips(name)
    data, clean = (
        (mapped(nc.normalize(part.images), nads, map, seed), part.labels) for part in (train, test)
    )
    torch.manual_seed(seed)
    network = nc.ARCHITECTURES[name].build(train.images.shape[1], 32, len(train.class_names))
    recipe = replace(nc.CIFAR10_RECIPE, epochs=epochs)
    trained = nc.train_network(network, data, clean, recipe=recipe, seed=seed, progress=False)
    assert trained.test_accuracy is not None
    return float(trained.test_accuracy)


def run_full_scale(job: str, data_root: str | None = None) -> None:
    """Run or resume a job at the paper's size, such as ``fig8-resnet18``; its results join the
    stored ones.
    """
    run_experiment(job, "paper", out=results_path(job), root=data_root, progress=False)


# Stored networks on flipped photos


@cache
def flips() -> dict[str, Results]:
    """Return what each network scores on upright and on flipped photos, at the largest size that
    there is.
    """
    found = {name: load_results(f"fig8-{name}") for name in nc.ARCHITECTURES}
    for name in ("vgg11", "resnet18"):
        found[name] = found[name] or load_results(f"fig8-{name}", "laptop")
    return {name: results for name, results in found.items() if results and results.rows}


def sides_of(results: Results, field: str = "test_accuracy") -> dict[str, list[float]]:
    """Return accuracies of the networks on upright photos and on flipped ones."""
    rows = results.table
    sides = {"as is": ~rows["flipped"], "flipped": rows["flipped"]}
    return {label: rows[field][side].tolist() for label, side in sides.items()}


def plot_costs() -> Figure:
    """Draw the accuracies on upright and flipped photos, and the paper's."""
    tests, trainings, papers = {}, {}, {}
    for name, results in flips().items():
        panel = f"{LABELS[name]}, {results.settings['num_train']:,} photos"
        tests[panel], trainings[panel] = sides_of(results), sides_of(results, "train_accuracy")
        if name in published.FLIP:
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

    LeNet at the paper's size decides.
    """
    results = flips()["lenet"]
    sides = sides_of(results, "train_accuracy").items()
    errors = {label: 100 * (1 - float(np.mean(side))) for label, side in sides}
    shown = " and ".join(f"{error:.0f} % ({label})" for label, error in errors.items())
    text = f"LeNet, 50,000 photos, 50 epochs: a training error of {shown}."
    most = max(errors.values())
    return evidence(most <= 5, most, sentence=text, results=[results])


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


def chosen(name: str, fields: Row) -> pd.DataFrame:
    """Return the networks with given values of some fields."""
    rows = maps(name)
    return rows[(rows[list(fields)] == pd.Series(fields)).all(axis=1)]


def own(name: str, order: str, signs: bool = False) -> Row:
    """Return the fields of networks whose photos have coordinates along the network's own NADs in
    some order.
    """
    return {"source": name, "target": name, "order": order, "signs": signs}


def three_ways(name: str) -> dict[str, pd.DataFrame]:
    """Return the networks on photos as they are, with random signs of their coordinates, and
    flipped.
    """
    wanted = {
        "as is": own(name, "kept"),
        "random signs": own(name, "kept", signs=True),
        "flipped": own(name, "reversed"),
    }
    return {label: chosen(name, fields) for label, fields in wanted.items()}


def difference(name: str, *fields: Row) -> Estimate:
    """Return by how many points one kind of photos beats another, with its interval.

    The variances of trainings on one map, and of draws of one kind of map, are pooled over kinds.
    Where a side has several draws of a map, the draws may decide.
    """
    one, other = sides = [chosen(name, each) for each in fields]
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


def plot_signs(yours: Mapping[str, float] | None = None) -> Figure:
    """Draw accuracies on photos as they are, with random signs, and flipped.

    Args:
        yours: map -> accuracy in [0, 1] of a network that was trained now, in a panel of its own.
    """
    tests = {
        NAMES[name]: {key: rows["test_accuracy"].tolist() for key, rows in three_ways(name).items()}
        for name in SIZES
    }
    if yours:
        tests["yours"] = {label: [accuracy] for label, accuracy in yours.items()}
    return figures.plot_representations(tests, 5_000, badge=formatting.badge(of_maps("lenet")))


def plot_yours(
    train: ImageSet, test: ImageSet, name: str, map: str, epochs: int, seed: int = 0
) -> Figure:
    """Train a network on images as they are and mapped, and draw both beside the stored ones: see
    `train_on_map`.
    """
    versions = dict.fromkeys(("as is", map))
    return plot_signs({one: train_on_map(train, test, name, one, epochs, seed) for one in versions})


@styled
def plot_maps(name: str, upright: bool = True) -> Figure:
    """Draw the accuracy of each kind of map against match and smoothness; lines connect an order
    with its reverse.

    Args:
        name: network.
        upright: whether photos as they are belong to it.
    """
    kinds = kinds_of(name)
    kinds = kinds if upright else kinds.drop(AS_THEY_ARE)
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
    """Tell how well networks fit photos as they are and flipped, which decides nothing."""
    parts = []
    for name in SIZES:
        for label in ("as is", "flipped"):
            side = three_ways(name)[label]
            shares = [percent(side[key].mean()) for key in ("train_accuracy", "test_accuracy")]
            parts.append(
                f"{NAMES[name]}, {label}: {shares[0]} of training photos, test {shares[1]}"
            )
    results = [of_maps(name) for name in SIZES]
    return evidence(None, sentence="; ".join(parts) + ".", results=results)


@decides("flip-costs")
def _():
    """Decide whether both networks score less on flipped photos, by the smaller of two losses."""
    losses = [difference(name, own(name, "kept"), own(name, "reversed")) for name in SIZES]
    return above(min(losses), results=[of_maps(name) for name in SIZES])


@decides("signs-cost-resnet18")
def _(name: str = "resnet18") -> Evidence:
    """Decide whether signs cost ResNet-18 all that the flip costs."""
    whole, *_ = difference(name, own(name, "kept"), own(name, "reversed"))
    rest, low, high = difference(name, own(name, "kept", signs=True), own(name, "reversed"))
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
    together = rank_correlation(changed["match"].to_numpy(), changed["neighbours"].to_numpy())
    return evidence(together > 0.9, together, results=[of_maps("lenet")])


@decides("match-open")
def _():
    """Decide whether match and accuracy have no significant rank correlation over ResNet-18's maps
    after which neighbouring pixels are uncorrelated.

    The p-value is exact, from all orders of the maps.
    """
    kinds = kinds_of("resnet18")
    rough = kinds[kinds["neighbours"].abs() < ROUGH]
    matches, accuracies = rankdata(rough[["match", "points"]].to_numpy().round(9), axis=0).T

    def products(order: np.ndarray, axis: int) -> np.ndarray:
        return (order * accuracies).sum(axis)

    exact = permutation_test(
        (matches,), products, permutation_type="pairings", n_resamples=np.inf, vectorized=True
    )
    rho = np.corrcoef(matches, accuracies)[0, 1]
    # Fisher's transform: artanh(rho) has a standard error of about 1 / sqrt(n - 3).
    half = 1.96 / (len(matches) - 3) ** 0.5
    ends = np.tanh(np.arctanh(rho) + np.array([-half, half]))
    return evidence(exact.pvalue > 0.05, rho, *ends, null=0, results=[of_maps("resnet18")])


@decides("order-beats-shuffled")
def _():
    """Decide whether ResNet-18's order kept beats a random basis, and not a shuffled order or one
    shuffled in octaves.
    """
    components = {"source": "pca", "target": "resnet18"}
    kept, *shuffled = (
        components | {"order": order} for order in ("kept", "shuffled", "shuffled in octaves")
    )
    others: list[Row] = [{"source": "pca", "target": "random"}, *shuffled]
    found = [difference("resnet18", kept, other) for other in others]
    random, *ahead = (low > 0 for _, low, _ in found)
    return evidence(random and not all(ahead), *found[-1], results=[of_maps("resnet18")])


# Other photos (``book/preregistered/replications.toml`` has what was expected, and the criteria)


@cache
def elsewhere(data: str, network: str) -> pd.DataFrame:
    """Return the trainings of a network on a data set, with points."""
    rows = pd.DataFrame(load_study("replications.json")["rows"])
    rows = rows[(rows["data"] == data) & (rows["network"] == network)]
    return rows.assign(points=100 * rows["test_accuracy"])


@styled
def plot_elsewhere() -> Figure:
    """Draw the test accuracy under each map, a panel for each data set and network; logistic
    regression as a line.
    """
    figure, axes = panel_row(CELLS, 2.2, xlabel="test accuracy (%)", sharey=True, grid="x")
    for axis, (data, network) in zip(axes, CELLS.values(), strict=True):
        points = elsewhere(data, network).groupby("map")["points"]
        for place, name in enumerate(MAPS):
            values = points.get_group(name)
            axis.barh(place, values.mean(), color=colours()[0], alpha=0.35, height=0.6)
            axis.plot(values, [place] * len(values), "o", color=colours()[0])
        level = elsewhere(data, "logreg").groupby("map")["points"].mean()["as is"]
        axis.axvline(level, **dotted("logistic regression", 0.3))
        axis.set_xlim(0, 100)
    name_rows(axes[0], MAPS.values())
    legend(figure, axes)
    return figure


def _facts(rows: pd.DataFrame) -> Facts:
    return {"size": "narrow", "num_seeds": rows["seed"].nunique(), "num_trainings": len(rows)}


@decides("maps-resnet")
def _():
    """Decide whether all three maps cost the ResNet-18 more than 25 points, within four points of
    each other.
    """
    means = elsewhere(*DEEP).groupby("map")["points"].mean()[list(MAPS)]
    losses = means["as is"] - means.drop("as is")
    apart = losses.max() - losses.min()
    holds = losses.min() > 25 and apart < 4
    return evidence(holds, apart, size="narrow", num_seeds=1, num_trainings=4)


@decides("flip-fashion")
def _():
    """Decide by the estimates, as registered, whether the flip costs LeNet at least three points,
    and two more than random signs.
    """
    rows = elsewhere(*FASHION)
    condition = ["map", "index", "background", "written", "size"]
    variance = pooled_variance(each for _, each in rows.groupby(condition, dropna=False)["points"])
    upright, signs, flipped = (
        rows["points"][rows["map"] == name] for name in ("as is", "random signs", "flipped")
    )
    found = variance.difference(signs, flipped)
    holds = upright.mean() - flipped.mean() >= 3 and found[0] >= 2
    return evidence(holds, *found, **_facts(rows))
