"""The waves of Fig. 1: the published grid, maps of accuracies on it, and the prediction of random
weights for each wave.

A frequency k = (ky, kx) and its negative are one task: their waves differ by a sign, which swaps
the labels. `grid_frequencies` has one of each pair; these are the keys of every map here, but for
the published cells.

Where a training takes minutes, only a sample of the 130 tasks is run. It is drawn within strata of
the predicted energy, so that easy and hard tasks both occur, and each sampled task represents a
known number of tasks.
"""

import hashlib
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from itertools import zip_longest

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from nads_book.experiments import Results, load_study
from nads_book.published import fourier_accuracies
from nads_core.data.fourier import Frequency, fourier_direction, spectrum
from nads_core.directions import NADs

LEARNED = 0.55  # accuracy above which a wave counts as learned
NUM_STRATA = 8


def spread(points: np.ndarray, period: float | None = None) -> list[int]:
    """Order points (n, d) so that each is as far as possible from those before it, beginning with
    the first.
    """

    def squares(steps: np.ndarray) -> np.ndarray:  # (n, d) -> (n,)
        if period:
            steps = np.minimum(steps % period, -steps % period)
        return (steps**2).sum(1)

    order = [0]
    distance = np.full(len(points), np.inf)  # (n,), squared, from the closest one in order
    for _ in range(len(points) - 1):
        last = points[order[-1]]
        distance = np.minimum(distance, squares(points - last))
        if period:  # a frequency and its negative are one direction
            distance = np.minimum(distance, squares(points + last))
        distance[order[-1]] = -1
        order.append(int(distance.argmax()))
    return order


def wrapped(ky: int, kx: int) -> Frequency:
    """Return the same frequency with both coordinates from -16 to 15."""
    return (ky + 16) % 32 - 16, (kx + 16) % 32 - 16


def negative(k: Frequency) -> Frequency:
    """Return -k, whose wave is that of k with the other sign."""
    return wrapped(-k[0], -k[1])


def grid_frequencies() -> list[Frequency]:
    """Return one frequency (ky, kx) of every pair +-k on a grid of the frequency plane, in an even
    order.

    Both frequencies of a pair have the same direction up to its sign, which only swaps the labels
    of D(v): the 256 cells of the published grid are 130 directions.
    """
    axis = range(-16, 16, 2)
    chosen = [(ky, kx) for ky in axis for kx in axis if (ky, kx) >= negative((ky, kx))]
    chosen.sort(key=lambda k: (k[0] ** 2 + k[1] ** 2, k))
    return [chosen[i] for i in spread(np.array(chosen, float), period=32)]


def fourier_directions(waves: Iterable[Frequency]) -> Tensor:
    """Return the sines of some frequencies as unit images, (n, 1, 32, 32)."""
    return torch.stack([fourier_direction(wave) for wave in waves])


def spectrum_of(nads: NADs) -> Tensor:
    """Return the energy of the second moment of gradients over frequencies, zero in the middle: (H,
    W).
    """
    return (spectrum(nads.directions[:, 0]) * nads.eigenvalues[:, None, None]).sum(0)


def half_of_energy(nads: NADs) -> int:
    """Return how many of the first NADs hold half of the energy."""
    return int((nads.eigenvalues.cumsum(0) < nads.eigenvalues.sum() / 2).sum()) + 1


@lru_cache
def predicted_energies(architecture: str, phase: str = "sine") -> dict[Frequency, float]:
    """Return the energy v^T C v that random weights predict for each wave of `grid_frequencies`,
    the largest 1.

    They were computed from the first NADs that shipped, and stay as they are. The NADs are older in
    the repository than the published accuracies of VGG-11 and DenseNet-121; the file with the
    energies was committed minutes after these, on another branch.

    Args:
        architecture: name of the architecture, such as "vgg11".
        phase: phase of the wave, "sine" or "cosine"; at the four frequencies where one vanishes the
            other is taken. `fourier_direction` gives the sine.
    """
    predictions = load_study("predicted-fig1.json")["predictions"]
    waves, other = predictions[architecture]["waves"], {"sine": "cosine", "cosine": "sine"}[phase]
    return {tuple(row["frequency"]): row.get(phase, row.get(other)) for row in waves}


def strata(architecture: str) -> list[list[Frequency]]:
    """Divide the waves of the grid by equal steps of the logarithm of their predicted energy, the
    largest first.

    Within a stratum they are shuffled, in one order for all: that of a hash of their frequencies.
    Strata that hold no wave are left out.
    """
    energies = predicted_energies(architecture)
    logs = np.log([*energies.values()])
    depths = (logs.max() - logs) / max(np.ptp(logs), 1e-12)  # 0 to 1
    numbers = np.minimum(NUM_STRATA * depths, NUM_STRATA - 1).astype(int)
    shuffled = sorted(
        zip(energies, numbers, strict=True),
        key=lambda pair: hashlib.sha256(repr(pair[0]).encode()).digest(),
    )
    parts = [[k for k, number in shuffled if number == wanted] for wanted in range(NUM_STRATA)]
    return [part for part in parts if part]


def stratified_frequencies(architecture: str) -> list[Frequency]:
    """Return all waves of the grid, one stratum after another, so that every beginning is a
    stratified sample.
    """
    return [k for turn in zip_longest(*strata(architecture)) for k in turn if k is not None]


def mirrored(k: Frequency) -> Frequency:
    """Return the frequency of the left-right mirror image, which in general is another task."""
    return wrapped(k[0], -k[1])


def by_wave(results: Results, field: str = "test_accuracy") -> pd.DataFrame:
    """Return a field of a sweep: waves (ky, kx), in the order of `grid_frequencies`, × seeds."""
    rows = results.table
    rows[["ky", "kx"]] = rows["frequency"].tolist()
    found = rows.pivot_table(field, ["ky", "kx"], "seed")
    return found.loc[[k for k in grid_frequencies() if k in found.index]]


def copied_cells(cells: Mapping[Frequency, float]) -> tuple[int, int]:
    """Count the cells of a grid that equal their left-right mirror image exactly, and those that
    have one.
    """
    others = [k for k in cells if mirrored(k) != k]
    return sum(cells[k] == cells[mirrored(k)] for k in others), len(others)


@cache
def published_accuracies(name: str, right: bool = False) -> Mapping[Frequency, float]:
    """Return the authors' test accuracies of a network by wave, in [0, 1].

    Args:
        name: architecture.
        right: whether to take the right half of their map rather than the mean of both cells of
            each wave, k and -k.
    """
    cells = fourier_accuracies(name)
    if right:
        return {k: cells[k if k[1] >= 0 else negative(k)] for k in grid_frequencies()}
    return {k: (cells[k] + cells[negative(k)]) / 2 for k in grid_frequencies()}
