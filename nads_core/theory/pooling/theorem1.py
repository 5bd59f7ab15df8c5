"""Theorem 1: the share of a direction that a pooling layer keeps, and the best accuracy that is left after it."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from nads_core.theory.pooling.layer import Array, frequency_response, num_outputs


def direction(frequency: int, size: int, phase: float | None = None) -> Tensor:
    """Return the real wave cos(2 pi l n / D + phase) with unit norm: (D,) float64.

    Args:
        frequency: l, any integer (modulo D).
        size: number of samples D.
        phase: radians; by default the sine, and where the sine vanishes (l = 0 or D / 2) the cosine.

    Raises:
        ValueError: if the wave of that frequency and phase is zero everywhere.
    """
    alone = 2 * frequency % size == 0
    phase = (0.0 if alone else -math.pi / 2) if phase is None else phase
    # the argument is reduced with integers first, so that no digits are lost at high frequencies
    wave = torch.cos(2 * math.pi / size * (frequency * torch.arange(size) % size).double() + phase)
    norm = wave.norm()
    if norm < 1e-9:
        raise ValueError(f"frequency {frequency} of {size} samples has no wave with phase {phase}: use phase 0")
    return wave / norm


def retained_energy(frequency: int | Array, prefilter: Array, stride: int = 4, *, phase: float | None = None) -> Tensor:
    """Return q(l): the squared norm of the part of v that lies in the row space of the pooling layer.

    It is also the share of the variance of v^T x, for white noise x, that can still be read linearly from the output.
    Over an orthonormal basis of directions q sums to the rank of P: a prefilter can move energy, not add it.

    Args:
        frequency: l, an integer or an array of integers.
        prefilter: (D,) impulse response.
        stride: subsampling factor S, a divisor of D.
        phase: phase of the wave, see `direction`. It matters only where l and -l fold onto each other.

    Returns:
        float64 in [0, 1], of the shape of ``frequency``.

    Raises:
        TypeError: if a frequency is no integer.
        ValueError: if the prefilter is no finite real vector or the stride does not divide its length.
    """
    kept, lost = _kept_and_lost(_frequencies(frequency).unsqueeze(-1), prefilter, stride, phase)
    return torch.where(kept > 0, kept / (kept + lost), 0.0)


def gamma(frequency: int | Array, prefilter: Array, stride: int = 4, *, phase: float | None = None) -> Tensor:
    """Return sqrt(q / (1 - q)), infinite where no noise falls on the signal; arguments as for `retained_energy`."""
    kept, lost = _kept_and_lost(_frequencies(frequency).unsqueeze(-1), prefilter, stride, phase)
    return torch.where(kept > 0, kept / lost, 0.0).sqrt()


def gamma_printed(frequency: int | Array, prefilter: Array, stride: int = 4) -> Tensor:
    """Return gamma(l) of eq. (2) as printed: larger than `gamma` by sqrt(S)."""
    own, others, _ = _alias_energies(_frequencies(frequency).unsqueeze(-1), prefilter, stride)
    return torch.where(own > 0, stride * own / others, 0.0).sqrt()


def bayes_accuracy(
    frequency: int | Array,
    prefilter: Array,
    stride: int = 4,
    margin: float = 1.0,
    noise_std: float = 3.0,
    *,
    phase: float | None = None,
) -> Tensor:
    """Return the best accuracy that any classifier can reach after pooling: Phi((eps / sigma) gamma(l)).

    Source: Theorem 1 and eq. (2), with the constant that survives simulation on real signals; derivation at the top of
    `pooling`.

    Args:
        frequency: l, an integer or an array of integers.
        prefilter: (D,) impulse response.
        stride: subsampling factor S, a divisor of D.
        margin: eps.
        noise_std: sigma.
        phase: phase of the wave, see `direction`.

    Returns:
        float64 in [0.5, 1], of the shape of ``frequency``.

    Raises:
        TypeError: if a frequency is no integer.
        ValueError: for a bad prefilter, stride, margin or noise level.

    Example:
        >>> from nads_core.theory.pooling import prefilter
        >>> float(bayes_accuracy(0, prefilter("identity", 8, 4), 4, margin=3.0, noise_std=1.0))  # Phi(sqrt(3))
        0.9583677416682248
    """
    return torch.special.ndtr(_ratio(margin, noise_std) * gamma(frequency, prefilter, stride, phase=phase))


def bayes_accuracy_printed(
    frequency: int | Array, prefilter: Array, stride: int = 4, margin: float = 1.0, noise_std: float = 3.0
) -> Tensor:
    """Return eq. (2) as printed, 1 - Q(sqrt(2) eps gamma / (2 sigma)); arguments as for `bayes_accuracy`."""
    return torch.special.ndtr(_ratio(margin, noise_std) / math.sqrt(2) * gamma_printed(frequency, prefilter, stride))


def bayes_accuracy_complex(
    frequency: int | Array, prefilter: Array, stride: int = 4, margin: float = 1.0, noise_std: float = 3.0
) -> Tensor:
    """Return the best accuracy for the complex direction v = F^-1(e_l) in circular complex noise.

    The noise has variance sigma^2 at every coefficient but l, where it has none. Only the half of it that is in
    phase with the signal can cause an error, and nothing ever folds onto its own mirror image: the accuracy is
    Phi(sqrt(2) (eps / sigma) gamma) at every frequency. This equals eq. (2) as printed for S = 4 only.
    """
    own, others, _ = _alias_energies(_frequencies(frequency).unsqueeze(-1), prefilter, stride)
    ratio = torch.where(own > 0, own / others, 0.0).sqrt()
    return torch.special.ndtr(math.sqrt(2) * _ratio(margin, noise_std) * ratio)


def bayes_accuracy_2d(
    frequency: Array | tuple[int, int],
    prefilter: Array,
    stride: int = 4,
    margin: float = 1.0,
    noise_std: float = 3.0,
    *,
    phase: float | None = None,
) -> Tensor:
    """Return the best accuracy after pooling D x D images with the same prefilter and stride along both axes.

    The response of the layer is the product m^[ky] m^[kx], its aliases are the S^2 pairs (ky + a M, kx + b M), and two
    sums over products are products of sums; the rest is `bayes_accuracy`.

    Args:
        frequency: (..., 2), pairs (ky, kx); the direction is cos(2 pi (ky r + kx c) / D + phase), by default the sine.
        prefilter: (D,) impulse response, applied along both axes.
        stride: subsampling factor along each axis.
        margin: eps.
        noise_std: sigma.
        phase: phase of the wave.

    Returns:
        float64, of the shape of ``frequency`` without its last dimension.
    """
    return torch.special.ndtr(_ratio(margin, noise_std) * gamma_2d(frequency, prefilter, stride, phase=phase))


def gamma_2d(
    frequency: Array | tuple[int, int], prefilter: Array, stride: int = 4, *, phase: float | None = None
) -> Tensor:
    """Return gamma(ky, kx) on images; arguments as for `bayes_accuracy_2d`.

    Raises:
        TypeError: for frequencies that are not integers.
        ValueError: for frequencies that are not pairs, or a stride that does not divide the size.
    """
    pairs = _frequencies(frequency)
    if pairs.dim() < 1 or pairs.shape[-1] != 2:
        raise ValueError(
            f"expected pairs (ky, kx) along the last dimension, got frequencies of shape {tuple(pairs.shape)}"
        )
    kept, lost = _kept_and_lost(pairs, prefilter, stride, phase)
    return torch.where(kept > 0, kept / lost, 0.0).sqrt()


def bayes_accuracy_after(layer: Array, direction: Array, margin: float = 1.0, noise_std: float = 3.0) -> Tensor:
    """Return the best accuracy after any linear layer: Phi((eps / sigma) sqrt(q / (1 - q))), q from its row space.

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
            f"a layer of shape {tuple(layer.shape)} cannot act on a direction of shape {tuple(direction.shape)}"
        )
    norm = direction.norm(dim=-1)
    if (norm - 1).abs().max() > 1e-6:
        raise ValueError(f"direction has norm {float(norm.max()):.4g}, expected 1: divide it by its norm")
    _, singular_values, rows = torch.linalg.svd(layer, full_matrices=True)
    rank = int((singular_values > 1e-12 * singular_values.max()).sum()) if singular_values.numel() else 0
    coordinates = (direction @ rows.T).square()  # (..., D), energy along the layer's right singular vectors
    kept, lost = coordinates[..., :rank].sum(-1), coordinates[..., rank:].sum(-1)
    lost = torch.where(lost < 1e-24, 0.0, lost)  # rounding of a direction that lies in the row space
    return torch.special.ndtr(_ratio(margin, noise_std) * torch.where(kept > 1e-24, kept / lost, 0.0).sqrt())


