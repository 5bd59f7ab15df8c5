"""What made a file: identities that are the same on every machine, and files that are never half
written.
"""

import dataclasses
import shutil
import subprocess
from functools import partial

import examples
import nads_book as nb
import numpy as np
import pytest
import torch
from conftest import ROOT
from nads_book.experiments.stored import load_nads
from nads_core.networks.ensembles import Ensemble

import nads_core as nc
from nads_core.directions import run
from nads_core.runtime import provenance
from nads_core.runtime.files import atomic_write

# Of the shipped files, and of those in the repository. They change when other numbers ship, and on
# no other occasion.
FINGERPRINTS = {  # of versions 1 and 2
    "logreg": ("ebabeefbfe61ccf4", "4b2697e0ae58d829"),
    "lenet": ("8ff1ae2831c2f8ba", "a0dff44557967123"),
    "vgg11": ("0474e128e7bc33a4", "e582f1969fa2704c"),
    "resnet18": ("c376b746f604498e", "1fa51fe60fcb730c"),
    "densenet121": ("d9b924c991f44966", "e04a85e58f37e84c"),
}


# Fingerprints


def test_a_fingerprint_names_bytes_type_and_shape():
    zeros = np.zeros(4, np.int16)
    different = [zeros, zeros + 1, zeros.astype(np.int32)[:2], zeros.reshape(2, 2), b"", b"a", "ab"]
    names = [provenance.fingerprint(part) for part in different]
    assert len(set(names)) == len(names) and all(len(name) == 16 for name in names)
    assert provenance.fingerprint("a", "bc") != provenance.fingerprint("ab", "c")
    assert provenance.fingerprint(zeros.astype(">i2")) == provenance.fingerprint(zeros)
    assert provenance.fingerprint(np.ones((4, 2))[:, 0]) == provenance.fingerprint(np.ones(4))


@pytest.fixture
def other_products(monkeypatch):
    """Let matrix products differ in their last bit, as on another processor."""
    product = torch.Tensor.__matmul__

    def nudged(a, b):
        return torch.nextafter(product(a, b), torch.full((), torch.inf, dtype=a.dtype))

    def begin():
        load_nads.cache_clear()
        monkeypatch.setattr(torch.Tensor, "__matmul__", nudged)

    yield begin
    load_nads.cache_clear()


@pytest.mark.stored
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("name", FINGERPRINTS)
def test_shipped_directions_have_their_fingerprint_whatever_matrix_products_give(
    name, version, other_products
):
    here = load_nads(name, version)
    assert here.fingerprint == FINGERPRINTS[name][version - 1]
    if name == "lenet":
        other_products()
        elsewhere = load_nads(name, version)
        assert not torch.equal(elsewhere.directions, here.directions)  # or the nudge shows nothing
        assert elsewhere.fingerprint == here.fingerprint


@pytest.mark.stored
def test_a_job_about_directions_is_the_same_whatever_matrix_products_give(other_products):
    before = nb.experiment("fig6-lenet").settings()
    other_products()
    assert nb.experiment("fig6-lenet").settings() == before


def test_saved_directions_keep_their_fingerprint(tmp_path):
    nads = examples.compute(nc.LENET, 70, (1, 16, 16))
    for quantized in (False, True):
        nads.save(tmp_path / "nads.npz", quantized=quantized)
        loaded, again = (nc.NADs.load(tmp_path / "nads.npz").fingerprint for _ in range(2))
        assert (loaded == nads.fingerprint) != quantized and again == loaded
    assert nads.provenance["numbers"] == provenance.NADS_VERSION
    assert dataclasses.replace(nads, directions=-nads.directions).fingerprint != nads.fingerprint


@pytest.mark.stored
def test_versions_of_shipped_directions():
    for version in (None, 2):
        assert load_nads("lenet", version).provenance["version"] == 2
    assert load_nads("lenet", 1).provenance["version"] == 1  # which is in the repository
    assert nc.load_nads("VGG-1_1").fingerprint == nc.load_nads("vgg11").fingerprint
    with pytest.raises(ValueError, match="version 3 .*lenet .*2 ships"):
        load_nads("lenet", 3)


# The numbers version

# Block sizes, a weight of the first block and one of the third, a vector of network 0; the order of
# samples, and data.
# If these change, so do all numbers that users compute: raise RNG_VERSION, note it in CHANGELOG.md,
# and add the new
# values under it.
NUMBERS = {
    1: {
        "lenet": [32, -0.0595315, -0.0768589, 1.51805e-05],
        "resnet18": [1, -0.0992192, -0.1280982, -1.26708e-04],
        "order": [35, 524, 178, 343],
        "data": [2.182535, -1.726344, -3.142783, -3.303659],
    }
}


