"""Uncertainties: variances by brute force, calibration by simulation, and storage in files."""

import math
from dataclasses import replace

import examples
import nads_book as nb
import numpy as np
import pytest
import torch
from convergence import normal
from nads_book.studies.calibration import compare_with_exact, coverage
from nads_book.theory.deep_linear import gradient_covariance
from nads_core.directions.bulk import BulkSpectrum
from nads_core.directions.covariance import debias, leading_eigenpairs
from nads_core.directions.share_variance import share_variances, unseen_energies
from nads_core.directions.simulation import SampleSize, TypeUncertainty, estimate_uncertainty
from torch.testing import assert_close

import nads_core as nc
from nads_core.directions.eigenpairs import EigenProblem
from nads_core.directions.moments import DenseMoments, GramMoments, HalfSamples
from nads_core.directions.symmetry import symmetrize, symmetry_types

D = 64
LEVELS = torch.exp(-torch.arange(D) / 8.0)
FEW_LEVELS = torch.exp(-torch.arange(24) / 6.0)
SQUARE = ("flip_rows", "flip_columns", "transpose")


def contributions(networks, seed, num_contributions=8, levels=LEVELS):
    """Draw (B, J, D) with C = diag(levels), heavy tails over networks, and noise of variance 0.1 a
    contribution.
    """
    generator = torch.Generator().manual_seed(seed)
    scale = torch.rand(networks, 1, generator=generator) + 0.5
    scale = scale / scale.square().mean().sqrt()
    vectors = torch.randn(networks, len(levels), generator=generator) * levels.sqrt() * scale
    noise = torch.randn(networks, num_contributions, len(levels), generator=generator)
    return vectors[:, None] + (0.1**0.5 * noise if num_contributions > 1 else 0)


