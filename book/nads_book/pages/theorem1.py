"""The page ``05_theorem1``: the best accuracy after pooling, as printed and as corrected."""

from collections.abc import Mapping, Sequence
from itertools import product

import torch
from matplotlib.figure import Figure
from torch import Tensor

from nads_book import figures
from nads_book.claims import decides
from nads_book.experiments.evidence import evidence
from nads_book.theory import checks, pooling

SIZE = 64  # samples of the signals that are drawn
MARGIN = NOISE_STD = 1.0
STRIDES = (2, 4, 8)
NUM_SAMPLES = 10_000  # in each setting of a check, and behind each point of a figure
ROUNDING = 1e-12
MARKS = {"corrected formula": "-", "paper's formula": "--", "simulated": "o"}


# Figures

Wave = tuple[int, float | None]  # frequency and phase


def _plot(
    places: Tensor, cases: Mapping[str, tuple[str, int, list[Wave]]], xlabel: str, seed: int
) -> Figure:
    """Draw our formula and the printed one for waves, and simulations for some of them.

    Args:
        places: places of the waves on the horizontal axis, (n,).
        cases: title -> name of the prefilter, stride, and n waves.
        xlabel: label of the horizontal axis.
        seed: seed of the simulations.
    """
    every = len(places) // 10  # simulated
    panels = {}
    for title, (prefilter, stride, waves) in cases.items():
        impulse = pooling.prefilter(prefilter, SIZE, stride)
        task = (impulse, stride, MARGIN, NOISE_STD)
        layer = pooling.pooling_matrix(impulse, stride)
        generator = torch.Generator().manual_seed(seed)
        settings = (layer, MARGIN, NOISE_STD, NUM_SAMPLES)
        simulated = []
        for k, phase in waves[::every]:
            v = pooling.direction(k, SIZE, phase)
            share, error = checks.simulate_bayes_accuracy(v, *settings, generator=generator)
            simulated.append((share, share - 2 * error, share + 2 * error))
        ours = [pooling.bayes_accuracy(k, *task, phase=phase) for k, phase in waves]
        printed = [pooling.bayes_accuracy_printed(k, *task) for k, _ in waves]
        panels[title] = {
            "corrected formula": (places, ours),
            "paper's formula": (places, printed),
            "simulated": (places[::every], simulated),
        }
    return figures.plot_lines(panels, xlabel, "best accuracy", marks=MARKS, ylim=(0.45, 1.02))


def plot_accuracies(
    prefilter: str = "average", strides: Sequence[int] = STRIDES, seed: int = 0
) -> Figure:
    """Draw the best accuracy by frequency.

    Args:
        prefilter: name of the filter before subsampling, of `pooling.PREFILTERS`.
        strides: strides, one panel each.
        seed: seed of the simulations.
    """
    frequencies = torch.arange(1, SIZE // 2)
    waves: list[Wave] = [(k, None) for k in frequencies.tolist()]
    cases = {f"{prefilter}, S = {stride}": (prefilter, stride, waves) for stride in strides}
    return _plot(frequencies, cases, "frequency ℓ (cycles per signal)", seed)


def plot_phases(cases: Sequence[tuple[str, int]], stride: int, seed: int = 0) -> Figure:
    """Draw the best accuracy against the phase, where frequencies fold onto their mirror image.

    Args:
        cases: name of the filter and frequency of the wave, one panel each.
        stride: stride.
        seed: seed of the simulations.
    """
    phases = torch.linspace(-torch.pi / 2, torch.pi / 2, 61)  # sine, cosine in the middle, sine
    drawn = {
        f"{name}, S = {stride}, ℓ = {k}": (name, stride, [(k, phase) for phase in phases.tolist()])
        for name, k in cases
    }
    return _plot(phases, drawn, "phase φ (radians)", seed)


# Claims


@decides("angle-formula")
def _():
    """Decide whether the closed form equals the angle, for all settings."""
    frequencies = torch.arange(1, SIZE // 2)
    largest = 0.0
    for stride, name, phase in product((2, 4, 8, 16), pooling.PREFILTERS, (None, 0.0, 0.7)):
        impulse = pooling.prefilter(name, SIZE, stride)
        directions = [pooling.direction(one, SIZE, phase) for one in frequencies.tolist()]
        layer = pooling.pooling_matrix(impulse, stride)
        by_angle = pooling.bayes_accuracy_after(layer, torch.stack(directions), MARGIN, NOISE_STD)
        closed = pooling.bayes_accuracy(
            frequencies, impulse, stride, MARGIN, NOISE_STD, phase=phase
        )
        largest = max(largest, float((by_angle - closed).abs().max()))
    return evidence(largest < ROUNDING, largest)
