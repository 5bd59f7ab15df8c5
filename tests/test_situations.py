"""What the chapters show where data are missing: photos, published directions, benchmarks."""

import os

import nads_book as nb
import pytest
from conftest import NEEDS_BOOK
from nads_book.benchmarks import load_costs

import nads_core as nc

# The functions that decide


@pytest.fixture
def no_data(monkeypatch):
    for name, value in {
        "NADS_DATA": os.devnull,
        "NADS_DOWNLOAD": "0",
        "NADS_REFERENCE": "",
    }.items():
        monkeypatch.setenv(name, value)


def test_generated_images_replace_photos_and_are_named_as_such(no_data):
    images = nc.load_images("auto", num_images=20)
    assert images.generated and "CIFAR" not in images.source and len(images) == 20
    assert (images.images == nc.load_images("generated", num_images=20).images).all()
    with pytest.raises(nc.DatasetNotFoundError, match="NADS_DATA"):
        nc.load_images("cifar10")


def test_leading_published_directions_ship(no_data):
    for architecture in ("lenet", "resnet18"):
        shown = nb.published.directions(architecture)
        assert shown.shape == (64, 1, 32, 32)
        assert nc.load_nads(architecture).overlap(shown, k=10) > 0.85
        assert (
            nb.published.directions(architecture, 1023)
            is None
            is nb.published.eigenvalues(architecture, 1023)
        )
    for architecture in ("vgg11", "densenet121"):
        assert (
            nb.published.directions(architecture) is None
            and nb.published.eigenvalues(architecture) is None
        )


def test_published_accuracies_need_no_files_of_the_authors(no_data):
    assert (
        len(nb.published.fourier_accuracies("lenet")) == 256
        and len(nb.published.nad_accuracies("lenet")) == 264
    )


def test_without_benchmarks_there_are_no_costs(tmp_path):
    assert load_costs("cost", tmp_path) == load_costs("scale", tmp_path) == []


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
