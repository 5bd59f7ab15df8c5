"""Symmetries of images: the types that they distinguish, the average over them, and tests of
whether networks have them.
"""

import itertools

import pytest
import torch
from convergence import MAPS, normal
from examples import compute, small_network
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.testing import assert_close

import nads_core as nc
from nads_core.directions.symmetry import symmetrize, symmetry_types
from nads_core.directions.symmetry_tests import SymmetryTest, accepted, symmetry_tests
from nads_core.networks.architectures import SYMMETRIES

SHAPE = (2, 6, 6)
PLANE = SYMMETRIES[:3]
SUBSETS = [subset for n in range(4) for subset in itertools.combinations(PLANE, n)]


def maps_of(shape, symmetries):
    """Return matrices (D, D) of the maps that generate a group."""
    images = torch.eye(torch.Size(shape).numel()).double().view(-1, *shape)
    signed = images.clone()
    signed[:, 0] *= -1
    maps = {name: [change(images)] for name, change in MAPS.items()}
    maps["channels"] = [images.roll(1, 1), signed]
    return [m.flatten(1) for name in symmetries for m in maps[name]]


def average(matrix, shape, symmetries):
    """Average over all products of the maps, by the whole group."""
    group = [torch.eye(len(matrix)).double()]
    for member in group:  # which grows
        for step in maps_of(shape, symmetries):
            product = member @ step
            if not any(torch.equal(product, other) for other in group):
                group.append(product)
    return sum(g @ matrix @ g.T for g in group) / len(group)


def symmetric(size, seed=0):
    half = normal(size, size, seed=seed, dtype=torch.float64)
    return half + half.T


@pytest.mark.parametrize("shape", [(1, 4, 4), (2, 3, 3)])
@pytest.mark.parametrize("subset", [*SUBSETS, SYMMETRIES], ids=str)
def test_symmetrize_is_the_average_over_the_group(subset, shape):
    subset = tuple(name for name in subset if name != "channels" or shape[0] > 1)
    matrix = symmetric(torch.Size(shape).numel())
    assert_close(symmetrize(matrix, shape, subset), average(matrix, shape, subset))


@given(
    size=st.integers(1, 7),
    channels=st.integers(1, 3),
    subset=st.sampled_from([*SUBSETS, SYMMETRIES]),
)
def test_types_are_an_orthonormal_basis_without_mixed_blocks(size, channels, subset):
    shape = (channels, size, size)
    types = symmetry_types(shape, subset)
    rows = torch.cat([basis.to_dense() for kind in types for basis in kind.bases])
    assert_close(rows @ rows.T, torch.eye(channels * size**2).double())
    matrix = symmetrize(symmetric(channels * size**2), shape, subset)
    blocks = [kind.block(matrix) for kind in types for _ in kind.bases]
    assert_close(rows @ matrix @ rows.T, torch.block_diag(*blocks), atol=1e-9, rtol=0)


def test_names_say_what_a_map_does():
    for kind in symmetry_types((1, 6, 6), PLANE):
        for name, basis in zip(kind.names, kind.bases, strict=True):
            images = basis.to_dense().view(-1, 6, 6)
            for sign, change in zip(name, MAPS.values(), strict=False):
                assert_close(change(images), images if sign in "+s" else -images)
    assert [kind.names for kind in symmetry_types((2, 5))] == [("",)]


# --- tests by random signs


def results_of(networks, seed, weights=1.0, noise=0.3, gains=1.0):
    """Test the symmetries of networks with independent pixels, times weights (C, H, W), and with
    noise of its own in each half.
    """
    vectors = normal(networks, *SHAPE, seed=seed) * weights * gains
    vectors = vectors.flatten(1)[:, None, None].expand(networks, 2, 1, 72)
    moment = nc.SecondMoment((72,))
    moment.add(vectors + noise * normal(*vectors.shape, seed=seed + 10_000))
    return symmetry_tests(moment.shares(), SHAPE)


@pytest.mark.parametrize("spread", [0.0, 1.0])
def test_p_values_of_symmetric_networks_are_uniform(spread):
    """Of unequal size, too."""
    p_values = []
    for seed in range(150):
        gains = (spread * normal(64, 1, 1, 1, seed=1000 + seed)).exp()
        tests = results_of(64, seed, gains=gains)
        p_values.append([test.p_value for test in tests.values()])
    p_values = torch.tensor(p_values)
    plain = p_values[:, :3]  # of several maps the p-value is a bound
    # 450 tests: 0.1 +- 0.014, fewer were they dependent
    assert 0.03 < float((plain <= 0.1).double().mean()) < 0.17
    assert 0.4 < float(plain.mean()) < 0.6
    assert float((p_values[:, 3] <= 0.1).double().mean()) < 0.17


