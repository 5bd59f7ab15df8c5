"""Randomisation tests of whether the distribution of networks is invariant under a map of the image.

Network i has the share Z_i = (x y^T + y x^T) / 2 of the second moment C, with x and y its halves. The part of C that a
map g changes has the squared norm T = ||C - g C g^T||^2 / 2 = ||C||^2 - <C, g C g^T>. All networks together estimate it
without bias, because the products of a network with itself are summed apart (`own_products`) and subtracted.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from nads_core.networks.architectures import SYMMETRIES
from nads_core.runtime.arguments import require_integers

SIGNIFICANCE = 0.01
NEGLIGIBLE = 0.1  # the antisymmetric part then has at most 0.22 of the norm of C
FEWEST_NETWORKS = 16
_VECTORS = 512  # vectors of networks that get random signs
_DRAWS = 999


@dataclass(frozen=True)
class SymmetryTest:
    """Result of the test of one symmetry.

    Args:
        p_value: p-value of the asymmetry, were the networks equally likely before and after the map; for a symmetry of
            several maps that of the worst, times their number.
        asymmetry: T / ||C||^2 of the worst map, without bias: 0 for a symmetric second moment, 1 for one that has
            nothing in common with its image.
        limit: upper limit of the asymmetry, from the 95 % quantile of random signs; infinite where the networks have
            nothing in common that could be asymmetric.
        allowed: asymmetry up to which an average over the map and the identity lowers the expected error of C, which
            is E||Z||^2 / (N ||C||^2); at most 0.1.
    """

    p_value: float
    asymmetry: float
    limit: float
    allowed: float = NEGLIGIBLE

    @property
    def holds(self) -> bool:
        """Whether the networks neither contradict the symmetry nor leave room for much of the contrary."""
        return self.p_value >= SIGNIFICANCE and self.limit <= self.allowed


def own_products(halves: Tensor, image_shape: tuple[int, ...]) -> Tensor:
    """Return the sums over networks of ||Z_i||^2 and, for each map, of <Z_i, g Z_i g^T>: (1 + maps,) in float64.

    Args:
        halves: halves of the networks, (n, R, 2, D); the share of a network is the mean over its readouts.
        image_shape: (C, H, W); inputs of other shapes have no maps.
    """
    maps = [move for symmetry in SYMMETRIES for move in _maps(symmetry, image_shape)]
    images = [halves, *(_moved(halves, move, image_shape) for move in maps)]
    return torch.stack([_products(halves, image).mean((1, 2)).sum() for image in images])


def symmetry_tests(
    second_moment: Tensor,
    own: Tensor,
    num_networks: int,
    halves: Tensor,
    image_shape: tuple[int, ...],
) -> dict[str, SymmetryTest]:
    """Test each symmetry that images of this shape can have.

    The share of network i in C - g C g^T, where g is a flip, an exchange or a change of sign, is as likely as its
    negative if the networks are as likely before as after g. So T is compared with the values that random signs of the
    shares give (Fisher's exact test): those of the first networks, because the distribution of N T does not depend on
    the number of networks N.

    Args:
        second_moment: C from all networks, without the noise of their inputs, (D, D).
        own: `own_products` of all networks.
        num_networks: N.
        halves: halves of the first networks, (n, R, 2, D).
        image_shape: (C, H, W); inputs of other shapes have no symmetries.

    Raises:
        ValueError: for fewer than 16 networks.
    """
    require_integers(least=FEWEST_NETWORKS, num_networks=num_networks)
    second_moment, own = second_moment.double().cpu(), own.double() / num_networks**2
    halves = halves[: max(FEWEST_NETWORKS, _VECTORS // halves.shape[1])].float()  # (n, R, 2, D)
    signs = (
        torch.randint(2, (_DRAWS, len(halves)), generator=torch.Generator().manual_seed(0)).double()
        * 2
        - 1
    )
    # (n, n); ||C||^2
    same, energy = (
        _shared(halves, halves),
        float(second_moment.square().sum() - own[0]),
    )
    allowed = min(NEGLIGIBLE, float(own[0]) / energy) if energy > 0 else 0.0
    # From sums over pairs of the n networks to T of all
    unit = num_networks / (len(halves) - 1) / num_networks**2
    tests, own_images = {}, iter(own[1:].tolist())
    for symmetry in SYMMETRIES:
        results = []
        for move in _maps(symmetry, image_shape):
            image = _moved(_moved(second_moment, move, image_shape).T, move, image_shape)  # g C g^T
            changed = energy - float((second_moment * image).sum()) + next(own_images)  # T
            differences = (
                same - _shared(halves, _moved(halves, move, image_shape))
            ).fill_diagonal_(0)
            random = ((signs @ differences) * signs).sum(
                1
            ) * unit  # (draws,): T of networks with random signs
            p_value = (1 + int((random >= changed).sum())) / (1 + _DRAWS)
            limit = (changed + float(random.quantile(0.95))) / energy if energy > 0 else math.inf
            results.append((p_value, changed / energy if energy > 0 else math.nan, limit))
        if results:
            p_value = min(1.0, len(results) * min(result[0] for result in results))
            tests[symmetry] = SymmetryTest(
                p_value, *max(results, key=lambda result: result[2])[1:], allowed
            )
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
    signs = 1 - 2 * torch.eye(channels)[:, :, None, None]
    orders = torch.arange(channels).repeat(channels - 1, 1)
    for channel, order in enumerate(orders, start=1):  # which changes places with the first
        order[[0, channel]] = order[[channel, 0]]
    swaps = [
        lambda images, order=order: images.index_select(-3, order.to(images.device))
        for order in orders
    ]
    return [*(lambda images, sign=sign: images * sign.to(images) for sign in signs), *swaps]


def _moved(
    vectors: Tensor, move: Callable[[Tensor], Tensor], image_shape: tuple[int, ...]
) -> Tensor:
    """Apply a map to vectors (..., D)."""
    return move(vectors.unflatten(-1, image_shape)).flatten(-len(image_shape))


def _shared(first: Tensor, second: Tensor) -> Tensor:
    """Return <Z_i, Z_j'> (n, n) for two lists of networks, halves (n, R, 2, D): means over their readouts."""
    count, readouts = first.shape[:2]
    products = _products(first.flatten(0, 1), second.flatten(0, 1))  # (n * R, n * R)
    return products.view(count, readouts, count, readouts).mean((1, 3))


def _products(first: Tensor, second: Tensor) -> Tensor:
    """Return <Z, Z'> (..., m, m) of Z = (x y^T + y x^T) / 2, from halves x, y (..., m, 2, D), in float64."""
    dots = (first.flatten(-3, -2) @ second.flatten(-3, -2).mT).double()  # (..., 2 m, 2 m)
    xp, xq, yp, yq = (
        dots[..., ::2, ::2],
        dots[..., ::2, 1::2],
        dots[..., 1::2, ::2],
        dots[..., 1::2, 1::2],
    )
    return (xp * yq + xq * yp) / 2
