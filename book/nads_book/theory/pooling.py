"""The linear pooling layer of section 2.1: the operator in space, in the spectrum (eq. 1) and on
images, and Theorem 1, as corrected and as printed.

A pooling layer of stride S filters a periodic signal of D samples with a prefilter h and keeps
every S-th sample::

    z[j] = (h * x)[j S],    j = 0 .. M - 1,    M = D / S,
    that is    z = P x,    P[j, n] = h[(j S - n) mod D].

Conventions used throughout: signals are real; the Fourier transform is unitary on signals, x^ =
fft(x) / sqrt(D), on both sides of the layer; the response of the prefilter is its plain transform
m^ = fft(h), so that filtering is the product m^ x^. Everything is computed in float64.

**Theorem 1, as verified here.** A sample is x = eps y v + w with y = +-1 and w ~ N(0, sigma^2 (I -
v v^T)). After any linear layer P the two classes are Gaussians with means +-eps P v and one
covariance, sigma^2 (G - u u^T), where G = P P^T and u = P v. The optimal classifier is linear and
its accuracy is Phi(delta / 2), with delta the Mahalanobis distance of the means: delta^2 / 4 = (eps
/ sigma)^2 u^T (G - u u^T)^+ u. With q = u^T G^+ u the formula of Sherman and Morrison gives u^T (G
- u u^T)^+ u = q / (1 - q), so::

    accuracy = Phi((eps / sigma) gamma),    gamma^2 = q / (1 - q),
    q = |projection of v on the row space of P|^2.

gamma is the cotangent of the angle between v and the row space: q = 1 means accuracy 1, q = 0 means
chance.

**In the spectrum.** The row space of P splits into the M classes of aliases {t + k M}. A real
direction of frequency l, v[n] = sqrt(2 / D) cos(2 pi l n / D + phase), sits at l and at -l. If l
and -l belong to different classes (2 l is no multiple of M), or are identical (l = 0, l = D / 2),
then for every phase::

    q = |m^[l]|^2 / sum_{k = 0}^{S - 1} |m^[l + k M]|^2,
    gamma^2 = |m^[l]|^2 / sum_{k = 1}^{S - 1} |m^[l + k M]|^2.

If they are different but fold onto each other (2 l is a multiple of M, not of D), the two waves
interfere, and with psi = phase + arg m^[l]::

    q = 2 |m^[l]|^2 cos^2(psi) / sum_{k = 0}^{S - 1} |m^[l + k M]|^2.

The paper prints Phi(eps gamma / (sqrt(2) sigma)) with gamma^2 larger by the factor S: that is right
for S = 2 only.
"""

import math

import numpy as np
import torch
from torch import Tensor

from nads_core.runtime.arguments import require_choice, require_integers, require_unit_norm

PREFILTERS = ("average", "binomial", "lowpass", "identity")
Array = Tensor | np.ndarray
PREFILTER_ADVICE = "make one with pooling.prefilter(name, size, stride)"


