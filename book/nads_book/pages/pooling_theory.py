"""The page ``04_pooling_theory``: which waves a pooling layer keeps, loses, and makes the same."""

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor
from torch.nn.functional import avg_pool1d, max_pool1d

from nads_book import figures, statistics
from nads_book.claims import decides
from nads_book.experiments.evidence import above, evidence
from nads_book.experiments.formatting import readable
from nads_book.published import waves
from nads_book.published.waves import LEARNED, published_accuracies
from nads_book.theory import pooling, regression
from nads_core.data.fourier import Frequency

SIZE, STRIDE = 64, 4
FREQUENCIES = torch.arange(SIZE // 2 + 1)
NUM_NOISE = 100_000  # white-noise signals, to measure what a layer keeps
ROUNDING = 1e-14


# The share of a wave that is kept


def kept_shares() -> dict[str, Tensor]:
    """Return the share of each wave that can be recovered, by prefilter."""
    return {
        name: pooling.retained_energy(FREQUENCIES, pooling.prefilter(name, SIZE, STRIDE), STRIDE)
        for name in pooling.PREFILTERS
    }


def budget(impulse: Tensor) -> float:
    """Return the sum of the shares that a prefilter keeps, over an orthonormal basis."""
    layer = pooling.pooling_matrix(impulse, STRIDE)
    return float(regression.row_space_energy(layer, torch.eye(len(impulse)).double()).sum())


def plot_shares_with_yours(taps: Sequence[float]) -> Figure:
    """Draw the share of each wave that a prefilter of the reader keeps, over those of the four
    prefilters.

    Args:
        taps: weights of neighbouring samples, at most 64.
    """
    yours = torch.zeros(SIZE, dtype=torch.float64)
    yours[: len(taps)] = torch.tensor(taps, dtype=torch.float64)
    shares = pooling.retained_energy(FREQUENCIES, yours, STRIDE)
    panels = {
        f"yours: shares sum to {readable(budget(yours), 4)}": {"yours": (FREQUENCIES, shares)},
        "stored prefilters": {name: (FREQUENCIES, one) for name, one in kept_shares().items()},
    }
    return figures.plot_lines(panels, "frequency ℓ", "share q that can be recovered")


@decides("pooling-budget")
def _():
    """Decide whether the shares of every prefilter sum to the number of outputs."""
    impulses = [pooling.prefilter(name, SIZE, STRIDE) for name in pooling.PREFILTERS]
    return evidence(max(abs(budget(one) - SIZE // STRIDE) for one in impulses) < 1e-9)


def plot_signal_to_noise() -> Figure:
    """Draw γ of average pooling of 128 samples for three strides (the middle panel is the paper's
    Fig. 4a).
    """
    frequencies = torch.arange(1, 65)
    panels = {}
    for stride in (2, 4, 8):
        impulse = pooling.prefilter("average", 128, stride)
        signal, aliases, _ = pooling.alias_energies(frequencies[:, None], impulse, stride)
        gamma = pooling.root_ratio(signal, aliases).clamp(1e-3, 1e3)
        panels[f"average pooling, S = {stride}"] = {"γ": (frequencies, gamma)}
    return figures.plot_lines(panels, "frequency ℓ", "γ(ℓ)", yscale="log", ylim=(1e-2, 100))


# Other layers


@cache
def measured_shares() -> dict[str, tuple[Tensor, Tensor]]:
    """Return what regression recovers of each wave, and its standard error, by kind of pooling."""
    basis = torch.stack([pooling.direction(int(k), SIZE) for k in FREQUENCIES])
    kinds = {
        "average": lambda x: avg_pool1d(x, STRIDE),
        "max": lambda x: max_pool1d(x, STRIDE),
    }
    return {
        name: regression.measured_energy(pool, basis, NUM_NOISE, seed=0)
        for name, pool in kinds.items()
    }


def plot_other_layers() -> Figure:
    """Draw the share of each wave that max pooling keeps, beside average pooling."""
    lines: dict[str, Any] = {"average, formula": (FREQUENCIES, kept_shares()["average"])}
    for name, (share, error) in measured_shares().items():
        bars = torch.stack([share, share - 2 * error, share + 2 * error], 1)
        lines[f"{name}, measured"] = FREQUENCIES, bars
    marks = dict.fromkeys(lines, "o") | {"average, formula": "-"}
    return figures.plot_lines(
        {"": lines}, "frequency ℓ", "share q that can be read out", marks=marks
    )


@decides("pooling-share")
def _():
    """Decide whether the measured shares of average pooling are those of the formula."""
    shares, errors = measured_shares()["average"]
    deviations = (shares - kept_shares()["average"]).abs()
    return evidence((deviations < 6 * errors + 1e-9).all(), float(deviations.max()))


@decides("max-pooling-keeps")
def _():
    """Decide whether max pooling keeps less than average pooling, with a curve of the same
    shape.
    """
    most, average = measured_shares()["max"][0], kept_shares()["average"]
    ratio = float((most / average)[1:6].mean())
    shape = float(torch.corrcoef(torch.stack([most, average]))[0, 1])
    return evidence(0.3 < ratio < 0.8 and shape > 0.9, ratio)


# LeNet's dark lines


@cache
def responses() -> dict[Frequency, float]:
    """Return what two averagings by two pass of each wave, from 0 to 1."""
    passed = pooling.frequency_response(pooling.prefilter("average", 32, 4)).abs()
    return {k: float(passed[k[0]] * passed[k[1]]) for k in waves.grid_frequencies()}


def silent() -> list[Frequency]:
    """Return the waves that two averagings remove."""
    return [k for k, response in responses().items() if response < ROUNDING]


def plot_dark_lines() -> Figure:
    """Draw the authors' accuracies of LeNet, and below them what two averagings pass of each
    wave.
    """
    rows = {
        "LeNet's accuracy": {"": {k: 100 * a for k, a in published_accuracies("lenet").items()}},
        "response": {"": responses()},
    }
    return figures.plot_frequency_maps(rows, own={"response": "share that two averagings pass"})


@decides("silent-waves")
def _():
    """Decide whether two averagings remove exactly the waves of 8 or 16 cycles, which LeNet does
    not learn.
    """
    accuracies = published_accuracies("lenet")
    lines = [k for k in accuracies if any(abs(f) in (8, 16) for f in k)]
    most = max(accuracies[k] for k in silent())
    return evidence(set(silent()) == set(lines) and most < LEARNED, most, size="paper")


@decides("response-orders")
def _():
    """Decide whether accuracy beside the dark lines follows the response."""
    accuracies = published_accuracies("lenet")
    pairs = [(one, accuracies[k]) for k, one in responses().items() if k not in silent()]
    x, y = np.array(pairs).T
    draws = statistics.resampled_correlations(x, y, num_resamples=statistics.MANY)
    return above(statistics.with_interval(draws), 0.8, size="paper")
