"""How the second moment of networks is followed as they train: unbiased cosines, the jackknife, and
one trajectory.
"""

import numpy as np
import pytest
import torch
from conftest import ALONE
from convergence import normal
from nads_book.experiments import run_study
from nads_book.studies import geometry
from scipy.stats import sem, t


def stack(mean, noise, groups=geometry.GROUPS, seed=0):
    return mean + noise * normal(groups, *mean.shape, seed=seed, dtype=mean.dtype)


def test_noise_does_not_lower_a_cosine():
    mean, law = normal(2, 40, 40, seed=1, dtype=torch.float64)
    law = law + mean
    expected = float((mean * law).sum() / mean.norm() / law.norm())
    found = [geometry.cosine(stack(mean, 2, seed=s), law[None])[0] for s in range(50)]
    noisy = stack(mean, 2).mean(0)
    assert float((noisy * law).sum() / noisy.norm() / law.norm()) < 0.95 * expected
    assert np.mean(found) == pytest.approx(expected, abs=4 * np.std(found) / 50**0.5)


def test_nothing_is_said_of_a_change_that_cannot_be_distinguished_from_zero():
    laws = {
        "G_0 S G_0": torch.eye(5, dtype=torch.float64)[None],
        "S": torch.ones(1, 5, 5, dtype=torch.float64),
    }
    resolved = 0
    for seed in range(100):
        found = geometry.compared(stack(torch.zeros(5, 5, dtype=torch.float64), 1, seed=seed), laws)
        resolved += found["cosine"]["S"][0] is not None
        assert (found["law ahead"]["S"][0] is None) == (found["cosine"]["S"][0] is None)
    assert resolved <= 8
    found = geometry.compared(stack(torch.ones(5, 5, dtype=torch.float64), 0.1), laws)
    assert found["cosine"]["S"][0] > 0.99


def test_the_jackknife_of_a_mean_is_students_interval():
    values = normal(geometry.GROUPS).numpy()
    half = t.ppf(0.975, geometry.GROUPS - 1) * sem(values)
    expected = values.mean() + half * np.array([0, -1, 1])
    found = geometry.with_jackknife(geometry.over_groups(torch.from_numpy(values)))
    assert found == pytest.approx(expected, rel=1e-3)


def test_a_condition_is_measured_from_trajectories_that_are_kept(tmp_path, monkeypatch):
    """A linear network learns a wave: from step to step its change turns towards the signal."""
    monkeypatch.setattr(geometry, "SIZE", 16)
    monkeypatch.setattr(geometry, "DIMENSION", 256)
    size = geometry.Size(geometry.NETWORKS["linear"].architecture, 64, 32, 30, 0)
    monkeypatch.setattr(geometry, "NETWORKS", {"linear": size})
    monkeypatch.setattr(
        geometry.Geometry, "design", {"network": ["linear"], "data": ["learned wave"]}
    )
    monkeypatch.setattr(geometry, "STEPS", (10, 30))
    results = run_study(geometry.Geometry(), out=tmp_path / "geometry.json", **ALONE)
    rows = {row["step"]: row for row in results.rows}
    assert [row["num_networks"] for row in rows.values()] == [64, 64, 64, 32]
    assert rows[0]["change"] is None and rows[0]["growth"] == [1, 1, 1]
    assert rows[30]["accuracy"][0] > rows[0]["accuracy"][0] + 0.1
    assert (
        rows[10]["change"]["cosine"]["signal"][0] > 0.5 > abs(rows[10]["change"]["cosine"]["S"][0])
    )


def test_batch_norm_is_measured_with_the_statistics_of_the_images():
    torch.manual_seed(0)
    network = torch.nn.Sequential(
        torch.nn.BatchNorm2d(1), torch.nn.Flatten(), torch.nn.Linear(1024, 2)
    )
    images = 3 * torch.randn(64, 1, 32, 32)
    inputs = torch.randn(2, 4, 1, 32, 32)
    gradients = geometry.input_gradients(network, inputs, images)
    weights = network[2].weight
    expected = (weights[1] - weights[0]) / images.var(correction=1).add(1e-5).sqrt()
    torch.testing.assert_close(gradients, expected.detach().expand(2, -1), rtol=1e-3, atol=1e-6)
    assert network.training
