"""The page ``12_what_nads_do_not_tell``: choosing the pooling for a data set, scores that should
rank architectures, repair by one-line changes, and search.

``book/preregistered/`` has what was expected, and the criteria: ``pooling.toml``,
``other_data.toml``.
"""

import csv
import hashlib
import io
import json
import lzma
from collections.abc import Callable
from functools import cache

import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure
from scipy.stats import rankdata
from torch import Tensor, nn

import nads_core as nc
from nads_book.claims import decides
from nads_book.experiments import Estimate, load_registered, load_study
from nads_book.experiments.checkout import checkout_folder
from nads_book.experiments.evidence import Evidence, Facts, around, evidence
from nads_book.figures.style import (
    colours,
    legend,
    log_ticks,
    panel_row,
    shade,
    show_signed,
    styled,
    subplots,
)
from nads_book.photos.mnist1d import load_mnist1d
from nads_book.statistics import (
    drawn_counts,
    exact_mean,
    pooled_variance,
    rank_correlation,
    rank_correlations,
    with_interval,
)
from nads_book.studies import repair
from nads_book.studies.repair import GOAL, NETWORKS, THRESHOLD, Repaired
from nads_core.training import training_steps

POOLINGS = ["max", "average", "blurred", "strided", "none"]
SETS = ["low", "middle", "near an axis", "high", "photos", "flipped photos"]
DATA = {"cifar10": "CIFAR-10", "fashion-mnist": "Fashion-MNIST", "imagenette": "Imagenette"}
ARCHITECTURES = {
    "lenet": "LeNet",
    "cnn": "small CNN",
    "mlp": "MLP",
    "vit": "ViT",
    "mixer": "Mixer",
    "resnet": "ResNet-18",
}
VARIANTS = ["as is", "shuffled", "flipped", "random phases"]
PRIMARY, DRAWS = "ridge", 100_000
BOTH = "densenet, strided, flat"
SINGLE = ("densenet, flat", "densenet, strided")
LOW = 0.1  # of the mean energy, below which hardly any wave is learned
DIRECTIONS, COUNT = "directions", "convolutions minus poolings"
SEARCHED = ("cifar10", "cifar100", "ImageNet16-120")
EDGES = ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3))  # of the six digits of a cell
WEIGHTS = {"2": 1, "3": 1, "4": -1}  # digits of convolutions and of average pooling
GAIN = (-0.03, 0.02)  # in which the gain over jacov and synflow was expected


# The pooling for a data set: five small CNNs, six data sets


