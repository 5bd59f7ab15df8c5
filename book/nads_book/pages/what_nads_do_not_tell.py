"""The page ``12_what_nads_do_not_tell``: choosing the pooling for a data set, scores that should
rank architectures, repair by one-line changes, and search.

``book/preregistered/`` has what was expected, and the criteria: ``pooling.toml``,
``other_data.toml``, ``repair.toml``, ``nas.toml``.
"""

import hashlib
import json
import lzma
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from nads_book import figures
from nads_book.claims import decides
from nads_book.experiments import Estimate, load_registered, load_study, table_of
from nads_book.experiments.checkout import checkout_folder
from nads_book.experiments.evidence import evidence
from nads_book.figures.style import (
    colours,
    legend,
    name_rows,
    shade,
    styled,
    subplots,
)
from nads_book.published.waves import LEARNED
from nads_book.statistics import (
    drawn_counts,
    exact_mean,
    pooled_variance,
    rank_correlation,
    rank_correlations,
    with_interval,
)
from nads_book.studies.repair import GOAL, NETWORKS, THRESHOLD

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
SINGLE = ["densenet, flat", "densenet, strided"]
LOW = 0.1  # of the mean energy, below which hardly any wave is learned
REPAIRS: dict[str, Any] = {"size": "narrow", "num_seeds": 2}
SEARCHED = ("cifar10", "cifar100", "ImageNet16-120")
HELD_OUT = 251  # cells
GAIN = (-0.03, 0.02)  # in which the gain over jacov and synflow was expected


# The pooling for a data set: five small CNNs, six data sets


@cache
def choices() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the energy of the signal in random networks, and test accuracies in percent, means
    over seeds: data sets × poolings each.
    """
    energies = pd.DataFrame(load_study("pooling.json")["prediction"]).map(lambda found: found[0])
    reached = table_of("pooling").pivot_table("test_accuracy", "data", "pooling")
    return energies.loc[SETS, POOLINGS], 100 * reached.loc[SETS, POOLINGS]


def plot_poolings() -> Figure:
    """Draw accuracy over the energy of the signal, for upright and for flipped photos."""
    energies, accuracies = choices()
    panels = {
        f"upright {photos}".replace("upright flipped", "flipped"): {
            name.replace("none", "no pooling"): (
                [energies.loc[photos, name]],
                [accuracies.loc[photos, name]],
            )
            for name in POOLINGS
        }
        for photos in ("photos", "flipped photos")
    }
    labels = ("energy of the classes, random networks", "test accuracy (%)")
    return figures.plot_lines(panels, *labels, [0.1, 0.2, 0.5, 1, 10, 100])


@decides("energy-chooses-pooling")
def _():
    """Decide by the registered rule whether energies were not shown to choose the pooling.

    They choose it if the choice of the highest energy loses fewer points than always max pooling,
    and the interval of the mean rank correlation, from all draws of data sets, excludes zero.
    """
    energies, accuracies = choices()
    chosen = [accuracies.loc[data, energies.loc[data].idxmax()] for data in SETS]
    better = np.mean(chosen) > accuracies["max"].mean()
    pairs = zip(energies.to_numpy(), accuracies.to_numpy(), strict=True)
    rank = exact_mean([rank_correlation(*pair, min_size=5) for pair in pairs])
    shown = better and not rank[1] <= 0 <= rank[2]
    return evidence(not shown, *rank, size="laptop", num_seeds=2, num_trainings=2 * energies.size)


@decides("flipped-need-another")
def _():
    """Decide whether no pooling is the best on flipped photos and the worst on upright ones."""
    energies, accuracies = choices()
    upright, flipped = accuracies.loc["photos"], accuracies.loc["flipped photos"]
    best = energies.loc["flipped photos"].idxmax(), flipped.idxmax(), upright.idxmin()
    costs = upright.max() - upright["none"]
    trainings = 4 * len(POOLINGS)
    return evidence(
        set(best) == {"none"}, costs, size="laptop", num_seeds=2, num_trainings=trainings
    )


# Scores from random weights


@cache
def pairs() -> tuple[np.ndarray, np.ndarray]:
    """Return primary scores, (data sets, variants, architectures), and accuracies, (…, seeds)."""
    names = ["data", "variant", "architecture"]
    scores = table_of("other-data-scores").set_index(names)["scores"]
    keys = pd.MultiIndex.from_product([DATA, VARIANTS, ARCHITECTURES], names=names)
    reached = (
        table_of("other-data").pivot_table("test_accuracy", names, "seed").loc[keys].to_numpy()
    )
    shape = len(DATA), len(VARIANTS), len(ARCHITECTURES)
    before = np.array([scores[key][PRIMARY][0] for key in keys])
    return before.reshape(shape), reached.reshape(*shape, -1)


def plot_pairs() -> Figure:
    """Draw the rank of each architecture by its score and by its accuracy, on unchanged images."""
    before, reached = (values[:, 0] for values in pairs())  # of unchanged images
    ranks = 3.5 - np.stack([_centred_ranks(one) for one in (before, reached.mean(-1))], -1)
    panels = {
        data: {name: ([0, 1], two) for name, two in zip(ARCHITECTURES.values(), cell, strict=True)}
        for data, cell in zip(DATA.values(), ranks, strict=True)
    }
    settings: dict[str, Any] = {"xticks": (0, 1), "xticklabels": ("score", "accuracy")}
    return figures.plot_lines(panels, "ranked by", "rank", ylim=(6.5, 0.5), **settings)


def _centred_ranks(values: np.ndarray) -> np.ndarray:
    """Return midranks of architectures with mean 0, the best last, (..., n)."""
    return np.sign(values[..., None] - values[..., None, :]).sum(-1) / 2


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
    each = (x * y).sum(-1) / np.sqrt((x**2).sum(-1) * (y**2).sum(-1))
    each = each.reshape(1 + DRAWS, -1)  # cells: data sets and variants
    drawn = rng.integers(each.shape[1], size=each.shape)
    drawn[0] = np.arange(each.shape[1])
    found = with_interval(np.take_along_axis(each, drawn, 1).mean(1))
    holds = found[2] < load_registered("other_data")["criteria"]["enough"] or None
    return evidence(holds, *found, size="narrow", num_seeds=seeds, num_trainings=reached.size)


# Repairing a small DenseNet and a narrow ResNet-18


@cache
def repaired() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the energies of waves in random networks, and which waves trained ones learned by the
    mean of their seeds: networks × 16 waves each.
    """
    study, names = load_study("repair.json"), list(NETWORKS)
    energies = pd.DataFrame({row["network"]: row["energies"] for row in study["prediction"]}).T
    rows = [row for row in study["rows"] if row["task"] == "waves"]
    reached = pd.DataFrame(
        [row["accuracies"] for row in rows], index=[row["network"] for row in rows]
    )
    return energies.loc[names], reached.groupby(level=0).mean().loc[names] > LEARNED


