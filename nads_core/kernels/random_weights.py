"""The weights of many networks from a counter: (seed, network, parameter, element) fixes each
number.

Philox-4x32-10 (Salmon, Moraes, Dror and Shaw, *Parallel random numbers: as easy as 1, 2, 3*, SC
2011) turns a counter of four 32-bit words and a 64-bit key into four random words, so any number
can be drawn without those before it:

    key = seed,  counter = (element // 4, parameter, network, stream)
    ->  words of elements 4 i, ..., 4 i + 3

A word w gives a number of the open interval (-1, 1), u = (2 floor(w / 2^8) + 1 - 2^24) / 2^24,
symmetric about 0; two words give two standard normal numbers (Box and Muller 1958). The parameter
is shift + scale u, or shift + scale z.

The kernel is in `random_weights_triton`; `references` has it in plain PyTorch.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from nads_core.kernels.random_parameter import RandomParameter


def draw_weights(
    parameters: Sequence[RandomParameter],
    *,
    seed: int,
    first: int,
    count: int,
    stream: int,
    device: torch.device,
) -> list[Tensor]:
    """Draw the parameters of networks ``first`` to ``first + count - 1``.

    No number depends on ``first``, ``count``, the device or the other parameters. The exception are
    the last bits of normal numbers, by the device's logarithm and cosine.

    Args:
        parameters: parameters of one network, in an order that is part of each number's counter.
        seed: 0 <= seed < 2^64, the key.
        first: index of the first network.
        count: number of networks.
        stream: index of the random stream; different streams are independent.
        device: device of the result.

    Returns:
        For each parameter a contiguous float32 tensor (count, *shape).
    """
    from nads_core.kernels.random_weights_triton import launch

    return launch(tuple(parameters), seed, first, count, stream, device)