@cache
def choices() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the energy of the signal in random networks, and test accuracies in percent, means
    over seeds: data sets × poolings each.
    """
    content = load_study("pooling.json")
    energies = pd.DataFrame(content["prediction"]).map(lambda found: found[0])
    reached = pd.DataFrame(content["rows"]).pivot_table("test_accuracy", "data", "pooling")
    return energies.loc[SETS, POOLINGS], 100 * reached.loc[SETS, POOLINGS]


@styled
def plot_poolings() -> Figure:
    """Draw accuracy over the energy of the signal, for upright and for flipped photos."""
    panels = {"photos": ((1, 10, 100), "average"), "flipped photos": ((0.1, 0.2, 0.5), "blurred")}
    labels = {"xlabel": "energy of the classes, random networks", "ylabel": "test accuracy (%)"}
    figure, axes = panel_row(("upright photos", "flipped photos"), 3.2, sharey=True, **labels)
    energies, accuracies = choices()
    for axis, (photos, (ticks, below)) in zip(axes, panels.items(), strict=True):
        for name in POOLINGS:
            point = energies.loc[photos, name], accuracies.loc[photos, name]
            # below, where labels would overlap
            colour, shift = colours()[name == "none"], (0, -13 if name == below else 6)
            axis.plot(*point, "o", color=colour, markersize=6)
            text = axis.annotate(name.replace("none", "no pooling"), point, shift, ha="center")
            text.set(anncoords="offset points", color=colour)
        axis.margins(x=0.25, y=0.15)
        log_ticks(axis, ticks)
    return figure


@decides("energy-chooses-pooling")
def _():
    """Decide by the registered rule whether energies were not shown to choose the pooling.

    They choose it if the choice of the highest energy loses fewer points than always max pooling,
    and the interval of the mean rank correlation, from all draws of data sets, excludes zero.
    """
    energies, accuracies = (found.to_numpy() for found in choices())
    lost = accuracies.max(1, keepdims=True) - accuracies
    chosen = lost[np.arange(len(SETS)), energies.argmax(1)].mean()
    pairs = zip(energies, accuracies, strict=True)
    rank = exact_mean(np.array([rank_correlation(*pair, min_size=5) for pair in pairs]))
    shown = chosen < lost[:, POOLINGS.index("max")].mean() and not rank[1] <= 0 <= rank[2]
    return evidence(not shown, *rank, size="paper", num_seeds=2, num_trainings=2 * lost.size)


@decides("flipped-need-another")
def _():
    """Decide whether no pooling is the best on flipped photos and the worst on upright ones."""
    energies, accuracies = choices()
    upright, flipped = accuracies.loc["photos"], accuracies.loc["flipped photos"]
    best = energies.loc["flipped photos"].idxmax(), flipped.idxmax(), upright.idxmin()
    costs = upright.max() - upright["none"]
    facts: Facts = {"num_seeds": 2, "num_trainings": 4 * len(POOLINGS)}
    return evidence(set(best) == {"none"}, costs, size="laptop", **facts)


# Scores from random weights


@cache
def scores() -> dict[tuple[str, str, str], list[float]]:
    """Return the primary score and its standard error: (data, variant, architecture) -> both."""
    rows = load_study("other-data-scores.json")["rows"]
    return {
        (row["data"], row["variant"], row["architecture"]): row["scores"][PRIMARY] for row in rows
    }


@cache
def pairs() -> tuple[np.ndarray, np.ndarray]:
    """Return scores, (data sets, variants, architectures), and accuracies, (…, seeds)."""
    rows = pd.DataFrame(load_study("other-data.json")["rows"])
    names = ["data", "variant", "architecture"]
    keys = pd.MultiIndex.from_product([DATA, VARIANTS, ARCHITECTURES], names=names)
    reached = rows.pivot_table("test_accuracy", names, "seed").loc[keys].to_numpy()
    shape = len(DATA), len(VARIANTS), len(ARCHITECTURES)
    before = np.array([scores()[key][0] for key in keys])
    return before.reshape(shape), reached.reshape(*shape, -1)


@styled
def plot_pairs() -> Figure:
    """Draw the rank of each architecture by its score and by its accuracy, on unchanged images."""
    before, reached = (values[:, 0] for values in pairs())  # of unchanged images
    labels = {"xlabel": "rank by score", "ylabel": "rank by accuracy"}
    figure, axes = panel_row(DATA.values(), 3.2, sharey=True, grid=None, **labels)
    accuracies, count = reached.mean(-1), len(ARCHITECTURES)
    ranks = np.stack([rankdata(-values, axis=-1) for values in (before, accuracies)], -1)
    for axis, points, shares in zip(axes, ranks, accuracies, strict=True):
        axis.axline((1, 1), slope=1, color=shade(0.75), zorder=0)
        axis.plot(*points.T, "o", markersize=5)
        for point, name, share in zip(points, ARCHITECTURES.values(), shares, strict=True):
            side, shift = ("right", (-6, 3)) if point[0] > count / 2 else ("left", (6, 3))
            text = axis.annotate(f"{name} {100 * share:.0f} %", point, shift, ha=side, fontsize=7)
            text.set(anncoords="offset points")
            text.set_bbox({"facecolor": axis.get_facecolor(), "linewidth": 0, "pad": 1})
        axis.set(xlim=(0.3, count + 0.7), ylim=(count + 0.7, 0.3))
        axis.set(xticks=range(1, count + 1), yticks=range(1, count + 1))
    return figure


def _centred_ranks(values: np.ndarray) -> np.ndarray:
    """Return midranks of architectures with mean 0.

    (..., data sets, variants, n) -> (..., cells, n)
    """
    cells = values.reshape(*values.shape[:-3], -1, values.shape[-1])
    return rankdata(cells, axis=-1) - (cells.shape[-1] + 1) / 2


@decides("pairs-best")
def _():
    """Decide whether the primary score does not rank architectures on given data.

    The rule is registered: the whole interval of the mean rank correlation lies below a limit. The
    interval draws sets of images again, and adds the variance between trainings.
    """
    before, reached = pairs()
    seeds, rng = reached.shape[-1], np.random.default_rng(0)
    means = reached.mean(-1).round(9)  # equal numbers of right images are a tie
    deviations = [pooled_variance(part.reshape(-1, seeds)).deviation for part in reached]
    errors = np.array(deviations)[:, None, None] / seeds**0.5
    noise = rng.normal(size=(DRAWS, *means.shape)) * errors
    x, y = _centred_ranks(before), _centred_ranks(np.concatenate([means[None], means + noise]))
    each = (x * y).sum(-1) / np.sqrt((x**2).sum(-1) * (y**2).sum(-1))  # (1 + draws, cells)
    drawn = rng.integers(each.shape[1], size=each.shape)
    drawn[0] = np.arange(each.shape[1])
    found = with_interval(np.take_along_axis(each, drawn, 1).mean(1))
    holds = found[2] < load_registered("other_data")["criteria"]["enough"] or None
    return evidence(holds, *found, size="narrow", num_seeds=seeds, num_trainings=reached.size)


def accuracy_after(
    build: Callable[[], nn.Module], order: Tensor, steps: int = 1_000, seed: int = 0
) -> float:
    """Train a network on MNIST-1D with Adam, and return its test accuracy.

    Args:
        build: factory of a network from (N, 1, 40) to (N, 10).
        order: order of the 40 numbers.
        steps: number of steps of 100 series.
        seed: seed of weights and batches.
    """
    train, test = (load_mnist1d(train=part) for part in (True, False))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = build()
        adam = torch.optim.Adam(network.parameters(), 0.01)
        batches = (torch.randint(len(train), (100,)) for _ in range(steps))
        for _ in training_steps(network, (train.images[..., order], train.labels), adam, batches):
            pass
    return nc.accuracy(network, (test.images[..., order], test.labels))


@decides("series-ridge-falls")
def _():
    """Decide whether the primary score of the CNN does not fall by two standard errors, as was
    registered.
    """
    (before, error), (after, other) = (
        scores()["mnist1d", variant, "cnn"][:2] for variant in VARIANTS[:2]
    )
    found = around(100 * (before - after), 200 * float(np.hypot(error, other)))
    return evidence(found[1] <= 0, *found, size="paper", num_seeds=1, num_trainings=8)


# Repairing a small DenseNet and a narrow ResNet-18


@cache
def repaired() -> Repaired:
    """Return the stored energies and accuracies."""
    content = load_study("repair.json")
    return Repaired.of(content["prediction"], content["rows"])


@styled
def plot_repairs() -> Figure:
    """Draw which of 16 waves are predicted to be learned, and which are, in a row per network."""
    figure, ((axis,),) = subplots(height=4.4, grid=None)
    predicted = np.stack([repaired().energies[name] > THRESHOLD for name in NETWORKS])
    learned = np.stack([repaired().learned(name) for name in NETWORKS])  # (networks, waves)
    right, wrong = colours()[:2]
    for label, cells, marker, colour in (
        ("predicted, learned", predicted & learned, "o", right),
        ("neither", ~(predicted | learned), ".", shade(0.6)),
        ("predicted, not learned", predicted & ~learned, "x", wrong),
        ("learned, not predicted", learned & ~predicted, "D", wrong),
    ):
        places, waves = np.nonzero(cells)
        axis.plot(waves, places, marker, color=colour, markersize=6, label=label)
    for place, wave in enumerate(repair.waves()):
        box = axis.inset_axes((place - 0.42, -1.5, 0.84, 0.84), transform=axis.transData)
        show_signed(box, nc.fourier_direction(wave)[0])
    axis.set(xlim=(-0.7, 15.7), ylim=(len(NETWORKS) - 0.5, -1.7), xlabel="wave")
    axis.set_xticks([0, 15], ["coarsest", "finest"])
    names = [
        name.replace("densenet", "DenseNet").replace("resnet", "ResNet-18") for name in NETWORKS
    ]
    axis.set_yticks(range(len(names)), names)
    axis.spines[:].set_visible(False)
    legend(figure, axis, ncols=2)
    return figure


def of_repairs(holds: object, value: float, num_trainings: int = 64) -> Evidence:
    """Return evidence from trainings; four networks along 16 waves by default."""
    return evidence(holds, value, size="narrow", num_seeds=2, num_trainings=num_trainings)


@decides("repair-both")
def _():
    """Decide whether both changes together let the DenseNet learn fewer than 12 waves."""
    number = int(repaired().learned(BOTH).sum())
    return of_repairs(number < GOAL, number)


@decides("repair-single")
def _():
    """Decide whether the rule is right for all waves after each single change of the DenseNet."""
    found = repaired()
    right = np.array([found.right(name) for name in SINGLE])
    return of_repairs(right.all() and found.learned("densenet, strided")[-1], right.sum())


@decides("low-energy-unlearned")
def _():
    """Decide whether at most one wave of low energy is learned, over all eight networks."""
    found = repaired()
    learned = np.concatenate([found.learned(name)[found.energies[name] < LOW] for name in NETWORKS])
    return of_repairs(learned.sum() <= 1, (~learned).sum(), 256)


# Search: a score from random networks, published proxies, and a count


def _table(name: str) -> str:
    """Return the text of a published table."""
    return lzma.open(checkout_folder("book/results/nas_tables") / name).read().decode()


@cache
def classes() -> dict[str, str]:
    """Return the class of isomorphic cells of each cell of NAS-Bench-201."""
    rows = csv.DictReader(io.StringIO(_table("nasbench201_all.csv.xz")))
    return {row["cell"].zfill(6): row["class"] for row in rows}


def on_paths(cell: str) -> str:
    """Return the operations of a cell (digits) on a path from its input to its output."""
    edges = [(*edge, digit) for edge, digit in zip(EDGES, cell, strict=True) if digit != "1"]
    reached, used = {0}, {3}
    for _ in range(3):  # the longest path has three edges
        reached |= {b for a, b, _ in edges if a in reached}
        used |= {a for a, b, _ in edges if b in used}
    return "".join(digit for a, b, digit in edges if a in reached and b in used)


@cache
def table_of(data: str) -> pd.DataFrame:
    """Return scores, accuracies and classes of the cells on which no score was chosen.

    A score was chosen on the cells whose class has an even hash.
    """
    measured = {row["key"]: row for row in load_study("nas.json")["rows"]}
    published = json.loads(_table("zc_nasbench201.json.xz"))["nasbench201"][data]
    rows = []
    for name, record in published.items():
        cell = "".join(filter(str.isdigit, name))
        if hashlib.sha256(classes()[cell].encode()).digest()[0] % 2 == 0:
            continue
        row = measured[cell]  # one without a path from input to output has no trace
        rows.append(
            {key: record[key] for key in ("jacov", "synflow", "val_accuracy")}
            | {
                DIRECTIONS: -row["squares"] / row["trace"] ** 2 if "trace" in row else -np.inf,
                "class": classes()[cell],
                COUNT: sum(WEIGHTS.get(digit, 0) for digit in on_paths(cell)),
            }
        )
    table = pd.DataFrame(rows)
    ranks = (table[["jacov", "synflow", DIRECTIONS]].rank() - 0.5) / len(table)
    table["sum"] = ranks["jacov"] + ranks["synflow"]
    return table.assign(**{"with NADs": table["sum"] + ranks[DIRECTIONS]})


def lead(name: str, other: str, data: str = "cifar10") -> Estimate:
    """Return the lead of one score's rank correlation with accuracy over that of another.

    The interval draws classes of isomorphic cells again.

    Args:
        name: key of `table_of`.
        other: key of `table_of`.
        data: data set of the accuracies.
    """
    table = table_of(data)
    drawn = drawn_counts(table["class"], 5_000)
    first, second = (
        rank_correlations(table[key], table["val_accuracy"], drawn) for key in (name, other)
    )
    return with_interval(first - second)


def _of_search(holds: object, found: Estimate, null: float | None = None) -> Evidence:
    number = len(table_of("cifar10"))
    return evidence(holds, *found, null=null, size="paper", num_seeds=1, num_trainings=number)


@decides("nas-little-gain")
def _():
    """Decide whether the gain over jacov and synflow is in the registered range."""
    gains = [lead("with NADs", "sum", data) for data in SEARCHED]
    return _of_search(all(GAIN[0] <= value <= GAIN[1] for value, *_ in gains), max(gains))


@decides("nas-plain-count")
def _():
    """Decide whether a count of operations ranks cells better than directions do."""
    found = lead(COUNT, DIRECTIONS)
    return _of_search(found[1] > 0, found, null=0)
