"""Poison and flip on other photos: the maps, and verdicts that follow the stored rows."""

import pytest

photos = pytest.importorskip("nads_book.pages.other_photos", reason="figures need matplotlib")


STUDY = "replications.json"


def test_a_cheap_hole_and_a_cheap_mean_change_the_verdicts(edit_stored):
    assert photos.removal_is_a_part().value == pytest.approx(0.714, abs=1e-3)

    def change(row):
        if row["data"] == "fashion-mnist" and row["written"] == "hole":
            row["test_accuracy"] += 0.1
        if row["data"] == "imagenette" and row["written"] == "hole at mean":
            row["test_accuracy"] -= 0.1

    edit_stored(STUDY, change)
    assert photos.CLAIMS["hole-fashion"]().holds is False
    assert photos.CLAIMS["hole-imagenette"]().holds
    assert not photos.removal_is_a_part().holds


def test_a_map_that_costs_nothing_changes_the_verdicts(edit_stored):
    def change(row):
        if row["network"] == "resnet" and row["map"] == "random signs":
            row["test_accuracy"] = 0.68
        if row["data"] == "fashion-mnist" and row["map"] == "flipped":
            row["test_accuracy"] = 0.87

    edit_stored(STUDY, change)
    assert not photos.each_map_halves().holds
    assert photos.CLAIMS["flip-fashion"]().holds is False
    assert photos.CLAIMS["match-fashion"]().holds


def test_numbers_that_are_followed_at_the_last_nad_change_the_verdict(edit_stored):
    def change(row):
        if row["index"] == 4_000 and row["written"] == "added" and row["size"] == 1.0:
            row["followed"] = dict(row["followed"], **{"class": 0.9})

    edit_stored(STUDY, change)
    assert photos.CLAIMS["read-imagenette"]().holds is False
