"""How the second moment of networks is followed as they train: unbiased cosines, the jackknife, and one trajectory."""

import geometry
import numpy as np
import pytest
import torch

import nads_core as nc


def stack(mean: torch.Tensor, noise: float, groups: int = geometry.GROUPS, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return mean + noise * torch.randn(groups, *mean.shape, generator=generator, dtype=mean.dtype)


def test_noise_does_not_lower_a_cosine():
    generator = torch.Generator().manual_seed(1)
    mean, law = (torch.randn(40, 40, generator=generator, dtype=torch.float64) for _ in range(2))
    law = law + mean
    expected = float((mean * law).sum() / mean.norm() / law.norm())
    everything = torch.arange(geometry.GROUPS)
    found = [geometry.Products(stack(mean, 2, seed=s), {"law": law[None]}).cosine("law", everything) for s in range(50)]
    noisy = stack(mean, 2).mean(0)
    assert float((noisy * law).sum() / noisy.norm() / law.norm()) < 0.95 * expected
    assert np.mean(found) == pytest.approx(expected, abs=4 * np.std(found) / 50**0.5)


def test_nothing_is_said_of_a_change_that_cannot_be_distinguished_from_zero():
    rest = stack(torch.zeros(5, 5, dtype=torch.float64), 1)
    opposite = torch.cat([rest[:8], -rest[:8]])  # of mean zero, so that products of different groups are negative
    products = geometry.Products(opposite, {"law": torch.eye(5, dtype=torch.float64)[None]})
    assert np.isnan(products.cosine("law", torch.arange(geometry.GROUPS)))
    assert geometry.with_jackknife(lambda groups: products.cosine("law", groups))[0] is None


def test_the_jackknife_covers():
    covered = 0
    for seed in range(100):
        values = torch.from_numpy(np.random.default_rng(seed).normal(1, 1, geometry.GROUPS))
        _, low, high = geometry.with_jackknife(lambda groups, v=values: float(v[groups].mean()))
        covered += low <= 1 <= high
    assert 88 <= covered <= 100


def test_one_trajectory():
    generator = torch.Generator().manual_seed(0)
    images = torch.randn(64, 1, 32, 32, generator=generator)
    labels = torch.randint(2, (64,), generator=generator)
    first, again = (geometry.trajectory("linear", images, labels, 3, 3) for _ in range(2))
    assert first.shape == (4, 2, 1024) and torch.equal(first, again)  # start, small step, steps 1 and 3
    small, one = ((first[i] - first[0]).norm() for i in (1, 2))
    assert 0 < small < one
    assert torch.equal(first[0], geometry.trajectory("linear", images, None, 3, 0)[0])
    other = geometry.trajectory("linear", images, labels, 4, 0)
    assert not torch.allclose(other[0], first[0])


def test_batch_norm_is_measured_with_the_statistics_of_the_images():
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.BatchNorm2d(1), torch.nn.Flatten(), torch.nn.Linear(1024, 2))
    images, inputs = 3 * torch.randn(64, 1, 32, 32), torch.randn(2, 4, 1, 32, 32)
    gradients = geometry.input_gradients(network, inputs, images)
    weights = network[2].weight
    expected = (weights[1] - weights[0]) / images.var(correction=1).add(1e-5).sqrt()
    torch.testing.assert_close(gradients, expected.detach().expand(2, -1), rtol=1e-3, atol=1e-6)
    assert network.training


def test_the_closed_form_of_a_deep_linear_network(capsys):
    geometry.check()
    difference, cosine = (float(line.split()[-1]) for line in capsys.readouterr().out.splitlines())
    assert difference < 0.1 and cosine > 0.995


def test_networks_of_the_design_can_be_built():
    for size in geometry.NETWORKS.values():
        assert size.architecture.build(1, 32, 2)(torch.zeros(2, 1, 32, 32)).shape == (2, 2)
        assert size.late <= size.early and (size.last in geometry.STEPS)
    assert geometry.EARLY in geometry.STEPS and nc.LENET is geometry.NETWORKS["lenet"].architecture
