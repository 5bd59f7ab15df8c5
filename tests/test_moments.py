"""Second moments in groups of networks: the sums, their partitions, merges and other sizes."""

import pytest
import torch
from convergence import assert_mean, normal, simulated
from examples import compute, convnet
from hypothesis import given
from hypothesis import strategies as st
from plain_loop import shares as plain_shares
from torch.testing import assert_close

import nads_core as nc
from nads_core.directions import moments

SIZE = 6
KINDS = {"one contribution": (1, 1), "halves": (2, 1), "readouts": (2, 3)}


def vectors(count, kind="halves", seed=0, dtype=torch.float32, size=SIZE):
    return normal(count, *KINDS[kind], size, seed=seed, dtype=dtype)


def summed(*parts, **options):
    moment = nc.SecondMoment((parts[0].shape[-1],), **options)
    for part in parts:
        moment.add(part)
    return moment


@pytest.mark.parametrize("factor", [1e-36, 1.0, 1e36])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("kind", KINDS)
def test_shares_are_those_of_a_plain_loop(kind, dtype, factor):
    """Far from one, squares neither underflow nor overflow."""
    networks = (factor * vectors(1_500, kind)).to(dtype)
    shares = summed(networks).shares() / factor**2
    assert shares.dtype == torch.float64
    error = (shares - plain_shares(networks.double() / factor)).abs().max() / shares.abs().max()
    assert error < (1e-14 if dtype == torch.float64 else 2e-6)  # sampling: 1e-1


@given(
    cuts=st.lists(st.integers(0, 1_200), max_size=4),
    kind=st.sampled_from(list(KINDS)),
    seed=st.integers(0, 99),
)
def test_the_sums_do_not_depend_on_the_chunks(cuts, kind, seed):
    networks = vectors(1_200, kind, seed)
    ends = [1, *sorted(cut for cut in cuts if cut > 1), 1_200]  # the first chunk sets the scale
    parts = [networks[:1], *(networks[i:j] for i, j in zip(ends, ends[1:], strict=False))]
    ours, whole = summed(*parts), summed(networks[:1], networks[1:])
    assert torch.equal(ours.shares(), whole.shares())
    assert ours.num_networks == 1_200 and ours.num_vectors == 1_200 * KINDS[kind][1]


def test_tiny_vectors_after_silent_networks_keep_their_size():
    networks = torch.cat([torch.zeros(8, 2, 1, SIZE), 1e-30 * vectors(64)])
    shares = summed(networks[:8], networks[8:]).shares()
    assert_close(shares * 1e60, plain_shares(1e30 * networks.double()), rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match="near 1e.160.*scale the output"):
        summed(1e160 * torch.ones(8, 2, 1, SIZE).double())


def test_the_noise_of_the_inputs_is_left_out_at_any_level():
    """Shrunk or squared estimates would have energy where there is none."""
    shares = torch.stack(
        [simulated(torch.tensor([1.0, 0, 0]), 64, seed, noise=3.0).shares() for seed in range(50)]
    )
    assert_mean(shares.sum(1), torch.diag(torch.tensor([1.0, 0, 0])))
    assert_mean(shares.flatten(0, 1), torch.diag(torch.tensor([1.0, 0, 0])) / 8)
    nads = simulated(torch.tensor([1.0, 0, 0]), 64, noise=3.0).nads()
    assert nads.eigenvalues[-1] < 0 and nads.eigenvalues.dtype == torch.float64


# --- more pixels than matrices hold


@pytest.fixture
def large(monkeypatch):
    """Return a function from which on six pixels are many."""

    def begin(columns=4):
        monkeypatch.setattr(moments, "DENSE_LIMIT", 5)
        monkeypatch.setattr(moments, "_COLUMNS", columns)

    return begin


