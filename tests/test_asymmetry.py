"""Tests of the randomisation test of symmetries: its p-values, its power, and what `compute_nads`
makes of it.
"""

import pytest
import torch
from convergence import normal
from examples import compute
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

import nads_core as nc
from nads_core.directions.symmetry_tests import NEGLIGIBLE, SymmetryTest, self_terms, symmetry_tests
from nads_core.networks.architectures import SYMMETRIES

SHAPE = (2, 6, 6)


def halves(networks, seed, weights=None, noise=0.3):
    """Draw (n, 1, 2, D) with independent pixels, times weights (C, H, W), and with noise of its own
    in each half.
    """
    generator = torch.Generator().manual_seed(seed)
    vectors = torch.randn(networks, *SHAPE, generator=generator) * torch.rand(
        networks, 1, 1, 1, generator=generator
    )
    vectors = vectors * (1 if weights is None else weights)
    return (
        vectors.flatten(1)[:, None, None]
        + noise * torch.randn(networks, 1, 2, 72, generator=generator)
    ).float()


def shares_of(networks):
    """Return the networks' shares of the second moment, (n, D, D) in float64, from halves (n, R, 2,
    D).
    """
    x, y = networks.double().unbind(2)
    return (x.mT @ y + y.mT @ x) / (2 * networks.shape[1])


def results_of(networks, shape=SHAPE):
    """Test the symmetries of networks, all of which are stored."""
    return symmetry_tests(
        shares_of(networks).mean(0), self_terms(networks, shape), len(networks), networks, shape
    )


def test_p_values_of_symmetric_networks_are_uniform():
    p_values = torch.tensor(
        [[test.p_value for test in results_of(halves(60, seed)).values()] for seed in range(150)]
    )
    plain = p_values[:, : SYMMETRIES.index("channels")]  # of several maps the p-value is a bound
    assert (
        0.03 < float((plain <= 0.1).double().mean()) < 0.17
    )  # 450 tests: 0.1 +- 0.014, fewer were they dependent
    assert 0.4 < float(plain.mean()) < 0.6
    assert float((p_values[:, -1] <= 0.1).double().mean()) < 0.17


def results_of_first(networks):
    """Test the symmetries of networks, only the first of which are stored."""
    halves = networks.double().mean(2)  # of one contribution per network, (n, R, D)
    second_moment = torch.einsum("nrd,nre->de", halves, halves) / halves.shape[:2].numel()
    return symmetry_tests(
        second_moment, self_terms(networks, SHAPE), len(networks), networks[:64], SHAPE
    )


def test_networks_of_unequal_size_do_not_contradict_a_true_symmetry():
    """A network that is larger than all that are stored makes T large, and is no asymmetry."""
    rejected = []
    for seed in range(60):
        networks = halves(600, seed, noise=0)
        gains = normal(600, seed=1000 + seed).exp()
        tests = results_of_first(networks * gains[:, None, None, None])
        rejected.append([test.p_value <= 0.01 for test in tests.values()])
    assert torch.tensor(rejected).double().mean(0).max() <= 0.05  # up to .28 with signs of 64 alone


@pytest.mark.parametrize("seed", range(8))
def test_one_network_that_holds_everything_decides_nothing(seed):
    networks = halves(40, seed)
    networks[seed] *= 1e4
    assert not any(test.holds for test in results_of(networks).values())


def test_all_networks_find_an_asymmetry_that_the_stored_ones_do_not():
    weights = torch.linspace(0.93, 1.07, 6)[:, None].expand(SHAPE)
    networks = halves(4_000, 0, weights, noise=0)
    assert results_of_first(networks)["flip_rows"].p_value < 0.005
    assert results_of(networks[:64])["flip_rows"].p_value > 0.01


@pytest.mark.parametrize("symmetry", SYMMETRIES)
def test_a_broken_symmetry_is_found(symmetry):
    weights = torch.ones(SHAPE)
    part = {"flip_rows": weights[:, :3], "flip_columns": weights[..., :3], "channels": weights[:1]}
    if symmetry == "transpose":
        weights = weights * torch.tensor([1, 2.0, 1, 1, 2, 1])[:, None]
    else:
        part[symmetry] *= 2
    tests = results_of(halves(512, 1, weights))
    assert (
        tests[symmetry].p_value < 0.005 and tests[symmetry].limit > tests[symmetry].asymmetry > 0.1
    )
    broken = {symmetry, "transpose"} if symmetry.startswith("flip") else {symmetry}
    assert {name for name, test in tests.items() if test.p_value < 0.005} == broken
    assert not tests[symmetry].holds


@pytest.mark.parametrize("readouts", [1, 3])
def test_asymmetry_and_limit_are_those_of_their_definitions(readouts):
    """Compare with sums over all pairs of different networks, from the matrices of their shares."""
    count = 40
    weights = torch.zeros(SHAPE)
    weights[0, 0, [0, 5]] = torch.tensor([1.0, 0.5])
    drawn = [halves(count, 4 + seed, weights, noise=0.02) for seed in range(readouts)]
    networks = torch.cat(drawn, dim=1)  # (n, R, 2, D)
    result = results_of(networks)["flip_columns"]

    shares = shares_of(networks)
    order = torch.arange(72).view(SHAPE).flip(-1).flatten()
    mapped = shares[:, order][:, :, order]
    same, across = (shares.flatten(1) @ other.flatten(1).T for other in (shares, mapped))
    pairs = ~torch.eye(count, dtype=torch.bool)
    energy = float(same[pairs].sum()) / count**2
    changed = energy - float(across[pairs].sum()) / count**2
    assert result.asymmetry == pytest.approx(changed / energy, rel=1e-5)
    assert result.allowed == pytest.approx(
        min(NEGLIGIBLE, float(same.diagonal().sum()) / count**2 / energy), rel=1e-5
    )

    differences = (same - across).masked_fill(~pairs, 0)
    signs = (
        torch.randint(2, (20_000, count), generator=torch.Generator().manual_seed(9)).double() * 2
        - 1
    )
    random = ((signs @ differences) * signs).sum(1) / count**2
    assert result.limit == pytest.approx((changed + float(random.quantile(0.95))) / energy, rel=0.1)


