"""Uncertainties: variances by brute force, calibration by simulation, and storage in files."""

import math

import nads_book as nb
import numpy as np
import pytest
import torch
from nads_book.studies.calibration import compare_with_exact, coverage
from nads_book.theory.deep_linear import gradient_covariance
from torch import Tensor

import nads_core as nc
from nads_core.directions.bulk import BulkSpectrum
from nads_core.directions.covariance import debias, leading_eigenpairs
from nads_core.directions.eigenpairs import EigenProblem
from nads_core.directions.moments import DenseMoments, GramMoments, HalfSamples
from nads_core.directions.share_variance import share_variances
from nads_core.directions.simulation import SampleSize, estimate_uncertainty
from nads_core.directions.symmetry import symmetrize, symmetry_types

D = 64
LEVELS = torch.exp(-torch.arange(D) / 8.0)
SQUARE = ("flip_rows", "flip_columns", "transpose")


def contributions(
    networks: int, seed: int, num_contributions: int = 8, levels: Tensor = LEVELS
) -> Tensor:
    """Draw (B, J, D) with C = diag(levels), heavy tails over networks, and noise of variance 0.1 a
    contribution.
    """
    generator = torch.Generator().manual_seed(seed)
    scale = torch.rand(networks, 1, generator=generator) + 0.5
    scale = scale / scale.square().mean().sqrt()
    vectors = torch.randn(networks, len(levels), generator=generator) * levels.sqrt() * scale
    noise = torch.randn(networks, num_contributions, len(levels), generator=generator)
    return vectors[:, None] + (0.1**0.5 * noise if num_contributions > 1 else 0)