def numbers():
    """Compute the numbers of this version."""
    result = {}
    for architecture in (nc.LENET, nc.RESNET18):
        factory = partial(architecture.build, 1, 32, 1)
        ensemble = Ensemble(factory, (1, 32, 32), seed=3, device="cpu")
        name = next(name for name, tensor in ensemble.draw(0).items() if tensor.dim() == 5)
        first = ensemble.draw(0)[name][0]
        later = ensemble.draw(2)[name][0]
        estimator = nc.SmoothedGradient(2)
        vector = estimator.contributions(ensemble, estimator.draw(ensemble, 0)[:1])
        values = [float(tensor.double().flatten()[0]) for tensor in (first, later, vector)]
        result[architecture.name] = [ensemble.block_size, *values]
    first_batch = next(iter(nc.training.recipes.batches(1_000, nc.SEPARABLE_RECIPE, 3)))
    images, _ = nc.separable_dataset(nc.fourier_direction((0, 2)), 10, seed=3)
    return result | {"order": first_batch[:4].tolist(), "data": images.flatten()[:4].tolist()}


def test_the_numbers_version_is_raised_when_numbers_change():
    expected = NUMBERS[provenance.RNG_VERSION]
    for name, values in numbers().items():
        np.testing.assert_allclose(values, expected[name], rtol=1e-3, atol=1e-6, err_msg=name)


# Checkpoints


def checkpointed(path, count=70, **options):
    return examples.compute(nc.LOGREG, count, checkpoint=path, device="cpu", **options)


def test_a_checkpoint_of_a_gpu_loads_where_there_is_none(tmp_path, monkeypatch):
    path = tmp_path / "run.ckpt"
    checkpointed(path, 128)
    saved = torch.load(path, weights_only=True)
    saved["devices"] = ["cuda"]
    saved["first"] = {"cuda": torch.zeros(64, dtype=torch.float64)}
    with monkeypatch.context() as patch:
        patch.setattr(torch.serialization, "location_tag", lambda storage: "cuda:0")
        torch.save(saved, path)
    with pytest.raises(RuntimeError, match="CUDA"):
        torch.load(path, weights_only=True)  # or this test shows nothing
    nads = checkpointed(path, 200)
    assert nads.provenance["num_networks"] == 200 and nads.provenance["drawn_on"] == ["cuda", "cpu"]


def test_a_checkpoint_is_continued_with_its_own_blocks(tmp_path, monkeypatch):
    """A GPU draws larger blocks than a CPU."""
    with monkeypatch.context() as patch:
        patch.setattr("nads_core.networks.sampler._MAX_BLOCK", 16)
        whole = checkpointed(tmp_path / "whole.ckpt")
        checkpointed(tmp_path / "{run}.ckpt", 48)
    continued = checkpointed(tmp_path / "{run}.ckpt")
    assert continued.provenance["block_size"] == 16
    torch.testing.assert_close(continued.eigenvalues, whole.eigenvalues)


@pytest.mark.parametrize(
    ("kind", "shown"),
    [
        ("an earlier release", "earlier version"),
        ("other numbers", "numbers was 2, now 3; .*CHANGELOG.md"),
    ],
)
def test_a_checkpoint_that_cannot_be_used_is_named_and_kept(tmp_path, monkeypatch, kind, shown):
    path = tmp_path / "run.ckpt"
    checkpointed(path)
    if kind == "an earlier release":
        saved = torch.load(path, weights_only=True)
        del saved["devices"]
        torch.save(saved, path)
    else:
        monkeypatch.setattr(run, "NADS_VERSION", provenance.NADS_VERSION + 1)
    before = path.read_bytes()
    with pytest.raises(ValueError, match=shown):
        checkpointed(path)
    assert path.read_bytes() == before


# The commit


def git(folder, *arguments):
    identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


def test_the_commit_is_recorded_only_in_our_own_repository(tmp_path, monkeypatch):
    def commit_of(package):
        monkeypatch.setattr(provenance, "__file__", str(package / "machinery" / "provenance.py"))
        return provenance.own_commit()

    ours = tmp_path / "ours"
    theirs = tmp_path / "theirs"
    for root, package in (
        (ours, ours / "nads_core"),
        (theirs, theirs / ".venv" / "site-packages" / "nads_core"),
    ):
        package.mkdir(parents=True)
        shutil.copy(ROOT / "nads_core" / "__init__.py", package)
        shutil.copy(ROOT / "pyproject.toml", root)
        git(root, "init")
        git(root, "add", ".")
        assert commit_of(package) is None
        git(root, "commit", "-m", "first")
        assert (commit_of(package) is not None) == (root == ours)
    committed = commit_of(ours / "nads_core")
    (ours / "study.py").write_text("")
    assert commit_of(ours / "nads_core") == f"{committed}+"
    loose = tmp_path / "loose" / "nads_core"
    loose.mkdir(parents=True)
    assert commit_of(loose) is None


# Files


def test_a_file_is_replaced_as_a_whole_or_not_at_all(tmp_path):
    path = tmp_path / "new" / "file.txt"
    with atomic_write(path) as file:
        file.write("é")
    with pytest.raises(ZeroDivisionError), atomic_write(path, "wb") as file:
        file.write(b"half")
        raise ZeroDivisionError
    assert path.read_text("utf8") == "é"
    assert list(path.parent.iterdir()) == [path]
