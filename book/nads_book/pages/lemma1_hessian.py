"""The page ``06_lemma1_hessian``: curvature and speed of training, and Lemma 2."""

from functools import cache
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor

from nads_book import figures
from nads_book.claims import decides
from nads_book.experiments.evidence import Estimate, evidence, fitted_slope
from nads_book.statistics import rank_correlation
from nads_book.theory import deep_linear, pooling
from nads_book.theory.descent import gradient_descent

SIZE, STRIDE = 128, 4  # of the paper's Fig. 4
FREQUENCIES = torch.arange(1, SIZE // 2 + 1)
MARGIN, NOISE_STD = 1.0, 0.5
SMALL, SMALL_NOISE = 16, 0.8  # samples and noise where the start is looked at
STARTS: dict[str, Any] = {"theta_std": 0.5, "phi_std": 0.5, "num_runs": 16}
NUM_STEPS = 600
NOISY = 64.0  # largest m² at which noise limits the learning rate
LEARNED = torch.tensor([2, 6, 10, 14, 18, 22, 26, 28, 36, 40, 44])  # frequencies learned there
EXAMPLE = torch.tensor([10])  # frequency at which a small ζ costs nothing


# The deep linear model


def response_of(prefilter: str = "average", size: int = SIZE, stride: int = STRIDE) -> Tensor:
    """Return m, the response of the prefilter: (D,)."""
    return pooling.frequency_response(pooling.prefilter(prefilter, size, stride)).abs()


def safe_rate(response: Tensor) -> float:
    """Return a small learning rate: a fiftieth of the inverse largest curvature of the noise."""
    curvature = deep_linear.expected_hessian(0, response, STRIDE, 0.0, NOISE_STD).max()
    return 0.02 / float(curvature)


def descend(
    frequencies: Tensor, response: Tensor, rate: float, num_steps: int = NUM_STEPS
) -> Tensor:
    """Return the steps until the loss is small, at some frequencies and from many starts, (F,
    runs).
    """
    options = STARTS | {"learning_rate": rate, "num_steps": num_steps}
    return gradient_descent(frequencies, response, STRIDE, MARGIN, NOISE_STD, **options).iterations


def steps_needed(frequencies: Tensor, largest: float) -> tuple[Tensor, Tensor]:
    """Return ζ, and the steps that nine of ten starts need at the best of eight learning rates.

    Args:
        frequencies: frequencies that carry the label, (F,).
        largest: the largest squared response, which is put at frequency 0, where no signal is.
    """
    response = response_of()
    rates = [safe_rate(response) * 2.0**k for k in range(-4, 4)]
    response[0] = largest**0.5
    steps = []
    for rate in rates:
        iterations = descend(frequencies, response, rate, 300)
        steps.append(iterations.double().quantile(0.9, dim=1))
    return deep_linear.zeta(frequencies, response, MARGIN, NOISE_STD), torch.stack(steps).amin(0)


@cache
def steps_by_response() -> tuple[Tensor, Tensor]:
    """Return response and steps at each of `LEARNED`, where noise limits the learning rate."""
    return response_of()[LEARNED], steps_needed(LEARNED, NOISY)[1]


def exponent() -> Estimate:
    """Return the exponent of the inverse response in the steps, and Student's 95 % interval."""
    response, steps = steps_by_response()
    return fitted_slope(-response.log().numpy(), steps.log().numpy())


# Figures


def plot_steps() -> Figure:
    """Draw the steps at the best rate against the signal's response, with two powers of it."""
    response, steps = (values.numpy() for values in steps_by_response())
    power = exponent()[0]
    middle, x = np.argsort(response)[len(response) // 2], np.sort(response)
    lines = {"measured": (response, steps)}
    powers = {f"as m to the power −{power:.2f}": power, "as 1/ζ, that is m to the power −2": 2.0}
    for label, one in powers.items():
        lines[label] = x, steps[middle] * (x / response[middle]) ** -one
    marks = dict.fromkeys(powers, "-") | {"measured": "o"}
    label = "response m at the signal's frequency"
    return figures.plot_lines({"": lines}, label, "steps", [0.2, 0.5, 1], marks=marks, yscale="log")


# Claims


@decides("zeta-order")
def _():
    """Decide whether frequencies converge in the order of ζ at one small learning rate."""
    iterations = descend(FREQUENCIES, response_of(), safe_rate(response_of()))
    zetas = deep_linear.zeta(FREQUENCIES, response_of(), MARGIN, NOISE_STD)
    passed = zetas > 1e-9
    speed = iterations.double().log().mean(1)
    correlation = rank_correlation(speed[passed].numpy(), zetas[passed].numpy())
    return evidence(correlation < -0.95, correlation, num_seeds=STARTS["num_runs"])


@decides("saddle-pull")
def _():
    """Decide whether the negative eigenvalue of the expected Hessian at the start follows the
    response.
    """
    response, frequencies = response_of("average", SMALL), torch.arange(1, 9)
    task = (response, STRIDE, MARGIN, SMALL_NOISE)
    scales = {key: STARTS[key] for key in ("theta_std", "phi_std")}
    matrices = deep_linear.expected_hessian(frequencies, *task, **scales, block="both")
    lowest, passed = torch.linalg.eigvalsh(matrices)[:, 0], response[frequencies]
    pull = -2 * MARGIN * passed / STRIDE**0.5
    ratios = (lowest / pull)[passed > 1e-9]
    return evidence(0.6 < ratios.min() and ratios.max() < 1, float(ratios.min()))


@decides("pull-not-zeta")
def _():
    """Decide whether steps grow as the inverse response and not as the inverse of ζ."""
    slope, low, high = exponent()
    return evidence(abs(slope - 1) < 0.3 and high < 2, slope, low, high, null=2)


@decides("errata-zeta-speed")
def _():
    """Decide the paper's sentence about ζ ≲ 1, against which speaks a small ζ without a cost."""
    (_, steps), (zeta, more) = (steps_needed(EXAMPLE, largest) for largest in (1.0, 16.0))
    return evidence(float(zeta) >= 0.5 or more >= 1.2 * steps, float(zeta))
