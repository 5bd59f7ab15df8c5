"""Tests of the randomisation test of symmetries: its p-values, its power, and what `compute_nads` makes of it."""

import pytest
import torch
from torch import Tensor

import nads_core as nc
from nads_core.cli import main
from nads_core.directions.asymmetry import NEGLIGIBLE, SymmetryTest, symmetry_tests
from nads_core.networks.architectures import SYMMETRIES

SHAPE = (2, 6, 6)


def halves(networks: int, seed: int, weights: Tensor | None = None, noise: float = 0.3) -> Tensor:
    """Draw (n, 1, 2, D) with independent pixels, times weights (C, H, W), and with noise of its own in each half."""
    generator = torch.Generator().manual_seed(seed)
    vectors = torch.randn(networks, *SHAPE, generator=generator) * torch.rand(networks, 1, 1, 1, generator=generator)
    vectors = vectors * (1 if weights is None else weights)
    return (vectors.flatten(1)[:, None, None] + noise * torch.randn(networks, 1, 2, 72, generator=generator)).float()


def test_p_values_of_symmetric_networks_are_uniform():
    p_values = torch.tensor(
        [[test.p_value for test in symmetry_tests(halves(60, seed), SHAPE).values()] for seed in range(150)]
    )
    plain = p_values[:, : SYMMETRIES.index("channels")]  # of several maps the p-value is a bound
    assert 0.03 < float((plain <= 0.1).double().mean()) < 0.17  # 450 tests: 0.1 +- 0.014, fewer were they dependent
    assert 0.4 < float(plain.mean()) < 0.6
    assert float((p_values[:, -1] <= 0.1).double().mean()) < 0.17


@pytest.mark.parametrize("symmetry", SYMMETRIES)
def test_a_broken_symmetry_is_found(symmetry):
    weights = torch.ones(SHAPE)
    part = {"flip_rows": weights[:, :3], "flip_columns": weights[..., :3], "channels": weights[:1]}
    if symmetry == "transpose":
        weights = weights * torch.tensor([1, 2.0, 1, 1, 2, 1])[:, None]
    else:
        part[symmetry] *= 2
    tests = symmetry_tests(halves(512, 1, weights), SHAPE)
    assert tests[symmetry].p_value < 0.005 and tests[symmetry].limit > tests[symmetry].asymmetry > 0.1
    broken = {symmetry, "transpose"} if symmetry.startswith("flip") else {symmetry}
    assert {name for name, test in tests.items() if test.p_value < 0.005} == broken
    assert not tests[symmetry].holds


def test_asymmetry_is_that_of_the_second_moment():
    weights = torch.ones(SHAPE)
    weights[:, :3] *= 1.5
    told = symmetry_tests(halves(1_000, 2, weights), SHAPE)["flip_rows"]
    energy = weights.square()
    true = float(1 - (energy * energy.flip(1)).sum() / energy.square().sum())
    assert told.asymmetry == pytest.approx(true, abs=0.07)


def test_the_limit_is_a_jackknife_over_networks():
    """Compare with the definition, computed anew without each network in turn."""
    count, weights = 40, torch.zeros(SHAPE)
    weights[0, 0, [0, 5]] = torch.tensor([1.0, 0.5])
    networks = torch.nn.functional.normalize(halves(count, 4, weights, noise=0.02), dim=-1)  # no heavy tails
    result = symmetry_tests(networks, SHAPE)["flip_columns"]

    x, y = networks[:, 0].double().unbind(1)  # (n, D) each
    shares = x[:, :, None] * y[:, None]
    shares = (shares + shares.mT) / 2  # (n, D, D)
    order = torch.arange(72).view(SHAPE).flip(-1).flatten()
    mapped = shares[:, order][:, :, order]
    same, across = (shares.flatten(1) @ other.flatten(1).T for other in (shares, mapped))

    def asymmetry_of(networks: Tensor) -> float:
        energy, common = (
            float(part.sum() - part.diagonal().sum()) for part in (m[networks][:, networks] for m in (same, across))
        )
        return 1 - common / energy

    every = torch.arange(count)
    asymmetry = asymmetry_of(every)
    without = torch.tensor([asymmetry_of(every[every != i]) for i in every], dtype=torch.float64)
    error = float(((count - 1) / count * (without - without.mean()).square().sum()).sqrt())
    assert result.asymmetry == pytest.approx(asymmetry, rel=1e-5)
    assert 0.05 < error < 0.5
    assert result.limit == pytest.approx(asymmetry + 1.645 * error, rel=1e-4)


