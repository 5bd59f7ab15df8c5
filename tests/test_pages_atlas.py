"""The atlas: measures of a reader's run, and verdicts that follow from the stored entries and
trainings.
"""

import copy
import dataclasses

import nads_book as nb
import pytest
import torch
from nads_book.atlas import load_entry_nads
from nads_book.pages import atlas

import nads_core as nc

changes = atlas.changes
trained = atlas.trained
TRAINED = "atlas-trained.json"


def of_waves(*waves):
    """NADs that are these waves, of equal energy."""
    directions = torch.stack([nc.fourier_direction(wave, 32) for wave in waves])
    return nc.NADs(directions, torch.ones(len(waves)), {})


def test_energies_of_waves_are_where_the_directions_are():
    nads = of_waves((0, 3), (5, 0))
    energies = changes.wave_energies(nads)
    assert energies.mean() == pytest.approx(1)
    places = {(0, 3), (0, 29), (5, 0), (27, 0)}  # a real wave has two places
    assert all(energies[place] == pytest.approx(1024 / 4, rel=1e-4) for place in places)
    assert atlas.effective_number(nads) == pytest.approx(2)


def test_a_network_without_neighbours_is_drawn_with_an_entry():
    figure = atlas.plot_yours(load_entry_nads("cnn"))
    labels = [axis.get_ylabel() for axis in figure.axes if axis.get_ylabel()]
    assert labels[0] == "yours" and len(labels) == 3


@pytest.fixture
def altered(monkeypatch):
    """Return a function that replaces a measure of an entry by a sharp one."""

    def alter(name, measure, value):
        found = changes.load_atlas()
        measures = copy.deepcopy(found.measures)
        measures[name][measure] = dataclasses.replace(
            measures[name][measure], value=value, error=1e-6
        )
        other = dataclasses.replace(found, measures=measures)
        monkeypatch.setattr(changes, "load_atlas", lambda: other)

    return alter


@pytest.mark.parametrize(
    ("claim", "name", "measure", "value"),
    [
        ("downsampling-first", "cnn-global", "alignment", 0.01),
        ("comb-parts", "resnet-flat", "comb", 14.0),
        ("patches-two-levels", "mixer", "unlike levels", 0.2),
    ],
)
def test_an_altered_measure_falsifies_the_claim(altered, claim, name, measure, value):
    altered(name, measure, value)
    assert not nb.pages.decisions()[claim]().holds


def test_a_linear_network_with_more_fine_waves_would_be_a_prediction_that_held(altered):
    altered("cnn-linear", "high", 0.9)
    assert not changes.nonlinearities_down().holds
