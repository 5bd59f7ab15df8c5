"""What made a file: identities that are the same on every machine."""

import shutil

import numpy as np
import pytest
import torch
from conftest import ROOT, git
from examples import prepared
from nads_book.experiments.stored import load_nads, nads_of_file

import nads_core as nc
from nads_core.networks.network import Network
from nads_core.runtime import provenance

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
    names = {provenance.fingerprint(part) for part in different}
    assert len(names) == len(different) and all(len(name) == 16 for name in names)
    assert provenance.fingerprint("a", "bc") != provenance.fingerprint("ab", "c")
    assert provenance.fingerprint(zeros.astype(">i2")) == provenance.fingerprint(zeros)


@pytest.fixture
def other_products(monkeypatch):
    """Let matrix products differ in their last bit, as on another processor."""
    product = torch.Tensor.__matmul__

    def nudged(a, b):
        return torch.nextafter(product(a, b), torch.full((), torch.inf, dtype=a.dtype))

    def begin():
        nads_of_file.cache_clear()
        monkeypatch.setattr(torch.Tensor, "__matmul__", nudged)

    yield begin
    nads_of_file.cache_clear()


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
def test_versions_of_shipped_directions():
    for version in (None, 2):
        assert load_nads("lenet", version).provenance["version"] == 2
    assert load_nads("lenet", 1).provenance["version"] == 1  # which is in the repository
    with pytest.raises(ValueError, match="version 3 .*lenet .*2 ships"):
        load_nads("lenet", 3)


# The numbers version

# A weight of networks 0 and 77, an input, a probe and a row of a last layer, and a vector of
# network 0; of trainings the order of samples, and data. If these change, so do all numbers that
# users compute: raise NADS_VERSION or RNG_VERSION, note it in CHANGELOG.md, and add the new values.
NUMBERS = {
    "lenet": [0.199379, -0.054888, -1.39417, -0.615863, -0.0464434, -7.33964e-06],
    "resnet18": [0.332299, -0.09148, -1.39417, -0.615863, -0.017715, -0.00028754],
    "order": [35, 524, 178, 343],
    "data": [2.182535, -1.726344, -3.142783, -3.303659],
}


def numbers():
    """Compute the numbers of this version."""
    result = {}
    for architecture in (nc.LENET, nc.RESNET18):
        run = prepared(architecture, (1, 32, 32), nc.SmoothedGradient(2), dtype="float32")
        network = Network(run.networks, 0)
        tensors = [next(run.networks.build(index).parameters()) for index in (0, 77)]
        tensors += [network.inputs(2), network.probe()[0], network.rows(2), run.vectors([0])]
        result[architecture.name] = [float(tensor.detach().flatten()[0]) for tensor in tensors]
    first_batch = next(iter(nc.training.recipe.batches(1_000, nc.SEPARABLE_RECIPE, 3)))
    images, _ = nc.separable_dataset(nc.fourier_direction((0, 2)), 10, seed=3)
    return result | {"order": first_batch[:4].tolist(), "data": images.flatten()[:4].tolist()}


def test_the_numbers_version_is_raised_when_numbers_change():
    assert (provenance.NADS_VERSION, provenance.RNG_VERSION) == (3, 1)
    for name, values in numbers().items():
        np.testing.assert_allclose(values, NUMBERS[name], rtol=1e-3, atol=1e-6, err_msg=name)


# The commit


def test_the_commit_is_recorded_only_in_our_own_repository(tmp_path, monkeypatch):
    def commit_of(package):
        monkeypatch.setattr(provenance, "__file__", str(package / "machinery" / "provenance.py"))
        return provenance.own_commit()

    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    folders = {ours: ours / "nads_core", theirs: theirs / ".venv/site-packages/nads_core"}
    for root, package in folders.items():
        package.mkdir(parents=True)
        shutil.copy(ROOT / "nads_core" / "__init__.py", package)
        shutil.copy(ROOT / "pyproject.toml", root)
        assert commit_of(package) is None
        git(root, "init")
        git(root, "add", ".")
        git(root, "commit", "-m", "first")
    committed = commit_of(folders[ours])
    assert committed and commit_of(folders[theirs]) is None
    (ours / "study.py").write_text("")
    assert commit_of(folders[ours]) == f"{committed}+"
