"""Lemma 2: how fast the weights of any network can turn its slope along a direction, the linearised
dipole.

The slope is s = v^T grad_x f(x), the rate the norm of its gradient with respect to the weights. A
metric g(abs(s)) measures how well the network separates a dipole along v; the lemma bounds how fast
training changes it.
"""

from collections.abc import Callable

import torch
from torch import Tensor


def dipole_gradient_norms(
    metric: Callable[[Tensor], Tensor], slopes: Tensor, rates: Tensor
) -> Tensor:
    """Return the norm of the gradient of g(abs(s)) with respect to the weights, for every network:
    (N,).

    Args:
        metric: g, elementwise on tensors.
        slopes: s of each network, (N,).
        rates: their rates, (N,).
    """
    magnitudes = slopes.abs().requires_grad_()
    (derivative,) = torch.autograd.grad(metric(magnitudes).sum(), magnitudes)
    return derivative.abs() * rates


def lemma2_bound(slopes: Tensor, rates: Tensor, alpha: float, beta: float) -> Tensor:
    """Return the bound of Lemma 2 with alpha where the paper prints alpha^2.

    Derivation, with s the slope and r the rate (the norm of grad_theta s)::

        |grad_theta g(|s|)| = |g'(|s|)| r <= (alpha |s| + beta) r,
        E |s| r <= sqrt(E s^2) sqrt(E r^2),

    by the chain rule and by Cauchy and Schwarz: alpha stays what it is. For a finite sample of
    networks the same steps hold for the means over the sample, so the bound holds without any error
    bar.

    Args:
        slopes: (N,) v^T grad_x f.
        rates: (N,), norms of d^2 f / dtheta dx v.
        alpha: slope in ``|g'(t)| <= alpha t + beta``.
        beta: offset in the same.
    """
    return (
        alpha * slopes.square().mean().sqrt() * rates.square().mean().sqrt() + beta * rates.mean()
    )


def lemma2_bound_printed(slopes: Tensor, rates: Tensor, alpha: float, beta: float) -> Tensor:
    """Return eq. (3) as printed, with alpha^2."""
    return lemma2_bound(slopes, rates, alpha**2, beta)
