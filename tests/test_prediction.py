import json

import nads_book as nb
import numpy as np
import pytest
import torch
from conftest import ROOT
from convergence import normal
from nads_book.experiments import load_nads
from nads_book.theory import first_step
from numpy.testing import assert_allclose

import nads_core as nc

NADS = nc.NADs(nc.fourier_basis(8)[0], torch.logspace(0, -2, 64))


@pytest.mark.parametrize("kind", ["eigenvector", "any direction"])
@pytest.mark.parametrize("noise_std", [1.0, 3.0])
def test_first_step_law_against_simulated_first_steps(kind, noise_std):
    v = NADS.directions[5] if kind == "eigenvector" else normal(1, 8, 8)
    v = (v / v.norm()).double()
    second_moment = (NADS.basis * NADS.eigenvalues) @ NADS.basis.T
    signals = []
    noises = []
    num_train = 300
    for seed in range(200):
        x, y = nc.separable_dataset(v, num_train, 1.0, noise_std, seed=seed)
        w = second_moment @ (x.flatten(1) * (2.0 * y - 1)[:, None]).mean(0)
        signals.append(float(w @ v.flatten().float()))
        noises.append(noise_std**2 * float(w.square().sum() - (w @ v.flatten().float()) ** 2))
    simulated = np.mean(signals) / np.sqrt(np.mean(noises))
    error = (
        simulated
        * (np.std(signals) / np.mean(signals) + np.std(noises) / np.mean(noises) / 2)
        / np.sqrt(200)
    )
    law = first_step.signal_to_noise(NADS, v[None].float(), num_train, noise_std)[0]
    assert abs(law - simulated) < 4 * error


# The predictions that are committed


@pytest.mark.stored
def test_frozen_predictions_are_those_of_the_directions_that_they_name():
    frozen = json.loads(
        (ROOT / "book" / "results" / "studies" / "predicted-fig1.json").read_text()
    )["predictions"]
    assert (
        frozen.keys()
        == {"logreg", "lenet", "vgg11", "resnet18", "densenet121"}
        <= nc.ARCHITECTURES.keys()
    )
    for name, stored in frozen.items():
        nads = load_nads(name, stored["version"])
        assert nads.fingerprint == stored["fingerprint"]
        assert [tuple(row["frequency"]) for row in stored["waves"]] == nb.grid_frequencies()
        rows = torch.arange(32, dtype=torch.float64)
        found, committed = [], []
        for row in stored["waves"]:
            ky, kx = row["frequency"]
            angle = 2 * torch.pi / 32 * (ky * rows[:, None] + kx * rows[None])
            for phase, wave in (("sine", angle.sin()), ("cosine", angle.cos())):
                if phase in row:
                    found.append(float(nads.energy(wave[None] / wave.norm())))
                    committed.append(row[phase])
        assert_allclose(np.array(found) / max(found), committed, rtol=1e-3, atol=1e-6)
