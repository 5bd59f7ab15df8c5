"""What the chapters show where data are missing: photos, published directions, benchmarks."""

import os

import nads_book as nb
import pytest
from conftest import NEEDS_BOOK

import nads_core as nc

# The functions that decide


def test_generated_images_and_leading_published_directions_replace_what_is_missing(monkeypatch):
    monkeypatch.setenv("NADS_DATA", os.devnull)
    monkeypatch.setenv("NADS_DOWNLOAD", "0")
    monkeypatch.setenv("NADS_REFERENCE", "")
    images = nb.load_images("auto", num_images=20)
    assert images.generated and "CIFAR" not in images.source
    assert (images.images == nb.load_images("generated", num_images=20).images).all()
    with pytest.raises(nb.DatasetNotFoundError, match="NADS_DATA"):
        nb.load_images("cifar10")
    for architecture in ("lenet", "resnet18"):
        shown = nb.published.directions(architecture)
        assert shown.shape == (64, 1, 32, 32)
        assert nc.load_nads(architecture).overlap(shown, k=10) > 0.85
        assert nb.published.directions(architecture, 1023) is None
    assert nb.published.directions("vgg11") is None is nb.published.eigenvalues("densenet121")
    assert len(nb.published.fourier_accuracies("lenet")) == 256
    assert len(nb.published.nad_accuracies("lenet")) == 264


# One chapter where all of it is missing


@pytest.mark.slow
def test_a_chapter_without_photos_shows_generated_images_and_stored_results():
    pytest.importorskip("nads_book.site.build", reason=NEEDS_BOOK)
    from test_chapters import executed, figures, printed

    notebook = executed("07_poison", "no data")
    (note,) = [text for text in printed(notebook) if "NADS_DATA" in text]
    assert note.startswith("`generated`") and notebook.cells[0].source.startswith("# Poisoning")
    assert all("image/png" in kinds for kinds in figures(notebook).values())
    assert any("4 trainings of LeNet" in text for text in printed(notebook))
