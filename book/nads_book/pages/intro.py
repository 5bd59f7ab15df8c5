"""The figure of the introduction that shows how NADs are made."""

from __future__ import annotations

import math

import numpy as np
import torch

from nads_book.benchmarks.plain_loop import average_gradient
from nads_book.explorer.wave_bet import guess_data
from nads_book.figures.learning import frequency_grid
from nads_core import RESNET18, load_nads


def how_nads_are_made() -> dict[str, np.ndarray]:
    """Compute what the strip shows of ResNet-18: title -> signed picture, or logarithms of
    energies.

    These are the first filters of one random network, its gradient, the energies of the waves in
    the gradients of thousands of networks, and the first directions.
    """
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = RESNET18.build().eval()
        gradient = average_gradient(network, torch.randn(16, 1, 32, 32)).view(32, 32)
    filters = next(weight for weight in network.parameters() if weight.dim() == 4).detach()[:, 0]
    waves = frequency_grid(
        {(ky, kx): energy for ky, kx, energy, _ in guess_data("resnet18")["tasks"]}
    )
    first = load_nads("resnet18").directions[:4, 0]
    return {
        "1. One network with\nrandom weights": mosaic(filters.numpy()),
        "2. Its gradient: how much\neach pixel matters": gradient.numpy(),
        "3. Thousands of gradients:\nthe energy of each wave": np.log10(waves / np.nanmin(waves)),
        "4. What they share:\nthe first four NADs": mosaic(first.numpy()),
    }


def mosaic(pictures: np.ndarray) -> np.ndarray:
    """Put n pictures (n, H, W) into a square, each scaled to its largest value, with a line of NaN
    between them.
    """
    side = math.isqrt(len(pictures))
    scaled = pictures / np.abs(pictures).max((1, 2), keepdims=True)
    padded = np.pad(scaled, ((0, 0), (0, 1), (0, 1)), constant_values=np.nan)
    rows = padded.reshape(side, side, *padded.shape[1:])
    return np.block([list(row) for row in rows])[:-1, :-1]
