"""What the atlas measures of an architecture's second moment C, from independent parts of its
networks.

Each part estimates C without bias. So products of different parts estimate tr C^2 and the like
without bias as well, and leaving out one part at a time (jackknife) gives intervals.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nads_book.statistics import Measured, jackknife

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


def across(products: np.ndarray) -> Callable[[np.ndarray], float]:
    """Return a function of the indices of parts: the mean over pairs of different ones of their
    product, from the products of all pairs (m, m).
    """
    different = 1 - np.eye(len(products))
    return lambda chosen: float(
        np.average(products[np.ix_(chosen, chosen)], weights=different[np.ix_(chosen, chosen)])
    )


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
    size = math.isqrt(dimension)
    pixels = parts.diagonal(dim1=1, dim2=2).double().numpy()  # (m, D)
    traces = pixels.sum(1)
    squares, squared_traces = across(products(parts, parts)), across(np.outer(traces, traces))
    energies = wave_energies(parts, size)  # (m, H, H)
    axis = np.fft.fftfreq(size, 1 / size)
    ky, kx = np.meshgrid(axis, axis, indexing="ij")
    frame = np.ones((size, size), bool)
    frame[_FRAME:-_FRAME, _FRAME:-_FRAME] = False

    def measured(estimate: Callable[[np.ndarray], Any]) -> Measured:
        value, error = jackknife(estimate, count)
        return Measured(float(value), float(error), count)

    def ratio(first: np.ndarray, second: np.ndarray) -> Measured:
        return measured(lambda chosen: first[chosen].mean() / second[chosen].mean())

    values = {
        "effective": measured(lambda chosen: squared_traces(chosen) / squares(chosen)),
        "high": ratio(energies[:, np.hypot(ky, kx) > _HIGH].sum(1), energies.sum((1, 2))),
        "border": ratio(pixels[:, frame.ravel()].mean(1), pixels.mean(1)),
        "nyquist": ratio(energies[:, size // 2, size // 2], energies[:, 0, 0]),
    }
    if 1 < stride < size:
        period, rank = size // stride, stride**2
        varying = np.hypot(ky, kx) > 0
        at_stride = varying & (ky % period == 0) & (kx % period == 0)
        values["comb"] = ratio(energies[:, at_stride].mean(1), energies[:, varying].mean(1))
        patterns = repeated_patterns(stride, size).flatten(1).to(parts.dtype)  # (s^2, D)
        inside = torch.einsum("kd,mde,ke->m", patterns, parts, patterns).double().numpy()  # tr P C
        contrast = inside - rank / dimension * traces
        explained = across(np.outer(contrast, contrast) / (rank * (1 - rank / dimension)))
        # A second level on the patterns explains this share of |C - (tr C / D) I|^2
        values["unlike levels"] = measured(
            lambda chosen: (
                1 - explained(chosen) / (squares(chosen) - squared_traces(chosen) / dimension)
            )
        )
    return values


def wave_energies(parts: Tensor, size: int) -> np.ndarray:
    """Return the energies of complex waves v^* C v of unit norm, (m, H, H), frequencies as numpy
    orders them.
    """
    pixels = parts.unflatten(2, (size, size)).unflatten(1, (size, size))  # (m, H, H, H, H)
    waves = torch.fft.fft2(torch.fft.ifft2(pixels, dim=(1, 2), norm="ortho"), norm="ortho")
    energies = waves.flatten(3).flatten(1, 2).diagonal(dim1=1, dim2=2).real  # (m, D)
    return energies.unflatten(1, (size, size)).double().numpy()


def products(first: Tensor, second: Tensor) -> np.ndarray:
    """Return the products <A, B> of all pairs of parts of two architectures, (m, m')."""
    return (first.flatten(1) @ second.flatten(1).T).double().numpy()
