"""The poison and the flip on other photos (`nads_book.studies.replications`): what is trained on
what.
"""

from dataclasses import replace

import pytest
import torch
from nads_book.experiments import load_nads, load_registered, run_study
from nads_book.studies import pairs, replication_criteria, replications

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

    monkeypatch.setattr(pairs, "load_images", load)
    monkeypatch.setattr(replications, "DESIGNS", {("fashion-mnist", "lenet"): SMALL})
    short = replace(replications.PHOTO_RECIPE, epochs=1, batch_size=20)
    monkeypatch.setattr(replications, "PHOTO_RECIPE", short)
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


def noted(index, background, written, size=None, accuracy=0.8, followed=0.0):
    """Return the row of a shortcut; `followed` is above what would be so classified anyway."""
    shares = {"unprompted": {"class": 0.1}, "followed": {"class": 0.1 + followed}}
    fields = {"index": index, "background": background, "written": written, "size": size}
    return {"map": None, "test_accuracy": accuracy} | fields | shares


MAPS = {"as is": 0.8, "flipped": 0.7, "random signs": 0.75, "matched": 0.75, "opposed": 0.7}


def cell(hole=0.5, added=0.8, last=0.0, indices=(0, 9), seeds=(0,), maps=MAPS, network="n"):
    rows = [{"map": name, "test_accuracy": accuracy} for name, accuracy in maps.items()]
    for index in (0, 9) if network == "n" else ():
        rows += [
            noted(index, "kept", "replaced", 0.05, 0.5 if index == 0 else 0.8),
            noted(index, "kept", "hole", None, hole if index == 0 else 0.8),
            noted(index, "kept", "added", 0.05, added),
            noted(index, "emptied", "added", 0.2, followed=0.0),
            noted(index, "emptied", "added", 0.5, followed=0.6 if index == 0 else last),
        ]
    rows = [row | {"data": "d", "network": network, "seed": 0} for row in rows]
    design = {"indices": indices, "largest": 0.5, "maps": [*maps], "seeds": seeds}
    return replication_criteria.Cell(rows, "d", network, design)


def test_registered_criteria_hold():
    linear = cell(maps={"as is": 0.4, "flipped": 0.41}, network="logreg")
    assert cell().hole_ratio() == pytest.approx(1) and cell().following(0) == pytest.approx(0.6)
    assert [*replication_criteria.criteria(cell(), linear).values()] == [True] * 5


@pytest.mark.parametrize(
    ("changes", "place", "outcome"),
    [
        ({"hole": 0.7}, 0, False),
        ({"added": 0.7}, 0, False),
        ({"last": 0.2}, 1, False),
        ({"maps": MAPS | {"flipped": 0.78}}, 2, False),
        ({"maps": MAPS | {"random signs": 0.71}}, 2, False),
        ({"maps": MAPS | {"opposed": 0.74}}, 4, False),
        ({"indices": (0, 9, 50)}, 0, None),
        ({"seeds": (0, 1)}, 2, None),
    ],
)
def test_each_registered_criterion_can_fail_or_be_open(changes, place, outcome):
    linear = cell(maps={"as is": 0.4, "flipped": 0.43}, network="logreg")
    met = [*replication_criteria.criteria(cell(**changes), linear).values()]
    assert met[place] is outcome and met[3] is False
