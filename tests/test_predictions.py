"""Registered predictions beside their results: outcomes, and numbers that were scored late."""

import math
import tomllib

import pytest
from nads_book import predictions
from nads_book.predictions import criteria
from nads_book.predictions.prediction import answered, pointed, ranged, resolved

pytestmark = pytest.mark.stored


# Outcomes


def test_outcomes_of_ranges_intervals_guesses_and_expectations():
    infinity = math.inf
    nan = math.nan
    for value, low, high, outcome in (
        (1.0, 0, 2, "met"),
        (2.0, 0, 2, "met"),
        (2.1, 0, 2, "failed"),
        (-5.0, -infinity, 2, "met"),
        (3.0, 4, infinity, "failed"),
        (nan, 0, 2, "open"),
    ):
        assert ranged("x", value, low, high).outcome == outcome
    for values, outcome in (  # an interval decides where it contains no end of the range
        ((1, 0.5, 1.5), "met"),
        ((1, -0.5, 1.5), "open"),
        ((1, 0.5, 2.5), "open"),
        ((3, 2.5, 4), "failed"),
        ((nan, 0, 1), "open"),
    ):
        assert resolved("x", values, 0, 2).outcome == outcome
    for guess, outcome in ((1.0, "met"), (0.4, "failed"), (2.0, "met")):
        assert pointed("x", guess, (1, 0.5, 2.0)).outcome == outcome
    for expected, found, outcome in (
        (True, True, "met"),
        (False, True, "failed"),
        (False, False, "met"),
        (True, None, "open"),
    ):
        assert answered("x", expected, found).outcome == outcome


def test_a_criterion_has_the_outcome_that_was_registered_for_it():
    expected = {"a": "failed", "cnn": {"ring": "met, or undecided"}, "holds": [True, True]}
    found = criteria.expectations(expected, ["a", "b", "cnn, ring", "cnn, xor"])
    assert found == {"a": "failed", "b": "met", "cnn, ring": "met, or undecided", "cnn, xor": "met"}


def test_a_criterion_that_was_expected_to_fail_is_no_failed_prediction(found):
    (one,) = [
        one
        for one in found["book/preregistered/mixed_derivative.toml"]
        if one.text == "the gradient is more stable"
    ]
    assert one.expected == "no"


def test_what_was_known_before_a_registration_is_shown_with_its_predictions(found):
    shown = predictions.section(path := "book/preregistered/adam_flip.toml", found[path])
    assert "principal components 7.5" in shown and "Known before" in shown
    path = "book/results/studies/atlas-predictions.json"
    assert "Known before" not in predictions.section(path, found[path])


def test_failed_predictions_come_first_and_are_counted():
    some = [ranged("a", 1, 0, 2), ranged("b", 3, 0, 2), ranged("c", math.nan, 0, 2)]
    table = predictions.table(some)
    assert table.index("| b |") < table.index("| c |") < table.index("| a |")
    assert predictions.counts(some) == "1 met, 1 failed, 1 open"


# What is stored


@pytest.fixture(scope="module")
def found():
    return predictions.everything()


def test_every_registration_is_listed(found):
    names = {path.rpartition("/")[2] for path in found}
    assert {f"{name}.toml" for name in predictions.registrations()} < names
    assert all(len(some) for some in found.values())


def test_every_registered_range_is_scored(found):
    for path, some in found.items():
        if not path.endswith(".toml"):
            continue
        registered = tomllib.loads((predictions.checkout_folder("book") / path[5:]).read_text())
        ranges = [*registered.get("effects", {}).values()]
        for group in (
            registered.get("predicted", {}) if path.endswith(("data.toml", "ns.toml")) else ()
        ):
            inner = registered["predicted"][group]
            ranges += inner.values() if isinstance([*inner.values()][0], dict) else [inner]
        assert len(some) >= sum(map(len, ranges))


SCORED = {
    # six predictions that no script of a study scores
    ("other_data", "random phases cost", "failed", "6 of 10; outside: 2.7, 20.1, 4.4, 18.4"),
    ("other_data", "hardly fall", "failed", "they fall by −7.7 to +1.2 points"),
    ("other_data", "fall of the CNN's ridge score", "failed", "0.05"),
    ("forgetting", "area above .9", "failed", "29 of 31 treatments; the others have 0.70, 0.79"),
    ("used_nads", "VGG-11, seed 0: ratio over waves larger", "met", "1.19 and 0.95"),
    ("used_nads", "VGG-11, seed 1: ratio over waves larger", "met", "1.21 and 0.89"),
    ("law", "small CNN, free first filters", "met", "5.41 (3.34 to 7.36)"),
    ("law", "narrow ResNet-18, free first filters", "failed", "9.63 (7.20 to 11.35)"),
    # and some that studies score
    ("forgetting", "in both seeds", "failed", "2 treatments have"),
    ("pooling", "mixtures", "failed", "0.3"),
    ("repair", "waves learned, of 16: densenet, strided, flat", "failed", "9"),
    ("nas", "gain over jacov", "met", "0.0121"),
    ("nads64", "forecast", "failed", "0.95, 1.07"),
    # what two registrations expect beside their criteria, and an outcome "met, or undecided"
    ("small_components", "components removed", "met", "11.1"),
    ("small_components", "components flipped", "failed", "22.2"),
    ("nonlinear_tasks", "cnn, product", "met", "undecided"),
}


def test_outcomes_of_stored_rows(found):
    for name, words, outcome, result in SCORED:
        (path,) = [path for path in found if path.endswith((f"/{name}.toml", f"/{name}.json"))]
        scored = [(one.outcome, one.found) for one in found[path] if words in one.text]
        assert scored == [(outcome, result)], (name, words)


def test_the_atlas_has_as_many_outcomes_as_scored_predictions(found):
    atlas = found["book/results/studies/atlas-predictions.json"]
    assert predictions.counts(atlas) == "43 met, 4 failed, 2 open"
