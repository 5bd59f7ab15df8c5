"""The page of the flip: its formulas, and verdicts that follow from the stored numbers."""

import pytest
import torch
from nads_book.studies import load_results

import nads_core as nc

flip = pytest.importorskip("nads_book.pages.flip", reason="the figures need matplotlib")


def small_nads(size=4):
    count = size * size
    basis = torch.linalg.qr(torch.randn(count, count, generator=torch.Generator().manual_seed(0)))[
        0
    ]
    return nc.NADs(basis.T.reshape(count, 1, size, size), torch.linspace(1, 0.1, count), {})


def test_all_representations_are_orthogonal_and_the_flip_is_the_library_s():
    nads, generator = small_nads(), torch.Generator().manual_seed(1)
    images = torch.randn(20, 3, 4, 4, generator=generator)
    maps = flip.representations(nads, images, generator)
    for name, matrix in maps.items():
        assert torch.allclose(matrix.T @ matrix, torch.eye(16), atol=1e-5), name
    assert torch.allclose(flip.transform(images, maps["flipped"]), nc.flip(images, nads), atol=1e-5)
    assert torch.allclose(
        maps["upright"] @ maps["flipped"] @ maps["flipped"], torch.eye(16), atol=1e-5
    )
    components = maps["PCA on NADs"].T @ nads.basis  # the images' principal components
    energies = (flip.transform(images, components.T).flatten(2).square()).sum((0, 1))
    assert (energies.diff() <= 1e-4).all()


def test_rotations_have_no_errors_and_other_matrices_have():
    nads, images = small_nads(), torch.randn(5, 1, 4, 4, generator=torch.Generator().manual_seed(2))
    assert max(flip.rotation_errors(flip.flip_matrix(nads), images)) < 1e-5
    assert all(error > 0.1 for error in flip.rotation_errors(2 * torch.eye(16), images))


@pytest.fixture
def altered(monkeypatch):
    """Return a function that replaces the accuracies of rows that are chosen, in results of one job."""

    def alter(name, choose, accuracy):
        results = load_results(f"maps-{name}", flip.MAPS[name])
        for row in results.rows:
            if choose(row):
                row["test_accuracy"] = accuracy
        monkeypatch.setattr(flip, "maps", lambda name: results)
        for cached in (flip.costs_of_changes, flip.regressed, flip.rough_maps):
            cached.cache_clear()

    yield alter
    for cached in (flip.costs_of_changes, flip.regressed, flip.rough_maps):
        cached.cache_clear()


def test_verdicts_follow_the_rows(altered):
    assert flip.costs("lenet").holds and flip.equally_rough().holds
    altered("lenet", lambda row: row["order"] == "reversed", 0.99)
    assert flip.costs("lenet").holds is False and flip.costs("lenet").value < 0
    assert flip.equally_rough().value > 10  # the set of the reversed order matches less


def test_signs_that_cost_nothing_flip_the_verdict_on_resnet18(altered):
    assert flip.signs_cost("resnet18").holds
    altered("resnet18", lambda row: row["order"] == "kept" and row["signs"], 0.9)
    assert not flip.signs_cost("resnet18").holds


def test_a_missing_results_file_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("NADS_RESULTS", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="fig8-vgg11.laptop.json"):
        flip.predicted_cost("vgg11")
