"""Two definitions of NADs, by long dipoles and by smoothed gradients: small networks on which they
can be compared.

The authors' directions are eigenvectors of the second moment of dipoles with an arm of 100, ours of
that of gradients averaged over noise. Where the arm is long, biases and the dipole's centre are
negligible: dipole i is the odd part of what the network without biases makes of pixel i alone, on
black. A gradient sees every pixel among others.
"""

import itertools
import math
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn

import nads_core as nc
from nads_book.atlas.small_networks import Concatenated
from nads_book.experiments import (
    Context,
    Row,
    Study,
    Unit,
    rounded,
)
from nads_core.directions.estimators import Estimator
from nads_core.networks import Network, Networks

SIZE = 16  # pixels: a dipole takes 512 evaluations


Build = Callable[..., nn.Module]


def small_network(
    depth: int, pooling: str = "max", dense: bool = False, num_classes: int = 1
) -> nn.Module:
    """Return a network of few and narrow layers for images of (1, 16, 16), of the parts of VGG-11:
    convolutions with batch norm, and a hidden layer.

    Args:
        depth: number of convolutions, each of them followed by a pooling that halves the image.
        pooling: "max", "average" or "no".
        dense: whether convolutions are `Concatenated`.
        num_classes: number of outputs.
    """
    layers: list[nn.Module] = []
    channels, size = 1, SIZE
    block = Concatenated if dense else nn.Sequential
    for _ in range(depth):
        layers.append(block(nn.Conv2d(channels, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU()))
        channels = channels + 16 if dense else 16
        if pooling != "no":
            layers.append({"max": nn.MaxPool2d, "average": nn.AvgPool2d}[pooling](2))
            size //= 2
    hidden = nn.Linear(channels * size**2, 64)
    head = nn.Linear(64, num_classes)
    return nn.Sequential(*layers, nn.Flatten(), hidden, nn.ReLU(), head)


NETWORKS: dict[str, Build] = {
    f"{pooling} pooling, {n}": partial(small_network, n, pooling)
    for pooling in ("max", "average", "no")
    for n in (1, 2, 3)
}
NETWORKS |= {
    f"dense blocks, {n}": partial(small_network, n, "average", dense=True) for n in (1, 2, 3)
}
DEFINITIONS: dict[str, Estimator] = {
    **{
        f"gradient {std:g}": nc.SmoothedGradient(16, input_std=std) for std in (0.3, 1.0, 3.0, 10.0)
    },
    **{f"dipole {arm:g}": nc.Dipole(step=arm) for arm in (1.0, 10.0, 100.0, 300.0)},
}
NUM_NETWORKS = 512


def sampled_halves(
    build: Build,
    shape: tuple[int, ...],
    estimator: Estimator,
    num_networks: int,
    seed: int,
) -> Tensor:
    """Return what networks contribute to the second moment, as halves (n, 2, D) of their
    contributions.

    Args:
        build: function that returns a freshly initialised network with one output.
        shape: shape of its images, (1, H, H).
        estimator: estimator with one readout.
        num_networks: n.
        seed: seed of weights and inputs.
    """
    networks = Networks(build, shape, seed)
    vectors = [estimator.vectors(Network(networks, index)) for index in range(num_networks)]
    return torch.stack(vectors)[:, :, 0].expand(-1, 2, -1)  # a single contribution is both halves


def wave_shares(halves: Tensor) -> Tensor:
    """Return the share of the energy at each frequency, (H, H), from halves (n, 2, H^2), without
    the noise of inputs.

    Averaged over the symmetries of the square, which the networks have.
    """
    side = math.isqrt(halves.shape[-1])
    waves = torch.fft.fft2(halves.double().unflatten(-1, (side, side)))
    energy = (waves[:, 0] * waves[:, 1].conj()).real.mean(0)
    energy = energy + energy.T
    flipped = energy.roll(-1, 1).flip(1)  # (ky, kx) -> (ky, -kx)
    return (energy + flipped) / (energy + flipped).sum()


def moved_share(first: Tensor, second: Tensor) -> tuple[float, float]:
    """Return how much of the energy lies at other frequencies, and how much of that sampling alone
    would give.

    Args:
        first: halves (n, 2, D) of networks, by one definition.
        second: the same by another, of networks drawn independently.
    """

    def distance(one: Tensor, other: Tensor) -> float:
        return float((wave_shares(one) - wave_shares(other)).abs().sum()) / 2

    # Two sets of half the networks differ by the square root of two times as much
    by_chance = [distance(part[::2], part[1::2]) / 2**0.5 for part in (first, second)]
    return distance(first, second), float((sum(x**2 for x in by_chance) / 2) ** 0.5)


class DefinitionMoments(Study):
    """How much do second moments by different estimators differ? Twelve small networks."""

    name = "definitions"
    on_gpu = False
    design = {"network": NETWORKS}

    def run(self, unit: Unit, context: Context) -> Row:
        network = NETWORKS[unit["network"]]
        halves = {
            label: sampled_halves(network, (1, SIZE, SIZE), estimator, NUM_NETWORKS, seed)
            for seed, (label, estimator) in enumerate(DEFINITIONS.items())
        }
        moved = {
            f"{a} | {b}": moved_share(halves[a], halves[b])
            for a, b in itertools.combinations(halves, 2)
        }
        shares = {label: wave_shares(part) for label, part in halves.items()}
        facts = {"moved": rounded(moved, 4), "shares": rounded(shares, 7)}
        return {"num_networks": NUM_NETWORKS, **facts}