@styled
def plot_repairs() -> Figure:
    """Draw which of 16 waves are predicted to be learned, and which are, in a row per network."""
    figure, ((axis,),) = subplots(height=4.4, grid=None)
    energies, learned = (table.to_numpy() for table in repaired())  # (networks, waves)
    predicted, (right, wrong) = energies > THRESHOLD, colours()[:2]
    for label, cells, marker, colour in (
        ("predicted, learned", predicted & learned, "o", right),
        ("neither", ~(predicted | learned), ".", shade(0.6)),
        ("predicted, not learned", predicted & ~learned, "x", wrong),
        ("learned, not predicted", learned & ~predicted, "D", wrong),
    ):
        places, waves = np.nonzero(cells)
        axis.plot(waves, places, marker, color=colour, markersize=6, label=label)
    axis.set_xlabel("wave")
    axis.set_xticks([0, 15], ["coarsest", "finest"])
    shown = {"densenet": "DenseNet", "resnet": "ResNet-18"}
    name_rows(axis, pd.Series([*NETWORKS]).replace(shown, regex=True))
    legend(figure, axis, ncols=2)
    return figure


@decides("repair-both")
def _():
    """Decide whether both changes together let the DenseNet learn fewer than 12 waves."""
    number = repaired()[1].loc[BOTH].sum()
    return evidence(number < GOAL, number, num_trainings=64, **REPAIRS)


@decides("repair-single")
def _():
    """Decide whether the rule is right for all waves after each single change of the DenseNet."""
    energies, learned = (table.loc[SINGLE].to_numpy() for table in repaired())
    right = (energies > THRESHOLD) == learned
    return evidence(right.all() and learned[1, -1], right.sum(), num_trainings=64, **REPAIRS)


@decides("low-energy-unlearned")
def _():
    """Decide whether at most one wave of low energy is learned, over all eight networks."""
    energies, learned = (table.to_numpy() for table in repaired())
    low = learned[energies < LOW]
    return evidence(low.sum() <= 1, (~low).sum(), num_trainings=256, **REPAIRS)


# Search: a score from random networks, published proxies, and a count


def gain(data: str) -> Estimate:
    """Return by how much the directions raise the rank correlation of two published scores, jacov
    and synflow, with accuracy, on the cells on which no score was chosen.

    The interval draws classes of isomorphic cells again. A score was chosen on the cells whose
    class has an even hash.

    Args:
        data: data set of the accuracies.
    """
    folder = checkout_folder("book/results/nas_tables")
    packed = (folder / "zc_nasbench201.json.xz").read_bytes()
    published = json.loads(lzma.decompress(packed))["nasbench201"][data]
    table = pd.DataFrame(published).T[["jacov", "synflow", "val_accuracy"]].astype(float)
    table.index = table.index.str.replace(r"\D", "", regex=True)  # digits, one for each edge
    cells = pd.read_csv(folder / "nasbench201_all.csv.xz", dtype=str)
    table["class"] = cells.set_index(cells["cell"].str.zfill(6))["class"]
    held_out = [hashlib.sha256(one.encode()).digest()[0] % 2 == 1 for one in table["class"]]
    measured = table_of("nas").set_index("key")
    table = table[held_out].join(measured[["trace", "squares"]])
    # A cell without a path from input to output has no trace.
    directions = (-table["squares"] / table["trace"] ** 2).fillna(-np.inf)
    scores = table[["jacov", "synflow"]].assign(directions=directions)
    ranks = (scores.rank() - 0.5) / len(table)
    drawn = drawn_counts(table["class"], 5_000)
    with_nads, without = (
        rank_correlations(ranks[names].sum(axis=1), table["val_accuracy"], drawn)
        for names in (list(ranks), ["jacov", "synflow"])
    )
    return with_interval(with_nads - without)


@decides("nas-little-gain")
def _():
    """Decide whether the gain over jacov and synflow is in the registered range."""
    gains = [gain(data) for data in SEARCHED]
    holds = all(GAIN[0] <= value <= GAIN[1] for value, *_ in gains)
    return evidence(holds, *max(gains), size="paper", num_seeds=1, num_trainings=HELD_OUT)
