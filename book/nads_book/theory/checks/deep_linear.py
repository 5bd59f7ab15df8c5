"""Lemma 1, the ratio below it, and eqs. (4) and (5): the deep linear model against automatic
differentiation.
"""

import itertools
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from nads_book.theory import deep_linear, pooling
from nads_book.theory.checks.check import Check, check_function, mean_and_error


@dataclass(frozen=True)
class Model:
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
    def task(self) -> tuple[int, Tensor, int, float, float]:
        """Frequency, response, stride, margin and noise, as `deep_linear` takes them."""
        response = model_response(self.prefilter, self.size, self.stride)
        return self.frequency, response, self.stride, self.margin, self.noise_std

    @property
    def scales(self) -> dict[str, Any]:
        """Standard deviations of the weights, by argument name."""
        return {"theta_std": self.theta_std, "phi_std": self.phi_std}

    @property
    def outputs(self) -> int:
        """Number of outputs of the pooling layer, M."""
        return self.size // self.stride

    @property
    def alias(self) -> int:
        """A frequency that pooling does not distinguish from the signal's."""
        return (self.frequency + self.outputs) % self.size

    def checks(
        self,
        samples: Tensor,
        ours: Tensor,
        printed: Tensor,
        entries: dict[str, tuple[int, int]],
    ) -> Iterator[Check]:
        """Compare entries of the mean of sampled matrices with both formulas."""
        mean, error = mean_and_error(samples)
        setting = f"D = {self.size}, S = {self.stride}, {self.prefilter}, ℓ = {self.frequency}"
        for name, entry in entries.items():
            value, std, formula, stated = (
                float(matrix[entry]) for matrix in (mean, error, ours, printed)
            )
            yield Check(f"{setting}, {name}", value, std, formula, stated)


