"""`draw_weights` in Triton: one launch for all parameters of many networks.

A program draws one tile of one parameter of one network. The tiles of all parameters stand in one
row, and a table says which parameter a tile belongs to. Import this module only where it is used:
it needs Triton.
"""

import math
from functools import lru_cache, partial

import torch
import triton
import triton.language as tl
from torch import Tensor

from nads_core.kernels.random_parameter import RandomParameter

_COUNTERS = 512  # a program; each gives four numbers
_ALIGNMENT = 4  # parameters begin at multiples of 16 bytes

_TWO_PI_OVER_2_32 = tl.constexpr(math.tau / 2**32)


@triton.jit
def _uniform(word):
    """Turn a word into an odd multiple of 2^-24 in (-1, 1)."""
    return ((word >> 8).to(tl.int32) * 2 + (1 - 16777216)).to(tl.float32) * 5.9604644775390625e-08


@triton.jit
def _normal(one, other):
    """Turn two words into two standard normal numbers."""
    share = one.to(tl.float32) * 2.3283064365386963e-10 + 1.1641532182693481e-10
    radius = tl.sqrt(-2.0 * tl.log(share))
    angle = other.to(tl.int32, bitcast=True).to(tl.float32) * _TWO_PI_OVER_2_32
    return radius * tl.cos(angle), radius * tl.sin(angle)


@triton.jit(do_not_specialize=["seed", "first", "stream"])
def _draw(out, parameter_of_tile, integers, floats, seed, first, stream, COUNTERS: tl.constexpr):
    """Write one tile of one network.

    integers: (parameters, 4) int64: elements a network, start in ``out``, first tile, whether
    normal. floats: (parameters, 2) float32: shift, scale.
    """
    tile, network = tl.program_id(0), tl.program_id(1)
    parameter = tl.load(parameter_of_tile + tile)
    size, start = tl.load(integers + 4 * parameter), tl.load(integers + 4 * parameter + 1)
    first_tile = tl.load(integers + 4 * parameter + 2)
    is_normal = tl.load(integers + 4 * parameter + 3)
    shift, scale = tl.load(floats + 2 * parameter), tl.load(floats + 2 * parameter + 1)

    quad = (tile - first_tile.to(tl.int32)) * COUNTERS + tl.arange(0, COUNTERS)
    quad = quad.to(tl.uint32)  # (COUNTERS,), as all that follows until the words are interleaved
    zero = tl.zeros_like(quad)
    a, b, c, d = tl.philox(
        seed,
        quad,
        zero + parameter.to(tl.uint32),
        zero + (first + network).to(tl.uint32),
        zero + stream.to(tl.uint32),
    )
    if is_normal != 0:
        w, x = _normal(a, b)
        y, z = _normal(c, d)
    else:
        w, x, y, z = _uniform(a), _uniform(b), _uniform(c), _uniform(d)
    # w0 x0 y0 z0 w1 x1 ...: (4 COUNTERS,)
    numbers = tl.interleave(tl.interleave(w, y), tl.interleave(x, z))
    element = (tile - first_tile) * (4 * COUNTERS) + tl.arange(0, 4 * COUNTERS)
    tl.store(
        out + start + network * size + element, tl.fma(numbers, scale, shift), mask=element < size
    )


def launch(
    parameters: tuple[RandomParameter, ...],
    seed: int,
    first: int,
    count: int,
    stream: int,
    device: torch.device,
) -> list[Tensor]:
    """Draw the parameters of ``count`` networks, each (count, *shape), as views of one buffer."""
    tile_parameters, integers, floats, starts, total = _tables(parameters, count, device)
    out = torch.empty(total, device=device)
    if total:
        _draw[(len(tile_parameters), count)](
            out,
            tile_parameters,
            integers,
            floats,
            seed,
            first,
            stream,
            COUNTERS=_COUNTERS,
            enable_fp_fusion=False,
        )
    return [
        out[start : start + count * parameter.size].view(count, *parameter.shape)
        for start, parameter in zip(starts, parameters, strict=True)
    ]


@lru_cache(maxsize=32)
def _tables(
    parameters: tuple[RandomParameter, ...], count: int, device: torch.device
) -> tuple[Tensor, Tensor, Tensor, list[int], int]:
    """Return the tables of `_draw`, each parameter's start in the buffer, and the buffer's size."""
    tile_parameters: list[int] = []
    integers, starts, start = [], [], 0
    for number, parameter in enumerate(parameters):
        integers.append(
            (parameter.size, start, len(tile_parameters), parameter.distribution == "normal")
        )
        tile_parameters += [number] * -(-parameter.size // (4 * _COUNTERS))
        starts.append(start)
        start += -(-count * parameter.size // _ALIGNMENT) * _ALIGNMENT
    floats = [(parameter.shift, parameter.scale) for parameter in parameters]
    tensor = partial(torch.tensor, device=device)
    tables = tensor(tile_parameters, dtype=torch.int32), tensor(integers, dtype=torch.int64)
    return *tables, tensor(floats, dtype=torch.float32), starts, start
