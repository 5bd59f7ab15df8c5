"""The flip: its maps of images, and verdicts that follow from the stored numbers."""

import nads_book as nb
import numpy as np
import pytest
import torch
from nads_book.studies import load_results

import nads_core as nc

flip = pytest.importorskip("nads_book.pages.flip", reason="the figures need matplotlib")
CACHED = (flip.match.regressed, flip.rough.rough_maps)
READERS = (flip.stored, flip.costs, flip.match, flip.rough)


def small_nads(size=4):
    count = size * size
    generator = torch.Generator().manual_seed(0)
    basis = torch.linalg.qr(torch.randn(count, count, generator=generator))[0]
    return nc.NADs(basis.T.reshape(count, 1, size, size), torch.linspace(1, 0.1, count), {})


def test_maps_keep_lengths_and_angles_and_the_flip_is_the_library_s():
    nads = small_nads()
    basis = nads.basis
    images = torch.randn(5, 3, 4, 4, generator=torch.Generator().manual_seed(1))
    products = images.flatten(1) @ images.flatten(1).T
    for name in flip.MAPS:
        changed = flip.mapped(images, nads, name)
        torch.testing.assert_close(changed.flatten(1) @ changed.flatten(1).T, products)
        assert torch.allclose(changed, images, atol=1e-5) == (name == "as is"), name
    flipped = flip.mapped(images, nads, "flipped")
    torch.testing.assert_close(flipped, nc.flip(images, nads))
    signs = flip.mapped(images, nads, "random signs").flatten(2) @ basis
    torch.testing.assert_close(signs.abs(), (images.flatten(2) @ basis).abs())
    with pytest.raises(ValueError, match="'reversed'"):
        flip.mapped(images, nads, "reversed")


def test_the_matrix_of_the_flip_is_a_rotation_and_its_own_inverse():
    nads = small_nads()
    matrix = flip.flip_matrix(nads)
    torch.testing.assert_close(matrix @ matrix, torch.eye(16))
    torch.testing.assert_close(matrix.T, matrix)
    images = torch.randn(5, 3, 4, 4, generator=torch.Generator().manual_seed(2))
    torch.testing.assert_close(flip.images.transform(images, matrix), nc.flip(images, nads))


def test_logistic_regression_notices_what_is_no_rotation():
    images = nb.load_images("generated", num_images=64, progress=False)
    normalised = nc.normalize(images.images)
    one, other = (
        flip.logistic_losses(scale * torch.eye(1024), normalised, images.labels)
        for scale in (1.0, 2.0)
    )
    assert float((one - other).abs().max()) > 0.01
    assert flip.images.is_rotation(num_images=64).holds


@pytest.fixture
def altered(monkeypatch):
    """Return a function that replaces the accuracies of rows that are chosen, in results of one
    job.
    """

    def clear():
        for cached in CACHED:
            cached.cache_clear()

    def alter(name, choose, accuracy):
        results = load_results(f"maps-{name}", flip.stored.SIZES[name])
        for row in results.rows:
            if choose(row):
                row["test_accuracy"] = accuracy
        for module in READERS:
            monkeypatch.setattr(module, "maps", lambda name: results)
        clear()

    yield alter
    clear()


def test_verdicts_follow_the_rows(altered):
    assert flip.costs.costs("lenet").holds and flip.match.equally_rough().holds
    altered("lenet", lambda row: row["order"] == "reversed", 0.99)
    assert flip.costs.costs("lenet").holds is False and flip.costs.costs("lenet").value < 0
    assert flip.match.equally_rough().value > 10  # the set of the reversed order matches less


def test_signs_that_cost_nothing_flip_the_verdict_on_resnet18(altered):
    assert flip.costs.signs_cost("resnet18").holds
    altered("resnet18", lambda row: row["order"] == "kept" and row["signs"], 0.9)
    assert not flip.costs.signs_cost("resnet18").holds


def test_a_shuffled_order_that_loses_meets_the_prediction(altered):
    assert not flip.rough.order_beats_others().holds
    altered("resnet18", lambda row: row["order"].startswith("shuffled"), 0.3)
    assert flip.rough.order_beats_others().holds


def test_effects_are_those_of_two_regressions_on_residuals():
    found = flip.match.regressed("lenet")
    kinds = flip.match.by_kind(flip.stored.maps("lenet"))
    kinds = [kind for kind in kinds if kind.label != flip.match.AS_THEY_ARE]
    assert len(kinds) == 15
    match, smooth, accuracy = (
        np.array([getattr(kind, key) for kind in kinds])
        for key in ("match", "neighbours", "test_accuracy")
    )
    rest, target = (y - np.polyval(np.polyfit(match, y, 1), match) for y in (smooth, accuracy))
    slope = (rest @ target) / (rest @ rest)
    error = np.sqrt(np.square(target - slope * rest).sum() / 12 / (rest @ rest))
    scale = 100 * smooth.std()
    ends = [scale * (slope + sign * 2.1788 * error) for sign in (-1, 1)]  # Student's, 12 degrees
    assert found.effects["smoothness"] == pytest.approx((scale * slope, *ends), abs=1e-3)


def test_lenet_does_not_fit_flipped_photos():
    found = flip.costs.fits_training_photos()
    assert found.holds is False and 40 < found.value < 42 and found.size == "paper"


def test_a_missing_results_file_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("NADS_RESULTS", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="fig8-vgg11.laptop.json"):
        flip.costs.predicted_cost("vgg11")