def _alias_energies(frequency: Tensor, prefilter: Array, stride: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return |m^[l]|^2, the same summed over the other aliases of l, and arg m^[l], for frequencies (..., axes)."""
    response = frequency_response(prefilter)
    size = len(response)
    step = num_outputs(size, stride)
    frequency = frequency.to(response.device)
    aliases = (frequency.unsqueeze(-1) + step * torch.arange(stride, device=response.device)) % size  # (..., axes, S)
    energies = response.abs().square()[aliases]
    own, others = energies[..., 0, 0], energies[..., 0, 1:].sum(-1)
    for axis in range(1, frequency.shape[-1]):  # sums of products are products of sums, without ever subtracting
        own_here, others_here = energies[..., axis, 0], energies[..., axis, 1:].sum(-1)
        own, others = own * own_here, others * (own_here + others_here) + own * others_here
    return own, others, response.angle()[aliases[..., 0]].sum(-1)


def _kept_and_lost(frequency: Tensor, prefilter: Array, stride: int, phase: float | None) -> tuple[Tensor, Tensor]:
    """Return the energy of signal and of noise on the output coefficient of l, up to a common factor."""
    own, others, angle = _alias_energies(frequency, prefilter, stride)
    size = len(prefilter)
    alone = (2 * frequency % size == 0).all(-1)
    folded = ((2 * frequency % (size // stride) == 0).all(-1) & ~alone).to(own.device)
    psi = angle + (-math.pi / 2 if phase is None else phase)
    kept = torch.where(folded, 2 * own * psi.cos().square(), own)
    lost = torch.where(folded, 2 * own * psi.sin().square() + (others - own).clamp(min=0), others)
    rounding = 1e-24 * (own + others)  # of cos(psi)^2 and sin(psi)^2 around their zeros
    return torch.where(kept <= rounding, 0.0, kept), torch.where(lost <= rounding, 0.0, lost)


def _frequencies(frequency: int | Array | tuple[int, ...]) -> Tensor:
    frequency = torch.as_tensor(frequency)
    if frequency.is_floating_point() or frequency.is_complex() or frequency.dtype == torch.bool:
        raise TypeError(f"frequencies count periods over the signal and must be integers, got {frequency.dtype}")
    return frequency.long()


def _ratio(margin: float, noise_std: float) -> float:
    if not (margin >= 0 and noise_std > 0):
        raise ValueError(f"expected margin >= 0 and noise_std > 0, got margin {margin} and noise_std {noise_std}")
    return margin / noise_std
