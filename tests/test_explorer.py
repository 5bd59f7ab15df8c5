"""The explorer: packed data, the widget and what its functions reject, without a browser."""

import nads_book as nb
import numpy as np
import pytest
import torch
from bundle_js import sources_hash
from explorer_pages import BY_NAD, FOURIER, NADS, random_nads
from nads_book.explorer import Playground, bundle, data

import nads_core as nc

# Packed data


@pytest.mark.stored
def test_header_holds_what_was_measured_and_says_what_was_not():
    header, _ = data.pack_nads(NADS["lenet"], "LeNet", "lenet")
    accuracies = {tuple(key): values for key, *values in header["fourier"]}
    rows = [row["test_accuracy"] for row in FOURIER.rows if row["frequency"] == [0, 0]]
    accuracy, low, high = accuracies[0, 0]
    assert accuracy == pytest.approx(np.mean(rows), abs=1e-4) and low < accuracy < high
    assert np.max(header["energies"]) == 1 and not header["published"]
    vgg11, _ = data.pack_nads(NADS["vgg11"], "VGG-11", "vgg11")
    assert vgg11["published"] == (nb.load_results("fig1-vgg11") is None)
    assert "fourier" not in data.pack_nads(random_nads(), "small")[0]


def test_accuracies_along_another_version_stand_where_this_one_has_them():
    measured = BY_NAD.experiment().nads
    names = ("label", "lenet")
    same, _ = data.pack_nads(measured, *names)
    assert {len(row) for row in same["accuracies"]} == {4}  # of the very directions
    turned = measured.directions.clone()
    turned[2:4] = turned[2:4].flip(0)  # two have changed places
    one, two = turned[891:893].clone()
    turned[891:893] = torch.stack([one + two, one - two]) / 2**0.5  # and two are others
    other = nc.NADs(turned, measured.eigenvalues, measured.provenance)
    moved, _ = data.pack_nads(other, *names)
    known = {row[0]: row[1:4] for row in same["accuracies"]}
    for place, *values, closeness in moved["accuracies"]:
        assert closeness == 1 or place in (890, 891, 892, 893)
        assert closeness < 0.9 or values == known[{2: 3, 3: 2}.get(place, place)]


def test_a_notebook_carries_its_arrays_and_the_program_packed():
    nads = random_nads()
    page = nb.explorer.show("direction", nads=nads)._repr_html_()
    arrays = data.as_script("small", data.pack_nads(nads, "small"))
    assert 0 < len(page) - len(arrays) < 0.6 * len(bundle.script())
    page = nb.explorer.show("direction", second="vgg11")
    assert [*page.packets()] == ["lenet", "vgg11"] and len(page._repr_html_()) < 3e6
    assert len(nb.explorer.show(book=True)._repr_html_()) < 2e3  # the pages of a book share them


def show(*parts, **view):
    return lambda: nb.explorer.show(*parts, **view)


@pytest.mark.parametrize(
    "call, shown",
    [
        (show("nothing"), "unknown part.*nothing.*choose"),
        (show(architecture="alexnet"), "'alexnet'"),
        (show(index=1024), "index is 1024, expected 0 to 1023"),
        (show(photo=99), "photo is 99, expected 0 to"),
        (show(frequency=(0.5, 2)), "frequency is .0.5, 2., expected whole"),
        (show(nads={"a": random_nads(), "b": random_nads(12)}), "one image size"),
        (show(nads=nc.NADs(torch.zeros(2, 3, 8, 8), torch.ones(2))), "single-channel"),
        (lambda: Playground({"pooling": "mean"}), "pooling is 'mean'"),
        (lambda: Playground(second=("depth", 3)), r"unknown chips \['depth'\]"),
        (lambda: Playground(wave=(8, 0)), "-8 to 7"),
    ],
)
def test_what_does_not_exist_is_rejected(call, shown):
    with pytest.raises(ValueError, match=shown):
        call()


def test_the_bundle_was_made_from_these_sources():
    """If not, run `python tools/bundle_js.py`, which needs npx, and commit the bundle."""
    assert bundle.script().startswith(f"// sources: {sources_hash()}\n")
