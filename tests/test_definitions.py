"""The comparison of two definitions of NADs: energies of waves, and networks on which both can be
computed.
"""

from functools import partial

import pytest
import torch
from convergence import normal
from nads_book.studies.definitions import (
    SIZE,
    moved_share,
    sampled_halves,
    small_network,
    wave_shares,
)

import nads_core as nc


def test_energies_of_waves():
    wave = nc.fourier_direction((1, 3), SIZE).flatten()
    shares = wave_shares(wave.expand(5, 2, -1))
    twins = {
        (ky % SIZE, kx % SIZE) for a, b in ((1, 3), (3, 1)) for ky in (a, -a) for kx in (b, -b)
    }
    assert {
        tuple(place) for place in (shares > 1e-9).nonzero().tolist()
    } == twins  # by the symmetries of the square
    assert float(shares.sum()) == pytest.approx(1) and float(shares.max()) == pytest.approx(1 / 8)
    noise = normal(4_000, 2, SIZE**2)  # halves with nothing in common
    noisy = wave_shares(wave + 0.3 * noise)
    assert float(noisy[1, 3]) == pytest.approx(1 / 8, rel=0.1)  # without the noise of inputs


def test_energy_elsewhere():
    first, second = (nc.fourier_direction(wave, SIZE).flatten() for wave in ((0, 1), (0, 2)))
    generator = torch.Generator().manual_seed(1)

    def drawn(share):
        weights = torch.randn(400, 2, generator=generator) * torch.tensor([1 - share, share]).sqrt()
        return (weights[:, :1] * first + weights[:, 1:] * second)[:, None].expand(-1, 2, -1)

    moved, chance = moved_share(drawn(0.2), drawn(0.5))
    assert moved == pytest.approx(0.3, abs=0.08) and chance < 0.06
    moved, chance = moved_share(drawn(0.3), drawn(0.3))
    assert moved < 3 * chance + 0.02


@pytest.mark.parametrize(("depth", "pooling"), [(2, "max"), (1, "average"), (2, "no")])
def test_small_networks(depth, pooling):
    network = partial(small_network, depth, pooling)
    assert network(num_classes=3)(torch.zeros(2, 1, SIZE, SIZE)).shape == (2, 3)
    halves = sampled_halves(network, (1, SIZE, SIZE), nc.SmoothedGradient(2), 4, seed=0)
    assert halves.shape == (4, 2, SIZE**2) and halves.any()
