"""Claims have the numbers that they had, and with other stored rows another verdict."""

import json
from pathlib import Path

import nads_book as nb
import pytest
from nads_book import claims
from nads_book.site import verify

LENETS = "notes-lenet.laptop"
MAPS = "maps-lenet.laptop"
KEPT = {"images": "photos", "background": "kept"}
FASHION = {"data": "fashion-mnist", "network": "lenet"}

DECIDED = {"verified": True, "toy": True, "falsified": False, "inconclusive": None}
FIRST = "exact-first-step"
DERIVATIVE = {"measured": "derivative"}
LOW = [0.2, 0.1, 0.3]
FOLLOWED = {"background": "emptied", "written": "added", "size": 0.5}

# claim, file, rows that are changed, field, its new value
CASES = [
    ("dark-lines", "fig1-lenet", {"frequency": [0, 8]}, "test_accuracy", 0.6),
    ("two-tasks", "fig1-lenet", {"frequency": [0, 2]}, "test_accuracy", 0.5),
    ("out-of-reach", "fig1-lenet", {}, "test_accuracy", 0.9),
    ("one-bias-twice", "fig1-lenet", {}, "test_accuracy", 0.9),
    ("errata-equalized", "fig3-lenet", {}, "test_accuracy", 0.97),
    ("resnet-same-waves", "fig1-resnet18", {"frequency": [2, 8]}, "test_accuracy", 0.55),
    ("furthest-wave-again", "again-resnet18", {"frequency": [14, -4]}, "test_accuracy", 0.9),
    ("narrow-again", "again-resnet18.narrow", {"frequency": [4, 0]}, "test_accuracy", 0.4),
    ("pooling-part", "fig3-lenet", {"frequency": [0, 8]}, "test_accuracy", 0.55),
    ("removal-is-half", LENETS, {"written": "hole at mean"}, "test_accuracy", 0.53),
    ("hole-costs-as-much", LENETS, {**KEPT, "written": "hole"}, "test_accuracy", 0.53),
    ("number-alone", LENETS, {**KEPT, "written": "added", "size": 0.05}, "test_accuracy", 0.2),
    ("deviation-number", LENETS, {**KEPT, "written": "added", "size": None}, "test_accuracy", 0.4),
    (
        "signs-cost-resnet18",
        "maps-resnet18.narrow",
        {"order": "kept", "signs": True},
        "test_accuracy",
        0.9,
    ),
    (
        "bright-above-dark",
        "geometry",
        {"network": "lenet", "data": "photos", "step": 0},
        "leading.0",
        [1] * 512 + [-1] * 512,
    ),
    (
        "signal-takes-over",
        "geometry",
        {"network": "mlp", "data": "photos", "step": 10},
        "change.law ahead.signal",
        [0.3, 0.2, 0.4],
    ),
    (
        "repair-single",
        "repair",
        {"network": "densenet, flat", "task": "waves"},
        "accuracies.5",
        1.0,
    ),
    ("repair-both", "repair", {"network": "densenet, strided, flat"}, "accuracies", [0.9] * 16),
    (
        "flipped-need-another",
        "pooling",
        {"pooling": "max", "data": "flipped photos"},
        "test_accuracy",
        0.9,
    ),
    ("hole-fashion", "replications", FASHION | {"written": "hole"}, "test_accuracy", 0.87),
    ("maps-resnet", "replications", {"map": "random signs"}, "test_accuracy", 0.68),
    ("flip-fashion", "replications", FASHION | {"map": "flipped"}, "test_accuracy", 0.87),
    ("first-step-along-law", FIRST, DERIVATIVE, "change.cosine.G_0 S G_0", LOW),
    ("first-step-shrinks", FIRST, DERIVATIVE, "growth", LOW),
    ("few-networks", "network-numbers", {"network": "cnn"}, "area", 0.5),
    ("first-step-grows", "first-step-rates", {"rate": 0.5}, "growth", [0.9, 0.8, 0.95]),
    ("slopes-shrink-at-paper-rate", "paper-rates", {"step": 10}, "growth", [0.3, 0.2, 0.4]),
    ("recipes-keep-order", "recipes", {"recipe": "batch norm"}, "energies", [*range(16)]),
    ("signal-at-paper-rate", "paper-rates", {"network": "cnn"}, "change.cosine.signal", LOW),
    ("fits-noise", "fig1-lenet", {}, "train_accuracy", 0.55),
    ("poison-not-steady", "fig7-lenet", {}, "test_accuracy", 0.5),
    ("small-unread", LENETS, {"background": "emptied", "size": 0.05}, "followed.class", 0.9),
    ("border-depends", "notes-lenet.epochs100", FOLLOWED, "followed.class", 0.0),
    ("errata-poison-order", LENETS, FOLLOWED, "followed.class", 0.5),
    ("errata-small-modification", LENETS, {"index": 0}, "mean", 0.01),
    ("flip-full-lenet", "fig8-lenet", {"flipped": True}, "test_accuracy", 0.9),
    ("errata-flip-training", "fig8-lenet", {}, "train_accuracy", 0.99),
    ("match-with-smoothness", MAPS, {"order": "kept"}, "neighbours", -0.9),
    ("samples-and-noise", "law-trained", {"num_train": 1_000}, "accuracy", 0.99),
    ("fig6-lenet-close", "fig6-lenet", {}, "test_accuracy", 0.7),
    ("falls-as-trend", "fig6-lenet", {}, "test_accuracy", 0.7),
    (
        "neither-at-the-end",
        "geometry",
        {"network": "lenet", "data": "photos", "step": 1_000},
        "change.cosine.signal",
        [0.5, 0.4, 0.6],
    ),
    ("low-energy-unlearned", "repair", {"network": "densenet"}, "accuracies", [0.9] * 16),
]


@pytest.mark.parametrize(("claim", "file", "chosen", "field", "value"), CASES)
def test_other_rows_change_the_verdict(edit_stored, claim, file, chosen, field, value):
    *path, last = field.split(".")
    before = DECIDED[claims.load()[claim].registered]
    changed = []

    def change(row):
        if chosen.items() <= row.items():
            for name in path:
                row = row[int(name) if isinstance(row, list) else name]
            row[int(last) if isinstance(row, list) else last] = value
            changed.append(row)

    edit_stored(f"{file}.json", change)
    assert changed and nb.pages.decisions()[claim]().holds is not before


@pytest.mark.slow
def test_claims_have_the_numbers_that_were_stored():
    """claims.json has value and interval of each; a change that is wanted is written there."""
    known = json.loads(Path(__file__).with_name("claims.json").read_text("utf8"))
    found = {claim: decide() for claim, decide in nb.pages.decisions().items()}
    numbers = {claim: [one.value, *(one.interval or ())] for claim, one in found.items()}
    assert known.keys() == {claim for claim, one in found.items() if one.value is not None}
    moved = {
        claim: (numbers[claim], before)
        for claim, before in known.items()
        if numbers[claim] != pytest.approx(before, rel=1e-3, abs=1e-4)
    }
    assert not moved


def test_named_claims_alone_are_decided(capsys):
    assert not verify.verify(["pooling-adds"]) and "claims: 1 (1 " in capsys.readouterr().out
    with pytest.raises(claims.ClaimError, match="pooling-adds"):
        verify.verify(["poling-adds"])
