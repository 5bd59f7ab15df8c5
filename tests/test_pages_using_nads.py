"""The page about using NADs: its verdicts follow from the stored rows."""

import math

import numpy as np
import pytest
from nads_book.experiments import load_study
from nads_book.pages import using_nads
from nads_book.studies import nas_contest as contest
from nads_book.studies.nas import effective_directions

import nads_core as nc

pooling = using_nads.pooling
search = using_nads.search


def test_accuracies_in_the_order_of_energies_let_the_choice_succeed(edit_stored):
    scores = load_study("pooling.json")["prediction"]

    def by_energy(row):
        row["test_accuracy"] = 0.5 + 0.01 * math.log10(scores[row["pooling"]][row["data"]][0])

    edit_stored("pooling.json", by_energy)
    found = pooling.energy_chooses_pooling()
    assert found.holds and found.value == pytest.approx(1)


def test_a_count_of_operations_on_paths():
    assert search.counts(["224112"]).tolist() == [[0, 2, 0, 1]]  # one convolution is on no path


def test_the_effective_number_of_directions_of_logistic_regression():
    """C is a multiple of the identity, so that all directions count; few networks show it."""
    found = [effective_directions(lambda: nc.LOGREG.build(3, 32, 2), 64, seed) for seed in (0, 1)]
    assert np.mean([1 / number for number in found]) == pytest.approx(1 / 3_072, abs=4e-4)


@pytest.mark.parametrize(("cell", "stored"), [("040332", True), ("012340", False)])
def test_any_cell_can_be_drawn_beside_the_stored_ones(cell, stored):
    figure = using_nads.plot_your_cell(cell, 4.5)
    lines = {line.get_label(): line.get_xydata()[0].tolist() for line in figure.axes[0].lines}
    accuracy = float(contest.all_cells()[cell]["test200_cifar10"])
    assert lines[f"{cell}, yours"] == [4.5, accuracy]
    assert (f"{cell}, stored" in lines) == stored