def test_correlated_channels_are_not_alike():
    vectors = halves(512, 3)
    vectors[..., 36:] = vectors[..., :36]  # of equal energy, but always the same
    tests = results_of(vectors)
    assert tests["channels"].p_value < 0.01 and tests["flip_rows"].p_value > 0.01


def test_few_networks_do_not_hide_a_broken_symmetry():
    weights = torch.zeros(SHAPE)
    weights[:, :3] = 1  # all in the upper half
    for seed in range(40):
        for count in (16, 48):
            test = results_of(halves(count, seed, weights, noise=1.0))["flip_rows"]
            assert not test.holds and test.limit > NEGLIGIBLE
    with pytest.raises(ValueError, match="at least 16, got 15"):
        results_of(halves(15, 0))


def test_a_refused_flip_takes_the_transpose_with_it(monkeypatch):
    holds = SymmetryTest(0.5, 0.0003, 0.0004)
    broken = SymmetryTest(0.001, 0.5, 0.6)
    outcomes = {"flip_rows": holds, "flip_columns": broken, "transpose": holds}
    monkeypatch.setattr("nads_core.directions.solving.symmetry_tests", lambda *_: outcomes)
    nads = compute(nc.LENET, 16, (1, 16, 16), symmetries="test")
    assert nads.provenance["symmetries"] == ["flip_rows"]
    stored = nads.provenance["symmetry_tests"]["flip_rows"]
    assert (stored["p_value"], stored["limit"]) == (0.5, 0.001)  # which is rounded up


def test_what_images_of_a_shape_can_have():
    vectors = halves(16, 0)
    assert set(results_of(vectors, (2, 4, 9))) == {"flip_rows", "flip_columns", "channels"}
    assert set(results_of(vectors, (1, 1, 72))) == {"flip_columns"}
    assert set(results_of(vectors, (1, 72, 1))) == {"flip_rows"}
    assert results_of(vectors, (2, 36)) == results_of(vectors, (2, 1, 36))  # a sequence
    assert set(results_of(vectors, (2, 36))) == {"flip_columns", "channels"}
    assert "transpose" in results_of(vectors, (18, 2, 2))
    assert results_of(vectors, (72,)) == {}
    with pytest.raises(ValueError, match=r"symmetries .*\(C, H, W\).*\(8,\)"):
        compute(nn.Linear, 16, (8,), symmetries="test")


def smooth_sequences():
    """A network that prefers slow sequences, and to which two channels are the same."""
    slow = nn.AvgPool1d(9, 1, 4, count_include_pad=False)
    layers = nn.Conv1d(2, 8, 5, padding=2), nn.ReLU(), nn.Flatten(), nn.Linear(192, 10)
    return nn.Sequential(slow, *layers)


def test_exchangeable_channels_of_sequences_are_distinguished_by_name():
    options = {"image_shape": (2, 24), "num_directions": 8}
    one, other = (compute(smooth_sequences, 512, seed=seed, **options) for seed in range(2))
    assert one.provenance["symmetries"] == ["flip_columns", "channels"]
    assert one.names[:2] == ("c0 + 0", "c1 + 0")
    assert float(one.directions[0, 1].abs().max()) == 0  # of one channel
    # Without the symmetries, directions of a pair are claimed by .6, and turn within it
    cosines = (one.basis * other.basis).sum(0)[:4].square()
    assert one.certainty[:4].min() > 0.95 and cosines.min() > 0.95
    merely = compute(smooth_sequences, 512, symmetries=(), **options)
    assert merely.certainty[0] < 0.9 and merely.bands[0].certainty > 0.95


@pytest.mark.parametrize("channels", [1, 3])
def test_networks_on_a_gpu_are_compared_there(channels):
    with FakeTensorMode():  # which knows the devices of tensors without having them
        products = self_terms(torch.zeros(4, 2, 2, channels * 16, device="cuda"), (channels, 4, 4))
    assert products.device.type == "cuda"
    assert len(products) == {1: 4, 3: 9}[channels]


def test_a_small_asymmetry_at_few_networks_is_no_certainty():
    """Strides break the flips a little, which turns directions of nearly equal energy by 45
    degrees.
    """

    def strided():
        layers = [nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 16, 3, 2, padding=1)]
        return nn.Sequential(
            *layers, nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 1)
        )

    options = {"image_shape": (1, 16, 16), "estimator": nc.SmoothedGradient(readouts=1)}
    exact = compute(strided, 2_000, seed=9, **options)
    assert exact.provenance["symmetries"] == ["transpose"]
    few = compute(strided, 128, **options)
    kept = (few.directions[:4].flatten(1) @ exact.directions[:40].flatten(1).T).square().amax(1)
    assert few.certainty[:4].mean() < kept.mean() + 0.1
