"""Lemma 1, the ratio below it, and eqs. (4) and (5): the deep linear model against automatic differentiation."""

from __future__ import annotations

import itertools
import warnings

import torch
from torch import Tensor

from nads_book.checks.check import Check, mean_and_error
from nads_core.theory import deep_linear, pooling

_MODELS = [  # (prefilter, D, S, l, eps, sigma, theta_std, phi_std)
    ("average", 8, 2, 1, 1.0, 0.5, 1.0, 1.0), ("average", 12, 4, 2, 1.0, 1.0, 0.5, 2.0),
    ("binomial", 12, 3, 5, 2.0, 1.0, 1.5, 1.0), ("binomial", 16, 8, 1, 1.0, 2.0, 1.0, 0.7),
    ("identity", 10, 5, 7, 1.5, 0.5, 0.8, 0.8), ("average", 16, 4, 0, 1.0, 3.0, 1.0, 1.3),
    ("binomial", 8, 4, 3, 0.5, 0.5, 2.0, 0.5), ("lowpass", 12, 2, 3, 1.0, 0.8, 1.2, 1.1),
]  # fmt: skip


def model_response(name: str, size: int, stride: int) -> Tensor:
    """Return what stands for the response of a named prefilter in the model: (D,), its magnitude."""
    return pooling.frequency_response(pooling.prefilter(name, size, stride)).abs()


