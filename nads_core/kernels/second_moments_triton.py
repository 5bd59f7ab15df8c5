"""`add_second_moments` in Triton: both sums in one launch, from one pass over the contributions.

A program owns one tile of the two (D, D) sums, sums its part in float32 registers and adds it to
float64 memory once. Only tiles on and below the diagonal are computed, and their mirror images are
stored as well. Programs share nothing, so the sums do not depend on the order in which they run.
Import this module only where it is used: it needs Triton.
"""

import triton
import triton.language as tl
from torch import Tensor

# Compiled for T4 to Blackwell, a thread spills at most 240 bytes (tests/test_kernels.py). Not tuned
# on a device yet: see benchmarks/kernels.py.
TUNING = {"TILE": 64, "NETWORKS": 32, "num_warps": 8, "num_stages": 3}


@triton.jit
def _add_product(total, left, right):
    """Add left^T right, (K, T) and (K, T), to total (T, T)."""
    # Rounded here, because the tensor cores would cut off the last bits.
    left = ((left.to(tl.int32, bitcast=True) + 0x1000) & -0x2000).to(tl.float32, bitcast=True)
    right = ((right.to(tl.int32, bitcast=True) + 0x1000) & -0x2000).to(tl.float32, bitcast=True)
    return tl.dot(tl.trans(left), right, total, input_precision="tf32")


@triton.jit
def _add_tile(total, tile, rows, columns, size):
    """Add a float32 tile to the symmetric float64 (size, size) matrix at ``total``: its lower
    triangle, mirrored.
    """
    lower = (rows[:, None] < size) & (columns[None, :] <= rows[:, None])
    place = total + rows[:, None].to(tl.int64) * size + columns[None, :]
    value = tl.load(place, mask=lower, other=0.0) + tile.to(tl.float64)
    tl.store(place, value, mask=lower)
    upper = (rows[None, :] < size) & (columns[:, None] <= rows[None, :])
    tl.store(
        total + columns[:, None].to(tl.int64) * size + rows[None, :], tl.trans(value), mask=upper
    )


@triton.jit
def _second_moments(
    second_moment,
    noise_moment,
    contributions,
    networks,
    size,
    J: tl.constexpr,
    TILE: tl.constexpr,
    NETWORKS: tl.constexpr,
):
    """Add (networks, J, size) contributions to one tile of both (size, size) sums."""
    row_tile, column_tile = tl.program_id(0), tl.program_id(1)
    if column_tile > row_tile:
        return
    rows = row_tile * TILE + tl.arange(0, TILE)
    columns = column_tile * TILE + tl.arange(0, TILE)
    moment_tile = tl.zeros((TILE, TILE), dtype=tl.float32)
    noise_tile = tl.zeros((TILE, TILE), dtype=tl.float32)
    for start in range(0, networks, NETWORKS):
        network = start + tl.arange(0, NETWORKS)
        # (NETWORKS, TILE) addresses of g_0: the pixels of this tile's rows (left) and columns
        # (right)
        left = contributions + network[:, None].to(tl.int64) * (J * size) + rows[None, :]
        right = contributions + network[:, None].to(tl.int64) * (J * size) + columns[None, :]
        left_inside = (network[:, None] < networks) & (rows[None, :] < size)
        right_inside = (network[:, None] < networks) & (columns[None, :] < size)
        left_mean = tl.load(left, mask=left_inside, other=0.0)
        right_mean = tl.load(right, mask=right_inside, other=0.0)
        if J > 1:
            left_base, right_base = left_mean, right_mean
            left_shift = tl.zeros((NETWORKS, TILE), dtype=tl.float32)
            right_shift = tl.zeros((NETWORKS, TILE), dtype=tl.float32)
            for _ in range(1, J):  # from g_j to g_(j + 1) it is ``size`` numbers
                left += size
                right += size
                left_rest = tl.load(left, mask=left_inside, other=0.0) - left_base
                right_rest = tl.load(right, mask=right_inside, other=0.0) - right_base
                left_shift += left_rest
                right_shift += right_rest
                noise_tile = _add_product(noise_tile, left_rest, right_rest)
            left_shift, right_shift = left_shift / J, right_shift / J
            left_mean, right_mean = left_base + left_shift, right_base + right_shift
            noise_tile -= J * _add_product(tl.zeros_like(noise_tile), left_shift, right_shift)
        moment_tile = _add_product(moment_tile, left_mean, right_mean)
    _add_tile(second_moment, moment_tile, rows, columns, size)
    if J > 1:
        _add_tile(noise_moment, noise_tile / (J * (J - 1)), rows, columns, size)


def launch(
    second_moment: Tensor, noise_moment: Tensor, contributions: Tensor, **tuning: int
) -> None:
    """Add contiguous (B, J, D) float32 contributions to the (D, D) float64 sums, in place; change
    `TUNING` options.
    """
    count, per_network, size = contributions.shape
    options = TUNING | tuning
    tiles = triton.cdiv(size, options["TILE"])
    _second_moments[(tiles, tiles)](
        second_moment,
        noise_moment,
        contributions,
        count,
        size,
        J=per_network,
        enable_fp_fusion=True,
        **options,
    )
