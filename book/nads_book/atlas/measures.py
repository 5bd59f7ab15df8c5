"""What the atlas measures of an architecture's second moment C, from independent parts of its
networks.

Each part estimates C without bias. So products of different parts estimate tr C^2 and the like
without bias as well, and leaving out one part at a time (jackknife) gives intervals.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

_FRAME = 2  # pixels that count as the border
_HIGH = 8  # cycles an image, from which on a frequency counts as high
MEASURES = {  # each measure in few words, for tables and sorting, after its definition
    # (tr C)^2 / tr C^2
    "effective": "directions that count (effective number)",
    # Share of the energy at more than _HIGH cycles an image.
    "high": "energy at fine waves",
    # Energy of a wave at the multiples of 32 / stride over that of all waves, the constant left
    # out.
    "comb": "energy at multiples of the stride",
    # Energy of a pixel in the outer _FRAME rows and columns over that of all.
    "border": "sensitivity at the border",
    # Energy of the finest checkerboard over that of the constant.
    "nyquist": "checkerboard over constant",
    # Share of C - (tr C / D) I that patterns repeated in each patch (or at each stride) do not
    # explain.
    "unlike levels": "what two levels do not explain",
    # Cosine of C and the C of the architecture from which it differs, <C, C'> / |C| |C'|.
    "alignment": "cosine with what it changes",
}


@dataclass(frozen=True)
class Measured:
    """A number with its 95 % interval.

    Args:
        value: the estimate.
        error: standard error of the estimate, from leaving out parts.
        num_parts: number of parts that were left out one by one.
    """

    value: float
    error: float
    num_parts: int

    @property
    def interval(self) -> tuple[float, float]:
        """Student's, at 95 %."""
        from scipy.stats import t

        half = float(t.ppf(0.975, self.num_parts - 1)) * self.error
        return self.value - half, self.value + half

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.value:.3g} ({low:.3g} to {high:.3g})"


def jackknife(estimate: Callable[[np.ndarray], float], num_parts: int) -> Measured:
    """Estimate a number from parts 0, 1, ..., and its standard error from leaving out each.

    Args:
        estimate: function of the indices of parts, (m,), that returns the number.
        num_parts: number of parts, three at least.
    """
    everything = np.arange(num_parts)
    left_out = np.array([estimate(np.delete(everything, part)) for part in everything])
    error = np.sqrt((num_parts - 1) * left_out.var())
    return Measured(float(estimate(everything)), float(error), num_parts)


def across(gram: np.ndarray) -> float:
    """Return the mean over pairs of different parts of their product, from the products of all
    pairs (m, m).
    """
    count = len(gram)
    return float((gram.sum() - np.trace(gram)) / (count * (count - 1)))


def repeated_patterns(stride: int, size: int = 32) -> Tensor:
    """Return orthonormal images (stride^2, size, size): one pixel of the patch each, repeated in
    all patches.
    """
    patches = torch.eye(stride**2, dtype=torch.float64).view(-1, stride, stride)  # one pixel each
    return patches.tile(size // stride, size // stride) * (stride / size)


def describe(parts: Tensor, stride: int) -> dict[str, Measured]:
    """Measure an architecture, all but its alignment.

    Args:
        parts: estimates of C from independent networks, (m, D, D), D = H * H.
        stride: `Entry.stride`; measures about it are left out where it is 1.
    """
    count, dimension = parts.shape[:2]
    size = round(dimension**0.5)
    traces = parts.diagonal(dim1=1, dim2=2).sum(1).double().numpy()  # (m,)
    gram = products(parts, parts)
    energies = wave_energies(parts, size)  # (m, H, H)
    axis = np.fft.fftfreq(size, 1 / size)
    ky, kx = np.meshgrid(axis, axis, indexing="ij")
    pixels = parts.diagonal(dim1=1, dim2=2).double().numpy().reshape(count, size, size)
    frame = np.ones((size, size), bool)
    frame[_FRAME:-_FRAME, _FRAME:-_FRAME] = False

    def ratio(first: np.ndarray, second: np.ndarray) -> Measured:
        return jackknife(lambda chosen: float(first[chosen].mean() / second[chosen].mean()), count)

    values = {
        "effective": jackknife(
            lambda chosen: (
                across(np.outer(traces[chosen], traces[chosen]))
                / across(gram[np.ix_(chosen, chosen)])
            ),
            count,
        ),
        "high": ratio(energies[:, np.hypot(ky, kx) > _HIGH].sum(1), energies.sum((1, 2))),
        "border": ratio(pixels[:, frame].mean(1), pixels.mean((1, 2))),
        "nyquist": ratio(energies[:, size // 2, size // 2], energies[:, 0, 0]),
    }
    if 1 < stride < size:
        period = size // stride
        at_stride = (ky % period == 0) & (kx % period == 0)
        at_stride[0, 0] = False
        varying = np.ones_like(at_stride)
        varying[0, 0] = False
        values["comb"] = ratio(energies[:, at_stride].mean(1), energies[:, varying].mean(1))
        patterns = repeated_patterns(stride, size).flatten(1).to(parts.dtype)  # (s^2, D)
        inside = torch.einsum("kd,mde,ke->m", patterns, parts, patterns).double().numpy()  # tr P C
        values["unlike levels"] = jackknife(
            lambda chosen: _unexplained(gram, traces, inside, stride**2, dimension, chosen), count
        )
    return values


def _unexplained(
    gram: np.ndarray,
    traces: np.ndarray,
    inside: np.ndarray,
    rank: int,
    dimension: int,
    chosen: np.ndarray,
) -> float:
    """Return the share of |C - (tr C / D) I|^2 that a second level on a subspace of this rank does
    not explain.
    """
    squares = across(gram[np.ix_(chosen, chosen)])
    means = across(np.outer(traces[chosen], traces[chosen]))
    deviation = squares - means / dimension
    contrast = inside[chosen] - rank / dimension * traces[chosen]
    explained = across(np.outer(contrast, contrast)) / (rank * (1 - rank / dimension))
    return 1 - explained / deviation


def wave_energies(parts: Tensor, size: int) -> np.ndarray:
    """Return the energies of complex waves v^* C v of unit norm, (m, H, H), frequencies as numpy
    orders them.
    """
    pixels = torch.eye(size**2, dtype=parts.dtype).view(-1, size, size)
    waves = torch.fft.fft2(pixels, norm="ortho").flatten(1)  # (D, K)
    energies = []
    for part in parts:
        moved = part.to(waves.dtype) @ waves
        energies.append((waves.conj() * moved).sum(0).real.double().numpy().reshape(size, size))
    return np.stack(energies)


def products(first: Tensor, second: Tensor) -> np.ndarray:
    """Return the products <A, B> of all pairs of parts of two architectures, (m, m')."""
    return (first.flatten(1) @ second.flatten(1).T).double().numpy()
