"""`NADs`: the directions of a computation, what can be asked of them, and their files."""

import json
import os
from dataclasses import replace

import convergence
import numpy as np
import pytest
import torch
from convergence import assert_mean, normal, second_moment
from examples import assert_damage_is_named, compute, convnet, same
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr
from torch import nn
from torch.testing import assert_close

import nads_core as nc
from nads_core.directions import Band, Uncertainty

SHAPES = [(1, 4, 4), (3, 2, 4), (2, 9), (20,)]
SEEDS = st.integers(0, 2**32 - 1)
BANDS = (Band((1, 2), 0.95), Band((3, 4, 11), 0.97))


def some(shape=(1, 4, 4), seed=0, name="some"):
    """Return twelve random directions with an uncertainty."""
    nads = convergence.random_nads(*shape, count=12, seed=seed)
    certainty = torch.linspace(0.99, 0.2, 12).double()
    error = 0.1 * nads.eigenvalues.double()
    known = Uncertainty(("++s", "--a") * 6, certainty, error, certainty**2, BANDS)
    return replace(nads, provenance={"architecture": name, "num_networks": 99}, uncertainty=known)


def assert_orthonormal(rows, tolerance=1e-5):
    rows = rows.flatten(1).double()
    assert (rows @ rows.T - torch.eye(len(rows)).double()).abs().max() < tolerance


# --- what a computation returns


def test_directions_are_orthonormal_and_ordered():
    nads = compute(convnet, 40)
    assert (nads.directions.dtype, nads.eigenvalues.dtype) == (torch.float32, torch.float64)
    assert nads.directions.shape == (64, 1, 8, 8)
    assert_orthonormal(nads.directions)
    assert (nads.eigenvalues.diff() <= 0).all()
    for row in nads.directions.flatten(1):  # of the largest entries, the first is positive
        assert row[row.abs() > 0.999 * row.abs().max()][0] > 0
    first = compute(convnet, 40, num_directions=5)
    assert same(first, nads[:5]) and not same(compute(convnet, 40, seed=1), nads)
    assert nads.names[:3] == first.names[:3] and "convnet" in repr(nads) and "40" in repr(nads)
    assert {"certainty": "groups", "num_inputs": 16}.items() <= nads.provenance.items()


@pytest.mark.parametrize("equal", [False, True])
def test_equal_weights_let_no_network_prevail(equal):
    def unequal():
        network = nn.Sequential(nn.Flatten(), nn.Linear(64, 1))
        network[1].weight.data.mul_(torch.randn(()).mul(3).exp())
        return network

    nads = compute(unequal, 200, estimator=nc.PointGradient(), equal_weights=equal, symmetries=())
    flat = float(nads.eigenvalues[0] / nads.eigenvalues.sum())
    assert (flat < 0.05) == equal
    assert not equal or float(nads.eigenvalues.sum()) == pytest.approx(1)


# --- what can be asked of them


def test_first_directions_keep_their_names_and_others_have_none():
    nads = some()
    first = nads[:10]
    assert torch.equal(nads[-1], nads.directions[11])
    assert torch.equal(first.certainty, nads.certainty[:10])
    assert first.names[:4] == ("++s 0", "--a 0", "++s 1", "--a 1")
    assert torch.equal(first.leading_certainty, nads.leading_certainty[:10])
    assert [len(nads[:stop].bands) for stop in (2, 3, 11, 12)] == [0, 1, 1, 2]
    assert [len(nads[:stop]) for stop in (-2, None, 99)] == [10, 12, 12]
    for part in (nads[2:5], nads[::2], nc.NADs(nads.directions, nads.eigenvalues)):
        with pytest.raises(ValueError, match="no uncertainty"):
            part.names  # noqa: B018
    assert repr(nads[2:5]).startswith("NADs(some, 3 directions")


@given(seed=SEEDS, k=st.integers(1, 12))
def test_overlap_of_two_subspaces(seed, k):
    first, second = some((2, 3, 4), seed), some((2, 3, 4), seed + 1)
    rotation = convergence.rotation(k, seed)
    turned = torch.einsum("ij,j...->i...", rotation, first.directions[:k])
    cosines = torch.linalg.svdvals(first.basis[:, :k].T.double() @ second.basis[:, :k].double())
    expected = pytest.approx(float(cosines.square().mean()), abs=1e-5)
    assert first.overlap(second, k) == expected and second.overlap(first, k) == expected
    assert second.overlap(-turned.numpy(), k) == expected


