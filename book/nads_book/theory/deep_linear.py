"""The deep linear model of section 2.2: its curvature (Lemma 1) and its gradients (eqs. 4, 5).

The model mimics a network with one pooling layer in the spectral domain, with real coefficients
throughout::

    f(x) = theta^T A (m * phi * x) = (1 / sqrt(S)) sum_i theta[i mod M] m[i] phi[i] x[i],

where ``m`` (D,) is the response of the prefilter, ``phi`` (D,) stands for a stack of convolutions,
``theta`` (M,) for the last layer, and A = [I_M ... I_M] / sqrt(S) folds D = S M frequencies onto M
outputs. The parameters are independent, theta ~ N(0, theta_std^2) and phi ~ N(0, phi_std^2); the
data are x = eps y e_l + w with w ~ N(0, sigma^2 I) and y = +-1.

Every formula below carries the factor 1 / S that the two factors 1 / sqrt(S) of A produce. The
paper prints Lemma 1 and eq. (4) without it, which is right for A = [I_M ... I_M], and eq. (5) with
it in one of two places, which is right for neither. ``response`` may have any shape (D,) with D a
multiple of S.
"""

import math

import torch
from torch import Tensor

from nads_book.theory.pooling import Array, integer_frequencies, num_outputs, real_vector


def deep_linear_output(
    theta: Tensor, phi: Tensor, x: Tensor, response: Array, stride: int = 4
) -> Tensor:
    """Return f(x) = theta^T A (m * phi * x): theta (..., M), phi and x (..., D) -> (...)."""
    response = _response(response, stride).to(x)
    folded = (response * phi * x).unflatten(-1, (stride, -1)).sum(-2) / math.sqrt(stride)
    return (theta * folded).sum(-1)


def expected_hessian(
    frequency: int | Array,
    response: Array,
    stride: int = 4,
    margin: float = 1.0,
    noise_std: float = 3.0,
    *,
    theta_std: float = 1.0,
    phi_std: float = 1.0,
    block: str = "phi",
) -> Tensor:
    """Return the expected Hessian of the quadratic loss J = (y - f(x))^2 over theta, phi, x and y.

    Source: Lemma 1, and the result for theta that its footnote announces. Derivation: f is linear
    in phi with slopes a[i] = theta[i mod M] m[i] x[i] / sqrt(S), so the Hessian is 2 a a^T; E x[i]
    x[j] vanishes off the diagonal, where E theta^2 = theta_std^2 and E x[i]^2 = eps^2 [i = l] +
    sigma^2::

        phi:   (2 / S) theta_std^2 (eps^2 m[l]^2 diag(e_l) + sigma^2 diag(m^2))
        theta: (2 / S) phi_std^2 (eps^2 m[l]^2 diag(e_{l mod M}) + sigma^2 diag(sum_k m[t + k M]^2))
        mixed: -(2 / sqrt(S)) eps m[l] at (phi[l], theta[l mod M]), zero elsewhere

    The mixed block is the mean gradient that pulls the product theta phi towards the signal: 2 a
    b^T averages to zero, and -2 (y - f) d^2 f / dphi dtheta leaves E y x[l] = eps.

    Args:
        frequency: l, an integer or an array of them, in [0, D).
        response: (D,) real response m of the prefilter.
        stride: S, a divisor of D.
        margin: eps.
        noise_std: sigma.
        theta_std: standard deviation of theta.
        phi_std: standard deviation of phi.
        block: "phi" (D, D), or "both": (D + M, D + M) with phi first.

    Returns:
        float64, with the shape of ``frequency`` in front.
    """
    response = _response(response, stride)
    frequency = integer_frequencies(frequency)
    at_signal = torch.nn.functional.one_hot(frequency, len(response)).to(response)
    # Expected energies of m * x, signal and noise: (..., D)
    energy = margin**2 * at_signal * response.square() + noise_std**2 * response.square()
    of_phi = torch.diag_embed(2 / stride * theta_std**2 * energy)  # (..., D, D)
    if block == "phi":
        return of_phi
    # Aliases share theta: (..., D) -> (..., S, M) -> (..., M)
    folded = energy.unflatten(-1, (stride, -1)).sum(-2)
    of_theta = torch.diag_embed(2 / stride * phi_std**2 * folded)  # (..., M, M)
    # (D, M): row i has its 1 at i mod M
    fold = torch.eye(len(response) // stride).to(response).repeat(stride, 1)
    signal = -2 / math.sqrt(stride) * margin * at_signal * response
    mixed = torch.diag_embed(signal) @ fold  # (..., D, M)
    return torch.cat([torch.cat([of_phi, mixed], -1), torch.cat([mixed.mT, of_theta], -1)], -2)


def expected_hessian_printed(
    frequency: int | Array,
    response: Array,
    stride: int = 4,
    margin: float = 1.0,
    noise_std: float = 3.0,
    *,
    theta_std: float = 1.0,
) -> Tensor:
    """Return Lemma 1 as printed: 2 theta_std^2 (eps^2 m[l]^2 diag(e_l) + sigma^2 diag(m^2)),
    without 1 / S.
    """
    return stride * expected_hessian(
        frequency, response, stride, margin, noise_std, theta_std=theta_std
    )


def zeta(
    frequency: int | Array, response: Array, margin: float = 1.0, noise_std: float = 3.0
) -> Tensor:
    """Return the curvature of the signal over the largest of the noise, eps^2 m[l]^2 / (sigma^2 max
    m^2).

    Source: as printed below Lemma 1; the factor that the lemma misses cancels in the ratio.
    """
    response = _response(response, 1)
    frequency = integer_frequencies(frequency)
    return (margin / noise_std) ** 2 * response[frequency].square() / response.square().max()


def gradient_covariance(
    response: Array, stride: int = 4, *, theta_std: float = 1.0, phi_std: float = 1.0
) -> Tensor:
    """Return E grad_x f grad_x f^T = (theta_std^2 phi_std^2 / S) diag(m^2): (D, D) float64.

    Source: eq. (4). Derivation: df/dx[i] = theta[i mod M] m[i] phi[i] / sqrt(S), and E phi[i]
    phi[j] = 0 for i != j removes the entries between aliases, which share one theta.
    """
    response = _response(response, stride)
    return theta_std**2 * phi_std**2 / stride * response.square().diag()


def mixed_second_moment(
    response: Array, stride: int = 4, *, theta_std: float = 1.0, phi_std: float = 1.0
) -> Tensor:
    """Return E B^T B = ((theta_std^2 + phi_std^2) / S) diag(m^2) for B = d^2 f / d(theta, phi) dx:
    (D, D) float64.

    Source: eq. (5). Derivation: the row of theta[t] holds m[i] phi[i] / sqrt(S) where i mod M = t,
    the row of phi[j] holds theta[j mod M] m[j] / sqrt(S) at i = j. Both blocks carry 1 / sqrt(S),
    so both squares carry 1 / S.
    """
    response = _response(response, stride)
    return (theta_std**2 + phi_std**2) / stride * response.square().diag()


def _response(response: Array, stride: int) -> Tensor:
    advice = "for a prefilter h take the magnitude, pooling.frequency_response(h).abs()"
    vector = real_vector(response, "response", advice)
    num_outputs(len(vector), stride)  # rejects a stride that does not divide D
    return vector
