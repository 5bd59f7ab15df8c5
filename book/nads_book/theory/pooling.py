"""The linear pooling layer of section 2.1 as chapters need it: in space, in the spectrum (eq. 1)
and on images, and Theorem 1 as printed, for complex signals and for any linear layer.

Conventions, derivations and the accuracy of Theorem 1 are those of `nads_core.theory.pooling`.
"""

import math

import torch
from torch import Tensor

from nads_core.runtime.arguments import require_unit_norm
from nads_core.theory.pooling import (
    PREFILTER_ADVICE,
    Array,
    alias_energies,
    frequency_response,
    integer_frequencies,
    num_outputs,
    real_vector,
    root_ratio,
    scalars,
    signal_and_noise,
    signal_to_noise,
)


def pooling_matrix(prefilter: Array, stride: int = 4) -> Tensor:
    """Return the layer in space, P[j, n] = h[(j S - n) mod D]: (M, D) float64."""
    impulse = real_vector(prefilter, "prefilter", PREFILTER_ADVICE)
    size = len(impulse)
    # (M, 1): j S
    first = torch.arange(num_outputs(size, stride), device=impulse.device)[:, None] * stride
    return impulse[(first - torch.arange(size, device=impulse.device)) % size]


def pool(signal: Array, prefilter: Array, stride: int = 4) -> Tensor:
    """Pool signals in space, without any Fourier transform: (..., D) -> (..., M)."""
    signal = torch.as_tensor(signal)
    return signal @ pooling_matrix(prefilter, stride).to(signal.dtype).T


def pool_spectrum(spectrum: Array, prefilter: Array, stride: int = 4) -> Tensor:
    """Pool in the spectrum, eq. (1): z^[t] = (1 / sqrt(S)) sum_k m^[k M + t] x^[k M + t].

    Derivation: z[j] = (1 / sqrt(D)) sum_u m^[u] x^[u] exp(2 pi i u j S / D) and S / D = 1 / M, so
    all u = t + k M share one oscillation; the unitary transform over the M outputs collects each
    class with M / sqrt(M D) = 1 / sqrt(S).

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


def direction(frequency: int, size: int, phase: float | None = None) -> Tensor:
    """Return the real wave cos(2 pi l n / D + phase) with unit norm: (D,) float64.

    Args:
        frequency: l, any integer (modulo D).
        size: number of samples D.
        phase: radians; by default the sine, and where the sine vanishes (l = 0 or D / 2) the
            cosine.

    Raises:
        ValueError: if the wave of that frequency and phase is zero everywhere.
    """
    if phase is None:
        phase = 0.0 if 2 * frequency % size == 0 else -math.pi / 2
    # The argument is reduced with integers first, so that no digits are lost at high frequencies.
    wave = torch.cos(2 * math.pi / size * (frequency * torch.arange(size) % size).double() + phase)
    norm = wave.norm()
    if norm < 1e-9:
        raise ValueError(
            f"frequency {frequency} of {size} samples has no wave with phase {phase}: use phase 0"
        )
    return wave / norm


def bayes_accuracy_printed(
    frequency: int | Array,
    prefilter: Array,
    stride: int = 4,
    margin: float = 1.0,
    noise_std: float = 3.0,
) -> Tensor:
    """Return eq. (2) as printed, 1 - Q(sqrt(2) eps gamma / (2 sigma)), with a gamma that is larger
    than `gamma` by sqrt(S); arguments as for `bayes_accuracy`.
    """
    signal, aliases, _ = alias_energies(scalars(frequency), prefilter, stride)
    gamma = root_ratio(stride * signal, aliases)
    return torch.special.ndtr(signal_to_noise(margin, noise_std) / math.sqrt(2) * gamma)


def bayes_accuracy_complex(
    frequency: int | Array,
    prefilter: Array,
    stride: int = 4,
    margin: float = 1.0,
    noise_std: float = 3.0,
) -> Tensor:
    """Return the best accuracy for the complex direction v = F^-1(e_l) in circular complex noise.

    The noise has variance sigma^2 at every coefficient but l, where it has none. Only the half of
    it that is in phase with the signal can cause an error, and nothing ever folds onto its own
    mirror image: the accuracy is Phi(sqrt(2) (eps / sigma) gamma) at every frequency. This equals
    eq. (2) as printed for S = 4 only.
    """
    signal, aliases, _ = alias_energies(scalars(frequency), prefilter, stride)
    return torch.special.ndtr(
        math.sqrt(2) * signal_to_noise(margin, noise_std) * root_ratio(signal, aliases)
    )


def gamma_2d(frequency: Array | tuple[int, int], prefilter: Array, stride: int = 4) -> Tensor:
    """Return gamma(ky, kx) of D x D images with the same prefilter and stride along both axes.

    The response of the layer is the product m^[ky] m^[kx], its aliases are the S^2 pairs (ky + a M,
    kx + b M), and two sums over products are products of sums; the best accuracy is Phi((eps /
    sigma) gamma).

    Args:
        frequency: (..., 2), pairs (ky, kx); the direction is sin(2 pi (ky r + kx c) / D).
        prefilter: (D,) impulse response, applied along both axes.
        stride: subsampling factor along each axis.

    Returns:
        float64, of the shape of ``frequency`` without its last dimension.

    Raises:
        TypeError: for frequencies that are not integers.
        ValueError: for frequencies that are not pairs, or a stride that does not divide the size.
    """
    pairs = integer_frequencies(frequency)
    if pairs.shape[-1:] != (2,):
        raise ValueError(
            f"expected pairs (ky, kx) in the last dimension, got shape {tuple(pairs.shape)}"
        )
    return root_ratio(*signal_and_noise(pairs, prefilter, stride, None))


def bayes_accuracy_after(
    layer: Array, direction: Array, margin: float = 1.0, noise_std: float = 3.0
) -> Tensor:
    """Return the best accuracy after any linear layer: Phi((eps / sigma) sqrt(q / (1 - q))), q from
    its row space.

    Args:
        layer: (M, D), of any rank.
        direction: (..., D), unit norm.
        margin: eps.
        noise_std: sigma.

    Returns:
        float64, of the shape of ``direction`` without its last dimension.

    Raises:
        ValueError: if the direction is not of unit norm or does not fit the layer.
    """
    layer, direction = torch.as_tensor(layer).double(), torch.as_tensor(direction).double()
    if layer.dim() != 2 or direction.shape[-1:] != layer.shape[1:]:
        raise ValueError(
            "expected (M, D) and (..., D), "
            f"got shapes {tuple(layer.shape)} and {tuple(direction.shape)}"
        )
    require_unit_norm(direction, 1e-6)
    energies = row_space_split(layer, direction)
    # Without rounding errors
    inside, outside = (torch.where(energy < 1e-24, 0.0, energy) for energy in energies)
    return torch.special.ndtr(signal_to_noise(margin, noise_std) * root_ratio(inside, outside))


def row_space_split(layer: Tensor, directions: Tensor) -> tuple[Tensor, Tensor]:
    """Return the energies (...) of directions (..., D) inside and outside the row space of a layer
    (M, D).
    """
    _, singular_values, rows = torch.linalg.svd(layer, full_matrices=True)
    rank = (
        int((singular_values > 1e-12 * singular_values.max()).sum())
        if singular_values.numel()
        else 0
    )
    # (..., D), along the right singular vectors of the layer
    energies = (directions @ rows.T).square()
    return energies[..., :rank].sum(-1), energies[..., rank:].sum(-1)