def filled(drawn: Tensor, moments=DenseMoments, readouts: int = 1):
    """Return moments and first networks with (B, J, D)."""
    accumulator, first = moments(drawn.shape[-1]), HalfSamples()
    for number, block in enumerate(drawn.split(32)):
        accumulator.update(block)
        first.update(number, 32 // readouts, block, readouts)
    return accumulator, first


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def lenet(num_networks: int = 64, channels: int = 1, **options) -> nc.NADs:
    options = {"image_shape": (channels, 16, 16), "progress": False} | options
    return nc.compute_nads(nc.LENET, num_networks, **options)


@pytest.mark.parametrize("num_contributions", [1, 2, 8])
def test_the_variance_of_a_networks_share(num_contributions):
    drawn = contributions(512, 1, num_contributions, LEVELS[:6])
    _, first = filled(drawn)
    half = max(1, num_contributions // 2)
    x, y = drawn[:, :half].double().mean(1), drawn[:, -half:].double().mean(1)
    shares = (x[:, :, None] * y[:, None] + y[:, :, None] * x[:, None]) / 2
    variances = share_variances(first.halves()[None])
    torch.testing.assert_close(variances, shares.var(0, unbiased=False), rtol=1e-4, atol=1e-3)


def test_the_variance_along_weak_directions_does_not_depend_on_a_strong_one():
    drawn = contributions(512, 1, 8, LEVELS[:6])
    halves = filled(drawn)[1].halves()[None]
    below = filled(drawn * torch.tensor([1e4, 1, 1, 1, 1, 1]))[1].halves()[None]
    weak = share_variances(below)[1:, 1:]
    torch.testing.assert_close(weak, share_variances(halves)[1:, 1:], rtol=1e-4, atol=0)


@pytest.mark.parametrize("strongest", [1.0, 1e4])
def test_no_rank_is_certain_to_be_less_known_than_its_neighbours(strongest):
    """Levels fall by the same factor, so that all ranks are known about equally well."""
    levels = torch.cat([torch.tensor([strongest]), 1.25 ** -torch.arange(12.0)])
    claimed, kept = [], []
    for seed in range(12):
        drawn = normal(1_000, 1, 13, seed=seed) * levels.sqrt()
        drawn = drawn + 0.02 * normal(1_000, 4, 13, seed=100 + seed)
        result = EigenProblem(*filled(drawn), 13, (13,)).eigenpairs()
        claimed.append(result.uncertainty.certainty)
        kept.append(result.directions.diagonal().square())
    missing = (torch.stack(claimed).mean(0) - torch.stack(kept).mean(0)).abs()
    assert missing[2:].max() < 0.1, missing


def test_partners_and_readouts_are_averaged_first():
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(2, 400, 3, 1, 5, generator=generator).expand(2, 400, 3, 2, 5)  # equal halves
    rows = rows + torch.randn(1, 400, 1, 1, 5, generator=generator)  # what all of a network share
    shares = torch.einsum("pnrk,pnrl->nkl", rows[..., 0, :].double(), rows[..., 0, :].double()) / 6
    variances = share_variances(rows)
    torch.testing.assert_close(variances, shares.var(0, unbiased=False), rtol=0.2, atol=0.05)


@pytest.mark.parametrize("num_contributions", [2, 5, 8])
def test_halves_share_no_contribution(num_contributions):
    drawn = contributions(6, 2, num_contributions)
    half = num_contributions // 2
    mean, spread = drawn.mean(1), (drawn[:, :half].mean(1) - drawn[:, half:].mean(1)) / 2
    if num_contributions % 2:
        spread *= 2 * math.sqrt(2 * 3) / 5  # as large as the noise of the mean of all
    moments, first = filled(drawn, GramMoments)
    torch.testing.assert_close(first.halves()[:, 0], torch.stack([mean + spread, mean - spread], 1))
    (means,), (spreads,) = moments.vectors()
    torch.testing.assert_close(means, mean)
    torch.testing.assert_close(spreads, spread)


def test_only_the_first_networks_are_kept():
    _, first = filled(contributions(2_000, 0))
    assert first.halves().shape == (512, 1, 2, D)
    _, few = filled(contributions(40, 0))
    assert few.halves().shape == (40, 1, 2, D)
    copy = HalfSamples()
    copy.load_state_dict(few.state_dict())
    assert torch.equal(copy.halves(), few.halves())


@pytest.mark.parametrize("networks", [128, 4_096])
def test_certificates_come_true(networks):
    """A reliability diagram in four bins, and the eigenvalues' errors, against a C that is
    known.
    """
    claimed, true, errors = [], [], []
    for seed in range(8):
        result = EigenProblem(
            *filled(contributions(networks, 100 + seed)), D, (1, 8, 8)
        ).eigenpairs()
        claimed.append(result.uncertainty.certainty)
        true.append(result.directions.diagonal().square())
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


def calibration(
    draw, runs: int, count: int, true=lambda directions: directions.diagonal().square(), **options
):
    """Return claimed and actual certainty of the first directions, and the eigenvalues' errors in
    their own units.
    """
    claimed, actual, errors = [], [], []
    for seed in range(runs):
        moments, first, shape, levels = draw(torch.Generator().manual_seed(seed))
        pairs = EigenProblem(moments, first, moments.dimension, shape, **options).eigenpairs()
        claimed.append(pairs.uncertainty.certainty[:count])
        actual.append(true(pairs.directions)[:count])
        difference = (pairs.eigenvalues - levels)[:count]
        errors.append(difference / pairs.uncertainty.eigenvalue_std[:count])
    claimed, actual, errors = (torch.stack(values) for values in (claimed, actual, errors))
    return claimed.mean(), actual.mean(), errors.square().mean().sqrt()


def test_readouts_of_one_network_are_not_independent():
    levels, readouts = torch.exp(-torch.arange(24) / 6.0), 8

    def draw(generator):
        # All that a network has.
        features = torch.randn(256, 2, 24, generator=generator) * levels.sqrt()
        layers = torch.randn(256, readouts, 2, generator=generator) / 2**0.5
        vectors = (layers @ features).reshape(-1, 1, 24).expand(-1, 2, 24)
        noise = 0.01 * torch.randn(vectors.shape, generator=generator)
        return *filled(vectors + noise, readouts=readouts), (24,), levels

    claimed, true, errors = calibration(draw, 16, 8)
    # 0.12 and 2 if each counted as a network.
    assert -0.15 < claimed - true < 0.06 and 0.7 < errors < 1.3


def test_channels_share_their_errors():
    levels, channels = torch.exp(-torch.arange(16) / 6.0), 6

    def draw(generator):
        vectors = torch.randn(200, channels, 16, generator=generator) * levels.sqrt()
        moments = filled(vectors.reshape(200, 1, -1))
        return *moments, (channels, 4, 4), levels.repeat_interleave(channels)

    def true(directions):  # of the first channel, of which every sixth is
        coordinates = directions[::channels].abs().unflatten(1, (channels, 16)).sum(1)
        return coordinates.diagonal().square().repeat_interleave(channels)

    claimed, actual, errors = calibration(draw, 8, 10 * channels, true, symmetries=("channels",))
    assert abs(claimed - actual) < 0.08 and 0.7 < errors < 1.3


@pytest.mark.parametrize("kind", [DenseMoments, GramMoments])
def test_few_networks_are_not_believed_in_the_space_that_they_span(kind):
    for networks in (1, 2, 4, 16):
        result = EigenProblem(
            *filled(normal(networks, 1, D, seed=networks), kind), D, (D,)
        ).eigenpairs()
        assert result.uncertainty.certainty.max() < 0.05  # C = I
    nads = lenet(2)
    assert not nads.certainty.any() and nads.eigenvalue_std.isnan().all()
    assert not nads.uncertainty.leading_certainty.any()
    assert not any(band.certainty for band in nads.bands)


def test_noise_along_a_direction_counts_beside_a_rest_without():
    """Paul's formulas, with noise of their own: against simulation."""
    dimension, networks, claimed, true = 600, 150, [], []
    noise = torch.full((dimension,), 0.02)
    noise[0] = 3.0
    for seed in range(6):
        generator = torch.Generator().manual_seed(seed)
        vectors = torch.zeros(networks, 1, dimension)
        vectors[:, 0, 0] = 2**0.5 * torch.randn(networks, generator=generator)
        drawn = vectors + torch.randn(networks, 4, dimension, generator=generator) * noise.sqrt()
        result = EigenProblem(*filled(drawn, GramMoments), 3, (dimension,)).eigenpairs()
        claimed.append(float(result.uncertainty.certainty[0]))
        true.append(float(result.directions[0, 0].square()))
    assert abs(sum(claimed) - sum(true)) / 6 < 0.15


def test_a_type_without_any_vector():
    drawn = torch.zeros(40, 1, 9)
    drawn[:, 0, 3:6] = normal(40, 3)  # the middle row: nothing odd
    result = EigenProblem(*filled(drawn), 9, (1, 3, 3), symmetries=("flip_rows",)).eigenpairs()
    odd = torch.tensor([kind == "-" for kind in result.uncertainty.types])
    assert odd.sum() == 3 and not result.uncertainty.certainty[odd].any()
    few = torch.zeros(4, 1, 100)
    few[:, 0, 50:] = 1.0  # every network the same, below the middle, and fewer of them than pixels
    result = EigenProblem(
        *filled(few), 5, (1, 10, 10), symmetries=("flip_rows", "transpose")
    ).eigenpairs()
    assert result.uncertainty.certainty.isfinite().all()


def test_directions_of_the_noise_are_not_certified():
    levels, claimed, true = torch.linspace(1, 0.3, 8), [], []
    for seed in range(12):
        generator = torch.Generator().manual_seed(seed)
        vectors = torch.randn(20_000, 1, 8, generator=generator) * levels.sqrt()
        noise = torch.randn(20_000, 4, 8, generator=generator) * torch.linspace(0.1, 30, 8).sqrt()
        moments = filled(vectors + noise)
        none = (
            EigenProblem(*moments, 8, (8,), "none").eigenpairs().uncertainty
        )  # of C + W, not of C
        assert not none.certainty.any()
        shrunk = EigenProblem(*moments, 8, (8,), "shrink").eigenpairs()
        claimed.append(shrunk.uncertainty.certainty)
        true.append(shrunk.directions.diagonal().square())
    claimed, true = torch.stack(claimed).double(), torch.stack(true).double()
    unknown = (claimed == 0).double().mean(0)  # the floor puts some before their turn
    assert unknown[-1] == 1 and unknown[-3:].min() > 0.75 and true[claimed == 0].mean() < 0.3
    assert (claimed > 0).any() and abs(float((claimed - true)[claimed > 0].mean())) < 0.15
    assert not none.leading_certainty.any() and not any(band.certainty for band in none.bands)


def test_which_types_come_first_is_not_certain_either():
    shape, levels = (1, 4, 4), torch.full((16,), 0.02)
    kinds = symmetry_types(shape, ("flip_rows",))
    basis = torch.cat([kind.bases[0].to_dense() for kind in kinds]).float()
    # The ninth, of another type, is about as large as the second.
    levels[:2] = torch.tensor([5.0, 1.0])
    claimed, overlaps = [], []
    for seed in range(60):
        generator = torch.Generator().manual_seed(seed)
        levels[8] = 1 + 0.1 * torch.randn((), generator=generator)
        exact = basis[levels.argsort(descending=True)[:2]]
        drawn = torch.randn(500, 16, generator=generator) * levels.sqrt()
        moments = filled((drawn @ basis)[:, None])
        result = EigenProblem(*moments, 16, shape, symmetries=("flip_rows",)).eigenpairs()
        claimed.append(float(result.uncertainty.leading_certainty[1]))
        overlaps.append(float((result.directions[:2].float() @ exact.T).square().sum()) / 2)
    assert min(overlaps) < 0.6  # the wrong two
    assert abs(sum(claimed) - sum(overlaps)) / 60 < 0.08


def test_an_interval_of_exact_overlaps_holds_them():
    held, width = [], []
    turned = torch.linalg.qr(torch.eye(D) + 0.02 * normal(D, D, seed=5)).Q.T
    exact = float((torch.eye(D)[:5] @ turned[:5].T).square().sum()) / 5
    for seed in range(12):
        pair = []
        for number, basis in enumerate((torch.eye(D), turned)):
            drawn = normal(2_000, D, seed=2 * seed + number) * LEVELS.sqrt()
            result = EigenProblem(*filled((drawn @ basis)[:, None]), D, (1, 8, 8)).eigenpairs()
            directions = result.directions.float().view(-1, 1, 8, 8)
            pair.append(nc.NADs(directions, result.eigenvalues.float(), {}, result.uncertainty))
        low, high = pair[0].overlap_interval(pair[1], 5)
        held.append(low <= exact <= high)
        width.append(high - low)
    assert sum(held) >= 11 and max(width) < 0.6


def test_a_band_is_known_where_its_directions_are_not():
    levels = torch.cat([torch.tensor([8.0, 4.0, 4.0, 4.0]), torch.full((D - 4,), 0.5)])
    result = EigenProblem(
        *filled(contributions(4_000, 3, levels=levels)), D, (1, 8, 8)
    ).eigenpairs()
    assert result.uncertainty.certainty[0] > 0.95 and result.uncertainty.certainty[1:4].max() < 0.9
    first, last = result.uncertainty.bands
    assert first.indices == (1, 2, 3) and first.certainty > 0.95
    assert last.indices == tuple(range(4, D))
    assert result.uncertainty.leading_certainty[3] > 0.95 > result.uncertainty.leading_certainty[1]


@pytest.mark.parametrize("num_networks", [64, 256, 512])
def test_no_direction_is_certain_where_all_are_equal(num_networks):
    """As many vectors as pixels, or half as many: their eigenvalues differ by sampling alone."""
    options = {"image_shape": (1, 16, 16), "estimator": nc.SmoothedGradient(4), "progress": False}
    nads, other = (
        nc.compute_nads(nc.LOGREG, num_networks, seed=seed, **options) for seed in (0, 1)
    )
    assert nads.certainty.max() < 0.3
    for band in nads.bands:
        first, second = (basis.directions[list(band.indices)].flatten(1) for basis in (nads, other))
        assert band.certainty < float((first @ second.T).square().sum() / len(first)) + 0.1


@pytest.mark.parametrize("head", [0, 60])
def test_a_flat_tail_at_few_networks_claims_no_more_than_it_keeps(head):
    levels = torch.where(torch.arange(256) < head, 5.0, 0.5)
    claimed, shared = [], []
    for seed in range(4):
        drawn = normal(200, 1, 256, seed=seed) * levels.sqrt()
        drawn = drawn + 0.1 * normal(200, 4, 256, seed=seed + 10)
        result = EigenProblem(*filled(drawn), 256, (256,)).eigenpairs()
        assert result.uncertainty.certainty[head:].max() < 0.1
        squares = result.directions.double().square()
        for band in result.uncertainty.bands:
            inside = list(band.indices)
            claimed.append(band.certainty * len(inside))
            shared.append(float(squares[inside][:, inside].sum()))
    assert -0.15 < (sum(claimed) - sum(shared)) / (4 * 256) < 0.05


def test_where_the_floor_decides_nothing_is_certified():
    levels = torch.cat([LEVELS[:8], torch.zeros(D - 8)])
    moments, first = filled(contributions(1_000, 5, levels=levels))
    result = EigenProblem(moments, first, D, (1, 8, 8)).eigenpairs()
    seen, noise = moments.moments()
    v = result.directions
    floored = ((v @ (seen - noise)) * v).sum(1) <= 0.1 * ((v @ noise) * v).sum(1)
    assert 10 < floored.sum() < D - 8
    assert not result.uncertainty.certainty[floored].any()
    subtracted = EigenProblem(moments, first, D, (1, 8, 8), "subtract").eigenpairs()
    assert subtracted.uncertainty.certainty[floored].any()


@pytest.mark.parametrize(
    "symmetries", [(), ("transpose",), ("flip_rows",), ("flip_rows", "transpose")], ids=str
)
def test_blocks_have_the_eigenpairs_of_the_average(symmetries):
    moments, first = filled(contributions(300, 7))
    result = EigenProblem(moments, first, D, (1, 8, 8), symmetries=symmetries).eigenpairs()
    seen, noise = (symmetrize(matrix, (1, 8, 8), symmetries) for matrix in moments.moments())
    values, _ = leading_eigenpairs(debias(seen, noise), D)
    torch.testing.assert_close(result.eigenvalues.double(), values, rtol=1e-6, atol=1e-9)
    rows = result.directions
    torch.testing.assert_close(rows @ rows.T, torch.eye(D, dtype=rows.dtype), rtol=0, atol=1e-9)
    shrunk = rows @ debias(seen, noise) @ rows.T
    torch.testing.assert_close(shrunk, torch.diag(values), rtol=0, atol=1e-8)
    kinds = {
        name: kind.bases[kind.names.index(name)]
        for kind in symmetry_types((1, 8, 8), symmetries)
        for name in kind.names
    }
    for name, row in zip(result.uncertainty.types, rows, strict=True):
        # Each lies in the images of its type.
        assert float(torch.mv(kinds[name], row).norm()) == pytest.approx(1)


def test_partners_stand_together_and_are_transposed():
    moments, first = filled(contributions(300, 7))
    result = EigenProblem(moments, first, D, (1, 8, 8), symmetries=SQUARE).eigenpairs()
    images = result.directions.view(-1, 8, 8)
    pairs = [i for i, name in enumerate(result.uncertainty.types) if name == "+-"]
    assert len(pairs) == 16
    for i in pairs:
        assert result.uncertainty.types[i + 1] == "-+"
        assert result.eigenvalues[i] == result.eigenvalues[i + 1]
        assert result.uncertainty.certainty[i] == result.uncertainty.certainty[i + 1]
        torch.testing.assert_close(images[i].T, images[i + 1])


@pytest.mark.parametrize("debiasing", ["shrink", "subtract", "none"])
def test_few_networks_span_few_directions(debiasing):
    """Eigenpairs in the space of the vectors are those in all of it, and the rest are directions of
    certainty 0.
    """
    levels = torch.exp(-torch.arange(256) / 8.0)
    moments, first = filled(contributions(12, 9, levels=levels))
    result = EigenProblem(moments, first, 256, (1, 16, 16), debiasing).eigenpairs()
    seen, noise = moments.moments()
    values, axes = leading_eigenpairs(debias(seen, noise, debiasing), 8)
    torch.testing.assert_close(result.eigenvalues[:8].double(), values, rtol=1e-4, atol=1e-6)
    assert (result.directions[:8] * axes).sum(1).abs().min() > 0.999
    rows = result.directions
    torch.testing.assert_close(rows @ rows.T, torch.eye(256, dtype=rows.dtype), rtol=0, atol=1e-8)
    if debiasing != "subtract":  # where signs of eigenvalues are noise
        assert not result.uncertainty.certainty[12 * 8 + 1 :].any()


def test_channels_that_are_alike_have_one_block():
    nads = lenet(channels=3, symmetries=("channels",), num_directions=6)
    assert nads.types == ("c0", "c1", "c2") * 2
    assert nads.directions[0, 1:].abs().max() == 0  # one channel each
    torch.testing.assert_close(nads.directions[0, 0], nads.directions[1, 1])
    by_default = lenet(channels=3, num_directions=6)
    assert set(by_default.provenance["symmetries"]) == {*nc.LENET.symmetries, "channels"}
    kind = by_default.types[0][3:]
    assert by_default.types[:3] == (f"c0 {kind}", f"c1 {kind}", f"c2 {kind}")


def test_certificates_in_files(tmp_path):
    nads = lenet()
    assert sorted(set(nads.types)) == ["++a", "++s", "+-", "-+", "--a", "--s"]
    assert len(set(nads.names)) == len(nads) and nads.names[nads.types.index("+-")] == "+- 0"
    nads.save(tmp_path / "x.npz", quantized=True)
    loaded = nc.NADs.load(tmp_path / "x.npz")
    for name in ("certainty", "agreement", "eigenvalue_std", "leading_certainty"):
        known = getattr(loaded.uncertainty, name), getattr(nads.uncertainty, name)
        torch.testing.assert_close(*known, rtol=0, atol=0, equal_nan=True)
    assert (loaded.types, loaded.bands) == (nads.types, nads.bands)
    without = nc.NADs(nads.directions, nads.eigenvalues)
    assert without.fingerprint == nads.fingerprint  # uncertainties are not part of the fingerprint
    without.save(tmp_path / "old.npz")
    old = nc.NADs.load(tmp_path / "old.npz")
    assert old.uncertainty is None
    with pytest.raises(ValueError, match="uncertaint"):
        _ = old.names
    with pytest.raises(ValueError, match="uncertainty of 3 .*got 256"):
        nc.NADs(nads.directions[:3], nads.eigenvalues[:3], {}, nads.uncertainty)


def test_levels_are_corrected_for_the_bulk():
    """The bulk shifts eigenvalues by a known amount; a certificate made from these starts from the
    levels themselves.

    One planted level, 4, above a million dimensions of level 0.01 and noise 0.02, of which 10,000
    networks show little.
    """
    bulk, networks = BulkSpectrum(10**6, 0.01, 0.02), 10_000
    level, noise = torch.tensor([4.0]).double(), torch.zeros(1)
    retained, shift = bulk.shrink(level, noise, networks)
    # The bulk's energy per network is 3, the gap 3.99.
    assert float(shift) == pytest.approx(3 * 4 / 3.99)
    assert float(retained) == pytest.approx((1 - 0.03 / 3.99**2) / (1 + 3 / 3.99))
    value = level + shift
    torch.testing.assert_close(bulk.invert_shrinkage(value, noise, networks), level)
    certificate = estimate_uncertainty(
        value, noise, 2 * value.square()[None], SampleSize(networks), bulk
    )
    assert float(certificate.certainty) == pytest.approx(float(retained), abs=0.01)


def test_a_run_ends_when_enough_directions_are_certain():
    nads = lenet(20_000, num_certain=8)
    assert nads.provenance["num_networks"] < 20_000
    assert int((nads.certainty >= 0.9).sum()) >= 8
    assert nads.provenance["num_certain"] == 8 and nads.provenance["certain"] >= 8


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        ({"num_certain": 8, "tolerance": 0.1}, "tolerance and num_certain"),
        ({"num_certain": 8, "num_directions": 5}, "num_certain = 8 .*5 directions"),
        ({"num_certain": 300}, "num_certain = 300 .*256 directions"),
    ],
)
def test_goals_that_cannot_be_reached_are_rejected(options, shown):
    with pytest.raises(ValueError, match=shown):
        lenet(100, **options)


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
    path, estimator = tmp_path / "lenet.ckpt", nc.SmoothedGradient(readouts=2)
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
    result = EigenProblem(*filled(drawn), D, (1, 8, 8), debiasing, SQUARE).eigenpairs()
    assert result.uncertainty.certainty[0] > 0.9 and not result.uncertainty.certainty[1:].any()
    rows = result.directions
    torch.testing.assert_close(rows @ rows.T, torch.eye(D, dtype=rows.dtype))
