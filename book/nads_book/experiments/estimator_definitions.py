"""Two definitions of NADs, by long dipoles and by smoothed gradients: small networks on which they can be compared.

The authors' directions are eigenvectors of the second moment of dipoles with an arm of 100, ours of that of gradients
averaged over noise. Where the arm is long, biases and the dipole's centre are nothing beside it: dipole i is the odd
part of what the network without biases makes of pixel i alone, on black. A gradient sees every pixel among others.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from nads_book.experiments.stored import load_study
from nads_core.directions.estimators import Estimator
from nads_core.directions.evaluation import Evaluation
from nads_core.directions.first_networks import FirstNetworks
from nads_core.networks.ensembles import Ensemble
from nads_core.networks.layers import Beside

SIZE = 16  # pixels: a dipole takes 512 evaluations


@dataclass(frozen=True)
class SmallNetwork:
    """A network of few and narrow layers, of the parts of VGG-11: convolutions with batch norm, and a hidden layer.

    Args:
        depth: convolutions, each of them followed by a pooling that halves the image.
        pooling: "max", "average" or "none".
        dense: whether a convolution's input stays beside its output, as in the dense blocks of DenseNet-121.
    """

    depth: int
    pooling: str = "max"
    dense: bool = False

    def build(self, num_classes: int = 1) -> nn.Module:
        """Return a freshly initialised network for images of (1, 16, 16)."""
        layers: list[nn.Module] = []
        channels, size = 1, SIZE
        for _ in range(self.depth):
            convolution = nn.Sequential(nn.Conv2d(channels, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU())
            layers.append(Beside(convolution) if self.dense else convolution)
            channels = channels + 16 if self.dense else 16
            if self.pooling != "none":
                layers.append({"max": nn.MaxPool2d, "average": nn.AvgPool2d}[self.pooling](2))
                size //= 2
        head = [nn.Flatten(), nn.Linear(channels * size**2, 64), nn.ReLU(), nn.Linear(64, num_classes)]
        return nn.Sequential(*layers, *head)


def sampled_halves(
    build: Callable[[], nn.Module], shape: tuple[int, int, int], estimator: Estimator, num_networks: int, seed: int
) -> Tensor:
    """Return what networks contribute to the second moment, as halves (n, 2, D) of their contributions.

    Args:
        build: returns a freshly initialised network with one output.
        shape: of its images, (1, H, H).
        estimator: with one readout.
        num_networks: n.
        seed: of weights and inputs.
    """
    ensemble, first = Ensemble(build, shape, seed=seed), FirstNetworks()
    evaluation = Evaluation(ensemble, estimator, "networks", ensemble.block_size)
    for block in ensemble.blocks(num_networks):
        first.update(block[0], ensemble.block_size, evaluation.contributions([block]), 1)
    return first.halves()[:, 0]


def wave_shares(halves: Tensor) -> Tensor:
    """Return the share of the energy at each frequency, (H, H), from halves (n, 2, H^2), without the noise of inputs.

    Averaged over the symmetries of the square, which the networks have.
    """
    side = math.isqrt(halves.shape[-1])
    waves = torch.fft.fft2(halves.double().unflatten(-1, (side, side)))
    energy = (waves[:, 0] * waves[:, 1].conj()).real.mean(0)
    energy = energy + energy.T
    flipped = energy.roll(-1, 1).flip(1)  # (ky, kx) -> (ky, -kx)
    return (energy + flipped) / (energy + flipped).sum()


def moved_share(first: Tensor, second: Tensor) -> tuple[float, float]:
    """Return how much of the energy lies at other frequencies, and how much of that sampling alone would give.

    Args:
        first: halves (n, 2, D) of networks, by one definition.
        second: the same by another, of networks drawn independently.
    """

    def distance(one: Tensor, other: Tensor) -> float:
        return float((wave_shares(one) - wave_shares(other)).abs().sum()) / 2

    # Two sets of half the networks differ by the square root of two times as much
    by_chance = [distance(part[::2], part[1::2]) / 2**0.5 for part in (first, second)]
    return distance(first, second), float((sum(x**2 for x in by_chance) / 2) ** 0.5)


def measured_definitions() -> dict[str, Any]:
    """Return what benchmarks/definitions.py measured, as the package ships it."""
    measured: dict[str, Any] = load_study("definitions.json")
    return measured
