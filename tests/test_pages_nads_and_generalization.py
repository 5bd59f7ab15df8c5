"""The page on NADs and generalisation: verdicts that follow from stored numbers."""

import numpy as np
import torch
from nads_book.pages import nads_and_generalization as page

gain = page.gain
law = page.law
waves = page.waves

# Waves


def test_energies_separate_learned_waves_and_shuffled_ones_do_not(edit_stored, monkeypatch):
    assert min(waves.area(name) for name in waves.DEEP) > 0.99
    rng = np.random.default_rng(0)
    real = waves.energies
    monkeypatch.setattr(waves, "energies", lambda *names: rng.permutation(real(*names)))
    waves.scores.cache_clear()
    found = waves.energy_predicts()
    assert found.holds is False and 0.2 < found.value < 0.8


def test_the_readers_wave_is_a_star_among_the_published_ones():
    energy = torch.from_numpy(waves.energies("lenet"))
    (axis,) = page.plot_energies("lenet", energy, (0.5, 0.75)).axes
    star = next(line for line in axis.lines if line.get_marker() == "*")
    assert (star.get_xdata(), star.get_ydata()) == ([0.5], [75])
    dots = next(line for line in axis.lines if line.get_marker() == "o")
    assert len(dots.get_xdata()) == 130


# The law


# The gain


def test_the_figure_has_a_panel_for_each_arm_and_a_curve_for_each_energy():
    figure = gain.plot_arms()
    assert [len(axis.containers) for axis in figure.axes[:3]] == [3, 3, 3]
    free, random = (figure.axes[i].lines[1].get_ydata() for i in (0, 1))
    assert np.ptp(free) > 2 * np.ptp(random)  # the middle energies
