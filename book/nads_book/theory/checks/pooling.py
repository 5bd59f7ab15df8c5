"""Eq. (1) and Theorem 1: what pooling does to a spectrum, and what the best classifier can do after
it.
"""

import itertools
import math
from collections.abc import Callable, Iterator

import torch
from torch import Tensor
from torch.nn import functional as F

from nads_book.theory import pooling
from nads_book.theory.checks.statement import Row, random_signs, statement

EPSILON = torch.finfo(torch.float64).eps


def _indivisible_example() -> tuple[Tensor, Tensor]:
    x = torch.tensor([1.0, 0.0, 0.0]).double()
    spectrum = torch.fft.fft(x, norm="ortho")
    printed = (spectrum[0] + spectrum[2]).real / 2**0.5  # t = 0, M = 2: entries 0 and 2
    return torch.fft.fft(x[::2], norm="ortho")[0].real, printed


def _example(
    frequency: int, size: int, stride: int, accuracy: Callable[..., Tensor]
) -> Callable[[], tuple[Tensor, Tensor]]:
    """Return a function that computes both accuracies without a prefilter, at eps = sigma = 1."""
    task = frequency, pooling.prefilter("identity", size, stride), stride, 1.0, 1.0
    return lambda: (accuracy(*task), pooling.bayes_accuracy_printed(*task))


