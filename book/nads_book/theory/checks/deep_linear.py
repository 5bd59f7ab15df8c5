"""Lemma 1, the ratio below it, and eqs. (4) and (5): the deep linear model against automatic
differentiation.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from nads_book.theory import deep_linear, pooling
from nads_book.theory.checks.statement import Row, mean_and_error, statement

Entries = dict[str, tuple[int, int]]  # name -> row and column of a matrix


class Model(NamedTuple):
    """A deep linear model, its task and the scale of its weights."""

    prefilter: str
    size: int
    stride: int
    frequency: int
    margin: float
    noise_std: float
    theta_std: float
    phi_std: float

    @property
    def response(self) -> Tensor:
        """Response m of the prefilter, (D,)."""
        return model_response(self.prefilter, self.size, self.stride)

    @property
    def task(self) -> tuple[int, Tensor, int, float, float]:
        """Frequency, response, stride, margin and noise, as `deep_linear` takes them."""
        return self.frequency, self.response, self.stride, self.margin, self.noise_std

    @property
    def scales(self) -> dict[str, Any]:
        """Standard deviations of the weights, by argument name."""
        return {"theta_std": self.theta_std, "phi_std": self.phi_std}

    def entries(self) -> Entries:
        """Return the entries at the signal, at the largest response, and between two aliases."""
        signal, peak = self.frequency, int(self.response.argmax())
        alias = (signal + self.size // self.stride) % self.size  # pooling does not distinguish it
        return {"signal": (signal, signal), "peak": (peak, peak), "aliases": (signal, alias)}

    def entries_of_theta(self) -> Entries:
        """Return the entries of theta at the signal and beside it, and of its mixed block."""
        outputs = self.size // self.stride
        signal, noise = (self.size + k % outputs for k in (self.frequency, self.frequency + 1))
        mixed = self.frequency, signal
        return {"signal": (signal, signal), "noise": (noise, noise), "mixed": mixed}


MODELS = (
    Model("average", 8, 2, 1, 1.0, 0.5, 1.0, 1.0),
    Model("average", 12, 4, 2, 1.0, 1.0, 0.5, 2.0),
    Model("binomial", 12, 3, 5, 2.0, 1.0, 1.5, 1.0),
    Model("binomial", 16, 8, 1, 1.0, 2.0, 1.0, 0.7),
    Model("identity", 10, 5, 7, 1.5, 0.5, 0.8, 0.8),
    Model("average", 16, 4, 0, 1.0, 3.0, 1.0, 1.3),
    Model("binomial", 8, 4, 3, 0.5, 0.5, 2.0, 0.5),
    Model("lowpass", 12, 2, 3, 1.0, 0.8, 1.2, 1.1),
)
SMALLEST = Model("identity", 2, 2, 0, 1.0, 1.0, 1.0, 1.0)  # m = (1, 1), of counter-examples


def model_response(name: str, size: int, stride: int) -> Tensor:
    """Return what stands for the response of a named prefilter in the model: (D,), its
    magnitude.
    """
    return pooling.frequency_response(pooling.prefilter(name, size, stride)).abs()


def sample_hessians(
    frequency: int,
    response: Tensor,
    stride: int,
    margin: float,
    noise_std: float,
    theta_std: float,
    phi_std: float,
    num_samples: int,
    *,
    generator: torch.Generator,
    rows: Sequence[int] | slice = slice(None),
) -> Tensor:
    """Return Hessians of J, each averaged over a batch of draws of (theta, phi, x, y), by automatic
    differentiation.

    One shift of phi and one of theta, shared by all draws of a batch, turns the mean of many
    Hessians into the Hessian of one mean.

    Returns:
        (100, D + M, D + M), phi first, or some of the rows. The spread over the 100 batches gives
        the standard error of their mean.
    """
    size, outputs = len(response), len(response) // stride
    num_batches, count = 100, max(1, num_samples // 100)

    def normal(*shape: int) -> Tensor:
        return torch.randn(num_batches, count, *shape, generator=generator, dtype=torch.float64)

    # (batches, count, M), (batches, count, D), (batches, count, D), and labels (batches, count)
    theta, phi, x = theta_std * normal(outputs), phi_std * normal(size), noise_std * normal(size)
    y = normal().sign()
    x[..., frequency] += margin * y

    shift = torch.zeros(num_batches, size + outputs, dtype=torch.float64, requires_grad=True)
    phi, theta = phi + shift[:, None, :size], theta + shift[:, None, size:]
    output = deep_linear.deep_linear_output(theta, phi, x, response, stride)
    loss = (y - output).square().mean(1).sum()
    return _jacobians(torch.autograd.grad(loss, shift, create_graph=True)[0][:, rows], shift)


def _jacobians(values: Tensor, inputs: Tensor) -> Tensor:
    """Return the derivatives (N, n, m) of values (N, n) by inputs (N, m) of the same sample."""
    columns = [torch.autograd.grad(one.sum(), inputs, retain_graph=True)[0] for one in values.T]
    return torch.stack(columns, 1)


def _hessians(m: Model, rows: list[int], num_samples: int, generator: torch.Generator) -> Tensor:
    draws = partial(sample_hessians, num_samples=num_samples, generator=generator, rows=rows)
    return draws(*m.task, **m.scales)


def _gradient_products(
    m: Model, rows: list[int], num_samples: int, generator: torch.Generator
) -> Tensor:
    theta, phi, x = (
        torch.randn(num_samples, n, generator=generator, dtype=torch.float64)
        for n in (m.size // m.stride, m.size, m.size)
    )
    theta, phi, x = m.theta_std * theta, m.phi_std * phi, x.requires_grad_()
    output = deep_linear.deep_linear_output(theta, phi, x, m.response, m.stride)
    (gradients,) = torch.autograd.grad(output.sum(), x)  # (N, D)
    return gradients[:, rows, None] * gradients[:, None, :]


def _mixed_products(
    m: Model, rows: list[int], num_samples: int, generator: torch.Generator
) -> Tensor:
    outputs = m.size // m.stride
    scale = torch.tensor([m.theta_std] * outputs + [m.phi_std] * m.size, dtype=torch.float64)
    weights = scale * torch.randn(num_samples, len(scale), generator=generator, dtype=torch.float64)
    theta, phi = weights.requires_grad_().split([outputs, m.size], 1)
    x = torch.zeros(num_samples, m.size, dtype=torch.float64, requires_grad=True)
    output = deep_linear.deep_linear_output(theta, phi, x, m.response, m.stride)
    (gradients,) = torch.autograd.grad(output.sum(), x, create_graph=True)
    mixed = _jacobians(gradients, weights)  # d^2 f / dx dweights, (N, D, M + D)
    return mixed[:, rows] @ mixed.mT


def _matrices(
    key: str,
    title: str,
    sample: Callable[[Model, list[int], int, torch.Generator], Tensor],
    ours: Callable[[Model], Tensor],
    factor: Callable[[Model], float],
    example: str = "",
    entries: Callable[[Model], Entries] = Model.entries,
    **facts: bool,
) -> None:
    """Register a statement about the mean of random matrices.

    Args:
        key: key of the statement.
        title: see `Statement`, as for the other arguments.
        sample: function that draws rows of matrices of a model, (N, rows, columns).
        ours: function that computes their mean.
        factor: function that says how much larger the printed form is.
        example: words before entry [0, 0] of both forms in the `SMALLEST` model.
        entries: function that chooses the entries to compare.
        **facts: see `Statement`.
    """

    def numbers() -> tuple[Tensor, Tensor]:
        entry = ours(SMALLEST)[0, 0]
        return entry, factor(SMALLEST) * entry

    @statement(key, title, example, numbers, **facts)
    def _(num_samples: int, generator: torch.Generator) -> Iterator[Row]:
        for m in MODELS:
            chosen = entries(m)
            rows, columns = (list(places) for places in zip(*chosen.values(), strict=True))
            drawn = sample(m, rows, num_samples, generator)[:, range(len(rows)), columns]
            mean = ours(m)[rows, columns]
            setting = f"D = {m.size}, S = {m.stride}, {m.prefilter}, ℓ = {m.frequency}"
            numbers = torch.stack([*mean_and_error(drawn), mean, factor(m) * mean], 1).tolist()
            for name, row in zip(chosen, numbers, strict=True):
                yield f"{setting}, {name}", *row


def _hessian(m: Model) -> Tensor:
    return deep_linear.expected_hessian(*m.task, **m.scales, block="both")


_matrices(
    "lemma1",
    "Lemma 1",
    _hessians,
    _hessian,
    lambda m: m.stride,  # printed without 1 / S
    "D = S = 2, m = (1, 1), ℓ = 0, all of ε, σ and the standard deviations 1: entry [0, 0] is",
)
_matrices(
    "lemma1-theta",
    "Lemma 1 for θ, and the mixed block",
    _hessians,
    _hessian,
    lambda m: 1,
    entries=Model.entries_of_theta,
    is_printed=False,
)
_matrices(
    "eq4",
    "Eq. (4)",
    _gradient_products,
    lambda m: deep_linear.gradient_covariance(m.response, m.stride, **m.scales),
    lambda m: m.stride,  # printed without 1 / S
    "D = S = 2, m = (1, 1), standard deviations 1: f = θ(φ₀x₀ + φ₁x₁)/√2, entry [0, 0] is",
)
_matrices(
    "eq5",
    "Eq. (5)",
    _mixed_products,
    lambda m: deep_linear.mixed_second_moment(m.response, m.stride, **m.scales),
    # printed with 1 / S in one of two places
    lambda m: (m.stride * m.theta_std**2 + m.phi_std**2) / (m.theta_std**2 + m.phi_std**2),
    "D = S = 2, m = (1, 1), standard deviations 1: entry [0, 0] is",
)


@statement("zeta", "ζ(ℓ), below Lemma 1")
def _(num_samples: int, generator: torch.Generator) -> Iterator[Row]:
    """The curvature that the signal adds, over the largest curvature of the noise."""
    scales = (1.0, 1.0), (1.0, 0.5), (0.5, 1.0)
    settings = itertools.product(("average", "binomial"), (2, 4), scales, (1, 3))
    for name, stride, (margin, noise_std), frequency in settings:
        response = model_response(name, 8, stride)
        peak, state = int(response.argmax()), generator.get_state()
        curvatures = []
        for strength in (margin, 0.0):
            generator.set_state(state)  # the same noise with and without the signal
            task = frequency, response, stride, strength, noise_std, 1.0, 1.0, num_samples
            drawn = sample_hessians(*task, generator=generator, rows=[frequency, peak])
            curvatures.append(drawn[:, [0, 1], [frequency, peak]].T)
        (with_signal, _), (noise, top) = curvatures  # (batches,) each
        added = with_signal - noise
        ratio = added.mean() / top.mean()
        _, error = mean_and_error((added - ratio * top) / top.mean())  # of a ratio, to first order
        formula = float(deep_linear.zeta(frequency, response, margin, noise_std))
        setting = f"S = {stride}, {name}, ℓ = {frequency}, ε/σ = {margin / noise_std:.2g}"
        yield setting, float(ratio), float(error), formula, formula
