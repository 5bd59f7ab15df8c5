"""Randomisation tests of whether the distribution of networks is invariant under a map of the
image.

Network i has the share Z_i = (x y^T + y x^T) / 2 of the second moment C, with x and y its halves. A
map g reverses the odd part of an image, O x, and keeps the even part. The part of C that g changes
has the squared norm T = ||C - g C g^T||^2 / 2 = 4 ||C_oe||^2, where C_oe is the block of C between
odd and even images. N^2 T is the sum of d_ij = 4 <(Z_i)_oe, (Z_j)_oe> over all pairs of N networks.
Its estimate has no bias, because the terms d_ii of a network with itself are summed apart
(`self_terms`) and subtracted.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from nads_core.directions.simulation import FEWEST_ALONG
from nads_core.directions.symmetry import as_image
from nads_core.runtime.arguments import Shape, require_integers

SIGNIFICANCE = 0.01
NEGLIGIBLE = 0.01  # the antisymmetric part then has at most 0.07 of the norm of C
FEWEST_NETWORKS = 16
_VECTORS = 512  # vectors of networks that get random signs
_DRAWS = 999


@dataclass(frozen=True)
class SymmetryTest:
    """Result of the test of one symmetry.

    Args:
        p_value: p-value of the asymmetry, were the networks equally likely before and after the
            map; for a symmetry of several maps that of the worst, times their number.
        asymmetry: T / ||C||^2 of the worst map, without bias: 0 for a symmetric second moment, 1
            for one that has nothing in common with its image.
        limit: upper limit of the asymmetry, from the 95 % quantile of random signs; infinite where
            the networks have nothing in common that could be asymmetric.
        allowed: asymmetry up to which an average over the map and the identity lowers the expected
            error of C, which is E||Z||^2 / (N ||C||^2); at most 0.01, because a small one can turn
            two directions of nearly equal energy, and nothing of this is in the certainties.
    """

    p_value: float
    asymmetry: float
    limit: float
    allowed: float = NEGLIGIBLE

    @property
    def holds(self) -> bool:
        """Whether the networks neither contradict the symmetry nor leave room for much of the
        contrary.
        """
        return self.p_value >= SIGNIFICANCE and self.limit <= self.allowed


def self_terms(halves: Tensor, image_shape: Shape) -> Tensor:
    """Return the sums over networks of ||Z_i||^2 and, for each map, of <Z_i, g Z_i g^T> = ||Z_i||^2
    - d_ii: (1 + maps,) in float64.

    Args:
        halves: halves of the networks, (n, R, 2, D); the share of a network is the mean over its
            readouts.
        image_shape: (C, H, W) or (C, L); inputs of other shapes have no maps.
    """
    dots = _dots(halves).double()  # (n, 2 R, 2 R)
    terms = [_products(dots)]
    for one in _maps(image_shape):
        odd = _dots(one.odd_part(halves, image_shape)).double()
        terms.append(terms[0] - _changes(dots, odd))
    return torch.stack([term.mean((1, 2)).sum() for term in terms])


def symmetry_tests(
    second_moment: Tensor,
    own: Tensor,
    num_networks: int,
    halves: Tensor,
    image_shape: Shape,
) -> dict[str, SymmetryTest]:
    """Test each symmetry that images of this shape can have.

    The share of network i in C - g C g^T, where g is a flip, an exchange or a change of sign, is as
    likely as its negative if the networks are as likely before as after g. So T is compared with
    the values that random signs of the shares give (Fisher's exact test): those of the first
    networks, in the scale of all (`_scale`). Where a few networks hold the shares, those of the
    first ones say little of the others: the p-value is then that of the first networks alone.

    Args:
        second_moment: C from all networks, without the noise of their inputs, (D, D).
        own: `self_terms` of all networks.
        num_networks: N.
        halves: halves of the first networks, (n, R, 2, D).
        image_shape: (C, H, W) or (C, L); inputs of other shapes have no symmetries.

    Raises:
        ValueError: for fewer than 16 networks.
    """
    require_integers(least=FEWEST_NETWORKS, num_networks=num_networks)
    total = second_moment.double().cpu() * num_networks  # the sum over all networks
    own = own.double()
    halves = halves[: max(FEWEST_NETWORKS, _VECTORS // halves.shape[1])].float()  # (n, R, 2, D)
    generator = torch.Generator().manual_seed(0)
    signs = torch.randint(2, (_DRAWS, len(halves)), generator=generator).float() * 2 - 1

    # N^2 ||C||^2 without bias: the sum over all pairs of networks, less those with themselves
    energy = float(total.square().sum() - own[0])
    allowed = min(NEGLIGIBLE, float(own[0]) / energy) if energy > 0 else 0.0
    dots = _dots(halves.flatten(0, 1))  # (2 n R, 2 n R)
    results = defaultdict[str, list[SymmetryTest]](list)
    for one, own_image in zip(_maps(image_shape), own[1:].tolist(), strict=True):
        own_of_all = float(own[0]) - own_image  # sum of d_ii
        columns = one.odd_part(total, image_shape)  # C O^T, (D, d)
        block = one.odd_part(columns.T, image_shape)  # O C O^T, (d, d)
        # N^2 T = 4 ||C_oe||^2, without the terms of a network with itself
        changed = 4 * float(columns.square().sum() - block.square().sum()) - own_of_all
        odd_dots = _dots(one.odd_part(halves, image_shape).flatten(0, 1))
        # d_ij: means over the readouts of both networks, (n, n)
        differences = _changes(dots, odd_dots).unflatten(1, halves.shape[:2]).mean(2)
        differences = differences.unflatten(0, halves.shape[:2]).mean(1)
        own_of_first = differences.diagonal().double()
        differences.fill_diagonal_(0)
        random = ((signs @ differences) * signs).sum(1).double()  # over pairs, (draws,)
        scale = _scale(own_of_first, own_of_all, num_networks)
        if _num_effective(own_of_first, own_of_all / num_networks) < FEWEST_ALONG:
            more_extreme = random >= float(differences.double().sum())
        else:
            more_extreme = scale * random >= changed
        p_value = (1 + int(more_extreme.sum())) / (1 + _DRAWS)
        asymmetry, limit = math.nan, math.inf
        if energy > 0:
            asymmetry = changed / energy
            limit = (changed + scale * float(random.quantile(0.95))) / energy
        results[one.symmetry].append(SymmetryTest(p_value, asymmetry, limit, allowed))
    return {symmetry: _worst(of_maps) for symmetry, of_maps in results.items()}


def _scale(own_of_first: Tensor, own_of_all: float, num_networks: int) -> float:
    """Return how much wider the sum over pairs of all networks is with random signs than that of
    the first ones.

    Its variance is 2 sum_{i != j} d_ij^2. For networks that differ in size, d_ij^2 is proportional
    to d_ii d_jj, and this to (sum d_ii)^2 - sum d_ii^2. The sum of d_ii over all networks is known,
    that of their squares is at least that of the first networks, and that of equal ones.

    Args:
        own_of_first: d_ii of the first networks, (n,).
        own_of_all: sum of d_ii over all networks.
        num_networks: number of all networks.
    """
    total, squares = float(own_of_first.sum()), float(own_of_first.square().sum())
    least = max(squares, own_of_all**2 / num_networks)
    variance = total**2 - squares
    return math.sqrt(max(0.0, own_of_all**2 - least) / variance) if variance > 0 else 1.0


def _num_effective(own_of_first: Tensor, mean_of_all: float) -> float:
    """Return how many networks of equal size hold the shares, (sum d_ii)^2 / sum d_ii^2 of the
    first networks; what the mean of all has beyond theirs may be that of one network.
    """
    later = (len(own_of_first) * mean_of_all - own_of_first.sum()).clamp(min=0)
    sizes = torch.cat([own_of_first, later[None]])
    return float(sizes.sum().square() / sizes.square().sum().clamp(min=1e-300))


def _worst(tests: list[SymmetryTest]) -> SymmetryTest:
    """Return the test of a symmetry from those of its maps: the asymmetry of the worst map, and the
    smallest p-value times their number (Bonferroni).
    """
    p_value = min(1.0, len(tests) * min(test.p_value for test in tests))
    return replace(max(tests, key=lambda test: test.limit), p_value=p_value)


class _Map(NamedTuple):
    """A map of images that is its own inverse, and its symmetry, whose group it helps to generate.

    Args:
        symmetry: name of the symmetry.
        odd: function that returns O x, the coordinates of the part that the map reverses, of images
            (..., C, H, W), in any shape (..., *d).
    """

    symmetry: str
    odd: Callable[[Tensor], Tensor]

    def odd_part(self, vectors: Tensor, image_shape: Shape) -> Tensor:
        """Return O x, (..., d), of vectors (..., D)."""
        return self.odd(vectors.unflatten(-1, as_image(image_shape))).flatten(vectors.ndim - 1)


def _maps(image_shape: Shape) -> list[_Map]:
    """Return the maps of all symmetries that images of this shape can have."""
    if len(image_shape) not in (2, 3):
        return []
    channels, height, width = as_image(image_shape)
    above, below = torch.triu_indices(width, width, offset=1)
    unit, maps = 0.5**0.5, []

    def exchanged(x: Tensor, channel: int) -> Tensor:
        return (x[..., 0, :, :] - x[..., channel, :, :]) * unit

    if height > 1:
        maps.append(_Map("flip_rows", lambda x: ((x - x.flip(-2)) * unit)[..., : height // 2, :]))
    if width > 1:
        maps.append(_Map("flip_columns", lambda x: ((x - x.flip(-1)) * unit)[..., : width // 2]))
    if height == width > 1:
        maps.append(
            _Map("transpose", lambda x: (x[..., above, below] - x[..., below, above]) * unit)
        )
    if channels > 1:  # changes of a channel's sign, and exchanges with the first
        maps += [_Map("channels", partial(torch.select, dim=-3, index=c)) for c in range(channels)]
        maps += [_Map("channels", partial(exchanged, channel=c)) for c in range(1, channels)]
    return maps


def _dots(halves: Tensor) -> Tensor:
    """Return the products of all halves (..., m, 2, d): (..., 2 m, 2 m), whose rows and columns
    alternate between x and y.
    """
    vectors = halves.flatten(-3, -2)
    return vectors @ vectors.mT


def _products(dots: Tensor) -> Tensor:
    """Return <Z, Z'> = ((x x') (y y') + (x y') (y x')) / 2 of Z = (x y^T + y x^T) / 2, (..., m, m),
    from `_dots`.
    """
    same = dots[..., ::2, ::2] * dots[..., 1::2, 1::2]
    crossed = dots[..., ::2, 1::2] * dots[..., 1::2, ::2]
    return (same + crossed) / 2


def _changes(dots: Tensor, odd: Tensor) -> Tensor:
    """Return d = <Z, Z' - g Z' g^T> = 4 <Z_oe, Z'_oe>, (..., m, m), from `_dots` of the halves and
    of their odd parts; 2 Z_oe = (O x) (E y)^T + (O y) (E x)^T, with E y the even part.
    """
    even = dots - odd
    x, y = slice(None, None, 2), slice(1, None, 2)
    return (
        odd[..., x, x] * even[..., y, y]
        + odd[..., y, y] * even[..., x, x]
        + odd[..., x, y] * even[..., y, x]
        + odd[..., y, x] * even[..., x, y]
    )