@statement("eq1", "Eq. (1), S divides D", is_random=False)
def _(num_samples: int, generator: torch.Generator) -> Iterator[Row]:
    """Pooling in space, by torch's own average pooling where it applies, against the spectrum."""
    for size, stride, name in itertools.product((8, 24, 120), (2, 4), pooling.PREFILTERS):
        impulse = pooling.prefilter(name, size, stride)
        x = torch.randn(num_samples, size, generator=generator, dtype=torch.float64)
        pooled = F.avg_pool1d(x, stride) if name == "average" else pooling.pool(x, impulse, stride)
        spectrum = pooling.pool_spectrum(torch.fft.fft(x, norm="ortho"), impulse, stride)
        index = int(torch.randint(1, size // stride, (), generator=generator))
        value = float(spectrum[:, index].real.mean())
        simulated = float(torch.fft.fft(pooled, norm="ortho")[:, index].real.mean())
        rounding = 4 * size * EPSILON * float(x.norm(dim=-1).max() * impulse.abs().sum())
        setting = f"D = {size}, S = {stride}, {name}, t = {index}"
        yield setting, simulated, rounding, value, value


@statement(
    "eq1-indivisible",
    "Eq. (1), S does not divide D",
    "D = 3, S = 2, x = (1, 0, 0), no filter: ẑ[0] is",
    _indivisible_example,
    otherwise="fails",
    is_random=False,
)
def _(num_samples: int, generator: torch.Generator) -> Iterator[Row]:
    """With M = ceil(D / S) every frequency leaks into every output."""
    for size, stride in itertools.product((3, 5, 7, 11, 13, 17, 23), (2, 4, 6)):
        outputs = math.ceil(size / stride)
        t = outputs - 1
        x = torch.randn(num_samples, size, generator=generator, dtype=torch.float64)
        spectrum = torch.fft.fft(x, norm="ortho")
        times = torch.arange(outputs, dtype=torch.float64)
        cycles = torch.arange(size, dtype=torch.float64)[:, None] * stride / size - t / outputs
        waves = torch.exp(2j * math.pi * times * cycles)  # (D, M)
        # How much of each frequency leaks into output t: (D,)
        kernel = waves.sum(-1) / math.sqrt(outputs * size)
        leaking = float((spectrum @ kernel.to(spectrum.dtype)).real.mean())
        aliases = spectrum[:, (outputs * torch.arange(stride) + t) % size]
        printed = float(aliases.sum(-1).real.mean() / math.sqrt(stride))
        simulated = float(torch.fft.fft(x[:, ::stride], norm="ortho")[:, t].real.mean())
        rounding = 40 * size * EPSILON * float(x.norm(dim=-1).max())
        yield f"D = {size}, S = {stride}, identity, t = {t}", simulated, rounding, leaking, printed


def _accuracy_and_error(correct: int, num_samples: int) -> tuple[float, float]:
    """Return an accuracy and its standard error, never zero: two successes and two failures are
    added for it.
    """
    smoothed = (correct + 2) / (num_samples + 4)
    return correct / num_samples, math.sqrt(smoothed * (1 - smoothed) / num_samples)


def simulate_bayes_accuracy(
    direction: Tensor,
    layer: Tensor,
    margin: float,
    noise_std: float,
    num_samples: int,
    *,
    generator: torch.Generator,
) -> tuple[float, float]:
    """Draw D(v), apply the layer, classify with the optimal linear rule, and count.

    Returns:
        Accuracy and its standard error, which is never zero.
    """
    size = len(direction)
    labels = random_signs(num_samples, generator)
    noise = noise_std * torch.randn(num_samples, size, generator=generator, dtype=torch.float64)
    noise -= (noise @ direction)[:, None] * direction
    pooled = (margin * labels[:, None] * direction + noise) @ layer.T  # (N, D) -> (N, M)
    mean = layer @ direction  # (M,)
    # on the same ray as Sigma^+ mean, and never singular
    rule = torch.linalg.pinv(layer @ layer.T, hermitian=True, rtol=1e-12) @ mean
    scores = pooled @ rule
    scale = noise_std * float(layer.norm()) * float(rule.norm())
    scores = torch.where(
        scores.abs() <= 1e-12 * max(scale, 1e-300), 0.0, scores
    )  # nothing left: a coin decides
    coins = random_signs(num_samples, generator)
    correct = int((torch.where(scores == 0, coins, scores.sign()) == labels).sum())
    return _accuracy_and_error(correct, num_samples)


Task = tuple[int, Tensor, int, float, float]  # frequency, impulse response, stride, eps, sigma


def _simulated(
    setting: str, task: Task, phase: float | None, num_samples: int, generator: torch.Generator
) -> Row:
    """Return the simulated accuracy on real waves of a phase, and both formulas."""
    frequency, impulse, stride, margin, noise_std = task
    wave = pooling.direction(frequency, len(impulse), phase)
    layer = pooling.pooling_matrix(impulse, stride)
    accuracy = simulate_bayes_accuracy(
        wave, layer, margin, noise_std, num_samples, generator=generator
    )
    ours = float(pooling.bayes_accuracy(*task, phase=phase))
    return setting, *accuracy, ours, float(pooling.bayes_accuracy_printed(*task))


@statement(
    "theorem1",
    "Theorem 1 and eq. (2), real signals",
    "D = S = 3, no filter, ℓ = 0, ε = σ = 1: "
    "pooling keeps x[0] = ±1/√3 + noise of variance 2/3, so",
    _example(0, 3, 3, pooling.bayes_accuracy),
)
def _(num_samples: int, generator: torch.Generator) -> Iterator[Row]:
    """At frequencies that do not fold onto their own mirror image."""
    frequencies = {2: (0, 5, 17), 4: (0, 4, 9, 24), 8: (2, 7, 10)}
    for stride, name in itertools.product(frequencies, ("average", "binomial", "identity")):
        impulse = pooling.prefilter(name, 48, stride)
        for number, frequency in enumerate(frequencies[stride]):
            noise_std = 3.0 if number % 2 else 0.7
            setting = f"S = {stride}, {name}, ℓ = {frequency}, ε/σ = {1 / noise_std:.2g}"
            task = frequency, impulse, stride, 1.0, noise_std
            yield _simulated(setting, task, None, num_samples, generator)


@statement(
    "theorem1-folded",
    "Theorem 1, real signals, ℓ and −ℓ alias",
    "D = 4, S = 2, no filter, the sine (0, 1, 0, −1)/√2, ε = σ = 1: the kept pixels are 0, so",
    _example(1, 4, 2, pooling.bayes_accuracy),
    otherwise="fails",
)
def _(num_samples: int, generator: torch.Generator) -> Iterator[Row]:
    """At different frequencies l and -l that alias to the same output."""
    phases = (-math.pi / 2, -1.2, 0.0, 0.6, 2.0)
    tasks = itertools.product(((4, 3), (4, 6), (8, 6)), ("average", "identity"), phases)
    for (stride, frequency), name, phase in tasks:
        setting = f"S = {stride}, {name}, ℓ = {frequency}, phase {phase:.2f}"
        task = frequency, pooling.prefilter(name, 24, stride), stride, 1.0, 1.0
        yield _simulated(setting, task, phase, num_samples, generator)


@statement(
    "theorem1-complex",
    "Theorem 1, complex direction and noise",
    "D = S = 2, no filter, ℓ = 0, ε = σ = 1:",
    _example(0, 2, 2, pooling.bayes_accuracy_complex),
)
def _(num_samples: int, generator: torch.Generator) -> Iterator[Row]:
    """For the complex direction F^-1(e_l) and circular complex noise of variance sigma^2 per
    coefficient.
    """
    size, noise_std = 24, 0.9
    settings = itertools.product((2, 4, 8), ("average", "identity"), (0, 1, 4, 7))
    for stride, name, frequency in settings:
        impulse = pooling.prefilter(name, size, stride)
        labels = random_signs(num_samples, generator)
        parts = torch.randn(2, num_samples, size, generator=generator, dtype=torch.float64)
        spectrum = torch.complex(*(parts * noise_std / math.sqrt(2)))  # (N, D)
        spectrum[:, frequency] = labels.to(spectrum.dtype)  # margin 1, and no noise along v
        # (N, M) -> (N,)
        pooled = pooling.pool_spectrum(spectrum, impulse, stride)[:, frequency % (size // stride)]
        scores = (pooled * pooling.frequency_response(impulse)[frequency].conj()).real
        accuracy = _accuracy_and_error(int((scores.sign() == labels).sum()), num_samples)
        task = frequency, impulse, stride, 1.0, noise_std
        ours = float(pooling.bayes_accuracy_complex(*task))
        printed = float(pooling.bayes_accuracy_printed(*task))
        yield f"S = {stride}, {name}, ℓ = {frequency}", *accuracy, ours, printed
