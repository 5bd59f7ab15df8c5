"""Randomisation tests of whether the distribution of networks is invariant under a map of the image."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from nads_core.networks.architectures import SYMMETRIES

SIGNIFICANCE = 0.05
NEGLIGIBLE = 0.1  # the antisymmetric part then has at most 0.22 of the norm of C
FEWEST_NETWORKS = 16
_DRAWS = 999
_UPPER = 1.645  # standard errors: one-sided 95 %


@dataclass(frozen=True)
class SymmetryTest:
    """Result of the test of one symmetry.

    Args:
        p_value: p-value of the asymmetry, were the networks equally likely before and after the map; for a symmetry of
            several maps that of the worst, times their number.
        asymmetry: ||C - g C g^T||^2 / (2 ||C||^2), of the worst map g, without bias: 0 for a symmetric second moment C,
            1 for one that has nothing in common with its image.
        limit: 95 % upper limit of the asymmetry, by a jackknife over networks; infinite where these have nothing in
            common that could be asymmetric.
    """

    p_value: float
    asymmetry: float
    limit: float

    @property
    def holds(self) -> bool:
        """Whether the networks neither contradict the symmetry nor leave room for much of the contrary."""
        return self.p_value >= SIGNIFICANCE and self.limit <= NEGLIGIBLE


def symmetry_tests(halves: Tensor, image_shape: tuple[int, ...]) -> dict[str, SymmetryTest]:
    """Test each symmetry that images of this shape can have.

    The share of network i in C - g C g^T, where g is a flip, an exchange or a change of sign, is as likely as its
    negative if the networks are as likely before as after g. So the squared norm of the sum of all shares is compared
    with the squared norms of sums with random signs, an exact test (Fisher's). Shares meet their own noise on the
    diagonal alone, which is left out.

    Args:
        halves: halves of the networks, (n, R, 2, D), from `FirstNetworks.halves`; the test uses the first readout.
        image_shape: (C, H, W); inputs of other shapes have no symmetries.

    Raises:
        ValueError: for fewer than 16 networks.
    """
    if len(halves) < FEWEST_NETWORKS:
        raise ValueError(
            f"a test of symmetries compares networks with each other: expected {FEWEST_NETWORKS} at least, got "
            f"{len(halves)}"
        )
    first = halves[:, 0].double()  # (n, 2, D)
    tests = {}
    for symmetry in SYMMETRIES:
        images, maps = first.unflatten(-1, image_shape), _maps(symmetry, image_shape)
        results = [_test(first, move(images).flatten(2)) for move in maps]
        if results:
            p_value = min(1.0, len(results) * min(test.p_value for test in results))
            worst = max(results, key=lambda test: test.limit)
            tests[symmetry] = SymmetryTest(p_value, worst.asymmetry, worst.limit)
    return tests


def _maps(symmetry: str, image_shape: tuple[int, ...]) -> list[Callable[[Tensor], Tensor]]:
    """Return maps of images (..., C, H, W), each its own inverse, that generate the symmetry's group."""
    if len(image_shape) != 3:
        return []
    channels, height, width = image_shape
    if symmetry == "flip_rows":
        return [lambda images: images.flip(-2)] if height > 1 else []
    if symmetry == "flip_columns":
        return [lambda images: images.flip(-1)] if width > 1 else []
    if symmetry == "transpose":
        return [lambda images: images.mT] if height == width > 1 else []
    if channels == 1:
        return []
    signs = 1 - 2 * torch.eye(channels, dtype=torch.float64)[:, :, None, None]
    orders = torch.arange(channels).repeat(channels - 1, 1)
    for channel, order in enumerate(orders, start=1):  # which changes places with the first
        order[[0, channel]] = order[[channel, 0]]
    swaps = [partial(torch.index_select, dim=-3, index=order) for order in orders]
    return [*(partial(torch.mul, sign) for sign in signs), *swaps]


def _test(networks: Tensor, moved: Tensor) -> SymmetryTest:
    """Compare networks (n, 2, D) with their images under one map, (n, 2, D)."""
    count = len(networks)
    same = _products(networks, networks).fill_diagonal_(0)  # (n, n): <Z_i, Z_j>
    differences = same - _products(networks, moved).fill_diagonal_(0)  # half of <Z_i - g Z_i g^T, Z_j - g Z_j g^T>
    observed, whole = differences.sum(), same.sum()
    signs = torch.randint(2, (_DRAWS, count), generator=torch.Generator().manual_seed(0)).double() * 2 - 1
    random = ((signs @ differences) * signs).sum(1)  # (draws,)
    p_value = (1 + int((random >= observed).sum())) / (1 + _DRAWS)
    others = whole - 2 * same.sum(1)  # (n,): of all networks but one
    without = (observed - 2 * differences.sum(1)) / others
    error, whole_error = (
        ((count - 1) / count * (values - values.mean()).square().sum()).sqrt() for values in (without, others)
    )
    asymmetry, known = float(observed / whole), bool(whole > 2 * _UPPER * whole_error)
    return SymmetryTest(p_value, asymmetry, asymmetry + _UPPER * float(error) if known else math.inf)


def _products(first: Tensor, second: Tensor) -> Tensor:
    """Return <Z, Z'> (n, n) of Z = (x y^T + y x^T) / 2, from halves x, y (n, 2, D) of the networks."""
    (x, y), (p, q) = first.unbind(1), second.unbind(1)
    return ((x @ p.T) * (y @ q.T) + (x @ q.T) * (y @ p.T)) / 2
