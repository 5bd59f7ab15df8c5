"""The sums behind the debiased second moment, in one pass over the contributions.

For network i with contributions g_ij (j = 0..J-1) and their mean m_i, to be added up over networks are

    second_moment = sum_i m_i m_i^T                                          (D, D)
    noise_moment = sum_i sum_j (g_ij - m_i)(g_ij - m_i)^T / (J (J - 1))      (D, D)

The mean is known only after all contributions of a network. One pass is enough with d_j = g_j - g_0 and
s = sum_j d_j / J (the shifted sums of Chan, Golub and LeVeque, *Algorithms for computing the sample variance*, 1983):

    m = g_0 + s,   sum_j (g_j - m)(g_j - m)^T = sum_j d_j d_j^T - J s s^T

and nothing large cancels, because d and s do not contain what the contributions of a network share.

The factors of each product are rounded to TF32, as tensor cores need them. `add_second_moments` calls the kernel in
`second_moments_triton`, or the reference in plain PyTorch below.
"""

from __future__ import annotations

import torch
from torch import Tensor

from nads_core.kernels.choice import require_backend


def add_second_moments(
    second_moment: Tensor, noise_moment: Tensor, contributions: Tensor, *, backend: str = "triton"
) -> None:
    """Add the contributions of B networks to both sums, in place.

    Args:
        second_moment: (D, D) float64, symmetric.
        noise_moment: (D, D) float64, symmetric.
        contributions: (B, J, D) float32. The kernel sums them in float32 before it adds to float64, so add no more
            than a few thousand rows at once.
        backend: "triton", or "reference" to sum in plain PyTorch, in float64, on any device.

    Raises:
        ValueError: if shapes or types do not fit together.
    """
    size = contributions.shape[-1]
    if contributions.dim() != 3 or contributions.dtype != torch.float32 or not contributions.shape[1]:
        received = f"{contributions.dtype} {tuple(contributions.shape)}"
        raise ValueError(f"expected float32 contributions (B, J, D) with J > 0, got {received}")
    for name, total in (("second_moment", second_moment), ("noise_moment", noise_moment)):
        if total.shape != (size, size) or total.dtype != torch.float64 or not total.is_contiguous():
            received = f"{total.dtype} {tuple(total.shape)}"
            raise ValueError(f"{name} must be a contiguous float64 ({size}, {size}), got {received}")
    require_backend(backend)
    if not contributions.numel():
        return
    if backend == "reference":
        _add(second_moment, noise_moment, contributions)
    else:
        from nads_core.kernels.second_moments_triton import launch

        launch(second_moment, noise_moment, contributions.contiguous())


def _add(second_moment: Tensor, noise_moment: Tensor, contributions: Tensor) -> None:
    """Add contributions (B, J, D) to both (D, D) sums by the formulas above."""
    count = contributions.shape[1]
    base = contributions[:, 0]  # g_0, (B, D)
    shifted = contributions[:, 1:] - base[:, None]  # d_j, (B, J - 1, D)
    mean_shift = shifted.sum(1) / count  # s, (B, D)
    second_moment += _gram(base + mean_shift)
    if count > 1:
        noise_moment += (_gram(shifted.flatten(0, 1)) - count * _gram(mean_shift)) / (count * (count - 1))


def _gram(rows: Tensor) -> Tensor:
    """Return rows^T rows in float64, of rows (R, D) rounded to TF32."""
    rows = rounded_to_tf32(rows).double()
    return rows.T @ rows


def rounded_to_tf32(values: Tensor) -> Tensor:
    """Round float32 values to 11 significant bits, halves away from zero: what the instruction cvt.rna.tf32 does."""
    bits = values.contiguous().view(torch.int32)
    return ((bits + 0x1000) & ~0x1FFF).view(torch.float32)
