"""When does training forget its NADs? Networks on D(v) by optimiser, learning rate, label noise and
weight decay.

``book/preregistered/forgetting.toml`` has what was expected.
"""

import itertools
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor, nn

import nads_core as nc
from nads_book.experiments import (
    Context,
    Facts,
    Row,
    Rows,
    Study,
    Unit,
    factorial,
    load_study,
    recipe_steps,
)
from nads_book.published.waves import LEARNED, predicted_energies
from nads_book.statistics import (
    area_under_curve,
    rank_correlation,
)
from nads_book.studies.presets import MODELS
from nads_core.data.fourier import Frequency
from nads_core.kernels import faster_layers
from nads_core.runtime.seeds import seed_sequence, seeded
from nads_core.training import Dataset, Recipe

WAVES, SEEDS = 16, (0, 1)
NUM_SAMPLES, NOISE_STD = 10_000, 3.0
LOGGED = (1, 2, 5, 10, 20)  # epochs after which the test accuracy is measured
RATES = {"sgd": (0.05, 0.5, 2.0), "momentum": (0.005, 0.05, 0.2), "adam": (1e-4, 1e-3, 1e-2)}
LABEL_NOISE, WEIGHT_DECAY = (0.0, 0.2), (0.0, 5e-4)
# Standard deviations of the margin, with mean 1: the classes overlap, and the best accuracy is 98,
# 84 and 69 %.
OVERLAPS = (0.5, 1.0, 2.0)


@dataclass(frozen=True)
class Cell:
    """One treatment of a network.

    Args:
        architecture: "lenet", or the name of an entry of the atlas.
        optimiser: "sgd", "momentum" (0.9) or "adam"; the rate falls linearly to zero, as in the
            paper.
        rate: learning rate of the first step.
        label_noise: share of the training labels that are replaced by the other class.
        weight_decay: coefficient of the L2 penalty (decoupled with Adam).
        overlap: standard deviation of the margin of each sample, in training and test.
    """

    architecture: str = "lenet"
    optimiser: str = "sgd"
    rate: float = 0.5
    label_noise: float = 0.0
    weight_decay: float = 0.0
    overlap: float = 0.0


FACTORIAL = [
    Cell("lenet", name, *rest)
    for name in RATES
    for rest in itertools.product(RATES[name], LABEL_NOISE, WEIGHT_DECAY)
]
SECOND = [Cell("cnn", "sgd", rate) for rate in (0.5, 0.05)]
SECOND += [Cell("cnn", "adam", rate) for rate in (1e-3, 1e-2)]
CELLS = [*FACTORIAL, *SECOND, *(Cell(overlap=overlap) for overlap in OVERLAPS)]


@lru_cache
def waves() -> list[Frequency]:
    """Return 16 waves of the published grid at equal steps of log energy, from .42 to .0095 of
    LeNet's largest.
    """
    energies, chosen = predicted_energies("lenet"), list[Frequency]()
    for goal in np.geomspace(0.42, 0.0095, WAVES):
        left = [k for k in energies if k not in chosen]
        chosen.append(min(left, key=lambda k: (abs(math.log(energies[k] / goal)), k)))
    return chosen


def wave_energies() -> np.ndarray:
    """Return the energies of `waves` in LeNets at initialisation, (16,), the largest of
    the grid 1.
    """
    return np.array([predicted_energies("lenet")[k] for k in waves()])


def accuracies(rows: Rows) -> dict[Cell, np.ndarray]:
    """Return the last test accuracies of each cell of a complete design, (seeds, waves), in
    [0, 1].
    """
    found: dict[Cell, np.ndarray] = {}
    for row in rows:
        table = found.setdefault(Cell(**row["cell"]), np.full((len(SEEDS), WAVES), np.nan))
        place = SEEDS.index(row["seed"]), waves().index(tuple(row["wave"]))
        table[place] = row["test_accuracies"][-1]
    return found


def cnn_accuracies() -> dict[Frequency, float]:
    """Return the stored accuracies of the small CNN with SGD by wave, means over seeds."""
    table = accuracies(load_study("forgetting.json")["rows"])[Cell("cnn", "sgd", 0.5)]
    return dict(zip(waves(), table.mean(0), strict=True))


def orders(energies: np.ndarray, table: np.ndarray) -> dict[str, float]:
    """Return how energies (n,) order accuracies (seeds, n).

    ``area``: share of pairs of a learned and another wave in which the learned one has more energy
    (NaN if all or none are learned); ``correlation``: rank correlation; ``learned``: number of
    waves above 55 %, by their mean.
    """
    means = table.mean(0)
    learned = means > LEARNED
    return {
        "area": area_under_curve(energies, learned),
        "correlation": rank_correlation(energies, means),
        "learned": int(learned.sum()),
    }


