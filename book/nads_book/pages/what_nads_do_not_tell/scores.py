"""Do scores from random weights rank architectures on given data?

``book/preregistered/other_data.toml`` has what was expected, and the criteria.
"""

from collections.abc import Callable
from functools import cache

import numpy as np
import torch
from matplotlib.figure import Figure
from scipy.stats import rankdata
from torch import Tensor, nn

import nads_core as nc
from nads_book.analysis.statistics import pooled_variance, with_interval
from nads_book.evidence import Evidence, evidence
from nads_book.experiments import load_registered, load_study
from nads_book.figures.style import panel_row, shade, styled
from nads_book.mnist1d import load_mnist1d
from nads_core.training import training_steps

DATA = {"cifar10": "CIFAR-10", "fashion-mnist": "Fashion-MNIST", "imagenette": "Imagenette"}
ARCHITECTURES = {
    "lenet": "LeNet",
    "cnn": "small CNN",
    "mlp": "MLP",
    "vit": "ViT",
    "mixer": "Mixer",
    "resnet": "ResNet-18",
}
VARIANTS = ("as is", "shuffled", "flipped", "random phases")
PRIMARY, DRAWS = "ridge", 100_000


@cache
def scores() -> dict[tuple[str, str, str], list[float]]:
    """Return the primary score and its standard error: (data, variant, architecture) -> both."""
    rows = load_study("other-data-scores.json")["rows"]
    pairs = ((row["data"], row["variant"], row["architecture"]) for row in rows)
    return {pair: row["scores"][PRIMARY] for pair, row in zip(pairs, rows, strict=True)}


@cache
def pairs() -> tuple[np.ndarray, np.ndarray]:
    """Return scores, (data sets, variants, architectures), and accuracies, (…, seeds)."""
    reached: dict[tuple[str, str, str], list[float]] = {}
    rows = load_study("other-data.json")["rows"]
    for row in sorted(rows, key=lambda row: row["seed"]):
        pair = (row["data"], row["variant"], row["architecture"])
        reached.setdefault(pair, []).append(row["test_accuracy"])
    keys = [[[(d, v, a) for a in ARCHITECTURES] for v in VARIANTS] for d in DATA]
    before = [[[scores()[key][0] for key in row] for row in block] for block in keys]
    return np.array(before), np.array([[[reached[k] for k in row] for row in b] for b in keys])


@styled
def plot_pairs() -> Figure:
    """Draw the rank of each architecture by its score and by its accuracy, on unchanged images."""
    before, reached = (values[:, 0] for values in pairs())  # of unchanged images
    figure, axes = panel_row(
        DATA.values(),
        3.2,
        ylabel="rank by accuracy",
        xlabel="rank by score",
        sharey=True,
        grid=None,
    )
    accuracies, count = reached.mean(-1), len(ARCHITECTURES)
    ranks = [rankdata(-values, axis=-1) for values in (before, accuracies)]
    for place, axis in enumerate(axes):
        axis.axline((1, 1), slope=1, color=shade(0.75), zorder=0)
        points = np.array([part[place] for part in ranks]).T
        axis.plot(*points.T, "o", markersize=5)
        for point, name, accuracy in zip(
            points, ARCHITECTURES.values(), accuracies[place], strict=True
        ):
            side, shift = ("right", (-6, 3)) if point[0] > count / 2 else ("left", (6, 3))
            axis.annotate(
                f"{name} {100 * accuracy:.0f} %",
                point,
                xytext=shift,
                textcoords="offset points",
                ha=side,
                fontsize=7,
                bbox={"facecolor": axis.get_facecolor(), "linewidth": 0, "pad": 1},
            )
        axis.set(xlim=(0.3, count + 0.7), ylim=(count + 0.7, 0.3))
        axis.set(xticks=range(1, count + 1), yticks=range(1, count + 1))
    return figure


def _centred_ranks(values: np.ndarray) -> np.ndarray:
    """Return midranks of architectures with mean 0.

    (..., data sets, variants, n) -> (..., cells, n)
    """
    cells = values.reshape(*values.shape[:-3], -1, values.shape[-1])
    return rankdata(cells, axis=-1) - (cells.shape[-1] + 1) / 2


def pairs_best() -> Evidence:
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


# MNIST-1D


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


def series_ridge_falls() -> Evidence:
    """Decide whether the primary score of the CNN does not fall by two standard errors, as was
    registered.
    """
    (before, error), (after, other) = (
        scores()["mnist1d", variant, "cnn"][:2] for variant in VARIANTS[:2]
    )
    value, half = 100 * (before - after), 200 * float(np.hypot(error, other))
    estimate = value, value - half, value + half
    return evidence(value <= half, *estimate, size="paper", num_seeds=1, num_trainings=8)
