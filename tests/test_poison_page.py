"""The page of the poison: its rule for reading classes, and verdicts that follow from the stored numbers."""

import copy

import pytest
import torch
from nads_book.studies import load_results

import nads_core as nc

poison = pytest.importorskip("nads_book.pages.poison", reason="the figures need matplotlib")
CACHED = [value for value in vars(poison).values() if hasattr(value, "cache_clear")]


@pytest.fixture
def altered(monkeypatch):
    """Return a function that changes the rows of the LeNets with holes and numbers."""

    def alter(change):
        results = copy.deepcopy(load_results("notes-lenet", "laptop"))
        for row in results.rows:
            change(row)
        monkeypatch.setattr(poison, "injected", lambda: results)

    for cached in CACHED:
        cached.cache_clear()
    yield alter
    for cached in CACHED:
        cached.cache_clear()


def test_one_rule_reads_the_classes_of_poisoned_images_and_not_those_of_others():
    basis = torch.linalg.qr(torch.randn(64, 64, generator=torch.Generator().manual_seed(0)))[0]
    nads = nc.NADs(basis.T.reshape(64, 1, 8, 8), torch.linspace(1, 0.1, 64), {})
    images, labels = (
        torch.rand(40, 3, 8, 8, generator=torch.Generator().manual_seed(1)),
        torch.arange(40) % 10,
    )
    for index in (0, 30):
        assert (
            poison.read_classes(nc.poison(images, labels, nads, index, 0.05), nads, index, 0.05)
            == labels
        ).all()
    assert (poison.read_classes(images, nads, 0, 0.05) == labels).double().mean() < 0.6


def test_a_hole_that_costs_nothing_flips_the_verdict(altered):
    assert poison.hole_costs_as_much().holds and poison.number_alone().holds
    poison.on_clean.cache_clear()
    clean = poison.untouched()
    altered(lambda row: row.update(test_accuracy=clean) if row["written"] == "hole" else None)
    found = poison.hole_costs_as_much()
    assert found.holds is False and found.value > 10


def test_a_number_that_costs_much_flips_the_verdict(altered):
    altered(lambda row: row.update(test_accuracy=0.2) if row["written"] == "added" else None)
    assert poison.number_alone().holds is False and poison.number_alone().value > 20


def test_predictions_before_and_behind_a_carrier_are_counted_apart():
    use = {
        "indices": [0, 5, 10, 11, 12, 50],
        "num_images": 100,
        "flip": [0.5, 0.4, 0.9, 0.9, 0.2, 0.1],
    }
    clean = use | {"flip": [0.1] * 6}
    assert poison.changed_predictions({"use": use}, {"use": clean}, 10) == [(90, 20), (30, 20)]
