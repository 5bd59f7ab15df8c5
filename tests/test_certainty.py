"""Certainties, errors of eigenvalues, intervals of energies and the stopping criterion come true,
against second moments that are known.
"""

import pytest
import torch
from convergence import rotation, simulated
from examples import Weighted, compute, same
from torch.testing import assert_close

import nads_core as nc
from nads_core.directions.certainty import GROUPS, half_coordinates, solve_type
from nads_core.directions.moments import STUDENT
from nads_core.directions.symmetry import symmetrize

D = 40
RANKS = torch.arange(D)
FALLING = 0.8**RANKS
FLAT = torch.ones(D)
LENET = nc.load_nads("lenet")
SPIKES = torch.cat([torch.linspace(8, 3, 8), torch.ones(D - 8)])
CASES = {  # levels, networks, options of the simulation, least number of claims of .6
    "falling": (FALLING, 512, {}, 300),
    "noise of inputs": (FALLING, 512, {"noise": 0.3}, 60),
    "heavy tails": (FALLING, 512, {"degrees": 3}, 50),
    "eight readouts": (0.85**RANKS, 128, {"readouts": 8}, 300),
    "spikes on flat": (SPIKES, 512, {}, 30),
    "falling slowly": (0.9**RANKS, 2_048, {}, 100),
    "LeNet": (LENET.eigenvalues[[kind == "++s" for kind in LENET.types]][:D], 2_048, {}, 150),
}


def known(levels, networks, options, runs=12):
    """Return certainties, squared cosines with the exact directions, leading certainties and
    overlaps with the exact leading subspaces, (runs, D) each.
    """
    rows = []
    for seed in range(runs):
        moment = simulated(levels, networks, seed, **options)
        _, directions, found, _ = moment.eigenpairs((), None)
        squares = directions.square()  # the axes are the exact directions
        leading = squares.cumsum(0).cumsum(1).diagonal() / (RANKS + 1)
        rows.append((found.certainty, squares.diagonal(), found.leading_certainty, leading))
    return [torch.stack(column) for column in zip(*rows, strict=True)]


@pytest.mark.parametrize("case", CASES)
def test_claims_are_kept(case):
    levels, networks, options, least = CASES[case]
    certainty, kept, leading, overlap = known(levels, networks, options)
    assert (certainty >= 0.6).sum() >= least
    for low, high in ((0.6, 0.75), (0.75, 0.9), (0.9, 1.01), (0.6, 1.01)):
        claimed = (certainty >= low) & (certainty < high)
        if claimed.sum() >= 15:
            assert certainty[claimed].mean() <= kept[claimed].mean() + 0.1
    error = (leading - overlap).mean(0)[[0, 2, 9, 29]]
    assert error.max() < 0.1 and (case == "heavy tails" or error.min() > -0.1)


@pytest.mark.parametrize(
    ("levels", "options", "most"),
    [(FLAT, {}, 0), (FLAT, {"noise": 3.0}, 0), (FLAT, {"rare": 0.005, "gain": 20}, 0)]
    + [(0.93**RANKS, {"rare": 0.005, "gain": 40}, 1), (FLAT, {"rare": 0.02, "gain": 10}, 2)],
)
def test_nothing_is_claimed_of_flat_spectra_and_rare_networks(levels, options, most):
    certainty, kept, *_ = known(levels, 512, options)
    assert ((certainty >= 0.5) & (kept < 0.5)).sum() <= most  # of 480 directions


@pytest.mark.parametrize("size", [1, 2, 5])
def test_little_is_claimed_of_flat_spectra_of_few_dimensions(size):
    """By chance alone, halves overlap by 1 / size."""
    claims = [
        simulated(torch.ones(size), 512, seed).eigenpairs((), None)[2].certainty.any()
        for seed in range(50)
    ]
    assert sum(claims) == 50 if size == 1 else sum(claims) <= 5
    falling = simulated(0.6 ** torch.arange(size), 512).eigenpairs((), None)[2]
    assert falling.num_certain == size


def covered(moment, levels):
    """Whether the exact level of each pixel is within its interval."""
    found = map(moment.energy, torch.eye(len(levels)).view(-1, *moment.image_shape))
    return [each.low <= level <= each.high for each, level in zip(found, levels, strict=True)]


def test_exact_levels_are_within_the_intervals():
    energies, eigenvalues = [], []
    for seed in range(40):
        moment = simulated(FALLING, 256, seed, noise=0.3)
        energies += covered(moment, FALLING)
        values, _, found, _ = moment.eigenpairs((), None)
        given = ~found.eigenvalue_std.isnan()
        assert torch.equal(given, found.certainty >= 0.6)
        errors = (values - FALLING)[given] / found.eigenvalue_std[given]
        eigenvalues += (errors.abs() <= STUDENT).tolist()
    assert 0.9 <= sum(energies) / len(energies) <= 0.98
    assert len(eigenvalues) > 100 and 0.9 <= sum(eigenvalues) / len(eigenvalues)