MODELS = [
    Model(*values)
    for values in (
        ("average", 8, 2, 1, 1.0, 0.5, 1.0, 1.0),
        ("average", 12, 4, 2, 1.0, 1.0, 0.5, 2.0),
        ("binomial", 12, 3, 5, 2.0, 1.0, 1.5, 1.0),
        ("binomial", 16, 8, 1, 1.0, 2.0, 1.0, 0.7),
        ("identity", 10, 5, 7, 1.5, 0.5, 0.8, 0.8),
        ("average", 16, 4, 0, 1.0, 3.0, 1.0, 1.3),
        ("binomial", 8, 4, 3, 0.5, 0.5, 2.0, 0.5),
        ("lowpass", 12, 2, 3, 1.0, 0.8, 1.2, 1.1),
    )
]


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
    num_batches: int = 100,
    block: str = "both",
    generator: torch.Generator,
) -> Tensor:
    """Return Hessians of J, each averaged over a batch of draws of (theta, phi, x, y), by automatic
    differentiation.

    One shift of phi and one of theta, shared by all draws of a batch, turns the mean of many
    Hessians into the Hessian of one mean; `torch.func.vmap` then runs over the batches.

    Returns:
        (num_batches, D + M, D + M), phi first, or for block="phi" (num_batches, D, D). The spread
        over the batches gives the standard error of their mean.
    """
    size, outputs, count = (
        len(response),
        len(response) // stride,
        max(1, num_samples // num_batches),
    )

    def normal(*shape: int) -> Tensor:
        return torch.randn(num_batches, count, *shape, generator=generator, dtype=torch.float64)

    # (batches, count, M), (batches, count, D), (batches, count, D), and labels (batches, count)
    theta, phi, x = theta_std * normal(outputs), phi_std * normal(size), noise_std * normal(size)
    y = normal().sign()
    x[..., frequency] += margin * y

    def mean_loss(shift: Tensor, theta: Tensor, phi: Tensor, x: Tensor, y: Tensor) -> Tensor:
        if block == "both":
            theta = theta + shift[size:]
        output = deep_linear.deep_linear_output(theta, phi + shift[:size], x, response, stride)
        return (y - output).square().mean()

    with (
        warnings.catch_warnings()
    ):  # the first use of forward mode compiles helpers with a function torch deprecates
        warnings.simplefilter("ignore", FutureWarning)
        hessian = torch.func.hessian(mean_loss)
        shift = torch.zeros(size + outputs if block == "both" else size, dtype=torch.float64)
        chunk = max(1, 20_000 // count)  # batches at once: bounds the memory
        return torch.func.vmap(hessian, (None, 0, 0, 0, 0), chunk_size=chunk)(
            shift, theta, phi, x, y
        )


@check_function
def check_lemma1(num_samples: int, generator: torch.Generator) -> Iterator[Check]:
    """Lemma 1: the expected Hessian with respect to phi, at the signal, at noise, and between two
    aliases.
    """
    for m in MODELS:
        samples = sample_hessians(
            *m.task, **m.scales, num_samples=num_samples, generator=generator, block="phi"
        )
        ours = deep_linear.expected_hessian(*m.task, **m.scales)
        printed = deep_linear.expected_hessian_printed(*m.task, theta_std=m.theta_std)
        response = m.task[1]
        other = max(
            (k for k in range(m.size) if k != m.frequency), key=lambda k: float(response[k])
        )
        signal = m.frequency
        entries = {
            "signal": (signal, signal),
            "noise": (other, other),
            "aliases": (signal, m.alias),
        }
        yield from m.checks(samples, ours, printed, entries)


@check_function
def check_lemma1_theta(num_samples: int, generator: torch.Generator) -> Iterator[Check]:
    """The Hessian with respect to theta, and the mixed block, which the printed lemma leaves
    out.
    """
    for m in MODELS:
        samples = sample_hessians(*m.task, **m.scales, num_samples=num_samples, generator=generator)
        ours = deep_linear.expected_hessian(*m.task, **m.scales, block="both")
        signal, noise = (
            m.size + frequency % m.outputs for frequency in (m.frequency, m.frequency + 1)
        )
        entries = {
            "signal": (signal, signal),
            "noise": (noise, noise),
            "mixed": (m.frequency, signal),
        }
        yield from m.checks(samples, ours, ours, entries)


@check_function
def check_zeta(num_samples: int, generator: torch.Generator) -> Iterator[Check]:
    """Below Lemma 1: the ratio of the curvature that the signal adds to the largest curvature of
    the noise.
    """
    size = 8
    settings = itertools.product(
        ("average", "binomial"), (2, 4), ((1.0, 1.0), (1.0, 0.5), (0.5, 1.0)), (1, 3)
    )
    for name, stride, (margin, noise_std), frequency in settings:
        response = model_response(name, size, stride)
        peak, state = int(response.argmax()), generator.get_state()
        curvatures = []
        for strength in (margin, 0.0):
            generator.set_state(state)  # the same noise with and without the signal
            args = (frequency, response, stride, strength, noise_std, 1.0, 1.0, num_samples)
            curvatures.append(
                sample_hessians(*args, block="phi", generator=generator)
            )  # (batches, D, D)
        with_signal, noise = curvatures
        added, top = (
            with_signal[:, frequency, frequency] - noise[:, frequency, frequency],
            noise[:, peak, peak],
        )
        ratio = added.mean() / top.mean()
        _, error = mean_and_error((added - ratio * top) / top.mean())  # of a ratio, to first order
        formula = float(deep_linear.zeta(frequency, response, margin, noise_std))
        setting = (
            f"D = {size}, S = {stride}, {name}, ℓ = {frequency}, ε/σ = {margin / noise_std:.2g}"
        )
        yield Check(setting, float(ratio), float(error), formula, formula)


@check_function
def check_eq4(num_samples: int, generator: torch.Generator) -> Iterator[Check]:
    """Eq. (4): the covariance of input gradients, by automatic differentiation."""
    for m in MODELS:
        response = m.task[1]
        theta, phi, x = (
            torch.randn(num_samples, n, generator=generator, dtype=torch.float64)
            for n in (m.outputs, m.size, m.size)
        )
        theta, phi, x = m.theta_std * theta, m.phi_std * phi, x.requires_grad_()
        output = deep_linear.deep_linear_output(theta, phi, x, response, m.stride)
        (gradients,) = torch.autograd.grad(output.sum(), x)  # (N, D)
        samples = gradients[:, :, None] * gradients[:, None, :]  # (N, D, D)
        ours = deep_linear.gradient_covariance(response, m.stride, **m.scales)
        printed = deep_linear.gradient_covariance_printed(response, **m.scales)
        yield from m.checks(samples, ours, printed, _entries(m))


@check_function
def check_eq5(num_samples: int, generator: torch.Generator) -> Iterator[Check]:
    """Eq. (5): the second moment of the mixed derivative, by automatic differentiation."""
    for m in MODELS:
        response = m.task[1]
        scale = torch.cat(
            [m.theta_std * torch.ones(m.outputs), m.phi_std * torch.ones(m.size)]
        ).double()
        weights = scale * torch.randn(
            num_samples, m.outputs + m.size, generator=generator, dtype=torch.float64
        )

        def slope(weights: Tensor, x: Tensor, response: Tensor = response, m: Model = m) -> Tensor:
            theta, phi = weights[: m.outputs], weights[m.outputs :]
            return torch.func.grad(
                lambda x: deep_linear.deep_linear_output(theta, phi, x, response, m.stride)
            )(x)

        mixed = torch.func.vmap(torch.func.jacrev(slope), (0, None))(
            weights, torch.zeros(m.size).double()
        )
        samples = (
            mixed @ mixed.mT
        )  # (N, D, M + D), rows pixels, columns weights -> B^T B: (N, D, D)
        ours = deep_linear.mixed_second_moment(response, m.stride, **m.scales)
        printed = deep_linear.mixed_second_moment_printed(response, m.stride, **m.scales)
        yield from m.checks(samples, ours, printed, _entries(m))


def _entries(m: Model) -> dict[str, tuple[int, int]]:
    """Return the entries at the signal, at the largest response, and between two aliases."""
    peak = int(m.task[1].argmax())
    return {
        "[ℓ, ℓ]": (m.frequency, m.frequency),
        "peak": (peak, peak),
        "aliases": (m.frequency, m.alias),
    }
