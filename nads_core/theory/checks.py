"""Every numbered statement of the paper against a simulation; chapters, the errata page and the tests share them.

A check compares a simulated number with a formula, in units of the standard error of the simulation. Equalities pass
when ``|z| < 4``; inequalities when the simulated side does not exceed the other by 4 standard errors. A check function
returns at least 20 settings of one statement, each with the formula as printed and as it stands in `pooling` and
`deep_linear`. Its argument ``factor`` multiplies the latter: with 1.1, a wrong constant, the check has to fail.
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from nads_core.machinery.numbers import readable
from nads_core.theory import deep_linear, pooling

LIMIT = 4.0  # standard errors


@dataclass(frozen=True)
class Check:
    """One simulated number beside the formula for it.

    Args:
        statement: which statement of the paper, a key of `errata.STATEMENTS`.
        setting: sizes and parameters, in words.
        simulated: the number that the simulation gave.
        standard_error: of ``simulated``; the rounding error of float64 where nothing is random.
        formula: what our formula gives; for an inequality, its upper bound.
        printed: what the formula as printed gives.
        is_bound: whether the statement is simulated <= formula rather than an equality.
    """

    statement: str
    setting: str
    simulated: float
    standard_error: float
    formula: float
    printed: float
    is_bound: bool = False

    def _z(self, value: float) -> float:
        difference = self.simulated - value
        if self.is_bound:
            difference = max(difference, 0.0)
        error = max(self.standard_error, 1e-12 * abs(self.simulated))
        return 0.0 if difference == 0 else difference / error if error else math.copysign(math.inf, difference)

    @property
    def z(self) -> float:
        """Standard errors between the simulation and our formula."""
        return self._z(self.formula)

    @property
    def z_printed(self) -> float:
        """Standard errors between the simulation and the formula as printed."""
        return self._z(self.printed)


def passed(checks: Iterable[Check], *, printed: bool = False) -> bool:
    """Return whether every check stays within 4 standard errors of our formula, or of the printed one."""
    return all(abs(check.z_printed if printed else check.z) < LIMIT for check in checks)


def worst(checks: Iterable[Check], *, printed: bool = False) -> float:
    """Return the largest absolute z, of our formula or of the printed one."""
    return max(abs(check.z_printed if printed else check.z) for check in checks)


def table(checks: Iterable[Check]) -> str:
    """Return a Markdown table, one row a check."""
    rows = ["| setting | simulated | standard error | ours | z | printed | z |", "|---|---|---|---|---|---|---|"]
    for c in checks:
        decimals = 1 - math.floor(math.log10(c.standard_error)) if c.standard_error > 0 else 16  # what the error leaves
        simulated, error = readable(round(c.simulated, decimals), 4), readable(c.standard_error, 2)
        ours, printed = readable(c.formula, 4), readable(c.printed, 4)
        numbers = (simulated, error, ours, readable_z(c.z), printed, readable_z(c.z_printed))
        rows.append(f"| {c.setting} | " + " | ".join(numbers) + " |")
    return "\n".join(rows)


def readable_z(z: float) -> str:
    """Write a number of standard errors; where it is past 1,000, how far past says nothing.

    >>> [readable_z(z) for z in (-2.345, -0.01, 7.1e11)]
    ['−2.3', '0.0', 'above 1,000']
    """
    if abs(z) >= 999.95:
        return "above 1,000" if z > 0 else "below −1,000"
    return f"{round(z, 1) + 0.0:.1f}".replace("-", "−")


# --- eq. (1) ---------------------------------------------------------------------------------------------------------


def check_eq1(num_samples: int = 1, *, seed: int = 0, factor: float = 1.0) -> list[Check]:
    """Eq. (1), S divides D: pooling in space, by torch's own average pooling where it applies, against the spectrum."""
    generator = torch.Generator().manual_seed(seed)
    checks = []
    for size, stride, name in itertools.product((8, 24, 120), (2, 4), pooling.PREFILTERS):
        impulse = pooling.prefilter(name, size, stride)
        x = torch.randn(num_samples, size, generator=generator, dtype=torch.float64)
        pooled = F.avg_pool1d(x, stride) if name == "average" else pooling.pool(x, impulse, stride)
        spectrum = pooling.pool_spectrum(torch.fft.fft(x, norm="ortho"), impulse, stride)
        ours = torch.fft.fft(pooled, norm="ortho")
        index = int(torch.randint(1, size // stride, (), generator=generator))
        value = float(spectrum[:, index].real.mean())
        rounding = 4 * size * torch.finfo(torch.float64).eps * float(x.norm(dim=-1).max() * impulse.abs().sum())
        setting = f"D = {size}, S = {stride}, {name}, t = {index}"
        simulated = float(ours[:, index].real.mean())
        checks.append(Check("eq1", setting, simulated, rounding, factor * value, value))
    return checks


def check_eq1_indivisible(num_samples: int = 1, *, seed: int = 0, factor: float = 1.0) -> list[Check]:
    """Eq. (1) with M = ceil(D / S) where S does not divide D: every frequency leaks into every output."""
    generator = torch.Generator().manual_seed(seed)
    checks = []
    for size, stride in itertools.product((3, 5, 7, 11, 13, 17, 23), (2, 4, 6)):
        kept = math.ceil(size / stride)
        x = torch.randn(num_samples, size, generator=generator, dtype=torch.float64)
        spectrum = torch.fft.fft(x, norm="ortho")
        times, t = torch.arange(kept, dtype=torch.float64), kept - 1
        frequencies = torch.arange(size, dtype=torch.float64)[:, None]
        kernel = torch.exp(2j * math.pi * times * (frequencies * stride / size - t / kept)).sum(-1) / math.sqrt(
            kept * size
        )
        leaking = (spectrum @ kernel.to(spectrum.dtype)).real.mean()
        printed = spectrum[:, (kept * torch.arange(stride) + t) % size].sum(-1).real.mean() / math.sqrt(stride)
        simulated = torch.fft.fft(x[:, ::stride], norm="ortho")[:, t].real.mean()
        rounding = 40 * size * torch.finfo(torch.float64).eps * float(x.norm(dim=-1).max())
        setting = f"D = {size}, S = {stride}, identity, t = {t}"
        checks.append(
            Check("eq1-indivisible", setting, float(simulated), rounding, factor * float(leaking), float(printed))
        )
    return checks


# --- Theorem 1 -------------------------------------------------------------------------------------------------------


def simulate_bayes_accuracy(
    direction: Tensor, layer: Tensor, margin: float, noise_std: float, num_samples: int, *, generator: torch.Generator
) -> tuple[float, float]:
    """Draw D(v), apply the layer, classify with the optimal linear rule, and count.

    Returns:
        Accuracy and its standard error (with two successes and two failures added, so that it is never zero).
    """
    size = len(direction)
    labels = torch.randint(0, 2, (num_samples,), generator=generator).double() * 2 - 1
    noise = noise_std * torch.randn(num_samples, size, generator=generator, dtype=torch.float64)
    noise -= (noise @ direction)[:, None] * direction
    pooled = (margin * labels[:, None] * direction + noise) @ layer.T
    mean = layer @ direction
    rule = (
        torch.linalg.pinv(layer @ layer.T, hermitian=True, rtol=1e-12) @ mean
    )  # same ray as Sigma^+ mean, never singular
    scores = pooled @ rule
    scale = noise_std * float(layer.norm()) * float(rule.norm())
    scores = torch.where(scores.abs() <= 1e-12 * max(scale, 1e-300), 0.0, scores)  # nothing left: a coin decides
    coins = torch.randint(0, 2, (num_samples,), generator=generator).double() * 2 - 1
    correct = int((torch.where(scores == 0, coins, scores.sign()) == labels).sum())
    smoothed = (correct + 2) / (num_samples + 4)
    return correct / num_samples, math.sqrt(smoothed * (1 - smoothed) / num_samples)


def check_theorem1(num_samples: int, *, seed: int = 0, factor: float = 1.0) -> list[Check]:
    """Theorem 1 on real signals, at frequencies that do not fold onto their own mirror image."""
    generator = torch.Generator().manual_seed(seed)
    size, checks = 48, []
    frequencies = {2: (0, 5, 17), 4: (0, 4, 9, 24), 8: (2, 7, 10)}
    for stride, name in itertools.product(frequencies, ("average", "binomial", "identity")):
        impulse = pooling.prefilter(name, size, stride)
        layer = pooling.pooling_matrix(impulse, stride)
        for number, frequency in enumerate(frequencies[stride]):
            margin, noise_std = (1.0, 3.0) if number % 2 else (1.0, 0.7)
            simulated, error = simulate_bayes_accuracy(
                pooling.direction(frequency, size), layer, margin, noise_std, num_samples, generator=generator
            )
            setting = f"S = {stride}, {name}, ℓ = {frequency}, ε/σ = {margin / noise_std:.2g}"
            ours = pooling.bayes_accuracy(frequency, impulse, stride, factor * margin, noise_std)
            printed = pooling.bayes_accuracy_printed(frequency, impulse, stride, margin, noise_std)
            checks.append(Check("theorem1", setting, simulated, error, float(ours), float(printed)))
    return checks


def check_theorem1_folded(num_samples: int, *, seed: int = 0, factor: float = 1.0) -> list[Check]:
    """Theorem 1 on real signals where l and -l are different frequencies and alias to the same output."""
    generator = torch.Generator().manual_seed(seed)
    checks, size = [], 24
    phases = (-math.pi / 2, -1.2, 0.0, 0.6, 2.0)
    for (stride, frequency), name, phase in itertools.product(
        ((4, 3), (4, 6), (8, 6)), ("average", "identity"), phases
    ):
        impulse = pooling.prefilter(name, size, stride)
        simulated, error = simulate_bayes_accuracy(
            pooling.direction(frequency, size, phase), pooling.pooling_matrix(impulse, stride), 1.0, 1.0, num_samples,
            generator=generator,
        )  # fmt: skip
        checks.append(
            Check(
                "theorem1-folded", f"S = {stride}, {name}, ℓ = {frequency}, phase {phase:.2f}", simulated, error,
                float(pooling.bayes_accuracy(frequency, impulse, stride, factor, 1.0, phase=phase)),
                float(pooling.bayes_accuracy_printed(frequency, impulse, stride, 1.0, 1.0)),
            )
        )  # fmt: skip
    return checks


def check_theorem1_complex(num_samples: int, *, seed: int = 0, factor: float = 1.0) -> list[Check]:
    """Theorem 1 for the complex direction F^-1(e_l) and circular complex noise of variance sigma^2 per coefficient."""
    generator = torch.Generator().manual_seed(seed)
    size, checks = 24, []
    for stride, name, frequency in itertools.product((2, 4, 8), ("average", "identity"), (0, 1, 4, 7)):
        impulse = pooling.prefilter(name, size, stride)
        noise_std = 0.9
        labels = torch.randint(0, 2, (num_samples,), generator=generator).double() * 2 - 1
        parts = torch.randn(2, num_samples, size, generator=generator, dtype=torch.float64) * noise_std / math.sqrt(2)
        spectrum = torch.complex(parts[0], parts[1])
        spectrum[:, frequency] = labels.to(spectrum.dtype)  # margin 1, and no noise along v
        pooled = pooling.pool_spectrum(spectrum, impulse, stride)[:, frequency % (size // stride)]
        scores = (pooled * pooling.frequency_response(impulse)[frequency].conj()).real
        correct = int((scores.sign() == labels).sum())
        smoothed = (correct + 2) / (num_samples + 4)
        checks.append(
            Check(
                "theorem1-complex", f"S = {stride}, {name}, ℓ = {frequency}", correct / num_samples,
                math.sqrt(smoothed * (1 - smoothed) / num_samples),
                float(pooling.bayes_accuracy_complex(frequency, impulse, stride, factor, noise_std)),
                float(pooling.bayes_accuracy_printed(frequency, impulse, stride, 1.0, noise_std)),
            )
        )  # fmt: skip
    return checks


# --- the deep linear model -------------------------------------------------------------------------------------------

_MODELS = [  # (prefilter, D, S, l, eps, sigma, theta_std, phi_std)
    ("average", 8, 2, 1, 1.0, 0.5, 1.0, 1.0), ("average", 12, 4, 2, 1.0, 1.0, 0.5, 2.0),
    ("binomial", 12, 3, 5, 2.0, 1.0, 1.5, 1.0), ("binomial", 16, 8, 1, 1.0, 2.0, 1.0, 0.7),
    ("identity", 10, 5, 7, 1.5, 0.5, 0.8, 0.8), ("average", 16, 4, 0, 1.0, 3.0, 1.0, 1.3),
    ("binomial", 8, 4, 3, 0.5, 0.5, 2.0, 0.5), ("lowpass", 12, 2, 3, 1.0, 0.8, 1.2, 1.1),
]  # fmt: skip


def _model(name: str, size: int, stride: int) -> Tensor:
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


def mean_and_error(samples: Tensor) -> tuple[Tensor, Tensor]:
    """Return the mean over the first dimension and its standard error."""
    return samples.mean(0), samples.std(0) / math.sqrt(len(samples))


def _matrix_checks(
    statement: str, setting: str, samples: Tensor, formula: Tensor, printed: Tensor, entries: dict[str, tuple[int, int]]
) -> list[Check]:
    mean, error = mean_and_error(samples)
    return [
        Check(statement, f"{setting}, {name}", *(float(m[entry]) for m in (mean, error, formula, printed)))
        for name, entry in entries.items()
    ]


def check_lemma1(num_samples: int, *, seed: int = 0, factor: float = 1.0) -> list[Check]:
    """Lemma 1: the expected Hessian with respect to phi, at the signal, at noise, and between two aliases."""
    generator = torch.Generator().manual_seed(seed)
    checks = []
    for name, size, stride, frequency, margin, noise_std, theta_std, phi_std in _MODELS:
        response = _model(name, size, stride)
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
        response, outputs = _model(name, size, stride), size // stride
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
        response = _model(name, size, stride)
        peak, state = int(response.argmax()), generator.get_state()

        curvatures = []
        for strength in (margin, 0.0):
            generator.set_state(state)  # the same noise with and without the signal
            args = (frequency, response, stride, strength, noise_std, 1.0, 1.0, num_samples)
            curvatures.append(sample_hessians(*args, block="phi", generator=generator))
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
        response = _model(name, size, stride)
        theta = theta_std * torch.randn(num_samples, size // stride, generator=generator, dtype=torch.float64)
        phi = phi_std * torch.randn(num_samples, size, generator=generator, dtype=torch.float64)
        x = torch.randn(num_samples, size, generator=generator, dtype=torch.float64).requires_grad_()
        output = deep_linear.deep_linear_output(theta, phi, x, response, stride)
        (gradients,) = torch.autograd.grad(output.sum(), x)
        samples = gradients[:, :, None] * gradients[:, None, :]
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
        response, outputs = _model(name, size, stride), size // stride
        scale = torch.cat([theta_std * torch.ones(outputs), phi_std * torch.ones(size)]).double()
        weights = scale * torch.randn(num_samples, outputs + size, generator=generator, dtype=torch.float64)

        def slope(weights: Tensor, x: Tensor, response=response, stride=stride, outputs=outputs) -> Tensor:
            output = torch.func.grad(
                lambda x: deep_linear.deep_linear_output(weights[:outputs], weights[outputs:], x, response, stride)
            )
            return output(x)

        mixed = torch.func.vmap(torch.func.jacrev(slope), (0, None))(weights, torch.zeros(size).double())
        samples = mixed @ mixed.mT  # rows of `mixed` are pixels, columns weights: B^T B
        ours = factor * deep_linear.mixed_second_moment(response, stride, theta_std=theta_std, phi_std=phi_std)
        printed = deep_linear.mixed_second_moment_printed(response, stride, theta_std=theta_std, phi_std=phi_std)
        other, peak = (frequency + size // stride) % size, int(response.argmax())
        entries = {"[ℓ, ℓ]": (frequency, frequency), "peak": (peak, peak), "aliases": (frequency, other)}
        setting = f"D = {size}, S = {stride}, {name}, ℓ = {frequency}"
        checks += _matrix_checks("eq5", setting, samples, ours, printed, entries)
    return checks


# --- inequalities ----------------------------------------------------------------------------------------------------


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
    response = _model("average", size, stride)
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
        slopes: (N,), see `deep_linear.dipole_statistics`.
        rates: (N,).
        factor: multiplies the bound.
    """
    checks = []
    for metric in METRICS:
        mean, error = mean_and_error(deep_linear.dipole_gradient_norms(metric.function, slopes, rates))
        ours = factor * float(deep_linear.lemma2_bound(slopes, rates, metric.alpha, metric.beta))
        printed = float(deep_linear.lemma2_bound_printed(slopes, rates, metric.alpha, metric.beta))
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
        mean, error = mean_and_error(deep_linear.dipole_gradient_norms(metric.function, difference, its_rate))
        ours = factor * float(deep_linear.lemma2_bound(difference, its_rate, metric.alpha, metric.beta))
        printed = float(deep_linear.lemma2_bound_printed(slopes, rates, metric.alpha, metric.beta))
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
