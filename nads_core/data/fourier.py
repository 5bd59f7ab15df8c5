"""The real two-dimensional Fourier basis, and spectra of directions."""

import math
import operator

import numpy as np
import torch
from torch import Tensor

from nads_core.runtime.arguments import require_integers

Frequency = tuple[int, int]  # (ky, kx)


def fourier_direction(frequency: Frequency, size: int = 32) -> Tensor:
    """Return the real unit image that oscillates at one two-dimensional frequency.

    v[i, j] ~ sin(2 pi (ky i + kx j) / size). Where the sine vanishes (frequencies that equal their
    own negative, such as 0 and size/2) it is the cosine.

    Args:
        frequency: (ky, kx) in cycles per image, vertical first; frequencies differing by ``size``
            are the same.
        size: height and width in pixels.

    Returns:
        (1, size, size) float32, unit norm.

    Raises:
        ValueError: for a frequency that is not two integers, or a size below 1.

    Example:
        >>> float(fourier_direction((0, 0), size=4)[0, 0, 0])
        0.25
    """
    try:
        ky, kx = map(operator.index, frequency)
    except (TypeError, ValueError):
        raise ValueError(f"frequency must be two integers (ky, kx), got {frequency!r}") from None
    require_integers(size=size)
    own_negative = 2 * ky % size == 2 * kx % size == 0
    return _wave(ky, kx, size, cosine=own_negative)[None]


def fourier_basis(size: int = 32) -> tuple[Tensor, Tensor]:
    """Return the orthonormal real Fourier basis of single-channel images.

    Returns:
        Directions (size^2, 1, size, size) float32, and their frequencies (size^2, 2) in [-size/2,
        size/2): row (ky, kx) holds the sine for half of the plane and the cosine for the opposite
        half (and for 0 and size/2).
    """
    axis = torch.arange(size) - size // 2
    frequencies = torch.cartesian_prod(axis, axis)  # (size^2, 2), rows (ky, kx)
    waves = []
    for ky, kx in frequencies.tolist():
        # A frequency that is its own negative is not below it
        sine_half = (ky % size, kx % size) < (-ky % size, -kx % size)
        waves.append(_wave(ky, kx, size, cosine=not sine_half))
    return torch.stack(waves)[:, None], frequencies


def _wave(ky: int, kx: int, size: int, cosine: bool) -> Tensor:
    """Return the sine or the cosine of 2 pi (ky i + kx j) / size at each pixel, (size, size)
    float32, of unit norm.
    """
    pixels = torch.arange(size)
    # Exact integers: a vanishing sine is exactly 0
    phase = (ky * pixels[:, None] + kx * pixels[None, :]) % size
    angle = 2 * math.pi / size * phase.double()
    wave = angle.cos() if cosine else angle.sin()
    return (wave / wave.norm()).float()


def spectrum(direction: Tensor | np.ndarray) -> Tensor:
    """Return the share of a direction's energy at each frequency, zero frequency in the centre.

    Args:
        direction: (..., H, W), not zero.

    Returns:
        (..., H, W), each summing to 1.

    Raises:
        ValueError: for a direction that is zero.
    """
    energy = torch.fft.fft2(torch.as_tensor(direction).double(), norm="ortho").abs().square()
    total = energy.sum((-2, -1), keepdim=True)
    if not (total > 0).all():
        raise ValueError("a direction has norm 0, so that it has no spectrum: leave it out")
    return torch.fft.fftshift(energy / total, dim=(-2, -1))
