"""The Triton kernels of the library in plain PyTorch, slowly and on any device: what defines their
results.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from nads_core.kernels import RandomParameter

_WORD = 2**32 - 1
_MULTIPLIERS, _INCREMENTS, _ROUNDS = (0xD2511F53, 0xCD9E8D57), (0x9E3779B9, 0xBB67AE85), 10
_WORDS_AT_ONCE = 2**21  # each takes some hundred bytes


def draw_weights(
    parameters: Sequence[RandomParameter],
    *,
    seed: int,
    first: int,
    count: int,
    stream: int = 0,
    device: torch.device | str = "cpu",
) -> list[Tensor]:
    """Draw the parameters of networks as `nads_core.kernels.draw_weights` does."""
    networks = torch.arange(first, first + count, device=device)
    return [
        _draw(parameter, number, networks, seed, stream)
        for number, parameter in enumerate(parameters)
    ]


def _draw(
    parameter: RandomParameter, number: int, networks: Tensor, seed: int, stream: int
) -> Tensor:
    """Draw one parameter of B networks: (B,) -> (B, *shape)."""
    # (Q,), each gives four numbers
    quads = torch.arange(-(-parameter.size // 4), device=networks.device)
    rows = max(1, _WORDS_AT_ONCE // max(1, len(quads)))
    parts = []
    for chunk in networks.split(rows):  # b <= rows networks
        counter = (
            quads,
            torch.full_like(quads, number),
            chunk[:, None],
            torch.full_like(quads, stream),
        )
        words = philox(counter, seed)  # four of (b, Q)
        numbers = torch.stack(
            uniform(words) if parameter.distribution == "uniform" else normal(words), dim=-1
        )
        # (b, Q, 4) -> (b, size): the last quad may be cut
        numbers = numbers.flatten(1)[:, : parameter.size]
        # One rounding to float32, as in a fused multiply-add.
        parts.append((parameter.shift + parameter.scale * numbers.double()).float())
    return torch.cat(parts).reshape(len(networks), *parameter.shape)


def philox(counter: Sequence[Tensor], key: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return four random 32-bit words for each counter.

    Args:
        counter: four int64 tensors of 32-bit words that broadcast together, the least significant
            word first.
        key: 64 bits.

    Returns:
        Four int64 tensors of numbers in [0, 2^32).
    """
    first, second, third, fourth = counter
    low_key, high_key = key & _WORD, key >> 32 & _WORD
    for _ in range(_ROUNDS):
        # Modulo 2^64: int64 keeps the bits
        left, right = _MULTIPLIERS[0] * first, _MULTIPLIERS[1] * third
        first, third = _high(right) ^ second ^ low_key, _high(left) ^ fourth ^ high_key
        second, fourth = right & _WORD, left & _WORD
        low_key, high_key = (low_key + _INCREMENTS[0]) & _WORD, (high_key + _INCREMENTS[1]) & _WORD
    return first, second, third, fourth


def _high(product: Tensor) -> Tensor:
    return product >> 32 & _WORD


def uniform(words: Sequence[Tensor]) -> list[Tensor]:
    """Turn words into float32 numbers of (-1, 1): odd multiples of 2^-24, all equally likely."""
    return [(2 * (word >> 8) + (1 - 2**24)).float() * 2.0**-24 for word in words]


def normal(words: Sequence[Tensor]) -> list[Tensor]:
    """Turn pairs of words into pairs of standard normal float32 numbers, none larger than 6.8 (Box
    and Muller).
    """
    numbers = []
    for one, other in zip(words[::2], words[1::2], strict=True):
        share = one.float() * 2.0**-32 + 2.0**-33  # in (0, 1], rounded as the kernel rounds it
        signed = other - ((other >> 31) << 32)  # in [-2^31, 2^31)
        angle = (signed.float() * (math.tau / 2**32)).double()
        radius = (-2 * share.double().log()).sqrt()
        numbers += [(radius * angle.cos()).float(), (radius * angle.sin()).float()]
    return numbers


def add_second_moments(second_moment: Tensor, noise_moment: Tensor, contributions: Tensor) -> None:
    """Add contributions (B, J, D) to both (D, D) sums, in float64, by the formulas in
    `kernels.second_moments`.
    """
    if not contributions.numel():
        return
    count = contributions.shape[1]
    base = contributions[:, 0]  # g_0, (B, D)
    shifted = contributions[:, 1:] - base[:, None]  # d_j, (B, J - 1, D)
    mean_shift = shifted.sum(1) / count  # s, (B, D)
    second_moment += _gram(base + mean_shift)
    if count > 1:
        noise_moment += (_gram(shifted.flatten(0, 1)) - count * _gram(mean_shift)) / (
            count * (count - 1)
        )


def _gram(rows: Tensor) -> Tensor:
    """Return rows^T rows in float64, of rows (R, D) rounded to TF32."""
    rows = rounded_to_tf32(rows).double()
    return rows.T @ rows


def rounded_to_tf32(values: Tensor) -> Tensor:
    """Round float32 values to 11 significant bits, halves away from zero: what the instruction
    cvt.rna.tf32 does.
    """
    bits = values.contiguous().view(torch.int32)
    return ((bits + 0x1000) & ~0x1FFF).view(torch.float32)
