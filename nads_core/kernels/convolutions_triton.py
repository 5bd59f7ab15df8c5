"""Convolutions of many networks in Triton: one kernel for both directions.

A program computes all channels of some pixels of one network: it walks over the filter, and adds
the product of a column of pixels and a row of weights in registers. Few channels would leave most
of a tensor core's tile empty, and this way float32 is exact. The adjoint reads the pixels whose
filter covers its own. Import this module only where it is used: it needs Triton.
"""

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.nn import functional as F

# Not tuned on a device yet: see tools/on_a_gpu.py.
TUNING = {"PIXELS": 256, "num_warps": 4, "num_stages": 2}


@triton.jit
def _convolve(
    out,
    source,
    taps,
    bias,
    output,
    samples,
    output_samples,
    DEPTH: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    CHANNELS: tl.constexpr,
    HEIGHT: tl.constexpr,
    WIDTH: tl.constexpr,
    FILTER_ROWS: tl.constexpr,
    FILTER_COLUMNS: tl.constexpr,
    STEP_Y: tl.constexpr,
    STEP_X: tl.constexpr,
    PADDING_Y: tl.constexpr,
    PADDING_X: tl.constexpr,
    ADJOINT: tl.constexpr,
    BIAS: tl.constexpr,
    RELU: tl.constexpr,
    MASKED: tl.constexpr,
    SUMS: tl.constexpr,
    CHANNEL_TILE: tl.constexpr,
    PIXELS: tl.constexpr,
):
    """Write PIXELS pixels of ``out`` (networks, samples, CHANNELS, HEIGHT, WIDTH), all channels.

    source: (networks, samples, DEPTH, ROWS, COLUMNS); of the adjoint gradients, which count where
    ``output`` (networks, output_samples, DEPTH, ROWS, COLUMNS) is positive, of sample n modulo
    output_samples. taps: (networks, DEPTH, FILTER_ROWS, FILTER_COLUMNS, CHANNEL_TILE), loaded 16
    bytes at a time.
    """
    network = tl.program_id(1).to(tl.int64)
    place = tl.program_id(0) * PIXELS + tl.arange(0, PIXELS)[:, None]  # (PIXELS, 1)
    inside = place < samples * (HEIGHT * WIDTH)
    sample = place // (HEIGHT * WIDTH)
    pixel = place % (HEIGHT * WIDTH)
    y = pixel // WIDTH
    x = pixel % WIDTH
    channel = tl.arange(0, CHANNEL_TILE)[None, :]  # (1, CHANNEL_TILE)
    there = channel < CHANNELS
    images = source + (network * samples + sample) * (DEPTH * ROWS * COLUMNS)
    if MASKED:
        outputs = output + (network * output_samples + sample % output_samples) * (
            DEPTH * ROWS * COLUMNS
        )
    filters = taps + network * (DEPTH * FILTER_ROWS * FILTER_COLUMNS * CHANNEL_TILE)
    total = tl.zeros((PIXELS, CHANNEL_TILE), dtype=SUMS)
    for step in range(DEPTH * FILTER_ROWS):
        layer = step // FILTER_ROWS
        row = step % FILTER_ROWS
        if ADJOINT:  # output row i reads input row STEP_Y i + row - PADDING_Y
            shifted_y = y + PADDING_Y - row
            source_y = shifted_y // STEP_Y
            row_inside = (shifted_y >= 0) & (shifted_y % STEP_Y == 0) & (source_y < ROWS)
        else:
            source_y = y * STEP_Y + row - PADDING_Y
            row_inside = (source_y >= 0) & (source_y < ROWS)
        for column in tl.static_range(FILTER_COLUMNS):
            if ADJOINT:
                shifted_x = x + PADDING_X - column
                source_x = shifted_x // STEP_X
                valid = row_inside & (shifted_x >= 0) & (shifted_x % STEP_X == 0)
                valid = valid & (source_x < COLUMNS)
            else:
                source_x = x * STEP_X + column - PADDING_X
                valid = row_inside & (source_x >= 0) & (source_x < COLUMNS)
            offset = (layer * ROWS + source_y) * COLUMNS + source_x
            values = tl.load(images + offset, mask=inside & valid, other=0.0)
            if MASKED:
                results = tl.load(outputs + offset, mask=inside & valid, other=0.0)
                values = tl.where(results > 0, values, 0.0)
            tap = tl.load(filters + (step * FILTER_COLUMNS + column) * CHANNEL_TILE + channel)
            total += values.to(SUMS) * tap.to(SUMS)
    if BIAS:
        shift = tl.load(bias + network * CHANNELS + channel, mask=there, other=0.0)
        total += shift.to(SUMS)
    if RELU:
        total = tl.where(total < 0, 0.0, total)  # NaN stays
    rows = ((network * samples + sample) * CHANNELS) * (HEIGHT * WIDTH) + pixel
    target = out + rows + channel * (HEIGHT * WIDTH)
    tl.store(target, total.to(out.dtype.element_ty), mask=inside & there)


