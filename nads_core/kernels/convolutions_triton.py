"""Convolutions of many networks in Triton: one kernel for both directions.

A program computes all channels of some pixels of one network: it walks over the filter, and adds
the product of a column of pixels and a row of weights in registers. Few channels would leave most
of a tensor core's tile empty, and this way float32 is exact. The adjoint reads the pixels whose
filter covers its own. Import this module only where it is used: it needs Triton.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.nn import functional as F

from nads_core.kernels.direction import Convolution

# Not tuned on a device
TUNING = {"PIXELS": 256, "num_warps": 4, "num_stages": 2}


@triton.jit
def _convolve(
    out,
    source,
    taps,
    other,
    samples,
    other_samples,
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
    OTHER: tl.constexpr,
    RELU: tl.constexpr,
    SUMS: tl.constexpr,
    CHANNEL_TILE: tl.constexpr,
    PIXELS: tl.constexpr,
):
    """Write PIXELS pixels of ``out`` (networks, samples, CHANNELS, HEIGHT, WIDTH), all channels.

    source: (networks, samples, DEPTH, ROWS, COLUMNS). taps: (networks, DEPTH, FILTER_ROWS,
    FILTER_COLUMNS, CHANNEL_TILE), loaded 16 bytes at a time. other, where there is OTHER: biases
    (networks, CHANNELS); of the adjoint, outputs (networks, other_samples, DEPTH, ROWS, COLUMNS):
    gradients of sample n count where that of n modulo other_samples is positive.
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
    if ADJOINT and OTHER:
        outputs = other + (network * other_samples + sample % other_samples) * (
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
            if ADJOINT and OTHER:
                results = tl.load(outputs + offset, mask=inside & valid, other=0.0)
                values = tl.where(results > 0, values, 0.0)
            tap = tl.load(filters + (step * FILTER_COLUMNS + column) * CHANNEL_TILE + channel)
            total += values.to(SUMS) * tap.to(SUMS)
    if OTHER and not ADJOINT:
        shift = tl.load(other + network * CHANNELS + channel, mask=there, other=0.0)
        total += shift.to(SUMS)
    if RELU:
        total = tl.where(total < 0, 0.0, total)  # NaN stays
    rows = ((network * samples + sample) * CHANNELS) * (HEIGHT * WIDTH) + pixel
    target = out + rows + channel * (HEIGHT * WIDTH)
    tl.store(target, total.to(out.dtype.element_ty), mask=inside & there)


def convolve(
    source: Tensor, weight: Tensor, other: Tensor | None, convolution: Convolution
) -> Tensor:
    """Return relu(A x + bias), (B, N, C, H, W) -> (B, N, O, H', W'); of the adjoint A^T (gradient
    where output > 0), (B, R N, O, H', W') -> (B, R N, C, H, W).

    Args:
        source: x; or gradient.
        weight: weights of the networks, (B, O, C, h, w).
        other: bias (B, O) or None; or output (B, N, O, H', W') or None.
        convolution: stride, padding and direction.
    """
    stride, padding, relu, size = convolution
    adjoint = size is not None
    size = size or tuple(
        (side + 2 * border - extent) // step + 1
        for side, border, extent, step in zip(
            source.shape[-2:], padding, weight.shape[-2:], stride, strict=True
        )
    )
    networks, samples = source.shape[:2]
    channels = weight.shape[2 if adjoint else 1]
    out = torch.empty(networks, samples, channels, *size, dtype=source.dtype, device=source.device)
    if not out.numel():
        return out
    tile = triton.next_power_of_2(channels)
    taps = weight.permute(0, 1, 3, 4, 2) if adjoint else weight.permute(0, 2, 3, 4, 1)
    taps = F.pad(taps, (0, tile - channels)).contiguous()
    given = out if other is None else other.contiguous()  # an absent one is never read
    grid = (triton.cdiv(samples * out.shape[-2:].numel(), TUNING["PIXELS"]), networks)
    _convolve[grid](
        out,
        source.contiguous(),
        taps,
        given,
        samples,
        given.shape[1],
        *source.shape[2:],
        *out.shape[2:],
        *weight.shape[-2:],
        *stride,
        *padding,
        ADJOINT=adjoint,
        OTHER=other is not None,
        RELU=relu,
        SUMS=tl.float64 if source.dtype == torch.float64 else tl.float32,
        CHANNEL_TILE=tile,
        enable_fp_fusion=True,
        **TUNING,
    )
    return out
