"""The page ``05_theorem1``: the best accuracy after pooling, as printed and as corrected."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from itertools import product
from typing import Any

import torch
from matplotlib.figure import Figure
from torch import Tensor, nn

import nads_core as nc
from nads_book import checks, figures, report
from nads_book.checks import Check, errata
from nads_book.evidence import Evidence, evidence
from nads_book.theory import classifiers, regression

SIZE = 64  # samples of the signals that are drawn
MARGIN = NOISE_STD = 1.0
STRIDES = (2, 4, 8)
NUM_SAMPLES = 10_000  # in each setting of a check
CHECKS = {
    "theorem1": checks.check_theorem1,
    "theorem1-folded": checks.check_theorem1_folded,
    "theorem1-complex": checks.check_theorem1_complex,
}
ROUNDING = 1e-12
PHASES = torch.linspace(-torch.pi / 2, torch.pi / 2, 61)  # from a sine over the cosine to a sine


@cache
def results() -> dict[str, list[Check]]:
    """Return the simulations of the three readings of Theorem 1."""
    return {key: check(NUM_SAMPLES, seed=0) for key, check in CHECKS.items()}


def simulated(
    directions: Sequence[Tensor], prefilter: Tensor, stride: int, num_samples: int, seed: int
) -> list[tuple[float, float]]:
    """Return accuracy and standard error of the optimal rule after pooling, for each direction."""
    generator = torch.Generator().manual_seed(seed)
    layer = nc.pooling.pooling_matrix(prefilter, stride)
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
    panels, printed, points = {}, {}, {}
    for stride in strides:
        title = f"{prefilter}, S = {stride}"
        impulse = nc.pooling.prefilter(prefilter, SIZE, stride)
        task = (frequencies, impulse, stride, MARGIN, NOISE_STD)
        panels[title] = {"corrected formula": nc.pooling.bayes_accuracy(*task)}
        printed[title] = {"paper's formula": nc.pooling.bayes_accuracy_printed(*task)}
        some = frequencies[::3].tolist()
        directions = [nc.pooling.direction(frequency, SIZE) for frequency in some]
        found = simulated(directions, impulse, stride, num_samples, seed)
        points[title] = (some, *zip(*found, strict=True))
    return figures.plot_curves(
        frequencies,
        panels,
        "best accuracy",
        points=points,
        dashed=printed,
        xlabel="frequency ℓ (cycles per signal)",
        ylim=(0.45, 1.02),
    )


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
    panels, flat, points = {}, {}, {}
    for prefilter, frequency in cases:
        title = f"{prefilter}, S = {stride}, ℓ = {frequency}"
        impulse = nc.pooling.prefilter(prefilter, SIZE, stride)
        task = (frequency, impulse, stride, MARGIN, NOISE_STD)
        ours = [nc.pooling.bayes_accuracy(*task, phase=float(phase)) for phase in PHASES]
        panels[title] = {"corrected formula": ours}
        level = nc.pooling.bayes_accuracy_printed(*task)
        flat[title] = {"paper's formula": level.expand(len(PHASES))}
        some = PHASES[::6].tolist()
        directions = [nc.pooling.direction(frequency, SIZE, phase) for phase in some]
        found = simulated(directions, impulse, stride, num_samples, seed)
        points[title] = (some, *zip(*found, strict=True))
    return figures.plot_curves(
        PHASES,
        panels,
        "best accuracy",
        points=points,
        dashed=flat,
        xlabel="phase φ (radians)",
        ylim=(0.45, 1.02),
    )


def plot_learning(
    prefilter: Tensor,
    stride: int,
    frequencies: Sequence[int],
    *,
    train_sizes: tuple[int, ...],
    num_steps: int,
    num_test: int = 10_000,
    num_runs: int = 2,
    seed: int = 0,
) -> Figure:
    """Draw accuracies of a linear classifier and a small CNN, trained behind a pooling layer.

    Args:
        prefilter: impulse response of the filter before subsampling, (D,).
        stride: stride.
        frequencies: frequencies that carry the label.
        train_sizes: numbers of training samples.
        num_steps: number of training steps.
        num_test: number of test samples per frequency.
        num_runs: number of repetitions with new data and weights.
        seed: seed of data and weights.
    """
    layer = nc.pooling.pooling_matrix(prefilter, stride)
    waves = torch.stack([nc.pooling.direction(one, len(prefilter)) for one in frequencies])
    builds: dict[str, Callable[[], nn.Module]] = {
        "linear": partial(classifiers.LinearClassifier, len(layer)),
        "small CNN": partial(classifiers.SmallCNN, len(layer)),
    }
    rates: dict[str, dict[str, Any]] = {
        "linear": {"learning_rate": 0.03},
        "small CNN": {"learning_rate": 5e-3, "weight_decay": 0.1},
    }
    sizes: dict[str, Any] = {
        "num_test": num_test,
        "num_runs": num_runs,
        "num_steps": num_steps,
        "seed": seed,
    }
    curves = {
        name: classifiers.learning_curve(
            build, waves, layer, MARGIN, NOISE_STD, train_sizes, **sizes, **rates[name]
        )
        for name, build in builds.items()
    }
    bounds = nc.pooling.bayes_accuracy(
        torch.tensor(frequencies), prefilter, stride, MARGIN, NOISE_STD
    )
    names = [f"ℓ = {one}" for one in frequencies]
    return figures.plot_learning_curves(train_sizes, curves, bounds, names)


def plot_checks() -> Figure:
    """Draw how far each simulation is from our formula and from the printed one."""
    titles = {key: errata.STATEMENTS[key].title for key in CHECKS}
    return figures.plot_checks({titles[key]: found for key, found in results().items()})


# Tables


def show_verdicts() -> None:
    """Display the verdicts on the three readings of Theorem 1, and hand them to the errata page."""
    errata.show_verdicts(results())


def errors_by_stride() -> dict[tuple[str, int], float]:
    """Return the largest error of the printed formula, in standard errors."""
    found = {}
    for key, stride in product(("theorem1", "theorem1-complex"), STRIDES):
        chosen = [one for one in results()[key] if one.setting.startswith(f"S = {stride},")]
        found[key, stride] = checks.worst(chosen, printed=True)
    return found


def table_errors() -> str:
    """Return the table of `errors_by_stride`."""
    names = {"theorem1": "real signals", "theorem1-complex": "complex signals"}
    found = errors_by_stride()
    rows = [
        [name, *(checks.readable_z(found[key, stride]) for stride in STRIDES)]
        for key, name in names.items()
    ]
    return report.markdown_table(rows, ["printed formula", *(f"S = {s}" for s in STRIDES)])


def shares_after_two_averages() -> dict[int, Tensor]:
    """Return the shares of waves of 32 samples that averages of four keep: cycles -> (phases,)."""
    layer = nc.pooling.pooling_matrix(nc.pooling.prefilter("average", 32, 4), 4)
    shares = {}
    for frequency in range(1, 17):
        phases = PHASES.tolist() if frequency < 16 else [0.0]  # at 16 cycles there is no sine
        waves = [nc.pooling.direction(frequency, 32, phase) for phase in phases]
        shares[frequency] = regression.row_space_energy(layer, torch.stack(waves))
    return shares


def table_shares() -> str:
    """Return the table of `shares_after_two_averages`."""
    rows = [
        [frequency, f"{float(share.min()):.2f}", f"{float(share.max()):.2f}"]
        for frequency, share in shares_after_two_averages().items()
    ]
    return report.markdown_table(rows, ["cycles", "smallest share q", "largest share q"])


# Claims


def angle_formula() -> Evidence:
    """Decide whether the closed form equals the angle, for all settings."""
    frequencies = torch.arange(1, SIZE // 2)
    largest = 0.0
    for stride, name, phase in product((2, 4, 8, 16), nc.pooling.PREFILTERS, (None, 0.0, 0.7)):
        impulse = nc.pooling.prefilter(name, SIZE, stride)
        directions = [nc.pooling.direction(one, SIZE, phase) for one in frequencies.tolist()]
        layer = nc.pooling.pooling_matrix(impulse, stride)
        by_angle = nc.pooling.bayes_accuracy_after(
            layer, torch.stack(directions), MARGIN, NOISE_STD
        )
        closed = nc.pooling.bayes_accuracy(
            frequencies, impulse, stride, MARGIN, NOISE_STD, phase=phase
        )
        largest = max(largest, float((by_angle - closed).abs().max()))
    return evidence(largest < ROUNDING, value=largest)


def printed_right() -> Evidence:
    """Decide for which strides the printed formula is right."""
    right = {place for place, error in errors_by_stride().items() if error < checks.LIMIT}
    expected = {("theorem1", 2), ("theorem1-complex", 4)}
    return evidence(right == expected, value=len(right))


def phase_not_lines() -> Evidence:
    """Decide whether averages that keep nothing of a wave do so for every phase."""
    shares = shares_after_two_averages()
    lost = [one for one, share in shares.items() if share.max() < 1e-9]
    phased = [one for one, share in shares.items() if share.max() - share.min() > 1e-9]
    return evidence(lost == [8, 16] and phased == [4, 12], value=len(lost))


CLAIMS: dict[str, Callable[[], Evidence]] = {
    "angle-formula": angle_formula,
    "printed-right": printed_right,
    "phase-not-lines": phase_not_lines,
    "errata-theorem1": lambda: errata.decide("theorem1", results()["theorem1"]),
    "errata-theorem1-folded": lambda: errata.decide(
        "theorem1-folded", results()["theorem1-folded"]
    ),
    "errata-theorem1-complex": lambda: errata.decide(
        "theorem1-complex", results()["theorem1-complex"]
    ),
}
LAB_TABLES: dict[str, Callable[[], str]] = {
    "Error of the printed formula, in standard errors of the simulation": table_errors,
    "Theorem 1, real signals": lambda: checks.table(results()["theorem1"]),
    "Theorem 1, where ℓ and −ℓ alias": lambda: checks.table(results()["theorem1-folded"]),
    "Theorem 1, complex signals": lambda: checks.table(results()["theorem1-complex"]),
    "Shares that averages of four keep, over all phases": table_shares,
}
