"""The poison and the flip on other photos (``benchmarks/replications.py``): what is trained on what."""

import json
import tomllib
from pathlib import Path

import pytest
import replications
import torch
from nads_book.experiments.stored import load_nads

import nads_core as nc

SMALL = replications.Design(40, 20, (3,), (("kept", "hole", None), ("emptied", "added", 0.5)), ("flipped",), (3,))


@pytest.fixture
def generated(monkeypatch):
    """Grey images of ten classes instead of Fashion-MNIST, small sets, one epoch."""
    for cached in ("photos", "nads_of", "scaling", "spread", "matrix_of"):
        getattr(replications, cached).cache_clear()
    images = torch.rand(40, 1, 32, 32, generator=torch.Generator().manual_seed(0))

    def load(data, *, train, num_images, size, progress):
        return nc.ImageSet(images[:num_images], torch.arange(num_images) % 10, tuple("abcdefghij"), "generated")

    monkeypatch.setattr(replications.nc, "load_images", load)
    monkeypatch.setattr(replications, "DESIGNS", {("fashion-mnist", "lenet"): SMALL})
    monkeypatch.setattr(replications, "RECIPE", replications.replace(replications.RECIPE, epochs=1, batch_size=20))
    yield images
    for cached in ("photos", "nads_of", "scaling", "spread", "matrix_of"):
        getattr(replications, cached).cache_clear()


def test_the_flipped_set_is_the_flip_of_standardised_images(generated):
    train, _, facts = replications.mapped(replications.units()[0], SMALL)
    standard = replications.scaling("fashion-mnist", 40)(generated)
    assert abs(float(standard.mean())) < 1e-5 and float(standard.std()) == pytest.approx(1, abs=1e-3)
    torch.testing.assert_close(train[0], nc.flip(standard, load_nads("lenet", 2)), atol=1e-3, rtol=0)
    assert 0 <= facts["match"] <= 1


def test_rows_are_resumed_and_say_what_was_trained(generated, monkeypatch, tmp_path):
    monkeypatch.setattr(replications, "FILE", tmp_path / "rows.json")
    replications.run()
    stored = json.loads(replications.FILE.read_text("utf8"))
    assert stored["num_units"] == len(stored["rows"]) == 3 and stored["runs"][0]["torch"]
    hole, added = stored["rows"][1:]
    assert hole["written"] == "hole" and added["size"] == 0.5 and {"followed", "unprompted"} <= set(added)
    monkeypatch.setattr(replications, "measured", lambda unit: pytest.fail("trained again"))
    replications.run()


def test_the_registration_names_maps_and_indices_of_the_design():
    registered = tomllib.loads((Path(__file__).parents[1] / "book/preregistered/replications.toml").read_text("utf8"))
    for cell, ranges in registered["predicted"].items():
        design = replications.DESIGNS[tuple(cell.split(", "))]
        indices = {f"replacement at {index}" for index in design.indices}
        assert {name for name in ranges if not name.startswith("replacement")} == set(design.maps)
        assert {name for name in ranges if name.startswith("replacement")} <= indices
