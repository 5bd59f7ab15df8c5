"""The poison and the flip on other photos (`nads_book.studies.replications`): what is trained on
what.
"""

import pytest
import torch
from nads_book.experiments import run_study
from nads_book.experiments.stored import load_nads, load_registered
from nads_book.studies import replication_criteria, replications

import nads_core as nc

SMALL = replications.Design(
    40, 20, (3,), (("kept", "hole", None), ("emptied", "added", 0.5)), ("flipped",), (3,)
)


@pytest.fixture
def generated(monkeypatch):
    """Grey images of ten classes instead of Fashion-MNIST, small sets, one epoch."""
    for cached in ("photos", "nads_of", "scaling", "spread", "matrix_of"):
        getattr(replications, cached).cache_clear()
    images = torch.rand(40, 1, 32, 32, generator=torch.Generator().manual_seed(0))

    def load(data, *, train, num_images, size, progress):
        return nc.ImageSet(
            images[:num_images], torch.arange(num_images) % 10, tuple("abcdefghij"), "generated"
        )

    monkeypatch.setattr(replications, "load_images", load)
    monkeypatch.setattr(replications, "DESIGNS", {("fashion-mnist", "lenet"): SMALL})
    monkeypatch.setattr(
        replications, "RECIPE", replications.replace(replications.RECIPE, epochs=1, batch_size=20)
    )
    yield images
    for cached in ("photos", "nads_of", "scaling", "spread", "matrix_of"):
        getattr(replications, cached).cache_clear()


def test_the_flipped_set_is_the_flip_of_standardised_images(generated):
    train, _, facts = replications.mapped(replications.trainings()[0], SMALL)
    standard = replications.scaling("fashion-mnist", 40)(generated)
    assert abs(float(standard.mean())) < 1e-5 and float(standard.std()) == pytest.approx(
        1, abs=1e-3
    )
    torch.testing.assert_close(
        train[0], nc.flip(standard, load_nads("lenet", 2)), atol=1e-3, rtol=0
    )
    assert 0 <= facts["match"] <= 1


def test_rows_say_what_was_trained(generated, tmp_path):
    options = {"executor": "sequential", "device": "cpu", "progress": False}
    study = replications.Replications()
    _, hole, added = run_study(study, out=tmp_path / "rows.json", **options).rows
    assert (hole["written"], added["size"]) == ("hole", 0.5)
    assert {"followed", "unprompted"} <= added.keys()


def test_the_registration_names_maps_and_indices_of_the_design():
    registered = load_registered("replications")
    for cell, ranges in registered["predicted"].items():
        design = replications.DESIGNS[tuple(cell.split(", "))]
        indices = {f"replacement at {index}" for index in design.indices}
        assert {name for name in ranges if not name.startswith("replacement")} == set(design.maps)
        assert {name for name in ranges if name.startswith("replacement")} <= indices


def made_up(index, background, written, size=None, accuracy=0.8, followed=0.0):
    row = {
        "data": "d",
        "network": "n",
        "seed": 0,
        "map": None,
        "index": index,
        "background": background,
    }
    row |= {
        "written": written,
        "size": size,
        "test_accuracy": accuracy,
        "unprompted": {"class": 0.1, "place": 0.1},
    }
    return row | {"followed": {"class": 0.1 + followed, "place": 0.1}}


def made_up_cell(hole=0.5, added=0.8, last=0.0, indices=(0, 9), seeds=(0,)):
    rows = [{"data": "d", "network": "n", "seed": 0, "map": "as is", "test_accuracy": 0.8}]
    for index in (0, 9):
        rows += [
            made_up(index, "kept", "replaced", 0.05, 0.5 if index == 0 else 0.8),
            made_up(index, "kept", "hole", None, hole if index == 0 else 0.8),
            made_up(index, "kept", "added", 0.05, added),
            made_up(index, "emptied", "added", 0.2, followed=0.0),
            made_up(index, "emptied", "added", 0.5, followed=0.6 if index == 0 else last),
        ]
    return replication_criteria.Cell(
        rows,
        "d",
        "n",
        {"indices": list(indices), "largest": 0.5, "maps": ["as is"], "seeds": list(seeds)},
    )


def test_registered_criteria_hold_and_fail():
    criteria, linear = replication_criteria.criteria, replication_criteria.Cell([], "d", "logreg")
    good = made_up_cell()
    assert good.hole_ratio() == pytest.approx(1) and good.following(0) == pytest.approx(0.6)
    first, second, *others = criteria(good, linear).values()
    assert first is second is True and others == [None] * 3
    assert [*criteria(made_up_cell(hole=0.7), linear).values()][0] is False
    assert [*criteria(made_up_cell(added=0.7), linear).values()][0] is False
    assert [*criteria(made_up_cell(last=0.2), linear).values()][1] is False
    for incomplete in (made_up_cell(indices=(0, 9, 50)), made_up_cell(seeds=(0, 1))):
        assert [*criteria(incomplete, linear).values()][:2] == [None, None]
