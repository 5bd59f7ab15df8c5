"""The linear pooling layer of section 2.1: the operator in space and in the spectrum, eq. (1), and Theorem 1.

A pooling layer of stride S filters a periodic signal of D samples with a prefilter h and keeps every S-th sample::

    z[j] = (h * x)[j S],    j = 0 .. M - 1,    M = D / S,    that is    z = P x,    P[j, n] = h[(j S - n) mod D].

Conventions used throughout: signals are real; the Fourier transform is unitary on signals, x^ = fft(x) / sqrt(D), on
both sides of the layer; the response of the prefilter is its plain transform m^ = fft(h), so that filtering is the
product m^ x^. Everything is computed in float64.

**Theorem 1, as verified here.** A sample is x = eps y v + w with y = +-1 and w ~ N(0, sigma^2 (I - v v^T)). After any
linear layer P the two classes are Gaussians with means +-eps P v and one covariance, sigma^2 (G - u u^T), where
G = P P^T and u = P v. The optimal classifier is linear and its accuracy is Phi(delta / 2), with delta the Mahalanobis
distance of the means: delta^2 / 4 = (eps / sigma)^2 u^T (G - u u^T)^+ u. With q = u^T G^+ u the formula of Sherman and
Morrison gives u^T (G - u u^T)^+ u = q / (1 - q), so::

    accuracy = Phi((eps / sigma) gamma),    gamma^2 = q / (1 - q),    q = |projection of v on the row space of P|^2.

gamma is the cotangent of the angle between v and what the layer keeps: q = 1 means accuracy 1, q = 0 means chance.

**In the spectrum.** The row space of P splits into the M classes of aliases {t + k M}. A real direction of frequency l,
v[n] = sqrt(2 / D) cos(2 pi l n / D + phase), sits at l and at -l. If l and -l belong to different classes (2 l is no
multiple of M), or are one and the same (l = 0, l = D / 2), then whatever the phase::

    q = |m^[l]|^2 / sum_{k = 0}^{S - 1} |m^[l + k M]|^2,    gamma^2 = |m^[l]|^2 / sum_{k = 1}^{S - 1} |m^[l + k M]|^2.

If they are different but fold onto each other (2 l is a multiple of M, not of D), the two waves interfere, and with
psi = phase + arg m^[l]::

    q = 2 |m^[l]|^2 cos^2(psi) / sum_{k = 0}^{S - 1} |m^[l + k M]|^2.

The paper prints Phi(eps gamma / (sqrt(2) sigma)) with gamma^2 larger by the factor S: that is right for S = 2 only.
"""

from nads_core.theory.pooling.layer import (
    PREFILTERS,
    aliasing_matrix,
    frequency_response,
    pool,
    pool_spectrum,
    pooling_matrix,
    prefilter,
)
from nads_core.theory.pooling.theorem1 import (
    bayes_accuracy,
    bayes_accuracy_2d,
    bayes_accuracy_after,
    bayes_accuracy_complex,
    bayes_accuracy_printed,
    direction,
    gamma,
    gamma_2d,
    gamma_printed,
    retained_energy,
)

__all__ = [
    "PREFILTERS", "prefilter", "frequency_response", "pooling_matrix", "pool", "aliasing_matrix", "pool_spectrum",
    "direction", "retained_energy", "gamma", "gamma_printed",
    "bayes_accuracy", "bayes_accuracy_printed", "bayes_accuracy_complex", "bayes_accuracy_2d", "gamma_2d",
    "bayes_accuracy_after",
]  # fmt: skip
