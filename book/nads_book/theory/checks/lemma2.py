"""Lemma 2 and eq. (6): inequalities that hold for any networks, here for models whose slopes are
known.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from nads_book.theory import lemma2
from nads_book.theory.checks.check import Check, check_function, mean_and_error, random_signs
from nads_book.theory.checks.deep_linear import model_response


@dataclass(frozen=True)
class Metric:
    """A choice of g for the dipole metric g(abs(s)), with ``|g'(t)| <= alpha t + beta``."""

    name: str
    function: Callable[[Tensor], Tensor]
    alpha: float
    beta: float


METRICS = (
    Metric("t²", torch.square, 2.0, 0.0),
    Metric("t²/2", lambda t: t.square() / 2, 1.0, 0.0),
    Metric("t²/8", lambda t: t.square() / 8, 0.25, 0.0),
    Metric("t²/100", lambda t: t.square() / 100, 0.02, 0.0),
    Metric("t", lambda t: t, 0.0, 1.0),
    Metric("log(1 + t²)/4", lambda t: torch.log1p(t.square()) / 4, 0.5, 0.0),
    Metric("t²/20 + t/20", lambda t: t.square() / 20 + t / 20, 0.1, 0.05),
)


MULTIPLES = (
    0.5,
    1.0,
    1.5,
    2.0,
    3.0,
    4.0,
    8.0,
)  # levels of Markov's inequality, relative to the mean


def _toy_weights(num_samples: int, generator: torch.Generator, point: float) -> Tensor:
    """Return theta of f = theta x^2: normal, or at x = 0 its sign, for which the corrected bounds
    are equalities.
    """
    theta = torch.randn(num_samples, generator=generator, dtype=torch.float64)
    return theta.sign() if point == 0.0 else theta


def _toy_slopes(num_samples: int, generator: torch.Generator) -> dict[str, tuple[Tensor, Tensor]]:
    """Return slopes and rates of three models with known answers, the first of which meets the
    bounds with equality.
    """
    sign = random_signs(num_samples, generator)
    theta = torch.randn(num_samples, generator=generator, dtype=torch.float64)
    # f = theta x: the slope is theta, its rate of change 1
    toys = {
        "f = θx, θ = ±1": (sign, torch.ones_like(sign)),
        "f = θx, θ normal": (theta, torch.ones_like(theta)),
    }
    size, stride, frequency = 16, 4, 2
    response = model_response("average", size, stride)
    thetas = torch.randn(num_samples, size // stride, generator=generator, dtype=torch.float64)
    phi = torch.randn(num_samples, size, generator=generator, dtype=torch.float64)
    first, second = thetas[:, frequency % (size // stride)], phi[:, frequency]
    scale = response[frequency] / math.sqrt(stride)
    # d/dtheta and d/dphi of scale theta phi
    toys["deep linear, v = e₂"] = (
        scale * first * second,
        scale * (first.square() + second.square()).sqrt(),
    )
    return toys


def _bounds(
    setting: str,
    ours: tuple[Tensor, Tensor],
    printed: tuple[Tensor, Tensor],
    metrics: Sequence[Metric] = METRICS,
) -> Iterator[Check]:
    """Compare the expected gradient norm of g(abs(s)) with both bounds of Lemma 2, from slopes and
    rates.
    """
    for metric in metrics:
        mean, error = mean_and_error(lemma2.dipole_gradient_norms(metric.function, *ours))
        bound = float(lemma2.lemma2_bound(*ours, metric.alpha, metric.beta))
        bound_printed = float(lemma2.lemma2_bound_printed(*printed, metric.alpha, metric.beta))
        yield Check(
            f"{setting}, g = {metric.name}",
            float(mean),
            float(error),
            bound,
            bound_printed,
            True,
        )


def _tail(setting: str, energy: Tensor, printed: Tensor, multiple: float) -> Check:
    """Compare P(q >= eta) with Markov's bound, and with the printed one, where eta is a multiple of
    E q.
    """
    level = multiple * float(energy.mean())
    share = float((energy >= level * (1 - 1e-12)).double().mean())
    error = math.sqrt(share * (1 - share) / len(energy))
    return Check(setting, share, error, 1 / multiple, float(printed.mean()) / level, True)


@check_function
def check_lemma2(num_samples: int, generator: torch.Generator) -> Iterator[Check]:
    """Lemma 2, eq. (3), for metrics with large and with small derivatives, on models whose slopes
    are known.
    """
    for name, (slopes, rates) in _toy_slopes(num_samples, generator).items():
        yield from _bounds(name, (slopes, rates), (slopes, rates))


@check_function
def check_lemma2_dipole(num_samples: int, generator: torch.Generator) -> Iterator[Check]:
    """Lemma 2 read with q = g(abs(f(x) - f(x + v))), its definition, instead of the slope: f =
    theta x^2 at x near 0.

    There grad_x f = 2 theta x and d^2 f / dtheta dx = 2 x, while f(x + v) - f(x) = theta (2 x v +
    v^2). The bound holds with the difference in place of the slope and its gradient in place of the
    rate.
    """
    for point, metric in itertools.product((0.0, 0.1, 0.3), METRICS):
        theta = _toy_weights(num_samples, generator, point)
        ours = theta * (2 * point + 1), torch.full_like(theta, 2 * point + 1)
        printed = 2 * theta * point, torch.full_like(theta, 2 * point)
        setting = f"f = θx², x = {point}, v = 1"
        yield from _bounds(setting, ours, printed, (metric,))


@check_function
def check_eq6(num_samples: int, generator: torch.Generator) -> Iterator[Check]:
    """Eq. (6), Markov's inequality for the squared slope."""
    for name, (slopes, _) in _toy_slopes(num_samples, generator).items():
        energy = slopes.square()
        for multiple in MULTIPLES:
            yield _tail(f"{name}, η = {multiple} E s²", energy, energy, multiple)


@check_function
def check_eq6_dipole(num_samples: int, generator: torch.Generator) -> Iterator[Check]:
    """Eq. (6) read from end to end, for q itself and not for its linearisation: f = theta x^2 at x
    near 0, v = 1.
    """
    for point, multiple in itertools.product((0.0, 0.05, 0.1), MULTIPLES):
        theta = _toy_weights(num_samples, generator, point)
        metric, linearised = (theta * (2 * point + 1)).square(), (2 * theta * point).square()
        setting = f"f = θx², x = {point}, η = {multiple} E q"
        yield _tail(setting, metric, linearised, multiple)
