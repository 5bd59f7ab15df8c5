"""The weights of many networks from a counter: (seed, network, parameter, element) fixes each number.

Philox-4x32-10 (Salmon, Moraes, Dror and Shaw, *Parallel random numbers: as easy as 1, 2, 3*, SC 2011) turns a counter
of four 32-bit words and a 64-bit key into four random words, so any number can be drawn without those before it:

    key = seed,  counter = (element // 4, parameter, network, stream)  ->  words of elements 4 i, ..., 4 i + 3

A word w gives a number of the open interval (-1, 1), u = (2 floor(w / 2^8) + 1 - 2^24) / 2^24, symmetric about 0; two
words give two standard normal numbers (Box and Muller 1958). The parameter is shift + scale u, or shift + scale z.

`draw_weights` calls the kernel in `random_weights_triton`, or the reference in plain PyTorch below.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from nads_core.kernels.choice import require_backend

_WORD = 2**32 - 1
_MULTIPLIERS, _INCREMENTS, _ROUNDS = (0xD2511F53, 0xCD9E8D57), (0x9E3779B9, 0xBB67AE85), 10
_WORDS_AT_ONCE = 2**21  # each takes the reference some hundred bytes


@dataclass(frozen=True)
class RandomParameter:
    """How one parameter of a network is drawn: shift + scale * z, with z uniform on (-1, 1) or standard normal.

    Both numbers are rounded to float32, as the weights are.
    """

    shape: tuple[int, ...]
    distribution: str
    shift: float = 0.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        for name in ("shift", "scale"):
            object.__setattr__(self, name, float(np.float32(getattr(self, name))))

    @property
    def size(self) -> int:
        """Number of elements in one network."""
        return math.prod(self.shape)


def draw_weights(
    parameters: Sequence[RandomParameter],
    *,
    seed: int,
    first: int,
    count: int,
    stream: int = 0,
    device: torch.device | str = "cpu",
    backend: str = "triton",
) -> list[Tensor]:
    """Draw the parameters of networks ``first`` to ``first + count - 1``.

    No number depends on ``first``, ``count``, the device or the other parameters. The exception are the last bits of
    normal numbers, by the device's logarithm and cosine.

    Args:
        parameters: parameters of one network, in an order that is part of each number's counter.
        seed: 0 <= seed < 2^64, the key.
        first: index of the first network.
        count: number of networks.
        stream: index of the random stream; different streams are independent.
        device: device of the result.
        backend: "triton", or "reference" to draw in plain PyTorch, slowly, on any device.

    Returns:
        For each parameter a contiguous float32 tensor (count, *shape).
    """
    require_backend(backend)
    if backend == "reference":
        networks = torch.arange(first, first + count, device=device)
        return [_draw(parameter, number, networks, seed, stream) for number, parameter in enumerate(parameters)]
    from nads_core.kernels.random_weights_triton import launch

    return launch(tuple(parameters), seed, first, count, stream, torch.device(device))


def _draw(parameter: RandomParameter, number: int, networks: Tensor, seed: int, stream: int) -> Tensor:
    """Draw one parameter of B networks: (B,) -> (B, *shape)."""
    quads = torch.arange(-(-parameter.size // 4), device=networks.device)  # (Q,), each gives four numbers
    rows = max(1, _WORDS_AT_ONCE // max(1, len(quads)))
    parts = []
    for chunk in networks.split(rows):  # b <= rows networks
        counter = (quads, torch.full_like(quads, number), chunk[:, None], torch.full_like(quads, stream))
        words = philox(counter, seed)  # four of (b, Q)
        numbers = torch.stack(uniform(words) if parameter.distribution == "uniform" else normal(words), dim=-1)
        numbers = numbers.flatten(1)[:, : parameter.size]  # (b, Q, 4) -> (b, size): the last quad may be cut
        # One rounding to float32, as in a fused multiply-add.
        parts.append((parameter.shift + parameter.scale * numbers.double()).float())
    return torch.cat(parts).reshape(len(networks), *parameter.shape)


def philox(counter: Sequence[Tensor], key: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return four random 32-bit words for each counter.

    Args:
        counter: four int64 tensors of 32-bit words that broadcast together, the least significant word first.
        key: 64 bits.

    Returns:
        Four int64 tensors of numbers in [0, 2^32).
    """
    first, second, third, fourth = counter
    low_key, high_key = key & _WORD, key >> 32 & _WORD
    for _ in range(_ROUNDS):
        left, right = _MULTIPLIERS[0] * first, _MULTIPLIERS[1] * third  # modulo 2^64: int64 keeps the bits
        first, second, third, fourth = (
            _high(right) ^ second ^ low_key, right & _WORD, _high(left) ^ fourth ^ high_key, left & _WORD,
        )  # fmt: skip
        low_key, high_key = (low_key + _INCREMENTS[0]) & _WORD, (high_key + _INCREMENTS[1]) & _WORD
    return first, second, third, fourth


def _high(product: Tensor) -> Tensor:
    return product >> 32 & _WORD


def uniform(words: Sequence[Tensor]) -> list[Tensor]:
    """Turn words into float32 numbers of (-1, 1): odd multiples of 2^-24, all equally likely."""
    return [(2 * (word >> 8) + (1 - 2**24)).float() * 2.0**-24 for word in words]


def normal(words: Sequence[Tensor]) -> list[Tensor]:
    """Turn pairs of words into pairs of standard normal float32 numbers, none larger than 6.8 (Box and Muller)."""
    numbers = []
    for one, other in zip(words[::2], words[1::2], strict=True):
        share = one.float() * 2.0**-32 + 2.0**-33  # in (0, 1], rounded as the kernel rounds it
        signed = other - ((other >> 31) << 32)  # in [-2^31, 2^31)
        angle = (signed.float() * (math.tau / 2**32)).double()
        radius = (-2 * share.double().log()).sqrt()
        numbers += [(radius * angle.cos()).float(), (radius * angle.sin()).float()]
    return numbers