def filled(drawn, moments=DenseMoments, readouts=1):
    """Return moments and first networks with (B, J, D)."""
    accumulator = moments(drawn.shape[-1])
    first = HalfSamples()
    for number, block in enumerate(drawn.split(32)):
        accumulator.update(block)
        first.update(number, 32 // readouts, block, readouts)
    return accumulator, first


def solved(drawn, shape=None, kind=DenseMoments, readouts=1, **options):
    """Return all eigenpairs from vectors (B, J, D)."""
    moments, first = filled(drawn, kind, readouts)
    problem = EigenProblem(moments, first, moments.dimension, shape or (moments.dimension,))
    return replace(problem, **options).eigenpairs()


def kept(result):
    """Return squared cosines with the exact directions, which are the axes."""
    return result.directions.diagonal().square()


def assert_orthonormal(rows):
    assert_close(rows @ rows.T, torch.eye(len(rows), dtype=rows.dtype), rtol=0, atol=1e-8)


def lenet(num_networks=64, **options):
    return examples.compute(nc.LENET, num_networks, (1, 16, 16), **options)


@pytest.mark.parametrize(
    ("partners", "readouts", "tolerance"), [(1, 1, 1e-4), (2, 1, 1e-4), (2, 3, 0.2)], ids=str
)
def test_the_variance_of_a_networks_share(partners, readouts, tolerance):
    """Of several readouts only pairs of neighbours are taken."""
    rows = normal(partners, 400, readouts, 2, 5)
    rows = rows + normal(1, 400, 1, 1, 5, seed=1)  # what all of a network share
    x, y = rows.double().unbind(3)
    shares = torch.einsum("pnrj,pnrk->njk", x, y) / (partners * readouts)
    variances = share_variances(rows)
    expected = ((shares + shares.mT) / 2).var(0, unbiased=False)
    assert_close(variances, expected, rtol=tolerance, atol=tolerance / 4)


def test_each_dimension_that_other_networks_do_not_span_has_as_much_energy_and_noise():
    halves = 2**0.5 * normal(1, 40, 1, 1, 400) + normal(1, 40, 1, 2, 400, seed=1)
    assert unseen_energies(halves) == pytest.approx((2, 0.5), rel=0.05)
    assert unseen_energies(0 * halves) == (0, 0)


def test_only_the_first_networks_are_kept():
    _, first = filled(contributions(2_000, 0))
    assert first.halves().shape == (512, 1, 2, D)


@pytest.mark.parametrize(
    ("count", "known", "bands"), [(5, 3, [(3, 5)]), (4, 3, []), (3, 1, [(1, 3)])]
)
def test_ranks_of_which_nothing_is_known_are_one_band(count, known, bands):
    ones = torch.ones(3)
    ranks = torch.arange(4.0)
    of_three = TypeUncertainty(ones, ones, ones, torch.minimum(ranks, ranks[:, None]), [])
    extended = of_three.extended(count, known)
    assert extended.bands == bands
    assert extended.certainty.tolist() == [1] * known + [0] * (count - known)


@pytest.mark.parametrize("strongest", [1.0, 1e4])
def test_no_rank_is_certain_to_be_less_known_than_its_neighbours(strongest):
    """Levels fall by the same factor, so that all ranks are known about equally well."""
    levels = torch.cat([torch.tensor([strongest]), 1.25 ** -torch.arange(12.0)])
    missing = torch.zeros(13)
    for seed in range(12):
        drawn = normal(1_000, 1, 13, seed=seed) * levels.sqrt()
        result = solved(drawn + 0.02 * normal(1_000, 4, 13, seed=100 + seed))
        missing += (result.uncertainty.certainty - kept(result)) / 12
    assert missing[2:].abs().max() < 0.1, missing


@pytest.mark.parametrize("networks", [128, 4_096])
def test_certificates_come_true(networks):
    """A reliability diagram in four bins, and the eigenvalues' errors, against a C that is
    known.
    """
    claimed = []
    true = []
    errors = []
    for seed in range(8):
        result = solved(contributions(networks, 100 + seed))
        claimed.append(result.uncertainty.certainty)
        true.append(kept(result))
        errors.append((result.eigenvalues - LEVELS)[:20] / result.uncertainty.eigenvalue_std[:20])
    claimed, true = torch.cat(claimed).double(), torch.cat(true).double()
    bins = (claimed * 4).long().clamp(max=3)
    for number in range(4):
        inside = bins == number
        if inside.double().mean() > 0.02:
            # A spectrum as regular as this one is known a little better than claimed.
            most = 0.1 if networks > 10 * D else 0.2
            assert -0.25 < float(claimed[inside].mean() - true[inside].mean()) < most
    assert 0.7 < float(torch.stack(errors).square().mean().sqrt()) < 1.5


def deviations(levels, networks, noise=None):
    """Return errors of eigenvalues in their own units, (runs, D), NaN where nothing is claimed."""
    result = []
    for seed in range(8):
        drawn = normal(networks, 1, len(levels), seed=seed) * levels.sqrt()
        if noise is not None:
            drawn = drawn + normal(networks, 4, len(levels), seed=100 + seed) * noise.sqrt()
        pairs = solved(drawn)
        error = (pairs.eigenvalues - levels) / pairs.uncertainty.eigenvalue_std
        result.append(error.masked_fill(pairs.uncertainty.certainty == 0, math.nan))
    return torch.stack(result)


def test_shifts_of_an_eigenvalue_add_up():
    """Near ranks and far ones push the first eigenvalues up, and the last ones down."""
    first, between, last = (
        float(part.square().mean().sqrt())
        for part in deviations(1 / (1 + torch.arange(200) / 50), 800).split([10, 90, 100], dim=1)
    )
    assert 0.9 < first < 1.15  # 1.5 if they were independent errors
    assert max(between, last) < 1  # 2.9 if the shift were known to vanish where its sign changes


def test_noise_shifts_the_eigenvalues_that_shrinking_keeps():
    errors = deviations(torch.exp(-torch.arange(64) / 8), 3_000, torch.logspace(-2, 0.5, 64))
    known = errors[~errors.isnan()]
    assert (known.abs() < 1.96).double().mean() > 0.9  # 0.83 if the shift were shrunk as well


def of_readouts(seed):
    """Solve with eight readouts of networks of two features."""
    features = normal(256, 2, 24, seed=seed) * FEW_LEVELS.sqrt()
    layers = normal(256, 8, 2, seed=100 + seed) / 2**0.5
    vectors = (layers @ features).reshape(-1, 1, 24).expand(-1, 2, 24)
    return solved(vectors + 0.01 * normal(*vectors.shape, seed=200 + seed), readouts=8)


def of_channels(seed):
    """Solve with six exchangeable channels, and leave the directions of the first one."""
    vectors = (normal(256, 6, 24, seed=seed) * FEW_LEVELS.sqrt()).reshape(256, 1, -1)
    result = solved(vectors, (6, 4, 6), symmetries=("channels",))
    own = slice(None, None, 6)
    known = result.uncertainty
    known = replace(known, certainty=known.certainty[own], eigenvalue_std=known.eigenvalue_std[own])
    # Each lies in one channel
    directions = result.directions[own].abs().unflatten(1, (6, 24)).sum(1)
    return replace(
        result, eigenvalues=result.eigenvalues[own], directions=directions, uncertainty=known
    )


@pytest.mark.parametrize("solve", [of_readouts, of_channels])
def test_vectors_of_one_network_are_not_independent(solve):
    excess = []
    errors = []
    for result in map(solve, range(16)):
        known = result.uncertainty
        excess.append((known.certainty - kept(result))[:8])
        errors.append(((result.eigenvalues - FEW_LEVELS) / known.eigenvalue_std)[:8])
    # 0.12 and 2 if each readout counted as a network
    assert -0.2 < torch.stack(excess).mean() < 0.06
    assert 0.7 < torch.stack(errors).square().mean().sqrt() < 1.3


@pytest.mark.parametrize("kind", [DenseMoments, GramMoments])
def test_few_networks_are_not_believed_in_the_space_that_they_span(kind):
    for networks in (1, 2, 4, 16):
        result = solved(normal(networks, 1, D, seed=networks), kind=kind)
        assert result.uncertainty.certainty.max() < 0.05  # C = I
    nads = lenet(2)
    assert not nads.certainty.any() and nads.eigenvalue_std.isnan().all()
    assert not nads.uncertainty.leading_certainty.any()
    assert not any(band.certainty for band in nads.bands)


def test_noise_along_a_direction_counts_beside_a_rest_without():
    """Paul's formulas, with noise of their own: against simulation."""
    excess = 0.0
    noise = torch.full((600,), 0.02)
    noise[0] = 3.0
    for seed in range(6):
        drawn = normal(150, 4, 600, seed=seed) * noise.sqrt()
        drawn[..., 0] += 2**0.5 * normal(150, 1, seed=10 + seed)
        result = solved(drawn, kind=GramMoments, count=3)
        excess += float(result.uncertainty.certainty[0] - kept(result)[0]) / 6
    assert abs(excess) < 0.15


def test_a_type_without_any_vector():
    few = torch.zeros(4, 1, 100)
    few[:, 0, 50:] = 1.0  # every network the same, below the middle, and fewer of them than pixels
    result = solved(few, (1, 10, 10), count=5, symmetries=("flip_rows", "transpose"))
    assert result.uncertainty.certainty.isfinite().all()


def test_directions_of_the_noise_are_not_certified():
    levels = torch.linspace(1, 0.3, 8)
    claimed = []
    true = []
    for seed in range(12):
        vectors = normal(20_000, 1, 8, seed=seed) * levels.sqrt()
        noise = normal(20_000, 4, 8, seed=100 + seed) * torch.linspace(0.1, 30, 8).sqrt()
        none = solved(vectors + noise, debiasing="none").uncertainty  # of C + W, not of C
        assert not none.certainty.any()
        shrunk = solved(vectors + noise)
        claimed.append(shrunk.uncertainty.certainty)
        true.append(kept(shrunk))
    claimed, true = torch.stack(claimed).double(), torch.stack(true).double()
    unknown = (claimed == 0).double().mean(0)  # the floor puts some before their turn
    assert unknown[-1] == 1 and unknown[-3:].min() > 0.75 and true[claimed == 0].mean() < 0.3
    assert (claimed > 0).any() and abs(float((claimed - true)[claimed > 0].mean())) < 0.15
    assert not none.leading_certainty.any() and not any(band.certainty for band in none.bands)


def test_which_types_come_first_is_not_certain_either():
    shape = (1, 4, 4)
    levels = torch.full((16,), 0.02)
    kinds = symmetry_types(shape, ("flip_rows",))
    basis = torch.cat([kind.bases[0].to_dense() for kind in kinds]).float()
    # The ninth, of another type, is about as large as the second.
    levels[:2] = torch.tensor([5.0, 1.0])
    claimed = []
    overlaps = []
    for seed in range(60):
        generator = torch.Generator().manual_seed(seed)
        levels[8] = 1 + 0.1 * torch.randn((), generator=generator)
        exact = basis[levels.argsort(descending=True)[:2]]
        drawn = torch.randn(500, 16, generator=generator) * levels.sqrt()
        result = solved((drawn @ basis)[:, None], shape, symmetries=("flip_rows",))
        claimed.append(float(result.uncertainty.leading_certainty[1]))
        overlaps.append(float((result.directions[:2].float() @ exact.T).square().sum()) / 2)
    assert min(overlaps) < 0.6  # the wrong two
    assert abs(sum(claimed) - sum(overlaps)) / 60 < 0.08


def test_a_band_is_known_where_its_directions_are_not():
    levels = torch.cat([torch.tensor([8.0, 4.0, 4.0, 4.0]), torch.full((D - 4,), 0.5)])
    result = solved(contributions(4_000, 3, levels=levels))
    assert result.uncertainty.certainty[0] > 0.95 and result.uncertainty.certainty[1:4].max() < 0.9
    first, last = result.uncertainty.bands
    assert first.indices == (1, 2, 3) and first.certainty > 0.95
    assert last.indices == tuple(range(4, D))
    assert result.uncertainty.leading_certainty[3] > 0.95 > result.uncertainty.leading_certainty[1]


@pytest.mark.parametrize("head", [0, 60])
def test_a_flat_tail_at_few_networks_claims_no_more_than_it_keeps(head):
    levels = torch.where(torch.arange(256) < head, 5.0, 0.5)
    claimed = []
    shared = []
    for seed in range(4):
        drawn = normal(200, 1, 256, seed=seed) * levels.sqrt()
        drawn = drawn + 0.1 * normal(200, 4, 256, seed=seed + 10)
        result = solved(drawn)
        assert result.uncertainty.certainty[head:].max() < 0.1
        squares = result.directions.double().square()
        for band in result.uncertainty.bands:
            inside = list(band.indices)
            claimed.append(band.certainty * len(inside))
            shared.append(float(squares[inside][:, inside].sum()))
    assert -0.15 < (sum(claimed) - sum(shared)) / (4 * 256) < 0.05


@pytest.mark.parametrize(
    "symmetries", [(), ("transpose",), ("flip_rows",), ("flip_rows", "transpose")], ids=str
)
def test_blocks_have_the_eigenpairs_of_the_average(symmetries):
    drawn = contributions(300, 7)
    result = solved(drawn, (1, 8, 8), symmetries=symmetries)
    moments = filled(drawn)[0].moments()
    seen, noise = (symmetrize(matrix, (1, 8, 8), symmetries) for matrix in moments)
    values, _ = leading_eigenpairs(debias(seen, noise), D)
    assert_close(result.eigenvalues.double(), values, rtol=1e-6, atol=1e-9)
    rows = result.directions
    assert_orthonormal(rows)
    shrunk = rows @ debias(seen, noise) @ rows.T
    assert_close(shrunk, torch.diag(values), rtol=0, atol=1e-8)
    kinds = {
        name: kind.bases[kind.names.index(name)]
        for kind in symmetry_types((1, 8, 8), symmetries)
        for name in kind.names
    }
    for name, row in zip(result.uncertainty.types, rows, strict=True):
        # Each lies in the images of its type.
        assert float(torch.mv(kinds[name], row).norm()) == pytest.approx(1)


@pytest.mark.parametrize(("networks", "size"), [(300, 8), (2, 16)])  # few leave zeros
def test_partners_stand_together_and_are_transposed(networks, size):
    drawn = contributions(networks, 7, levels=torch.exp(-torch.arange(size**2) / 8))
    result = solved(drawn, (1, size, size), symmetries=SQUARE)
    images = result.directions.view(-1, size, size)
    pairs = [i for i, name in enumerate(result.uncertainty.types) if name == "+-"]
    assert len(pairs) == size**2 // 4
    for i in pairs:
        assert result.uncertainty.types[i + 1] == "-+"
        assert result.eigenvalues[i] == result.eigenvalues[i + 1]
        assert result.uncertainty.certainty[i] == result.uncertainty.certainty[i + 1]
        assert_close(images[i].T, images[i + 1])


@pytest.mark.parametrize("debiasing", ["shrink", "subtract", "none"])
def test_few_networks_span_few_directions(debiasing):
    """Eigenpairs in the space of the vectors are those in all of it, and the rest are directions of
    certainty 0.
    """
    levels = torch.exp(-torch.arange(256) / 8.0)
    drawn = contributions(12, 9, levels=levels)
    result = solved(drawn, debiasing=debiasing)
    values, axes = leading_eigenpairs(debias(*filled(drawn)[0].moments(), debiasing), 8)
    assert_close(result.eigenvalues[:8].double(), values, rtol=1e-4, atol=1e-6)
    assert (result.directions[:8] * axes).sum(1).abs().min() > 0.999
    assert_orthonormal(result.directions)
    if debiasing != "subtract":  # where signs of eigenvalues are noise
        assert not result.uncertainty.certainty[12 * 8 + 1 :].any()


def test_certificates_in_files(tmp_path):
    nads = lenet()
    nads.save(tmp_path / "x.npz", quantized=True)
    loaded = nc.NADs.load(tmp_path / "x.npz")
    for name, values in nads.uncertainty.arrays().items():
        np.testing.assert_array_equal(loaded.uncertainty.arrays()[name], values)
    assert (loaded.names, loaded.bands) == (nads.names, nads.bands)
    assert len(set(nads.names)) == len(nads) and nads.names[nads.types.index("+-")] == "+- 0"
    without = nc.NADs(nads.directions, nads.eigenvalues)
    without.save(tmp_path / "old.npz")
    with pytest.raises(ValueError, match="uncertaint"):
        _ = nc.NADs.load(tmp_path / "old.npz").names
    with pytest.raises(ValueError, match="uncertainty of 3 .*got 256"):
        nc.NADs(nads.directions[:3], nads.eigenvalues[:3], {}, nads.uncertainty)


def test_levels_are_corrected_for_the_bulk():
    """The bulk shifts eigenvalues by a known amount; a certificate made from these starts from the
    levels themselves.

    One planted level, 4, above a million dimensions of level 0.01 and noise 0.02, of which 10,000
    networks show little.
    """
    bulk = BulkSpectrum(10**6, 0.01, 0.02)
    networks = 10_000
    level = torch.tensor([4.0]).double()
    noise = torch.zeros(1)
    retained, shift = bulk.shrink(level, noise, networks)
    # The bulk's energy per network is 3, the gap 3.99.
    assert float(shift) == pytest.approx(3 * 4 / 3.99)
    assert float(retained) == pytest.approx((1 - 0.03 / 3.99**2) / (1 + 3 / 3.99))
    value = level + shift
    assert_close(bulk.invert_shrinkage(value, noise, networks), level)
    certificate = estimate_uncertainty(
        value, noise, 2 * value.square()[None], SampleSize(networks), bulk, beyond=torch.zeros(1)
    )
    assert float(certificate.certainty) == pytest.approx(float(retained), abs=0.01)
    assert float(certificate.eigenvalue_std) == pytest.approx(float(shift), rel=0.01)


def test_a_run_ends_when_enough_directions_are_certain():
    nads = lenet(20_000, num_certain=8)
    assert nads.provenance["num_networks"] < 20_000
    assert int((nads.certainty >= 0.9).sum()) >= 8
    assert nads.provenance["num_certain"] == 8 and nads.provenance["certain"] >= 8


def test_runs_are_compared_with_the_covariance_that_their_networks_have():
    """A heavy-tailed case: gradients are products of two weights, one of which several frequencies
    share.
    """
    comparisons = []
    for seed in range(12):
        generator = torch.Generator().manual_seed(seed)
        random_filter = torch.randn(9, generator=generator)
        response = torch.fft.rfft(random_filter, 2 * D)[:D].abs()
        theta, phi = (torch.randn(4_000, count, generator=generator) for count in (D // 4, D))
        run = filled((theta.repeat(1, 4) * phi * response / 2)[:, None])  # eq. (4), S = 4
        comparisons += compare_with_exact([run], gradient_covariance(response), (1, 8, 8))
    promised, kept = (
        np.concatenate([getattr(c, name) for c in comparisons]) for name in ("promised", "kept")
    )
    for part in (promised < 0.2, (promised > 0.2) & (promised < 0.8), promised > 0.8):
        assert part.sum() > 10 and abs(promised[part].mean() - kept[part].mean()) < 0.1
    assert 0.85 < coverage(comparisons) < 1


def test_a_forecast_comes_true(tmp_path):
    path = tmp_path / "lenet.ckpt"
    estimator = nc.SmoothedGradient(readouts=2)
    nads = lenet(448, checkpoint=path, estimator=estimator)
    now, later = nb.forecast(path, [448, 1_792])
    assert now.num_certain == int((nads.certainty >= 0.9).sum())
    assert later.seconds == pytest.approx(4 * now.seconds)
    certain = int((lenet(1_792, estimator=estimator).certainty >= 0.9).sum())
    assert now.num_certain < certain and 0.5 * certain <= later.num_certain <= 1.5 * certain
    assert [ahead.num_networks for ahead in nb.forecast(path)] == [448, 896, 1_792, 3_584, 7_168]
    for bad in (1000.5, 100):
        with pytest.raises(ValueError, match="num_networks"):
            nb.forecast(path, [bad])


@pytest.mark.parametrize("debiasing", ["shrink", "subtract"])
def test_types_without_any_energy(debiasing):
    drawn = torch.ones(40, 2, D) + 0.1 * normal(40, 2, 1)
    result = solved(drawn, (1, 8, 8), debiasing=debiasing, symmetries=SQUARE)
    assert result.uncertainty.certainty[0] > 0.9 and not result.uncertainty.certainty[1:].any()
    assert_orthonormal(result.directions)


def test_what_a_later_network_may_hold_alone_is_not_claimed():
    """Variances are from the first networks: one of the others can hold what these lack."""
    values = torch.tensor([10.0, 1.0, 0.5])
    noise = torch.zeros(3)
    variances = torch.diag(2 * values.square())
    for first, claimed in ((values, True), (torch.tensor([2.0, 1.0, 0.5]), False)):
        known = estimate_uncertainty(
            values, noise, variances, SampleSize(828, 1), BulkSpectrum(), values - first
        )
        assert (known.certainty[0] > 0.5) == claimed
        assert known.eigenvalue_std.isfinite().all()
