"""Tests of whether the distribution of networks is invariant under a map of the image, by random
signs of groups of networks.

A map g that is its own inverse changes the share C_k of group k in the second moment by
A_k = C_k - g C_k g^T. If networks are as likely before as after g, each A_k is as likely as -A_k:
T = 8/7 sum_{k != l} <A_k, A_l>, which estimates ||C - g C g^T||^2 without bias, is compared with its
values under all 2^7 changes of signs (a randomisation test). With B_k, the block of C_k between the
images that g keeps and those whose sign it changes,

    <A_k, A_l> = 8 <B_k, B_l>.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from nads_core.directions.certainty import random_signs
from nads_core.directions.symmetry import as_image
from nads_core.runtime.arguments import Shape

_REJECTED = 2 / 128  # p-value up to which a symmetry is rejected
_NEGLIGIBLE = 0.01  # the antisymmetric part then has at most 0.08 of the norm of C


@dataclass(frozen=True)
class SymmetryTest:
    """Result of the test of one symmetry.

    Args:
        p_value: p-value of the asymmetry; for a symmetry of several maps that of the worst, times
            their number.
        asymmetry: ||C - g C g^T||^2 / (2 ||C||^2) of the worst map, without bias: 0 for a symmetric
            second moment, 1 for one that has nothing in common with its image.
        limit: upper limit of the asymmetry, from the 95 % quantile of random signs.
        allowed: asymmetry up to which an average over the map lowers the expected error of C,
            E||error||^2 / ||C||^2; at most 0.01, because nothing of it is in the certainties.
    """

    p_value: float
    asymmetry: float
    limit: float
    allowed: float = _NEGLIGIBLE

    @property
    def holds(self) -> bool:
        """Whether the networks neither contradict the symmetry nor leave room for much of the
        contrary.
        """
        return self.p_value > _REJECTED and self.limit <= self.allowed


def symmetry_tests(shares: Tensor, image_shape: Shape) -> dict[str, SymmetryTest]:
    """Test each symmetry that images of this shape can have.

    Args:
        shares: shares of the groups in C, (8, D, D).
        image_shape: (C, H, W) or (C, L); inputs of other shapes have no symmetries.
    """
    own = _products(shares)  # <C_k, C_l>, (8, 8)
    groups = len(own)
    between = (own.sum() - own.trace()) / (groups * (groups - 1))  # ||C||^2 / 8^2 without bias
    energy = float(between) * groups**2
    # Var C = (8 / 7) sum_k ||C_k - C / 8||^2
    error = float(own.trace() - own.sum() / groups) * groups / (groups - 1)
    results: dict[str, SymmetryTest] = {}
    tried: dict[str, int] = {}
    for symmetry, pixels, sign in _maps(image_shape):
        blocks = torch.stack([_between(share, pixels, sign) for share in shares])
        null = groups / (groups - 1) * random_signs(8 * _products(blocks))  # T
        quantile = float(null.quantile(0.95))
        test = SymmetryTest(
            float((null >= null[0]).double().mean()),
            float(null[0]) / energy / 2 if energy > 0 else torch.nan,
            (float(null[0]) + quantile) / energy / 2 if energy > 0 else torch.inf,
            min(_NEGLIGIBLE, error / energy) if energy > 0 else 0.0,
        )
        worst = results.get(symmetry, test)
        tried[symmetry] = tried.get(symmetry, 0) + 1
        p_value = min(test.p_value, worst.p_value)
        results[symmetry] = replace(max(test, worst, key=lambda t: t.limit), p_value=p_value)
    return {
        symmetry: replace(test, p_value=min(1.0, tried[symmetry] * test.p_value))
        for symmetry, test in results.items()
    }


def accepted(tests: dict[str, SymmetryTest]) -> tuple[str, ...]:
    """Return the symmetries that hold, see `SymmetryTest`."""
    holding = [symmetry for symmetry, test in tests.items() if test.holds]
    if "transpose" in holding and len({"flip_rows", "flip_columns"} & set(holding)) == 1:
        holding.remove("transpose")  # with one flip it makes the other, which was rejected
    return tuple(holding)


def _products(matrices: Tensor) -> Tensor:
    """Return the inner products of the groups' matrices, (8, n, m) -> (8, 8)."""
    return matrices.flatten(1) @ matrices.flatten(1).T


def _between(share: Tensor, pixels: Tensor, sign: Tensor) -> Tensor:
    """Return B_k, (even, odd), of a map g: x -> sign * x[pixels]."""
    places = torch.arange(len(pixels))
    one = places[places < pixels]  # of a pair of pixels that g exchanges
    other, signs, fixed = pixels[one], sign[one], places == pixels
    # Images that g keeps: (e_p + sign e_q) / sqrt(2), and fixed pixels of sign 1
    even = (share[one] + signs[:, None] * share[other]) / 2**0.5
    even = torch.cat([even, share[fixed & (sign > 0)]])
    # Those whose sign it changes: (e_p - sign e_q) / sqrt(2), and fixed pixels of sign -1
    odd = (even[:, one] - signs * even[:, other]) / 2**0.5
    return torch.cat([odd, even[:, fixed & (sign < 0)]], 1)


def _maps(image_shape: Shape) -> Iterator[tuple[str, Tensor, Tensor]]:
    """Yield (symmetry, pixels, signs): maps x -> signs * x[pixels] of the D pixels that are their
    own inverse and generate the symmetry's group.
    """
    if len(image_shape) not in (2, 3):
        return
    channels, height, width = as_image(image_shape)
    places = torch.arange(channels * height * width).view(channels, height, width)
    signs = torch.ones(places.shape, dtype=torch.float64)
    if height > 1:
        yield "flip_rows", places.flip(1).flatten(), signs.flatten()
    if width > 1:
        yield "flip_columns", places.flip(2).flatten(), signs.flatten()
    if height == width > 1:
        yield "transpose", places.mT.flatten(), signs.flatten()
    for channel in range(channels if channels > 1 else 0):  # its sign, and an exchange with 0
        minus, exchanged = signs.clone(), list(range(channels))
        minus[channel] = -1
        yield "channels", places.flatten(), minus.flatten()
        if channel:
            exchanged[0], exchanged[channel] = channel, 0
            yield "channels", places[exchanged].flatten(), signs.flatten()