def test_fewer_than_16_networks_say_nothing_of_errors():
    for networks, certain in ((15, False), (16, True)):
        moment = simulated(torch.tensor([100.0, 1.0]), networks, readouts=50)
        _, _, found, _ = moment.eigenpairs((), None)
        assert bool(found.certainty.any()) == certain
        assert found.eigenvalue_std.isnan().all() != certain
        assert (moment.energy(torch.eye(2)[0]).std == moment.energy(torch.eye(2)[0]).std) == certain


@pytest.mark.parametrize("size", [8, 300, 520])
def test_two_halves_without_an_error_have_the_same_eigenvectors(size):
    exact = rotation(size, dtype=torch.float64)
    share = (exact * torch.linspace(1, 0.1, size)) @ exact.T / GROUPS
    shares = share.expand(GROUPS, size, size)
    assert_close(half_coordinates(shares)[0], torch.eye(size).double(), atol=1e-6, rtol=0)
    solved = solve_type(shares, 16)
    assert_close(solved.values, torch.linspace(1, 0.1, size).double())
    assert_close((solved.axes @ exact).square(), torch.eye(size).double(), atol=1e-6, rtol=0)
    assert solved.certainty.min() > 1 - 1e-6 and solved.num_known == size
    assert not solved.bands()


def test_directions_that_only_each_other_resemble_are_a_band():
    levels = torch.tensor([9.0, 9.0, 4.0, 4.0, 4.0, 1.0, 0.1])
    found = simulated(levels, 2_048).eigenpairs((), None)[2]
    assert [band.indices for band in found.bands] == [(0, 1), (2, 3, 4)]
    assert all(0.9 <= band.certainty <= 1 for band in found.bands)
    assert found.certainty[:5].max() < 0.9 < found.certainty[5]
    assert [len(found.first(count).bands) for count in (1, 2, 4, 5)] == [0, 1, 1, 2]


# --- symmetry types


@pytest.mark.parametrize("symmetries", [(), ("flip_rows", "transpose")])
def test_eigenpairs_by_types_are_those_of_the_average(symmetries):
    """Partners stand together, and one is the transposed other."""
    moment = simulated(FALLING[:36], 200)
    moment.image_shape = (1, 6, 6)
    values, directions, found, _ = moment.eigenpairs(symmetries, None)
    average = symmetrize(moment.shares().sum(0), (1, 6, 6), symmetries)
    assert_close(values, torch.linalg.eigvalsh(average).flip(0))
    assert_close(directions @ average @ directions.T, torch.diag(values), atol=1e-10, rtol=0)
    assert_close(directions @ directions.T, torch.eye(36).double(), atol=1e-10, rtol=0)
    few = moment.eigenpairs(symmetries, 7)
    assert torch.equal(few[0], values[:7]) and torch.equal(few[1], directions[:7])
    assert few[2].names == found.names[:7]
    firsts = [index for index, kind in enumerate(found.types) if kind == "+-"]
    assert len(firsts) == (9 if symmetries else 0)
    for index in firsts:
        assert found.types[index + 1] == "-+"
        assert found.names[index][3:] == found.names[index + 1][3:]
        image = directions[index].view(6, 6)
        assert torch.equal(image.T.flatten(), directions[index + 1])
        assert found.certainty[index] == found.certainty[index + 1]


# --- a run


def test_a_deep_linear_network_has_its_second_moment():
    exact = 0.81 ** torch.arange(64) * 30 / (3 * 64) / (3 * 30)
    moment = nc.second_moment(Weighted, (1, 8, 8), 256, progress=False)
    assert 0.85 < sum(covered(moment, exact)) / 64
    nads = moment.nads(symmetries=())
    kept = nads.directions.flatten(1).diagonal().square()
    claimed = nads.certainty >= 0.6
    assert claimed.sum() >= 8
    assert nads.certainty[claimed].mean() <= kept[claimed].mean() + 0.1


def test_a_run_ends_when_enough_directions_are_certain():
    nads = compute(Weighted, 2_000, num_certain=4, symmetries=())
    count = nads.provenance["num_networks"]
    assert 64 <= count < 2_000 and nads.uncertainty.num_certain >= 4
    assert same(nads, compute(Weighted, count, symmetries=()))
    with pytest.warns(UserWarning, match=r"num_certain 60 .*100 networks"):
        compute(Weighted, 100, num_certain=60, symmetries=())


def test_equivalent_directions_are_named():
    with pytest.warns(UserWarning, match="nothing is claimed.*64 networks.*equivalent"):
        nads = compute(nc.LOGREG, 64)
    assert not nads.certainty.any()