@given(seed=SEEDS, shape=st.sampled_from(SHAPES), count=st.integers(1, 12))
def test_coordinates_and_energy_are_plain_sums(seed, shape, count):
    nads = some(shape, seed)[:count]
    images = normal(5, *shape, seed=seed)
    naive = torch.stack([(images * v).flatten(1).sum(1) for v in nads], 1)
    assert_close(nads.coordinates(images), naive)
    v = images.double().flatten(1)
    v /= v.norm(dim=1, keepdim=True)
    expected = (v @ second_moment(nads) * v).sum(1)
    images = v.view_as(images)
    assert nads.coordinates(images).dtype == torch.float64
    assert_close(nads.energy(images), expected, rtol=1e-6, atol=1e-9)
    nearly = images[0] * (1 + 1e-5)  # a norm may be off by rounding
    assert_close(nads.energy(nearly), expected[0], rtol=1e-4, atol=1e-9)


def test_a_basis_is_completed():
    nads = some((1, 4, 4))
    whole = nads.complete_basis()
    assert_orthonormal(whole.directions)
    assert torch.equal(whole.directions[:12], nads.directions)
    assert whole.eigenvalues[12:].tolist() == [0] * 4 and whole.complete_basis() is whole


# --- files


@pytest.mark.parametrize("quantized", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_saved_and_loaded(tmp_path, shape, quantized):
    nads = some(shape)
    nads.save(tmp_path / "x.npz", quantized=quantized)
    loaded = nc.load_nads(tmp_path / "x.npz", more=1)
    assert torch.equal(loaded.eigenvalues, nads.eigenvalues.double())
    assert quantized or torch.equal(loaded.directions, nads.directions)
    assert_orthonormal(loaded.directions, 1e-6)
    assert (loaded.directions - nads.directions).flatten(1).norm(dim=1).max() < 1e-4
    assert (loaded.fingerprint == nads.fingerprint) != quantized
    assert loaded.fingerprint == nc.load_nads(tmp_path / "x.npz").fingerprint
    assert loaded.names == nads.names and loaded.bands == nads.bands
    for name in ("certainty", "eigenvalue_std", "leading_certainty"):
        assert torch.equal(getattr(loaded, name), getattr(nads, name))
    assert loaded.provenance == nads.provenance | {"more": 1, "certainty": "simulation"}


def test_16_bits_are_rounded_to_the_nearest(tmp_path):
    nads = convergence.random_nads(1, 32, 32)
    nads.save(tmp_path / "x.npz", quantized=True)
    rows, loaded = (n.directions.flatten(1) for n in (nads, nc.load_nads(tmp_path / "x.npz")))
    steps = (loaded - rows) / rows.abs().amax(1, keepdim=True) * (2**15 - 1)
    assert_mean(steps.flatten(), 0.0)  # not down
    assert (tmp_path / "x.npz").stat().st_size < 2.3 * rows.numel()


EYE = np.eye(4, dtype=np.float32).reshape(4, 1, 2, 2)
ONES = np.ones(4, np.float32)


def stored(path, **changes):
    """Write a file of four directions of (1, 2, 2) in which arrays are changed, or left out where
    None.
    """
    names = ("certainty", "eigenvalue_std", "leading_certainty")
    arrays = {name: ONES / 2 for name in names} | {"directions": EYE, "eigenvalues": ONES}
    arrays |= {"types": ["++s"] * 4, "provenance": "{}", "bands": "[]"} | changes
    present = {name: np.array(array) for name, array in arrays.items() if array is not None}
    np.savez_compressed(path, **present)
    return path


NAN = np.where(np.arange(4) == 2, np.nan, 1).astype("f4")
BAD = {  # arrays that are no NADs, and what the error shows
    "nan in directions": ({"directions": NAN * EYE.reshape(4, 4)}, "orthonormal.*nan"),
    "skew directions": ({"directions": EYE + np.float32(2e-3) * EYE[[1, 0, 3, 2]]}, "0.004"),
    "eigenvalues that ascend": ({"eigenvalues": 1e-7 * ONES * [1, 1, 1, 2]}, "descending"),
    "an infinite eigenvalue": ({"eigenvalues": ONES * [np.inf, 1, 1, 1]}, "finite"),
    "a certainty of 7": ({"certainty": 7 * ONES}, "certainty is not between"),
    "a subspace of certainty nan": ({"leading_certainty": np.nan * ONES}, "leading_certainty"),
    "too few certainties": ({"types": ["++s"] * 2}, "4 directions, got 2"),
    "no directions": ({"directions": None}, "directions"),
    "no text": ({"provenance": "{"}, "JSONDecodeError"),
}


@pytest.mark.parametrize("kind", BAD)
def test_arrays_that_are_no_nads_are_rejected(tmp_path, kind):
    changes, shown = BAD[kind]
    with pytest.raises(ValueError, match=f"(?s)x.npz holds no NADs.*{shown}") as raised:
        nc.load_nads(stored(tmp_path / "x.npz", **changes))
    assert str(raised.value).isprintable() and "pickle" not in str(raised.value)


def test_names_in_files_do_not_reach_the_terminal_as_commands(tmp_path):
    hostile = json.dumps({"architecture": "net\x1b[2J\x07\u202egnp"})
    nads = nc.load_nads(stored(tmp_path / "x.npz", provenance=hostile))
    assert repr(nads).isprintable() and "net" in nads.name and nads.name.isprintable()


class Executed:
    """An object that fails the test when somebody unpickles it."""

    def __reduce__(self):
        return pytest.fail, ("it was unpickled",)


def test_files_that_hold_no_nads_are_rejected(tmp_path):
    os.mkfifo(tmp_path / "pipe.npz")
    torch.save(torch.ones(3), tmp_path / "weights.npz")
    np.savez(tmp_path / "objects.npz", directions=np.array([Executed()]))
    (tmp_path / "pointer.npz").write_text("version https://git-lfs.github.com/spec/v1\n")
    for name in ("weights.npz", "objects.npz", "pointer.npz"):
        with pytest.raises(ValueError, match=f"{name} holds no NADs") as raised:
            nc.load_nads(tmp_path / name)
        assert ("begins with" in str(raised.value)) == (name == "pointer.npz")
    for name in ("absent.npz", "pipe.npz", "."):
        with pytest.raises(FileNotFoundError):
            nc.load_nads(tmp_path / name)
    for name in ("m.csv", "m2", "m.npz.gz"):
        with pytest.raises(ValueError, match=f"{name} .*npz"):
            some().save(tmp_path / name)


def test_archives_that_would_fill_the_memory_are_not_unpacked(tmp_path, monkeypatch):
    path = stored(tmp_path / "x.npz", directions=np.zeros((2_000, 1, 100, 100), np.float32))
    monkeypatch.setattr(np, "load", lambda *_, **__: pytest.fail("unpacked"))
    with pytest.raises(ValueError, match="unpack to 80,0"):
        nc.load_nads(path)


def test_damage_is_noticed(tmp_path):
    path = tmp_path / "x.npz"
    some().save(path)
    assert_damage_is_named(path, lambda: nc.load_nads(path))


# --- published artefacts


@pytest.mark.stored
@pytest.mark.parametrize("name", nc.ARCHITECTURES)
def test_what_ships_is_complete(name):
    nads = nc.load_nads(name)
    assert nads.name == name
    assert nads.provenance["num_networks"] >= 5_000 or name == "logreg"
    assert nads.provenance["symmetries"] == list(nc.ARCHITECTURES[name].symmetries_at(32))
    assert nads.provenance["certainty"] == "simulation" and nads.provenance["version"] == 2
    assert nc.load_nads(name.upper().replace("T", "-_T")).fingerprint == nads.fingerprint


@pytest.mark.stored
@pytest.mark.slow
def test_new_networks_find_what_ships():
    shipped = nc.load_nads("lenet")
    nads = compute(nc.LENET, 200, (1, 32, 32), estimator=nc.SmoothedGradient(8, readouts=8))
    assert nads.overlap(shipped, 10) > 0.95


@pytest.mark.stored
@pytest.mark.parametrize(("name", "least_50"), [("lenet", 0.80), ("resnet18", 0.70)])
def test_shipped_directions_against_the_published(published, name, least_50):
    nads, theirs = nc.load_nads(name), published(name)
    assert nads.overlap(theirs) >= 0.85 and nads.overlap(theirs, k=50) >= least_50
    assert spearmanr(nads.energy(theirs), range(len(theirs), 0, -1)).statistic >= 0.90
