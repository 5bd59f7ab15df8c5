"""Rules of finished studies: other rows give other verdicts (`claims.json` pins the values)."""

import nads_book as nb
import pytest
from nads_book.studies.gain import load_design
from nads_book.theory.first_step import predicted_accuracy


def kernel_like_energy(row):
    if (row["network"], row["family"]) == ("lenet", "waves"):
        row["alignment"] = row["energy"]


def random_filters_see_as_much(row):
    row["frozen"]["test_accuracy"] = row["test_accuracy"]


def law_of(model):
    """Return what a network reaches whose random filters see no gain."""
    laws = predicted_accuracy(load_design(model)["ratios"])

    def change(row):
        row.get("frozen", row)["test_accuracy"] = float(laws[row["index"]])

    return change


def energy_decides(row):
    row["test_accuracy"] = 0.5 + 0.05 * int(load_design("lenet")["shells"][row["index"]])


@pytest.mark.parametrize(
    ("claim", "file", "change"),
    [
        ("kernel-orders-waves", "rival-theory", kernel_like_energy),
        ("gain-where-filters-learn", "law-lenet", random_filters_see_as_much),
        ("gain-in-resnet", "law-resnet18.narrow", law_of("resnet18")),
        ("gain-in-stage", "stage-resnet18.narrow", law_of("resnet18")),
        ("not-energy-alone", "law-lenet", energy_decides),
    ],
)
def test_other_rows_give_another_verdict(edit_stored, claim, file, change):
    before = nb.pages.decisions()[claim]().holds
    edit_stored(f"{file}.json", change)
    assert before is True and not nb.pages.decisions()[claim]().holds