def prefilter(name: str, size: int, stride: int = 4) -> Tensor:
    """Return the impulse response of a named prefilter.

    Args:
        name: "average": the mean of S neighbours, aligned as in `torch.nn.functional.avg_pool1d`;
            "binomial": a triangle-like blur with 2 S - 1 binomial taps; "lowpass": every frequency
            up to M / 2 and nothing above; "identity": plain subsampling.
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
    outputs = num_outputs(size, stride)
    require_choice("prefilter", name, PREFILTERS)
    if name == "lowpass":
        frequencies = torch.fft.fftfreq(size, 1 / size, dtype=torch.float64)
        return torch.fft.ifft((frequencies.abs() <= outputs / 2).double()).real
    order = 2 * (stride - 1)
    taps, first = {
        "average": ([1 / stride] * stride, 1 - stride),  # z[j] = mean of x[j S .. j S + S - 1]
        "binomial": ([math.comb(order, k) / 2**order for k in range(order + 1)], 1 - stride),
        "identity": ([1.0], 0),
    }[name]
    response = torch.zeros(size, dtype=torch.float64)
    positions = torch.arange(first, first + len(taps)) % size
    # Taps longer than D wrap around
    return response.index_add(0, positions, torch.tensor(taps, dtype=torch.float64))


def frequency_response(prefilter: Array) -> Tensor:
    """Return m^ = fft(h): (D,) complex128. Rounding errors around exact zeros are set to zero."""
    impulse = real_vector(prefilter, "prefilter", PREFILTER_ADVICE)
    response = torch.fft.fft(impulse)
    rounding = len(impulse) * torch.finfo(torch.float64).eps * impulse.abs().sum()
    return torch.where(response.abs() <= rounding, 0, response)


def retained_energy(frequency: int | Array, prefilter: Array, stride: int = 4) -> Tensor:
    """Return q(l): the squared norm of the part of v that lies in the row space of the pooling
    layer.

    It is also the share of the variance of v^T x, for white noise x, that is a linear function of
    the output. Over an orthonormal basis of directions q sums to the rank of P: a prefilter can
    move energy, not add it.

    Args:
        frequency: l, an integer or an array of integers.
        prefilter: (D,) impulse response.
        stride: subsampling factor S, a divisor of D.

    Returns:
        float64 in [0, 1], of the shape of ``frequency``.

    Raises:
        TypeError: if a frequency is no integer.
        ValueError: if the prefilter is no real vector or the stride does not divide its
            length.
    """
    signal, noise = signal_and_noise(scalars(frequency), prefilter, stride, None)
    return torch.where(signal > 0, signal / (signal + noise), 0.0)


def gamma(
    frequency: int | Array, prefilter: Array, stride: int = 4, *, phase: float | None = None
) -> Tensor:
    """Return sqrt(q / (1 - q)), infinite where no noise falls on the signal; arguments as for
    `bayes_accuracy`.
    """
    return root_ratio(*signal_and_noise(scalars(frequency), prefilter, stride, phase))


def bayes_accuracy(
    frequency: int | Array,
    prefilter: Array,
    stride: int = 4,
    margin: float = 1.0,
    noise_std: float = 3.0,
    *,
    phase: float | None = None,
) -> Tensor:
    """Return the best accuracy that any classifier can reach after pooling: Phi((eps / sigma)
    gamma(l)).

    Source: Theorem 1 and eq. (2), with the constant that survives simulation on real signals;
    derivation at the top of `pooling`.

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
        >>> from nads_book.theory.pooling import prefilter
        >>> h = prefilter("identity", 8, 4)
        >>> float(bayes_accuracy(0, h, 4, margin=3.0, noise_std=1.0))  # Phi(sqrt(3))
        0.9583677416682248
    """
    return torch.special.ndtr(
        signal_to_noise(margin, noise_std) * gamma(frequency, prefilter, stride, phase=phase)
    )


def real_vector(values: Array, name: str, advice: str) -> Tensor:
    """Return a vector (D,) as float64; raise a ValueError if it is complex, empty or not a
    vector.
    """
    vector = torch.as_tensor(values)
    if vector.dim() != 1 or vector.is_complex() or len(vector) == 0:
        raise ValueError(
            f"{name} must be real, of shape (D,), got {vector.dtype} {tuple(vector.shape)}: "
            f"{advice}"
        )
    return vector.double()


def num_outputs(size: int, stride: int) -> int:
    """Return M = D / S.

    Raises:
        ValueError: if the stride is no divisor of the size.
    """
    require_integers(size=size, stride=stride)
    if size % stride:
        raise ValueError(f"stride {stride} does not divide the size {size}: pad the signal")
    return size // stride


def integer_frequencies(frequency: int | Array | tuple[int, ...]) -> Tensor:
    """Return frequencies as int64, or raise a TypeError if they are not integers."""
    frequency = torch.as_tensor(frequency)
    if frequency.is_floating_point() or frequency.is_complex() or frequency.dtype == torch.bool:
        raise TypeError(
            f"frequencies count periods over the signal and must be integers, got {frequency.dtype}"
        )
    return frequency.long()


def scalars(frequency: int | Array) -> Tensor:
    """Return frequencies along one axis, (..., 1)."""
    return integer_frequencies(frequency).unsqueeze(-1)


def alias_energies(
    frequency: Tensor, prefilter: Array, stride: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Return |m^[l]|^2, the same summed over the other aliases of l, and arg m^[l], for frequencies
    (..., axes).
    """
    response = frequency_response(prefilter)
    size = len(response)
    step = num_outputs(size, stride)
    aliases = (frequency.unsqueeze(-1) + step * torch.arange(stride)) % size  # (..., axes, S)
    energies = response.abs().square()[aliases]
    # Along several axes the aliases are all combinations, of which the first is the signal.
    combined = energies[..., 0, :]
    for axis in range(1, frequency.shape[-1]):
        combined = (combined[..., None] * energies[..., axis, None, :]).flatten(-2)
    return combined[..., 0], combined[..., 1:].sum(-1), response.angle()[aliases[..., 0]].sum(-1)


