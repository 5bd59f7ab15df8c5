"""Lemma 2 and eq. (6): inequalities that hold for any networks, here for models whose slopes are
known.
"""

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from nads_book.theory import lemma2
from nads_book.theory.checks.deep_linear import model_response
from nads_book.theory.checks.statement import Row, mean_and_error, random_signs, statement

MULTIPLES = (0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 8.0)  # levels of Markov's inequality over the mean


class Metric(NamedTuple):
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
Slopes = tuple[Tensor, Tensor]  # slopes of networks, and norms of the gradients of these: (N,) each
Case = tuple[str, Slopes, Slopes]  # networks, and what our form and the printed one take of them


def bounds(setting: str, ours: Slopes, printed: Slopes) -> Iterator[Row]:
    """Compare the expected gradient norm of g(abs(s)) with both bounds of Lemma 2, for each metric.

    Args:
        setting: description of the networks.
        ours: slopes and rates of the networks, see `lemma2`.
        printed: slopes and rates that the printed bound takes.
    """
    for name, function, alpha, beta in METRICS:
        mean, error = mean_and_error(lemma2.dipole_gradient_norms(function, *ours))
        bound = lemma2.lemma2_bound(*ours, alpha, beta)
        bound_printed = lemma2.lemma2_bound_printed(*printed, alpha, beta)
        values = (float(value) for value in (mean, error, bound, bound_printed))
        yield f"{setting}, g = {name}", *values


def tails(setting: str, ours: Slopes, printed: Slopes) -> Iterator[Row]:
    """Compare P(q >= eta) with Markov's bound E q / eta, where q is the squared slope and eta a
    multiple of E q; arguments as for `bounds`.
    """
    energy = ours[0].square()
    mean, mean_printed = float(energy.mean()), float(printed[0].square().mean())
    for multiple in MULTIPLES:
        share = float((energy >= multiple * mean * (1 - 1e-12)).double().mean())
        error = math.sqrt(share * (1 - share) / len(energy))
        bound_printed = mean_printed / (multiple * mean)
        yield f"{setting}, η = {multiple} E q", share, error, 1 / multiple, bound_printed


def _slopes(num_samples: int, generator: torch.Generator) -> Iterator[Case]:
    """Yield slopes and rates of three models with known answers, the first of which meets the
    bounds with equality.
    """
    sign = random_signs(num_samples, generator)
    theta = torch.randn(num_samples, generator=generator, dtype=torch.float64)
    size, stride, frequency = 16, 4, 2
    response = model_response("average", size, stride)
    thetas = torch.randn(num_samples, size // stride, generator=generator, dtype=torch.float64)
    phi = torch.randn(num_samples, size, generator=generator, dtype=torch.float64)
    first, second = thetas[:, frequency % (size // stride)], phi[:, frequency]
    scale = response[frequency] / math.sqrt(stride)
    # d/dtheta and d/dphi of scale theta phi
    rates = scale * (first.square() + second.square()).sqrt()
    models = {  # f = theta x: the slope is theta, its rate of change 1
        "f = θx, θ = ±1": (sign, torch.ones_like(sign)),
        "f = θx, θ normal": (theta, torch.ones_like(theta)),
        "deep linear, v = e₂": (scale * first * second, rates),
    }
    for name, slopes in models.items():
        yield name, slopes, slopes


def _dipoles(
    points: tuple[float, ...], num_samples: int, generator: torch.Generator
) -> Iterator[Case]:
    """Yield f(x + v) - f(x) with its rate, and the linearised v^T grad_x f with its own, for f =
    theta x^2 at x near 0 and v = 1.

    There grad_x f = 2 theta x and d^2 f / dtheta dx = 2 x, while f(x + v) - f(x) = theta (2 x v +
    v^2). At x = 0 theta is a sign, for which the corrected bounds are equalities.
    """
    for point in points:
        theta = torch.randn(num_samples, generator=generator, dtype=torch.float64)
        theta = theta.sign() if point == 0.0 else theta
        exact, linear = (
            (theta * factor, torch.full_like(theta, factor))
            for factor in (2 * point + 1, 2 * point)
        )
        yield f"f = θx², x = {point}", exact, linear


def _register(
    key: str,
    title: str,
    compare: Callable[[str, Slopes, Slopes], Iterator[Row]],
    cases: Callable[[int, torch.Generator], Iterator[Case]],
    *example: Any,
    **facts: Any,
) -> None:
    """Register an inequality, which `bounds` or `tails` compares for some cases; see `Statement`
    for the other arguments.
    """

    @statement(key, title, *example, is_bound=True, **facts)
    def _(num_samples: int, generator: torch.Generator) -> Iterator[Row]:
        for case in cases(num_samples, generator):
            yield from compare(*case)


def _slope_example() -> tuple[Tensor, Tensor]:
    slopes, rates = torch.tensor([-1.0, 1.0]).double(), torch.ones(2).double()
    norms = lemma2.dipole_gradient_norms(lambda t: t.square() / 4, slopes, rates)
    return norms.mean(), lemma2.lemma2_bound_printed(slopes, rates, 0.5, 0.0)


def _dipole_example() -> tuple[Tensor, Tensor]:
    zeros, ones = torch.zeros(2).double(), torch.ones(2).double()
    norms = lemma2.dipole_gradient_norms(torch.square, ones, ones)
    return norms.mean(), lemma2.lemma2_bound_printed(zeros, zeros, 2.0, 0.0)


def _tail_example() -> tuple[Tensor, Tensor]:
    theta = torch.tensor([-1.0, 1.0])
    # At x = 0, v = 1: q = (theta (x + v)^2 - theta x^2)^2 = theta^2, and the slope 2 theta x = 0.
    return (theta.square() >= 1).double().mean(), (2 * theta * 0).square().mean()


NOT_EXACT: dict[str, Any] = {"otherwise": "not exact, as the paper says", "is_exact": False}
_register(
    "lemma2",
    "Lemma 2 and eq. (3), for the slope",
    bounds,
    _slopes,
    "f = θx, θ = ±1, v = 1, g = t²/4 (α = 1/2, β = 0): the left side is",
    _slope_example,
)
# Read with q = g(abs(f(x) - f(x + v))), its definition, instead of the slope. The bound holds with
# the difference in place of the slope and its gradient in place of the rate.
_register(
    "lemma2-dipole",
    "Lemma 2, for the dipole itself",
    bounds,
    partial(_dipoles, (0.0, 0.1, 0.3)),
    "f = θx², θ = ±1, x = 0, v = 1, g = t²: the left side is",
    _dipole_example,
    **NOT_EXACT,
)
_register("eq6", "Eq. (6), for the slope", tails, _slopes)
# Read from end to end, for q itself and not for its linearisation
_register(
    "eq6-dipole",
    "Eq. (6), for the dipole itself",
    tails,
    partial(_dipoles, (0.0, 0.05, 0.1)),
    "f = θx², θ = ±1, x = 0, v = 1, η = 1: the probability is",
    _tail_example,
    **NOT_EXACT,
)