def test_correlated_channels_are_not_alike():
    vectors = halves(512, 3)
    vectors[..., 36:] = vectors[..., :36]  # of equal energy, but always the same
    tests = symmetry_tests(vectors, SHAPE)
    assert tests["channels"].p_value < 0.01 and tests["flip_rows"].p_value > 0.01


def test_few_networks_prove_nothing():
    weights = torch.zeros(SHAPE)
    weights[:, :3] = 1  # all in the upper half
    for seed in range(20):
        for few in (halves(16, seed), halves(16, seed, weights, noise=1.0)):
            tests = symmetry_tests(few, SHAPE)
            assert not any(test.holds for test in tests.values())  # not contradicted, but neither is much asymmetry
            assert min(test.limit for test in tests.values()) > NEGLIGIBLE
    with pytest.raises(ValueError, match="expected 16 at least, got 15"):
        symmetry_tests(halves(15, 0), SHAPE)
    with pytest.raises(ValueError, match="num_networks must be .*, got 15"):
        nc.compute_nads(nc.LENET, 15, symmetries="test")


def test_a_refused_flip_takes_the_transpose_with_it(monkeypatch):
    holds, broken = SymmetryTest(0.5, 0.0, 0.01), SymmetryTest(0.001, 0.5, 0.6)
    told = {"flip_rows": holds, "flip_columns": broken, "transpose": holds}
    monkeypatch.setattr("nads_core.directions.compute.symmetry_tests", lambda *_: told)
    nads = nc.compute_nads(nc.LENET, 16, image_shape=(1, 16, 16), symmetries="test", progress=False)
    assert nads.provenance["symmetries"] == ["flip_rows"]


def test_what_images_of_a_shape_can_have():
    vectors = halves(16, 0)
    assert set(symmetry_tests(vectors, (2, 4, 9))) == {"flip_rows", "flip_columns", "channels"}
    assert set(symmetry_tests(vectors, (1, 1, 72))) == {"flip_columns"}
    assert symmetry_tests(vectors, (72,)) == {}


def test_compute_nads_takes_the_symmetries_that_hold():
    options = dict(image_shape=(1, 16, 16), num_directions=8, progress=False, symmetries="test")
    nads = nc.compute_nads(lambda: nc.LENET.build(1, 16, 1), 256, **options)
    assert nads.provenance["symmetries"] == ["flip_rows", "flip_columns", "transpose"]
    assert set(nads.types) <= {"++s", "++a", "--s", "--a", "+-", "-+"}
    small = {"image_shape": (1, 8, 8)}
    nads = nc.compute_nads(lambda: nc.RESNET18.build(1, 8, 1), 64, estimator=nc.SmoothedGradient(2), **options | small)
    tests = nads.provenance["symmetry_tests"]
    assert not {"flip_rows", "flip_columns"} & set(nads.provenance["symmetries"])
    assert tests["flip_rows"]["p_value"] < 0.01 < tests["transpose"]["p_value"]
    with pytest.raises(ValueError, match=r"symmetries .*\(C, H, W\).*\(8,\)"):
        nc.compute_nads(lambda: torch.nn.Linear(8, 1), image_shape=(8,), symmetries="test")


def test_on_the_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    arguments = [
        "compute",
        "lenet",
        "--out",
        "x.npz",
        "--num-networks",
        "40",
        "--image-shape",
        "1",
        "16",
        "16",
        "--symmetries",
    ]
    assert main([*arguments, "test"]) == 0
    assert set(nc.NADs.load("x.npz").provenance["symmetry_tests"]) == {"flip_rows", "flip_columns", "transpose"}
    assert main([*arguments, "test", "transpose"]) != 0
    assert "test transpose" in capsys.readouterr().err
