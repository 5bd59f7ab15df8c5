"""The sums behind the debiased second moment, in one pass over the contributions.

For network i with contributions g_ij (j = 0..J-1) and their mean m_i, to be added up over networks
are

    second_moment = sum_i m_i m_i^T                                          (D, D)
    noise_moment = sum_i sum_j (g_ij - m_i)(g_ij - m_i)^T / (J (J - 1))      (D, D)

The mean is known only after all contributions of a network. One pass is enough with d_j = g_j - g_0
and s = sum_j d_j / J (the shifted sums of Chan, Golub and LeVeque, *Algorithms for computing the
sample variance*, 1983):

    m = g_0 + s,   sum_j (g_j - m)(g_j - m)^T = sum_j d_j d_j^T - J s s^T

and nothing large cancels, because d and s do not contain what the contributions of a network share.

The factors of each product are rounded to TF32, as tensor cores need them. The kernel is in
`second_moments_triton`; `references` has it in plain PyTorch.
"""

from torch import Tensor


def add_second_moments(second_moment: Tensor, noise_moment: Tensor, contributions: Tensor) -> None:
    """Add the contributions of B networks to both sums, in place.

    Args:
        second_moment: (D, D) float64, symmetric and contiguous.
        noise_moment: (D, D) float64, symmetric and contiguous.
        contributions: (B, J, D) float32. The kernel sums them in float32 before it adds to float64,
            so add no more than a few thousand rows at once.
    """
    if contributions.numel():
        from nads_core.kernels.second_moments_triton import launch

        launch(second_moment, noise_moment, contributions.contiguous())