def sample_hessians(
    frequency: int, response: Tensor, stride: int, margin: float, noise_std: float, theta_std: float, phi_std: float,
    num_samples: int, *, num_batches: int = 100, block: str = "both", generator: torch.Generator,
) -> Tensor:  # fmt: skip
    """Return Hessians of J, each averaged over a batch of draws of (theta, phi, x, y), by automatic differentiation.

    One shift of phi and one of theta, shared by all draws of a batch, turns the mean of many Hessians into the Hessian
    of one mean; `torch.func.vmap` then runs over the batches.

    Returns:
        (num_batches, D + M, D + M), phi first, or for block="phi" (num_batches, D, D). The spread
        over the batches gives the standard error of their mean.
    """
    size, outputs, count = len(response), len(response) // stride, max(1, num_samples // num_batches)

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

    with warnings.catch_warnings():  # the first use of forward mode compiles helpers with a function torch deprecates
        warnings.simplefilter("ignore", FutureWarning)
        hessian = torch.func.hessian(mean_loss)
        shift = torch.zeros(size + outputs if block == "both" else size, dtype=torch.float64)
        chunk = max(1, 20_000 // count)  # batches at once: bounds the memory
        return torch.func.vmap(hessian, (None, 0, 0, 0, 0), chunk_size=chunk)(shift, theta, phi, x, y)


def _matrix_checks(
    statement: str, setting: str, samples: Tensor, formula: Tensor, printed: Tensor, entries: dict[str, tuple[int, int]]
) -> list[Check]:
    mean, error = mean_and_error(samples)
    return [
        Check(
            statement,
            f"{setting}, {name}",
            float(mean[entry]),
            float(error[entry]),
            float(formula[entry]),
            float(printed[entry]),
        )
        for name, entry in entries.items()
    ]


def check_lemma1(num_samples: int, *, seed: int = 0, factor: float = 1.0) -> list[Check]:
    """Lemma 1: the expected Hessian with respect to phi, at the signal, at noise, and between two aliases."""
    generator = torch.Generator().manual_seed(seed)
    checks = []
    for name, size, stride, frequency, margin, noise_std, theta_std, phi_std in _MODELS:
        response = model_response(name, size, stride)
        args = (frequency, response, stride, margin, noise_std)
        samples = sample_hessians(*args, theta_std, phi_std, num_samples, generator=generator, block="phi")
        ours = factor * deep_linear.expected_hessian(*args, theta_std=theta_std, phi_std=phi_std)
        printed = deep_linear.expected_hessian_printed(*args, theta_std=theta_std)
        other = max((k for k in range(size) if k != frequency), key=lambda k: float(response[k]))
        entries = {
            "signal": (frequency, frequency),
            "noise": (other, other),
            "aliases": (frequency, (frequency + size // stride) % size),
        }
        setting = f"D = {size}, S = {stride}, {name}, ℓ = {frequency}"
        checks += _matrix_checks("lemma1", setting, samples, ours, printed, entries)
    return checks


def check_lemma1_theta(num_samples: int, *, seed: int = 0, factor: float = 1.0) -> list[Check]:
    """The Hessian with respect to theta, and the mixed block, which the printed lemma leaves out."""
    generator = torch.Generator().manual_seed(seed)
    checks = []
    for name, size, stride, frequency, margin, noise_std, theta_std, phi_std in _MODELS:
        response, outputs = model_response(name, size, stride), size // stride
        args = (frequency, response, stride, margin, noise_std)
        samples = sample_hessians(*args, theta_std, phi_std, num_samples, generator=generator)
        ours = factor * deep_linear.expected_hessian(*args, theta_std=theta_std, phi_std=phi_std, block="both")
        signal = size + frequency % outputs
        noise = size + (frequency + 1) % outputs
        entries = {"signal": (signal, signal), "noise": (noise, noise), "mixed": (frequency, signal)}
        setting = f"D = {size}, S = {stride}, {name}, ℓ = {frequency}"
        checks += _matrix_checks("lemma1-theta", setting, samples, ours, ours, entries)
    return checks


def check_zeta(num_samples: int, *, seed: int = 0, factor: float = 1.0) -> list[Check]:
    """Below Lemma 1: the ratio of the curvature that the signal adds to the largest curvature of the noise."""
    generator = torch.Generator().manual_seed(seed)
    checks = []
    settings = itertools.product(("average", "binomial"), (2, 4), ((1.0, 1.0), (1.0, 0.5), (0.5, 1.0)), (1, 3))
    for name, stride, (margin, noise_std), frequency in settings:
        size = 8
        response = model_response(name, size, stride)
        peak, state = int(response.argmax()), generator.get_state()

        curvatures = []
        for strength in (margin, 0.0):
            generator.set_state(state)  # the same noise with and without the signal
            args = (frequency, response, stride, strength, noise_std, 1.0, 1.0, num_samples)
            curvatures.append(sample_hessians(*args, block="phi", generator=generator))  # (batches, D, D)
        with_signal, noise = curvatures
        added, top = with_signal[:, frequency, frequency] - noise[:, frequency, frequency], noise[:, peak, peak]
        ratio = added.mean() / top.mean()
        _, error = mean_and_error((added - ratio * top) / top.mean())  # of a ratio, to first order
        formula = float(deep_linear.zeta(frequency, response, margin, noise_std))
        setting = f"D = {size}, S = {stride}, {name}, ℓ = {frequency}, ε/σ = {margin / noise_std:.2g}"
        checks.append(Check("zeta", setting, float(ratio), float(error), factor * formula, formula))
    return checks


def check_eq4(num_samples: int, *, seed: int = 0, factor: float = 1.0) -> list[Check]:
    """Eq. (4): the covariance of input gradients, by automatic differentiation."""
    generator = torch.Generator().manual_seed(seed)
    checks = []
    for name, size, stride, frequency, _, _, theta_std, phi_std in _MODELS:
        response = model_response(name, size, stride)
        theta = theta_std * torch.randn(num_samples, size // stride, generator=generator, dtype=torch.float64)
        phi = phi_std * torch.randn(num_samples, size, generator=generator, dtype=torch.float64)
        x = torch.randn(num_samples, size, generator=generator, dtype=torch.float64).requires_grad_()
        output = deep_linear.deep_linear_output(theta, phi, x, response, stride)
        (gradients,) = torch.autograd.grad(output.sum(), x)  # (N, D)
        samples = gradients[:, :, None] * gradients[:, None, :]  # (N, D, D)
        ours = factor * deep_linear.gradient_covariance(response, stride, theta_std=theta_std, phi_std=phi_std)
        printed = deep_linear.gradient_covariance_printed(response, theta_std=theta_std, phi_std=phi_std)
        other, peak = (frequency + size // stride) % size, int(response.argmax())
        entries = {"[ℓ, ℓ]": (frequency, frequency), "peak": (peak, peak), "aliases": (frequency, other)}
        setting = f"D = {size}, S = {stride}, {name}, ℓ = {frequency}"
        checks += _matrix_checks("eq4", setting, samples, ours, printed, entries)
    return checks


def check_eq5(num_samples: int, *, seed: int = 0, factor: float = 1.0) -> list[Check]:
    """Eq. (5): the second moment of the mixed derivative, by automatic differentiation."""
    generator = torch.Generator().manual_seed(seed)
    checks = []
    for name, size, stride, frequency, _, _, theta_std, phi_std in _MODELS:
        response, outputs = model_response(name, size, stride), size // stride
        scale = torch.cat([theta_std * torch.ones(outputs), phi_std * torch.ones(size)]).double()
        weights = scale * torch.randn(num_samples, outputs + size, generator=generator, dtype=torch.float64)

        def slope(
            weights: Tensor, x: Tensor, response: Tensor = response, stride: int = stride, outputs: int = outputs
        ) -> Tensor:
            output = torch.func.grad(
                lambda x: deep_linear.deep_linear_output(weights[:outputs], weights[outputs:], x, response, stride)
            )
            return output(x)

        mixed = torch.func.vmap(torch.func.jacrev(slope), (0, None))(weights, torch.zeros(size).double())
        samples = mixed @ mixed.mT  # (N, D, M + D), rows pixels, columns weights -> B^T B: (N, D, D)
        ours = factor * deep_linear.mixed_second_moment(response, stride, theta_std=theta_std, phi_std=phi_std)
        printed = deep_linear.mixed_second_moment_printed(response, stride, theta_std=theta_std, phi_std=phi_std)
        other, peak = (frequency + size // stride) % size, int(response.argmax())
        entries = {"[ℓ, ℓ]": (frequency, frequency), "peak": (peak, peak), "aliases": (frequency, other)}
        setting = f"D = {size}, S = {stride}, {name}, ℓ = {frequency}"
        checks += _matrix_checks("eq5", setting, samples, ours, printed, entries)
    return checks
