"""The page ``05_theorem1``: the best accuracy after pooling, as printed and as corrected."""

from collections.abc import Mapping, Sequence
from functools import cache, partial
from itertools import product
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor

from nads_book import figures
from nads_book.claims import decides
from nads_book.evidence import evidence
from nads_book.theory import checks, classifiers, pooling
from nads_book.theory.checks import Check, errata

SIZE = 64  # samples of the signals that are drawn
MARGIN = NOISE_STD = 1.0
STRIDES = (2, 4, 8)
NUM_SAMPLES = 10_000  # in each setting of a check
CHECKS = ("theorem1", "theorem1-folded", "theorem1-complex")  # readings of Theorem 1
ROUNDING = 1e-12
PHASES = torch.linspace(-torch.pi / 2, torch.pi / 2, 61)  # from a sine over the cosine to a sine


@cache
def results() -> dict[str, list[Check]]:
    """Return the simulations of the three readings of Theorem 1."""
    return {key: errata.STATEMENTS[key].check(NUM_SAMPLES, seed=0) for key in CHECKS}


def simulated(
    directions: Sequence[Tensor], prefilter: Tensor, stride: int, num_samples: int, seed: int
) -> list[tuple[float, float]]:
    """Return accuracy and standard error of the optimal rule after pooling, for each direction."""
    generator = torch.Generator().manual_seed(seed)
    layer = pooling.pooling_matrix(prefilter, stride)
    return [
        checks.simulate_bayes_accuracy(
            v, layer, MARGIN, NOISE_STD, num_samples, generator=generator
        )
        for v in directions
    ]


def mahalanobis_accuracy(layer: Tensor, v: Tensor) -> Tensor:
    """Return the best accuracy after a layer (M, D) from the distance of the class means."""
    noise = torch.eye(len(v), dtype=v.dtype) - torch.outer(v, v)  # none along v
    covariance = NOISE_STD**2 * layer @ noise @ layer.T
    inverse = torch.linalg.pinv(covariance, hermitian=True, rtol=1e-12)
    distance = (layer @ v) @ inverse @ (layer @ v)  # squared, of the means ±ε P v, divided by 4 ε²
    return torch.special.ndtr(MARGIN * distance.clamp(min=0).sqrt())


# Figures


Case = tuple[Tensor | list[Tensor], Tensor, list[float], list[tuple[float, float]]]


def _plot(places: Tensor, cases: Mapping[str, Case], xlabel: str) -> Figure:
    """Draw our formula, the printed one, and simulations at some places: title -> these three."""
    return figures.plot_curves(
        places,
        {title: {"corrected formula": ours} for title, (ours, *_) in cases.items()},
        "best accuracy",
        points={
            title: {"simulated": (some, *zip(*found, strict=True))}
            for title, (*_, some, found) in cases.items()
        },
        dashed={title: {"paper's formula": printed} for title, (_, printed, *_) in cases.items()},
        xlabel=xlabel,
        ylim=(0.45, 1.02),
    )


def plot_accuracies(
    prefilter: str = "average",
    strides: Sequence[int] = STRIDES,
    num_samples: int = 4_000,
    seed: int = 0,
) -> Figure:
    """Draw the best accuracy by frequency: simulated, by our formula and by the printed one.

    Args:
        prefilter: name of the filter before subsampling, of `pooling.PREFILTERS`.
        strides: strides, one panel each.
        num_samples: number of samples of each simulation.
        seed: seed of the simulations.
    """
    frequencies = torch.arange(1, SIZE // 2)
    some = frequencies[::3].tolist()
    directions = [pooling.direction(frequency, SIZE) for frequency in some]
    cases: dict[str, Case] = {}
    for stride in strides:
        impulse = pooling.prefilter(prefilter, SIZE, stride)
        task = (frequencies, impulse, stride, MARGIN, NOISE_STD)
        found = simulated(directions, impulse, stride, num_samples, seed)
        formulas = pooling.bayes_accuracy(*task), pooling.bayes_accuracy_printed(*task)
        cases[f"{prefilter}, S = {stride}"] = (*formulas, some, found)
    return _plot(frequencies, cases, "frequency ℓ (cycles per signal)")


def plot_phases(
    cases: Sequence[tuple[str, int]] = (("identity", 16), ("average", 8)),
    stride: int = 4,
    num_samples: int = 10_000,
    seed: int = 0,
) -> Figure:
    """Draw the best accuracy against the phase, where frequencies fold onto their mirror image.

    Args:
        cases: name of the filter and frequency of the wave, one panel each.
        stride: stride.
        num_samples: number of samples of each simulation.
        seed: seed of the simulations.
    """
    some = PHASES[::6].tolist()
    drawn: dict[str, Case] = {}
    for prefilter, frequency in cases:
        impulse = pooling.prefilter(prefilter, SIZE, stride)
        task = (frequency, impulse, stride, MARGIN, NOISE_STD)
        ours = [pooling.bayes_accuracy(*task, phase=phase) for phase in PHASES.tolist()]
        printed = pooling.bayes_accuracy_printed(*task).expand(len(PHASES))
        directions = [pooling.direction(frequency, SIZE, phase) for phase in some]
        found = simulated(directions, impulse, stride, num_samples, seed)
        drawn[f"{prefilter}, S = {stride}, ℓ = {frequency}"] = ours, printed, some, found
    return _plot(PHASES, drawn, "phase φ (radians)")


def plot_learning(
    prefilter: Tensor,
    stride: int,
    frequencies: Sequence[int],
    *,
    train_sizes: tuple[int, ...],
    **options: Any,
) -> Figure:
    """Draw accuracies of a linear classifier and a small CNN, trained behind a pooling layer.

    Args:
        prefilter: impulse response of the filter before subsampling, (D,).
        stride: stride.
        frequencies: frequencies that carry the label.
        train_sizes: numbers of training samples.
        **options: numbers of steps, test samples and runs, and the seed: see
            `classifiers.learning_curve`.
    """
    layer = pooling.pooling_matrix(prefilter, stride)
    waves = torch.stack([pooling.direction(one, len(prefilter)) for one in frequencies])
    task = (waves, layer, MARGIN, NOISE_STD, train_sizes)
    curves = {
        name: classifiers.learning_curve(partial(build, len(layer)), *task, **options)
        for name, build in {
            "linear": classifiers.linear,
            "small CNN": classifiers.small_cnn,
        }.items()
    }
    bounds = pooling.bayes_accuracy(torch.tensor(frequencies), prefilter, stride, MARGIN, NOISE_STD)
    names = [f"ℓ = {one}" for one in frequencies]
    return figures.plot_learning_curves(train_sizes, curves, bounds, names)


def plot_checks() -> Figure:
    """Draw how far each simulation is from our formula and from the printed one."""
    least, most = 1e-2, 1e3
    rows = {}
    for key, found in results().items():
        errors = np.abs([(one.z, one.z_printed) for one in found])
        rows[errata.STATEMENTS[key].title] = errors.clip(least, most).T
    label = "distance between simulation and formula (standard errors, at most 1,000)"
    return figures.plot_forms(rows, label, checks.LIMIT, (checks.LIMIT, most))


def show_verdicts() -> None:
    """Display the verdicts on the three readings of Theorem 1, and hand them to the errata page."""
    errata.show_verdicts(results())


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


for _id, _decide in errata.decisions(results, CHECKS).items():
    decides(_id)(_decide)
