"""Lemma 2 and eq. (6): inequalities that hold for any networks, here for models whose slopes are known."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from nads_book.checks.check import Check, mean_and_error
from nads_book.checks.deep_linear import model_response
from nads_core.theory import lemma2


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


def _toy_slopes(num_samples: int, generator: torch.Generator) -> dict[str, tuple[Tensor, Tensor]]:
    """Return slopes and rates of three models with known answers, the first of which meets the bounds with equality."""
    sign = torch.randint(0, 2, (num_samples,), generator=generator).double() * 2 - 1
    theta = torch.randn(num_samples, generator=generator, dtype=torch.float64)
    # f = theta x: the slope is theta, its rate of change 1
    toys = {"f = θx, θ = ±1": (sign, torch.ones_like(sign)), "f = θx, θ normal": (theta, torch.ones_like(theta))}
    size, stride, frequency = 16, 4, 2
    response = model_response("average", size, stride)
    thetas = torch.randn(num_samples, size // stride, generator=generator, dtype=torch.float64)
    phi = torch.randn(num_samples, size, generator=generator, dtype=torch.float64)
    first, second = thetas[:, frequency % (size // stride)], phi[:, frequency]
    scale = response[frequency] / math.sqrt(stride)
    # d/dtheta and d/dphi of scale theta phi
    toys["deep linear, v = e₂"] = (scale * first * second, scale * (first.square() + second.square()).sqrt())
    return toys


def lemma2_checks(name: str, slopes: Tensor, rates: Tensor, *, factor: float = 1.0) -> list[Check]:
    """Compare the expected gradient norm of g(abs(s)) with the bound of Lemma 2, for every metric, on given networks.

    Args:
        name: what the networks are, for the setting.
        slopes: (N,), see `lemma2.dipole_statistics`.
        rates: (N,).
        factor: multiplies the bound.
    """
    checks = []
    for metric in METRICS:
        mean, error = mean_and_error(lemma2.dipole_gradient_norms(metric.function, slopes, rates))
        ours = factor * float(lemma2.lemma2_bound(slopes, rates, metric.alpha, metric.beta))
        printed = float(lemma2.lemma2_bound_printed(slopes, rates, metric.alpha, metric.beta))
        checks.append(Check("lemma2", f"{name}, g = {metric.name}", float(mean), float(error), ours, printed, True))
    return checks


def check_lemma2(num_samples: int, *, seed: int = 0, factor: float = 1.0) -> list[Check]:
    """Lemma 2, eq. (3), for metrics with large and with small derivatives, on models whose slopes are known."""
    toys = _toy_slopes(num_samples, torch.Generator().manual_seed(seed))
    return [c for name, (slopes, rates) in toys.items() for c in lemma2_checks(name, slopes, rates, factor=factor)]


def check_lemma2_dipole(num_samples: int, *, seed: int = 0, factor: float = 1.0) -> list[Check]:
    """Lemma 2 read with q = g(abs(f(x) - f(x + v))), its definition, instead of the slope: f = theta x^2 at x near 0.

    There grad_x f = 2 theta x and d^2 f / dtheta dx = 2 x, while f(x + v) - f(x) = theta (2 x v + v^2). The bound holds
    with the difference in place of the slope and its gradient in place of the rate.
    """
    generator = torch.Generator().manual_seed(seed)
    checks = []
    for point, metric in itertools.product((0.0, 0.1, 0.3), METRICS):
        theta = torch.randn(num_samples, generator=generator, dtype=torch.float64)
        if point == 0.0:
            theta = theta.sign()  # then the corrected bound is met with equality
        difference, its_rate = theta * (2 * point + 1), torch.full_like(theta, 2 * point + 1)
        slopes, rates = 2 * theta * point, torch.full_like(theta, 2 * point)
        mean, error = mean_and_error(lemma2.dipole_gradient_norms(metric.function, difference, its_rate))
        ours = factor * float(lemma2.lemma2_bound(difference, its_rate, metric.alpha, metric.beta))
        printed = float(lemma2.lemma2_bound_printed(slopes, rates, metric.alpha, metric.beta))
        setting = f"f = θx², x = {point}, v = 1, g = {metric.name}"
        checks.append(Check("lemma2-dipole", setting, float(mean), float(error), ours, printed, True))
    return checks


def markov_checks(name: str, slopes: Tensor, *, factor: float = 1.0) -> list[Check]:
    """Compare P(s^2 >= eta) with E s^2 / eta, for levels from half the mean to eight times it, on given networks."""
    energy = slopes.square()
    checks = []
    for multiple in (0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 8.0):
        level = multiple * float(energy.mean())
        share = float((energy >= level * (1 - 1e-12)).double().mean())
        error = math.sqrt(share * (1 - share) / len(slopes))
        bound = factor / multiple
        checks.append(Check("eq6", f"{name}, η = {multiple} E s²", share, error, bound, 1 / multiple, True))
    return checks


def check_eq6(num_samples: int, *, seed: int = 0, factor: float = 1.0) -> list[Check]:
    """Eq. (6), Markov's inequality for the squared slope."""
    toys = _toy_slopes(num_samples, torch.Generator().manual_seed(seed))
    return [check for name, (slopes, _) in toys.items() for check in markov_checks(name, slopes, factor=factor)]


def check_eq6_dipole(num_samples: int, *, seed: int = 0, factor: float = 1.0) -> list[Check]:
    """Eq. (6) read from end to end, for q itself and not for its linearisation: f = theta x^2 at x near 0, v = 1."""
    generator = torch.Generator().manual_seed(seed)
    checks = []
    for point, multiple in itertools.product((0.0, 0.05, 0.1), (0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 8.0)):
        theta = torch.randn(num_samples, generator=generator, dtype=torch.float64)
        if point == 0.0:
            theta = theta.sign()  # met with equality at multiple 1
        metric = (theta * (2 * point + 1)).square()
        level = multiple * float(metric.mean())
        share = float((metric >= level * (1 - 1e-12)).double().mean())
        error = math.sqrt(share * (1 - share) / num_samples)
        printed = float((2 * theta * point).square().mean()) / level
        setting = f"f = θx², x = {point}, η = {multiple} E q"
        checks.append(Check("eq6-dipole", setting, share, error, factor / multiple, printed, True))
    return checks