class _Terms(NamedTuple):
    """What the kernel does beside the sum: it adds a bias, cuts below zero, or goes backwards where
    ``output`` is positive.
    """

    bias: Tensor | None = None
    relu: bool = False
    output: Tensor | None = None
    adjoint: bool = False


def convolve(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: tuple[int, int],
    padding: tuple[int, int],
    relu: bool,
    **tuning: int,
) -> Tensor:
    """Return relu(A x + bias): (B, N, C, H, W) -> (B, N, O, H', W'); change `TUNING` options."""
    size = tuple(
        (side + 2 * border - extent) // step + 1
        for side, border, extent, step in zip(
            x.shape[-2:], padding, weight.shape[-2:], stride, strict=True
        )
    )
    shape = (*x.shape[:2], weight.shape[1], *size)
    return _launch(shape, x, weight, _Terms(bias=bias, relu=relu), (*stride, *padding), tuning)


def convolve_adjoint(
    gradient: Tensor,
    output: Tensor | None,
    weight: Tensor,
    size: tuple[int, int],
    stride: tuple[int, int],
    padding: tuple[int, int],
    **tuning: int,
) -> Tensor:
    """Return A^T (gradient where output > 0): (B, R N, O, H', W') -> (B, R N, C, *size)."""
    shape = (*gradient.shape[:2], weight.shape[2], *size)
    terms = _Terms(output=output, adjoint=True)
    return _launch(shape, gradient, weight, terms, (*stride, *padding), tuning)


def _launch(
    shape: tuple[int, ...],
    source: Tensor,
    weight: Tensor,
    terms: _Terms,
    geometry: tuple[int, ...],  # stride and padding
    tuning: dict[str, int],
) -> Tensor:
    networks, samples, channels, height, width = shape
    out = torch.empty(shape, dtype=source.dtype, device=source.device)
    if not out.numel():
        return out
    options = TUNING | tuning
    tile = triton.next_power_of_2(channels)
    taps = weight.permute(0, 1, 3, 4, 2) if terms.adjoint else weight.permute(0, 2, 3, 4, 1)
    taps = F.pad(taps, (0, tile - channels)).contiguous()
    # Pointers of absent tensors are never read.
    shifts = out if terms.bias is None else terms.bias.contiguous()
    mask = out if terms.output is None else terms.output.contiguous()
    grid = (triton.cdiv(samples * height * width, options["PIXELS"]), networks)
    _convolve[grid](
        out,
        source.contiguous(),
        taps,
        shifts,
        mask,
        samples,
        mask.shape[1],
        *source.shape[2:],
        channels,
        height,
        width,
        *weight.shape[-2:],
        *geometry,
        ADJOINT=terms.adjoint,
        BIAS=terms.bias is not None,
        RELU=terms.relu,
        MASKED=terms.output is not None,
        SUMS=tl.float64 if source.dtype == torch.float64 else tl.float32,
        CHANNEL_TILE=tile,
        enable_fp_fusion=True,
        **options,
    )
    return out
