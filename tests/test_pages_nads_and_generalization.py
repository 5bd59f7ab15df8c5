"""The page on NADs and generalisation: verdicts that follow from stored numbers."""

import copy

import numpy as np
import pytest
import torch

import nads_core as nc

page = pytest.importorskip("nads_book.pages.nads_and_generalization", reason="it needs matplotlib")
estimators, fall, gain, law = page.estimators, page.fall, page.gain, page.law
paper, predictions, waves = page.paper, page.predictions, page.waves

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


# Along NADs


def test_a_falling_curve_is_monotonic_and_the_authors_vgg_is_not():
    assert set(fall.not_monotonic()) >= {"LeNet, ours", "VGG-11, paper"}
    test = fall.order_tests()["VGG-11, paper"]
    assert test.spread > 1.2 * test.sampling_spread
    keys = np.arange(60)
    falling = fall.Curve(keys.tolist(), np.linspace(1, 0.5, 60), np.full(60, 10_000))
    found = fall.statistics.order_test(falling.accuracies, falling.num_test)
    assert found.spread == pytest.approx(0) and max(fall.trends().values()) < -0.4


def test_repeated_trainings_of_the_authors_are_waves_and_their_negatives():
    pairs = fall.repeats("LeNet, paper")
    assert pairs.shape[1] == 2 and len(pairs) > 50 and (pairs[:, 0] != pairs[:, 1]).mean() > 0.5
    assert len(fall.repeats("LeNet, ours")) == 59


def test_every_measured_nad_of_the_authors_counts():
    table = fall.table_of_monotone()
    for label in ("LeNet", "VGG-11", "ResNet-18", "DenseNet-121"):
        assert f"| {label}, paper | 264 |" in table


# The law


def test_the_law_of_a_flat_spectrum_is_the_same_along_all_directions(edit_stored, monkeypatch):
    flat = nc.NADs(nc.load_nads("lenet").directions, torch.ones(1024))
    law.ratios.cache_clear()
    monkeypatch.setattr(law, "load_nads", lambda name: flat)
    values = law.ratios(law.FAMILIES["fig6-lenet"])
    assert np.ptp(values) < 1e-3 * values.mean()


def test_a_fitted_step_has_two_levels():
    step = law.fits()["a step, fitted"]
    assert len(np.unique(step)) == 2 and step[0] == 1 and (np.diff(step) <= 0).all()
    assert law.law_or_step().interval[0] < 0 < law.law_or_step().interval[1]


def test_a_gap_that_the_kernel_explains_flips_the_verdict(monkeypatch):
    probes = copy.deepcopy(law.probes())
    gap = probes[0]["accuracy"] - probes[1]["accuracy"]
    probes[0]["kernels"][-1] = probes[1]["kernels"][-1] + gap
    monkeypatch.setattr(law, "probes", lambda: probes)
    assert law.kernel_parts().holds is False and law.kernel_parts().value == pytest.approx(
        100 * gap
    )


# The gain


@pytest.mark.parametrize(
    ("name", "expected"),
    [("lenet", (0.14, 0.08, 0.20)), ("cnn", (0.68, 0.54, 0.78)), ("resnet18", (1.0, 0.96, 1.05))],
)
def test_the_share_that_is_left_is_that_of_paired_slopes(name, expected):
    assert gain.share_left(name) == pytest.approx(expected, abs=0.012)
    ratio = gain.slope(name, "frozen")[0] / gain.slope(name, "free")[0]
    assert gain.share_left(name)[0] == pytest.approx(ratio)


def test_the_figure_has_a_panel_for_each_arm_and_a_curve_for_each_energy():
    figure = gain.plot_arms()
    assert [len(axis.containers) for axis in figure.axes[:3]] == [3, 3, 3]
    free, random = (figure.axes[i].containers[1].lines[0].get_ydata() for i in (0, 1))
    assert np.ptp(free) > 2 * np.ptp(random)  # the middle energies


# Estimators