def by_energy(tables: Mapping[Cell, np.ndarray]) -> dict[Cell, dict[str, float]]:
    """Return how energies order the accuracies of each treatment of the factorial design."""
    return {cell: orders(wave_energies(), tables[cell]) for cell in FACTORIAL}


def refuting(tables: Mapping[Cell, np.ndarray]) -> list[Cell]:
    """Return the treatments that refute the registered claim: areas below .8 in both seeds, where
    enough waves are learned and enough are not.
    """

    def fails(run: dict[str, float]) -> bool:
        return run["area"] < 0.8 and 3 <= run["learned"] <= WAVES - 3

    return [
        cell
        for cell in FACTORIAL
        if all(fails(orders(wave_energies(), table[None])) for table in tables[cell])
    ]


def optimiser_of(parameters: Iterable[Tensor], cell: Cell) -> torch.optim.Optimizer:
    """Return the optimiser of a cell."""
    options: Facts = {"lr": cell.rate, "weight_decay": cell.weight_decay}
    if cell.optimiser == "adam":
        return torch.optim.AdamW(parameters, **options)
    momentum = 0.9 if cell.optimiser == "momentum" else 0.0
    return torch.optim.SGD(parameters, momentum=momentum, **options)


def built(cell: Cell, seed: int) -> nn.Module:
    """Return a network of a cell, in training mode."""
    with seeded(seed_sequence(seed, 13)):
        return MODELS[cell.architecture].build(1, 32, 2).train()


def dataset(direction: Tensor, cell: Cell, seed: int) -> tuple[Tensor, Tensor]:
    """Return samples of D(v) whose margins have the overlap of the cell: images (N, 1, 32, 32) and
    labels (N,).
    """
    images, labels = nc.separable_dataset(direction, NUM_SAMPLES, noise_std=NOISE_STD, seed=seed)
    if cell.overlap:
        generator = torch.Generator().manual_seed(seed_sequence(seed, 17))
        images += cell.overlap * torch.randn(NUM_SAMPLES, 1, 1, 1, generator=generator) * direction
    return images, labels


def identity(wave: Frequency, seed: int) -> int:
    """Return the seed of weights, data and batches: the same for all cells, others for each wave
    and seed.
    """
    return seed_sequence(seed, waves().index(wave))


def data_of(cell: Cell, wave: Frequency, seed: int) -> tuple[Dataset, Dataset]:
    """Return the training set, a share of whose labels may be wrong, and the test set
    of a network.
    """
    own, direction = identity(wave, seed), nc.fourier_direction(wave, size=32)
    (x, y), test = (
        dataset(direction, cell, seed_sequence(own, split) % 2**31) for split in (10, 11)
    )
    generator = torch.Generator().manual_seed(seed_sequence(own, 12))
    wrong = torch.rand(NUM_SAMPLES, generator=generator) < cell.label_noise
    return (x, torch.where(wrong, 1 - y, y)), test


def logged(done: int, recipe: Recipe) -> int | None:
    """Return the epoch that ends with a step, if its accuracy is measured."""
    epoch, rest = divmod(done, recipe.num_steps(NUM_SAMPLES) // recipe.epochs)
    return epoch if epoch in LOGGED and not rest else None


def train_one(cell: Cell, wave: Frequency, seed: int) -> Row:
    """Train one network with the paper's batches, clipping and schedule, and return its row."""
    own, (train, test) = identity(wave, seed), data_of(cell, wave, seed)
    network = faster_layers(built(cell, own), convolutions=False)
    recipe = replace(nc.SEPARABLE_RECIPE, learning_rate=cell.rate)
    optimiser, reached = optimiser_of(network.parameters(), cell), {}
    for done, _ in enumerate(recipe_steps(network, train, optimiser, recipe, own % 2**31), 1):
        if epoch := logged(done, recipe):
            reached[epoch] = round(nc.accuracy(network, test), 5)
    return {
        "train_accuracy": round(nc.accuracy(network, train), 5),
        "test_accuracies": [reached.get(epoch) for epoch in LOGGED],
    }


class Forgetting(Study):
    """When does training forget its NADs? 43 treatments, 16 waves,
    2 seeds (``forgetting.toml``).
    """

    name = "forgetting"
    size = "paper"
    on_gpu = False

    def units(self) -> list[Unit]:
        """Return the whole design with the first seed, then with the second."""
        cells = [asdict(cell) for cell in CELLS]
        return factorial(seed=SEEDS, cell=cells, wave=map(list, waves()))

    constants = {"epochs": list(LOGGED)}

    def run(self, unit: Unit, context: Context) -> Row:
        ky, kx = unit["wave"]
        return train_one(Cell(**unit["cell"]), (ky, kx), unit["seed"])
