"""The page about using NADs: its verdicts follow from the stored rows."""

import math

import numpy as np
import pytest
from nads_book.experiments import load_study
from nads_book.pages import using_nads
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


def test_a_reader_cannot_ask_for_a_cell_without_an_accuracy():
    with pytest.raises(ValueError, match="999999"):
        using_nads.plot_your_cell("999999", 3.0)
    figure = using_nads.plot_your_cell("040332", 4.5)
    assert 4.5 in [line.get_xdata()[0] for line in figure.axes[0].lines]
