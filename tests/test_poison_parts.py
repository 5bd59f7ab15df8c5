"""The poison in its parts (`nads_book.studies.poison_parts`): reused rows, units, and the rule."""

import pytest
from nads_book.experiments import load_registered
from nads_book.studies import poison_parts
from nads_book.studies.poison_parts import CASES, DEVIATION, PARTS

CRITERIA = load_registered("poison_parts")["criteria"]
SIZES = {
    case: {index: 2 / (1 + index) for index in (0, 10, 30, 60, 100, 300, 1000)} for case in CASES
}


def losses(number, hole=20.0, mean=10.0):
    """Return points lost at all NADs, of a number of one deviation as given."""
    indices = SIZES["lenet"]
    flat = {part: {index: [5.0, 5.0] for index in indices} for part in PARTS}
    flat["hole at zero"][0] = [hole]
    flat["hole at the mean"][0] = [mean]
    return {case: flat | {DEVIATION: dict(number)} for case in CASES}


def early(limit, cost):
    """Return a cost up to a NAD, and none behind it."""
    return {index: [cost if index <= limit else 0.0] for index in SIZES["lenet"]}


@pytest.mark.parametrize(
    ("lost", "failing"),
    [
        (losses(early(60, 30.0)), set()),
        (losses(early(10, 30.0)), {"fashion, early numbers cost"}),
        (losses(early(60, 9.0)), {"fashion, early numbers cost", "resnet, first number costs"}),
        (
            losses(early(1000, 30.0)),
            {"fashion, late numbers cost nothing", "resnet, late numbers cost nothing"},
        ),
        (losses(early(60, 30.0), mean=22.0), {"resnet, removal is a part of the hole"}),
    ],
)
def test_each_criterion_can_fail(lost, failing):
    met = poison_parts.judge(lost, SIZES, CRITERIA).met
    assert {name for name, holds in met.items() if not holds} == failing


def test_what_is_not_trained_yet_decides_nothing():
    missing = {case: found | {DEVIATION: {0: [30.0]}} for case, found in losses({}).items()}
    met = poison_parts.judge(missing, SIZES, CRITERIA).met
    assert met["fashion, early numbers cost"] is None and met["resnet, first number costs"] is True


def test_stored_networks_are_joined_with_new_ones():
    row = {"case": "fashion", "index": 30, "written": "added", "size": None, "seed": 3}
    lost = poison_parts.points_lost("fashion", [row | {"test_accuracy": 0.5, "deviation": 1.0}])
    assert list(lost[DEVIATION]) == [30] and 20 < lost[DEVIATION][30][0] < 50
    assert len(lost["hole at the mean"][30]) == 3
    lenet = poison_parts.points_lost("lenet")
    assert {len(found) for found in lenet.values()} == {12}  # twelve NADs of each part are stored