@pytest.mark.parametrize("many_pixels", [False, True])
def test_merged_runs_are_one_run(large, many_pixels):
    if many_pixels:
        large()
    first, second = vectors(64, "readouts"), 30 * vectors(48, "readouts", 1)
    parts = enumerate((first, second, second))
    one, other, third = (summed(part, description={"seed": seed}) for seed, part in parts)
    merged, whole = one.merge(other), summed(torch.cat([first, second]))
    assert_close(merged.nads(()).eigenvalues, whole.nads(()).eigenvalues, rtol=1e-5, atol=1e-5)
    v = torch.eye(SIZE)[2]
    assert_close(merged.energy(v), whole.energy(v), rtol=1e-5, atol=1e-6)
    assert merged.num_networks == 112 and merged.description["seed"] == [0, 1]
    third.description["estimator"] = "other"
    with pytest.raises(ValueError, match="estimator was None, now 'other'"):
        one.merge(third)
    for again in (one, other):
        with pytest.raises(ValueError, match=f"seed {again.description['seed']}"):
            merged.merge(again)
    with pytest.raises(ValueError, match="flip_rows"):
        merged.nads("flip_rows")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [3, 40])
def test_the_gram_side_agrees_with_the_dense_side(large, count, kind):
    networks = vectors(count, kind, dtype=torch.float64, size=50)
    networks = networks + 3 * networks[:, :1]  # halves have a part in common
    networks = networks * 0.9 ** torch.arange(50)
    v = torch.eye(50)[3]
    dense = summed(networks[:20], networks[20:])
    nads, energy = dense.nads(()), dense.energy(v)
    large(24)
    gram = summed(networks[:20], networks[20:])
    assert gram.is_large and gram.sums is None
    found = gram.nads(())
    positive = int((nads.eigenvalues > 1e-9 * nads.eigenvalues[0]).sum())
    assert len(found) == positive > 0
    assert_close(found.eigenvalues, nads.eigenvalues[:positive], rtol=1e-6, atol=1e-12)
    cosines = (found.directions * nads.directions[:positive]).sum(1)
    assert_close(cosines, torch.ones(positive), rtol=0, atol=1e-5)
    assert_close(gram.energy(v), energy, equal_nan=True)
    if count == 40:
        sure = nads.certainty[:positive] > 0.6
        assert sure.any()
        assert_close(found.certainty[sure], nads.certainty[:positive][sure], rtol=0, atol=0.02)
    assert len(gram.nads((), 2)) == 2


def test_directions_of_nearly_dependent_large_vectors_are_orthonormal(large):
    large()
    networks = normal(24, 1, 1, 50) @ torch.diag(10.0 ** -torch.arange(50).clamp(max=4)).float()
    rows = summed(networks).nads((), 20).directions.double()
    assert (rows @ rows.T - torch.eye(len(rows))).abs().max() < 1e-5
    with pytest.raises(ValueError, match="no network responds"):
        summed(torch.zeros(8, 2, 1, SIZE)).nads(())


@pytest.mark.parametrize("few", [2, None])
def test_noise_that_hides_the_signal_is_named_at_any_size(large, few):
    noise = normal(64, 2, 1, 40)
    for begin in (int, large):
        begin()
        with pytest.warns(UserWarning, match="num_inputs"):
            summed(noise, provenance={"num_inputs": 16}).nads((), few)


def test_a_run_of_large_inputs_says_so(monkeypatch):
    dense = compute(convnet, 24, symmetries=(), estimator=nc.SmoothedGradient(4))
    monkeypatch.setattr(moments, "DENSE_LIMIT", 63)
    assert compute(convnet, 24).provenance["readouts"] == 1
    gram = compute(convnet, 24, estimator=nc.SmoothedGradient(4))
    assert "large inputs" in repr(gram) and gram.eigenvalues.min() > 0
    assert_close(gram.eigenvalues, dense.eigenvalues[: len(gram)], rtol=1e-4, atol=1e-10)


def test_what_does_not_fit_into_memory_is_named(large, monkeypatch):
    large()
    monkeypatch.setattr("nads_core.runtime.arguments.available_memory", lambda _: 10_000)
    with pytest.raises(MemoryError, match="120 vectors.*readouts=1"):
        summed(vectors(20, "readouts")).nads()
