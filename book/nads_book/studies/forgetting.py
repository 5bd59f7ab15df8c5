"""When does training forget its NADs? Networks on D(v) by optimiser, learning rate, label noise and weight decay.

``benchmarks/forgetting.py`` trains them; ``book/preregistered/forgetting.toml`` has what was expected.
"""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from nads_book.analysis.frequency_maps import LEARNED
from nads_book.analysis.statistics import area_under_curve, rank_correlation, resampled, with_interval
from nads_book.analysis.waves import predicted_energies
from nads_core.data.fourier import Frequency

WAVES, SEEDS = 16, (0, 1)
MIDDLE = slice(WAVES // 4, -WAVES // 4)  # of the waves, ordered by energy
RATES = {"sgd": (0.05, 0.5, 2.0), "momentum": (0.005, 0.05, 0.2), "adam": (1e-4, 1e-3, 1e-2)}
LABEL_NOISE, WEIGHT_DECAY = (0.0, 0.2), (0.0, 5e-4)
# Standard deviations of the margin, with mean 1: the classes overlap, and the best accuracy is 98, 84 and 69 %.
OVERLAPS = (0.5, 1.0, 2.0)


@dataclass(frozen=True)
class Cell:
    """One treatment of a network.

    Args:
        architecture: "lenet", or the name of an entry of the atlas.
        optimiser: "sgd", "momentum" (0.9) or "adam"; the rate falls linearly to zero, as in the paper.
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
    Cell("lenet", name, *rest) for name in RATES for rest in itertools.product(RATES[name], LABEL_NOISE, WEIGHT_DECAY)
]
SECOND = [Cell("cnn", "sgd", 0.5), Cell("cnn", "sgd", 0.05), Cell("cnn", "adam", 1e-3), Cell("cnn", "adam", 1e-2)]
CELLS = [*FACTORIAL, *SECOND, *(Cell(overlap=overlap) for overlap in OVERLAPS)]


@lru_cache
def waves() -> list[Frequency]:
    """Return 16 waves of the published grid at equal steps of log energy, from .42 to .0095 of LeNet's largest."""
    energies, chosen = predicted_energies("lenet"), list[Frequency]()
    for goal in np.geomspace(0.42, 0.0095, WAVES):
        left = [k for k in energies if k not in chosen]
        chosen.append(min(left, key=lambda k: (abs(math.log(energies[k] / goal)), k)))
    return chosen


def wave_energies() -> np.ndarray:
    """Return the energies of `waves` in LeNets at initialisation, (16,), the largest of the grid 1."""
    return np.array([predicted_energies("lenet")[k] for k in waves()])


def accuracies(
    rows: Sequence[Mapping[str, Any]], time: int = -1, seeds: Sequence[int] = SEEDS
) -> dict[Cell, np.ndarray]:
    """Return the test accuracies of the cells all of whose networks are stored, (seeds, waves), in [0, 1].

    Args:
        rows: rows of the results file.
        time: index into the logged epochs.
        seeds: seeds that a cell needs.
    """
    found: dict[Cell, np.ndarray] = {}
    for row in (row for row in rows if row["seed"] in seeds):
        table = found.setdefault(Cell(**row["cell"]), np.full((len(seeds), WAVES), np.nan))
        table[seeds.index(row["seed"]), waves().index(tuple(row["wave"]))] = row["test_accuracies"][time]
    return {cell: table for cell, table in found.items() if not np.isnan(table).any()}


def orders(energies: np.ndarray, table: np.ndarray) -> dict[str, float]:
    """Return how energies (n,) order accuracies (seeds, n).

    ``area``: share of pairs of a learned and another wave in which the learned one has more energy (NaN if all or none
    are learned); ``correlation``: rank correlation; ``learned``: number of waves above 55 %, by their mean.
    """
    means = table.mean(0)
    learned = means > LEARNED
    area, correlation = area_under_curve(energies, learned), rank_correlation(energies, means)
    return {"area": area, "correlation": correlation, "learned": int(learned.sum())}


def contrasts() -> dict[str, tuple[list[Cell], ...]]:
    """Return the two sets of cells of the factorial that each registered effect compares."""

    def where(**fields: Any) -> list[Cell]:
        return [cell for cell in FACTORIAL if cell == replace(cell, **fields)]

    def rates(optimiser: str, *places: int) -> tuple[list[Cell], ...]:
        return tuple(where(optimiser=optimiser, rate=RATES[optimiser][place]) for place in places)

    sgd = where(optimiser="sgd", rate=0.5)
    return {
        "label noise": (where(label_noise=0.2), where(label_noise=0.0)),
        "weight decay": (where(weight_decay=5e-4), where(weight_decay=0.0)),
        "low rate, sgd": rates("sgd", 0, 1), "high rate, sgd": rates("sgd", 2, 1),
        "momentum": (where(optimiser="momentum", rate=0.05), sgd), "adam": (where(optimiser="adam", rate=1e-3), sgd),
        "high rate, adam": rates("adam", 2, 1),
    }  # fmt: skip


def effects(
    tables: Mapping[Cell, np.ndarray], draws: int = 1_000
) -> Iterator[tuple[str, str, tuple[float, float, float]]]:
    """Yield each registered effect, the response, and the difference of the two sets' means with a 95 % interval.

    Responses are ``middle``, the mean accuracy of the eight waves in the middle in points, and ``correlation``.
    Intervals draw waves again, each with its own networks of all cells and seeds.
    """
    energies = wave_energies()

    def middle(_: np.ndarray, first: np.ndarray, second: np.ndarray) -> float:
        return float(100 * (first.mean() - second.mean()))

    def correlation(energies: np.ndarray, first: np.ndarray, second: np.ndarray) -> float:
        return rank_correlation(energies, first.mean(1)) - rank_correlation(energies, second.mean(1))

    for name, sides in contrasts().items():
        columns = (
            energies,
            *(np.mean([tables[cell] for cell in cells], axis=0).T for cells in sides),
        )  # (waves, seeds)
        drawn = resampled(middle, *(column[MIDDLE] for column in columns), num_resamples=draws)
        yield name, "middle", with_interval(drawn)
        yield name, "correlation", with_interval(resampled(correlation, *columns, num_resamples=draws))
