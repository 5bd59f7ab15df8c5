"""The authors' accuracies, as they ship: complete, turned the right way, and theirs."""

import os
from pathlib import Path

import nads_book as nb
import numpy as np
import pytest
import torch
from nads_book.published import waves as maps

pytestmark = pytest.mark.stored

ALONG_NADS = ["lenet", "vgg11", "resnet18", "densenet121"]
COLUMNS = dict(zip(["logreg", *ALONG_NADS], ["lr", "ln", "vgg", "rn", "dn"], strict=True))


@pytest.mark.parametrize("name", COLUMNS)
def test_every_reader_has_the_map_of_every_architecture(name):
    cells = nb.published.fourier_accuracies(name)
    assert set(cells) == {(ky, kx) for ky in range(-16, 16, 2) for kx in range(-16, 16, 2)}
    assert 0.48 < min(cells.values()) <= max(cells.values()) <= 1
    assert maps.copied_cells(cells) == (224, 224)


@pytest.mark.parametrize("name", COLUMNS)
def test_accuracies_are_those_of_the_authors_files(name):
    folder = Path(os.environ.get("NADS_REFERENCE") or pytest.skip("NADS_REFERENCE is not set"))
    waves, nads = (
        np.genfromtxt(folder / f"{kind}_accuracies.csv", delimiter=",", names=True)
        for kind in ("dft", "nad")
    )
    ours = nb.published.fourier_accuracies(name)
    places = zip(2 * (waves["y"] - 8), 2 * (waves["x"] - 8), strict=True)
    theirs = waves[f"acc_{COLUMNS[name]}"] / 100
    assert [ours[place] for place in places] == pytest.approx(theirs, abs=1e-6)
    if name in ALONG_NADS:
        every = nads[f"acc_{COLUMNS[name]}"] / 100
        measured = nb.published.nad_accuracies(name)
        assert [*measured.values()] == pytest.approx(every[[*measured]], abs=1e-9)
        lines = np.interp(range(1023), [*measured], [*measured.values()])
        np.testing.assert_allclose(every, lines, rtol=0, atol=1e-9)


def test_frequencies_are_vertical_then_horizontal():
    """Values at positions (x, y) = (1, 0) and (0, 1) of the authors' grid, of which (8, 8) is the
    zero frequency.
    """
    resnet, vgg = (nb.published.fourier_accuracies(name) for name in ("resnet18", "vgg11"))
    assert resnet[-16, -14] == pytest.approx(0.9863) and resnet[-14, -16] == pytest.approx(0.9979)
    assert vgg[-8, 4] == pytest.approx(0.5118) and vgg[4, -8] == pytest.approx(
        0.51
    )  # at (10, 4) and (4, 10)


def test_an_architecture_without_published_accuracies_is_named():
    with pytest.raises(ValueError, match="'alexnet'.*logreg, lenet, vgg11, resnet18, densenet121"):
        nb.published.fourier_accuracies("alexnet")


def test_directions_are_theirs_and_the_leading_ones_ship(published, monkeypatch):
    for name in ("lenet", "vgg11", "resnet18"):
        shown = nb.published.directions(name).double()
        torch.testing.assert_close(shown, published(name), atol=2e-4, rtol=0)
    monkeypatch.setenv("NADS_REFERENCE", os.devnull)  # a folder without them
    for name in ("lenet", "resnet18"):
        shown = nb.published.directions(name).double().flatten(1)
        theirs = published(name)[:64].flatten(1)
        assert shown.shape == theirs.shape and ((shown * theirs).sum(1) > 1 - 1e-6).all()
        assert nb.published.directions(name, 1023) is None
    assert nb.published.directions("vgg11") is None is nb.published.directions("densenet121")
