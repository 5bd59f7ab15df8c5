"""The rival theory: products with gradients, the fit, and the rule."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from convergence import normal
from nads_book.experiments import load_registered
from nads_book.studies import rival_theory
from nads_book.studies.rival_theory import FAMILIES, NETWORKS, Linearised, Predicted
from torch import nn
from torch.testing import assert_close

import nads_core as nc

CRITERIA = load_registered("rival_theory")["criteria"]
# The first forward derivative imports functions that torch compiles in a way that it deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit:FutureWarning")


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(9, 4), nn.Tanh(), nn.Linear(4, 2)).double()


def images(count, seed):
    return normal(count, 1, 3, 3, seed=seed).double()


def gradients(module, some):
    """Return J, (N, P), one image at a time."""
    rows = []
    for image in some:
        logits = module(image[None])[0]
        found = torch.autograd.grad(logits[1] - logits[0], list(module.parameters()))
        rows.append(torch.cat([part.flatten() for part in found]))
    return torch.stack(rows)


def flat(weights):
    return torch.cat([value.flatten() for value in weights.values()])


def test_products_are_those_of_the_matrix_of_gradients(monkeypatch):
    monkeypatch.setattr(rival_theory, "CHUNK", 4)  # three parts
    module = network()
    some = images(10, 1)
    matrix = gradients(module, some)
    linear = Linearised(module, some)
    values = torch.linspace(-1, 1, 10).double()
    transposed = linear.transposed(values)
    assert_close(flat(transposed), matrix.T @ values)
    assert_close(linear.times(transposed), matrix @ matrix.T @ values)


def test_many_iterations_are_kernel_ridge_regression():
    module = network()
    some = images(12, 2)
    others = images(5, 3)
    targets = torch.tensor([1.0, -1.0] * 6).double()
    found, first = rival_theory.conjugate_gradients(
        Linearised(module, some), targets, Linearised(module, others), 200
    )
    train = gradients(module, some)
    test = gradients(module, others)
    assert_close(flat(first), train.T @ targets)
    kernel = train @ train.T
    ridge = rival_theory.RIDGE * (train.T @ targets).square().sum() / 12
    expected = test @ train.T @ torch.linalg.solve(kernel + ridge * torch.eye(12), targets)
    assert_close(found[-1], expected, rtol=1e-3, atol=1e-4)
    one = found[0]  # after one iteration the outputs are along the kernel times the labels
    assert_close(one / one.norm(), (v := test @ train.T @ targets) / v.norm())


class Linear(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(2, 1024))

    def forward(self, x):
        return x.flatten(1) @ self.weight.T


def test_a_linear_network_learns_a_wave_in_its_kernel():
    row = rival_theory.kernel_row(Linear(), nc.fourier_direction((0, 2), size=32), 0.3, 1)
    # K = 2 x'x, of which the signal's part is 2 y y'; noise adds less than a tenth
    assert row["alignment"] == pytest.approx(2, rel=0.1) and row["accuracies"][-1] > 0.95


def test_pairs_of_samples_leave_no_noise_in_the_alignment(monkeypatch):
    linear = SimpleNamespace(build=lambda *sizes: Linear())
    monkeypatch.setattr(rival_theory, "MODELS", {"lenet": linear})
    found = rival_theory.alignments("lenet", nc.fourier_direction((0, 2), size=32), 3.0, 1)
    assert found == pytest.approx([2] * rival_theory.NUM_KERNELS, rel=1e-4)  # K = 2 x'x


def test_mean_kernels_take_the_place_of_single_ones():
    """Every other criterion is decided by the rows of the first study."""
    study = rival_theory.MeanKernels()
    single = rival_theory.load_study("rival-theory.json")["rows"]
    rows = []
    for row in single:
        fields = {name: row[name] for name in ("network", "family", "key", "seed")}
        rows.append(fields | {"alignments": [row["alignment"] - 1, row["alignment"] + 1]})
    same = study.score(rows)
    before = rival_theory.RivalTheory().score(single)
    assert same.estimates == before.estimates
    assert same.met == {name: before.met[name] for name in same.met}
    for row in rows:
        row["alignments"] = [-energy_of(single, row)]
    cell = study.score(rows).estimates["lenet, waves"]
    assert cell["alignment"][0] == pytest.approx(-cell["energy"][0])


def energy_of(single, row):
    """Return the energy of the direction of a row."""
    return next(
        one["energy"]
        for one in single
        if all(one[name] == row[name] for name in ("network", "family", "key"))
    )


def predicted(noise, seed=0, count=48):
    """Return predictions with this noise by theory: 0 by default, and infinite if reversed."""
    rng = np.random.default_rng(seed)
    trained = np.linspace(0.5, 1, count)
    values = {}
    from nads_book.pages.rival_theory import THEORIES  # which needs matplotlib

    for name in THEORIES:
        size = noise.get(name, 0.0)
        values[name] = -trained if np.isinf(size) else trained + size * rng.normal(size=count)
    values["kernel"] = 0.5 + 0.1 * (values["kernel"] - 0.5).clip(0, 0.9)
    return Predicted(values, trained)


EXPECTED = {
    "waves": {"energy": 0.02, "alignment": 0.02, "frequency": 1.0},
    "designed": {"energy": 1.0, "alignment": 0.1, "frequency": 2.0},
}


def found(**noise):
    return {
        (name, family): predicted(EXPECTED[family] | noise.get(family, {}))
        for name in NETWORKS
        for family in FAMILIES
    }


def test_the_rule_is_met_as_expected():
    evidence = rival_theory.judge(found(), CRITERIA)
    assert all(evidence.met.values()) and len(evidence.met) == 7
    assert evidence.estimates["lenet, waves"]["gain"][0] == pytest.approx(1)


ALIGNMENT = ("alignment not worse than energy", "alignment ahead of frequency")


@pytest.mark.parametrize(
    ("noise", "failing"),
    [
        ({"waves": {"alignment": np.inf}}, {f"waves, {name}" for name in ALIGNMENT}),
        (
            {"waves": {"frequency": 0.0}},
            {f"waves, {name} ahead of frequency" for name in ("alignment", "energy")},
        ),
        (
            {"designed": {"alignment": np.inf}},
            {f"{name}, alignment ahead of energy" for name in ("designed", "cnn designed")},
        ),
        ({"designed": {"gain": np.inf}}, {"designed, gain ahead of alignment"}),
    ],
)
def test_each_criterion_can_fail(noise, failing):
    met = rival_theory.judge(found(**noise), CRITERIA).met
    assert {name for name, holds in met.items() if not holds} == failing


def test_a_kernel_that_reaches_training_or_missing_cells():
    cells = found()
    one = cells["lenet", "waves"]
    cells["lenet", "waves"] = one._replace(values=one.values | {"kernel": one.trained})
    met = rival_theory.judge(cells, CRITERIA).met
    assert met["waves, kernel far below training"] is False
    del cells["cnn", "designed"]
    assert (
        rival_theory.judge(cells, CRITERIA).met["cnn designed, alignment ahead of energy"] is None
    )


def test_seeds_that_are_complete_are_averaged():
    wanted = rival_theory.keys("cnn", "waves")
    facts = {"energy": 1.0, "ratio": 1.0, "gain": 2.0, "frequency": 3.0}
    base = {"network": "cnn", "family": "waves", "alignment": 1.0} | facts
    rows = [
        base | {"key": key, "seed": seed, "accuracies": [0.5, 0.5, 0.6 + 0.1 * seed]}
        for seed in (0, 1)
        for key in wanted
    ]
    both = rival_theory.predictions(rows, "cnn", "waves")
    assert both.values["kernel"] == pytest.approx(np.full(16, 0.65))
    one = rival_theory.predictions(rows[:-1], "cnn", "waves")
    assert one.values["kernel"] == pytest.approx(np.full(16, 0.6))
    assert rival_theory.predictions(rows[:10], "cnn", "waves") is None