def test_one_large_network_shows_no_symmetry():
    gains = torch.ones(64, 1, 1, 1)
    gains[5] = 1e4
    assert not any(test.holds for test in results_of(64, 0, gains=gains).values())


@pytest.mark.parametrize("symmetry", SYMMETRIES)
def test_a_broken_symmetry_is_found(symmetry):
    weights = torch.ones(SHAPE)
    part = {"flip_rows": weights[:, :3], "flip_columns": weights[..., :3], "channels": weights[:1]}
    if symmetry == "transpose":
        weights = weights * torch.tensor([1, 2.0, 1, 1, 2, 1])[:, None]
    else:
        part[symmetry] *= 2
    tests = results_of(512, 1, weights)
    broken = {symmetry, "transpose"} if symmetry.startswith("flip") else {symmetry}
    # The p-value of exchangeable channels is at least that of three maps
    assert {name for name, test in tests.items() if test.p_value <= 3 / 128} == broken
    assert tests[symmetry].limit > tests[symmetry].asymmetry > 0.05 and not tests[symmetry].holds
    assert not set(accepted(tests)) & broken


def test_a_small_asymmetry_is_found_by_many_networks_and_few_leave_room_for_it():
    weights = torch.linspace(0.9, 1.1, 6)[:, None]
    many = results_of(8_000, 0, weights, noise=0)["flip_rows"]
    assert many.p_value <= 2 / 128 and not many.holds
    weights = torch.tensor([1.0, 1, 1, 0, 0, 0])[:, None]  # all in the upper half
    for seed in range(40):
        for count in (16, 48):
            few = results_of(count, seed, weights, noise=1.0)["flip_rows"]
            assert not few.holds and few.limit > few.allowed
    assert results_of(2_000, 0, weights)["flip_rows"].asymmetry == pytest.approx(1, abs=0.03)


def test_correlated_channels_are_not_exchangeable():
    vectors = normal(512, 1, 1, 72)
    vectors[..., 36:] = vectors[..., :36]  # of equal energy, but always the same
    moment = nc.SecondMoment((72,))
    moment.add(vectors)
    tests = symmetry_tests(moment.shares(), SHAPE)
    assert tests["channels"].p_value <= 3 / 128 < tests["flip_rows"].p_value
    assert not tests["channels"].holds


def test_a_rejected_flip_takes_the_transpose_with_it():
    holds, broken = SymmetryTest(0.5, 0.0003, 0.0004), SymmetryTest(0.001, 0.5, 0.6)
    outcomes = {"flip_rows": holds, "flip_columns": broken, "transpose": holds}
    assert accepted(outcomes) == ("flip_rows",)
    assert accepted(dict.fromkeys(outcomes, holds)) == tuple(outcomes)


def test_what_images_of_a_shape_can_have():
    shares = torch.eye(72).double().expand(8, 72, 72)

    def names(*shape):
        return set(symmetry_tests(shares, shape))

    assert names(2, 4, 9) == {"flip_rows", "flip_columns", "channels"}
    assert names(1, 1, 72) == {"flip_columns"} and names(1, 72, 1) == {"flip_rows"}
    assert names(2, 36) == {"flip_columns", "channels"} and names(72) == set()


# --- factories


def smooth_sequences():
    """A network that prefers slow sequences, and to which two channels are the same."""
    slow = nn.AvgPool1d(9, 1, 4, count_include_pad=False)
    layers = nn.Conv1d(2, 8, 5, padding=2), nn.ReLU(), nn.Flatten(), nn.Linear(192, 10)
    return nn.Sequential(slow, *layers)


def strided():
    layers = [nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 16, 3, 2, padding=1)]
    pooled = nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 1)
    return nn.Sequential(*layers, *pooled)


@pytest.mark.parametrize(
    ("factory", "shape", "expected"),
    [
        (small_network, (1, 8, 8), ["flip_rows", "flip_columns", "transpose"]),
        (smooth_sequences, (2, 24), ["flip_columns", "channels"]),
        (strided, (1, 16, 16), ["transpose"]),
    ],
)
def test_what_a_factory_is_found_to_have(factory, shape, expected):
    nads = compute(factory, 300, shape, num_directions=8)
    assert nads.provenance["symmetries"] == expected
    assert nads.provenance["symmetry_tests"].keys() >= set(expected)
    assert all(nads.types)
    if factory is smooth_sequences:
        assert set(nads.names[:2]) == {"c0 + 0", "c1 + 0"}
        assert float(nads.directions[0, 1].abs().max()) == 0  # of one channel


def test_few_networks_and_named_symmetries_are_not_tested():
    assert "symmetry_tests" not in compute(small_network, 15).provenance
    for symmetries in ((), ("transpose",)):
        provenance = compute(small_network, 32, symmetries=symmetries).provenance
        assert provenance["symmetries"] == list(symmetries) and "symmetry_tests" not in provenance