def signal_and_noise(
    frequency: Tensor, prefilter: Array, stride: int, phase: float | None
) -> tuple[Tensor, Tensor]:
    """Return the energies of signal and noise on the output coefficient of l, up to a common
    factor.
    """
    signal, others, angle = alias_energies(frequency, prefilter, stride)
    size = len(prefilter)
    self_conjugate = (2 * frequency % size == 0).all(-1)  # l and -l are identical
    folded = (2 * frequency % (size // stride) == 0).all(-1) & ~self_conjugate
    psi = angle + (-math.pi / 2 if phase is None else phase)
    noise = torch.where(
        folded, 2 * signal * psi.sin().square() + (others - signal).clamp(min=0), others
    )
    # cos(psi)^2 and sin(psi)^2 of a rounded psi are up to 1e-32 where they vanish: both energies
    # are compared with their sum, before either is changed.
    rounding = 1e-24 * (signal + others)
    signal = torch.where(folded, 2 * signal * psi.cos().square(), signal)
    return torch.where(signal <= rounding, 0.0, signal), torch.where(noise <= rounding, 0.0, noise)


def root_ratio(signal: Tensor, noise: Tensor) -> Tensor:
    """Return sqrt(signal / noise); 0 without a signal."""
    return torch.where(signal > 0, signal / noise, 0.0).sqrt()


def signal_to_noise(margin: float, noise_std: float) -> float:
    """Return eps / sigma; raise a ValueError for a negative margin or without noise."""
    if not (margin >= 0 and noise_std > 0):
        raise ValueError(
            f"expected margin >= 0 and noise_std > 0, got margin {margin} and noise_std {noise_std}"
        )
    return margin / noise_std


def pooling_matrix(prefilter: Array, stride: int = 4) -> Tensor:
    """Return the layer in space, P[j, n] = h[(j S - n) mod D]: (M, D) float64."""
    impulse = real_vector(prefilter, "prefilter", PREFILTER_ADVICE)
    size = len(impulse)
    first = torch.arange(num_outputs(size, stride))[:, None] * stride  # (M, 1): j S
    return impulse[(first - torch.arange(size)) % size]


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
    ratio = signal_to_noise(margin, noise_std) * root_ratio(signal, aliases)
    return torch.special.ndtr(math.sqrt(2) * ratio)


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
    margin = margin * math.sqrt(stride) / 2
    return bayes_accuracy_complex(frequency, prefilter, stride, margin, noise_std)


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
        ValueError: if the direction is not of unit norm.
    """
    layer, direction = torch.as_tensor(layer).double(), torch.as_tensor(direction).double()
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
    rank = int((singular_values > 1e-12 * singular_values.max()).sum())
    # (..., D), along the right singular vectors of the layer
    energies = (directions @ rows.T).square()
    return energies[..., :rank].sum(-1), energies[..., rank:].sum(-1)
