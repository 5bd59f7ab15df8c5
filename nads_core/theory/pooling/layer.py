"""The pooling layer as an operator: on signals, and on their spectra, eq. (1)."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

PREFILTERS = ("average", "binomial", "lowpass", "identity")
Array = Tensor | np.ndarray


def prefilter(name: str, size: int, stride: int = 4) -> Tensor:
    """Return the impulse response of a named prefilter.

    Args:
        name: "average": the mean of S neighbours, aligned as in `torch.nn.functional.avg_pool1d`; "binomial": a
            triangle-like blur with 2 S - 1 binomial taps; "lowpass": every frequency up to M / 2 and nothing above;
            "identity": plain subsampling.
        size: number of samples D.
        stride: subsampling factor S.

    Returns:
        (size,) float64, with sum 1.

    Raises:
        ValueError: for an unknown name or a stride that does not divide the size.

    Example:
        >>> prefilter("average", 6, 2).tolist()
        [0.5, 0.0, 0.0, 0.0, 0.0, 0.5]
    """
    kept = num_outputs(size, stride)
    if name not in PREFILTERS:
        raise ValueError(
            f"unknown prefilter {name!r}: choose from {PREFILTERS}, or pass any impulse response of shape (D,)"
        )
    if name == "lowpass":
        frequencies = torch.fft.fftfreq(size, 1 / size, dtype=torch.float64)
        return torch.fft.ifft((frequencies.abs() <= kept / 2).double()).real
    order = 2 * (stride - 1)
    taps, first = {
        "average": ([1 / stride] * stride, 1 - stride),  # z[j] = mean of x[j S .. j S + S - 1]
        "binomial": ([math.comb(order, k) / 2**order for k in range(order + 1)], 1 - stride),
        "identity": ([1.0], 0),
    }[name]
    response = torch.zeros(size, dtype=torch.float64)
    positions = torch.arange(first, first + len(taps)) % size
    return response.index_add(0, positions, torch.tensor(taps, dtype=torch.float64))  # taps longer than D wrap around


def frequency_response(prefilter: Array) -> Tensor:
    """Return m^ = fft(h): (D,) complex128. Rounding errors around exact zeros are set to zero."""
    impulse = _impulse_response(prefilter)
    response = torch.fft.fft(impulse)
    rounding = len(impulse) * torch.finfo(torch.float64).eps * impulse.abs().sum()
    return torch.where(response.abs() <= rounding, 0, response)


def pooling_matrix(prefilter: Array, stride: int = 4) -> Tensor:
    """Return the layer in space, P[j, n] = h[(j S - n) mod D]: (M, D) float64."""
    impulse = _impulse_response(prefilter)
    size = len(impulse)
    outputs = torch.arange(num_outputs(size, stride), device=impulse.device)[:, None] * stride
    return impulse[(outputs - torch.arange(size, device=impulse.device)) % size]


def pool(signal: Array, prefilter: Array, stride: int = 4) -> Tensor:
    """Pool signals in space, without any Fourier transform: (..., D) -> (..., M)."""
    signal = torch.as_tensor(signal)
    return signal @ pooling_matrix(prefilter, stride).to(signal.dtype).T


def aliasing_matrix(size: int, stride: int = 4) -> Tensor:
    """Return the paper's A = [I_M ... I_M] / sqrt(S): (M, D) float64; A A^T = I, and A^T A has diagonal 1 / S."""
    return torch.eye(num_outputs(size, stride), dtype=torch.float64).repeat(1, stride) / math.sqrt(stride)


def pool_spectrum(spectrum: Array, prefilter: Array, stride: int = 4) -> Tensor:
    """Pool in the spectrum, eq. (1): z^[t] = (1 / sqrt(S)) sum_k m^[k M + t] x^[k M + t].

    Derivation: z[j] = (1 / sqrt(D)) sum_u m^[u] x^[u] exp(2 pi i u j S / D) and S / D = 1 / M, so all u = t + k M share
    one oscillation; the unitary transform over the M outputs collects each class with M / sqrt(M D) = 1 / sqrt(S).

    Args:
        spectrum: (..., D), unitary transform of the signals: ``torch.fft.fft(x, norm="ortho")``.
        prefilter: (D,) impulse response.
        stride: subsampling factor S, a divisor of D.

    Returns:
        (..., M) complex128, the unitary transform of the pooled signals.
    """
    spectrum = torch.as_tensor(spectrum)
    filtered = frequency_response(prefilter) * spectrum
    return filtered.unflatten(-1, (stride, -1)).sum(-2) / math.sqrt(stride)


def _impulse_response(prefilter: Array) -> Tensor:
    impulse = torch.as_tensor(prefilter)
    if impulse.dim() != 1 or impulse.is_complex() or len(impulse) == 0:
        raise ValueError(
            f"prefilter must be a real impulse response of shape (D,), got {impulse.dtype} of shape "
            f"{tuple(impulse.shape)}: make one with pooling.prefilter(name, size, stride)"
        )
    if not impulse.isfinite().all():
        raise ValueError("prefilter contains NaN or infinite values")
    return impulse.double()


def num_outputs(size: int, stride: int) -> int:
    """Return M = D / S.

    Raises:
        ValueError: if the stride is no divisor of the size.
    """
    if not (isinstance(stride, int) and isinstance(size, int) and stride >= 1 and size >= 1):
        raise ValueError(f"size and stride must be positive integers, got size {size!r} and stride {stride!r}")
    if size % stride:
        divisors = [d for d in range(1, size + 1) if size % d == 0]
        raise ValueError(
            f"stride {stride} does not divide the {size} samples: use one of {divisors}, or pad the signal"
        )
    return size // stride
