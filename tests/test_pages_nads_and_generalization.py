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


def test_low_frequency_orders_resnets_waves_badly_and_the_rule_of_four_well():
    rules = "low frequency", waves.RULES["resnet18"]
    badly, well = (waves.area("resnet18", rule) for rule in rules)
    assert badly < 0.8 < 0.97 < well


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


def test_half_of_the_energy_of_a_steep_spectrum_is_in_few_nads():
    one = paper.falls()
    assert one["DenseNet-121"].half < one["LeNet"].half
    assert paper.pairs_in_order(with_vgg=False) == [True] * 3
    assert not all(paper.pairs_in_order(with_vgg=True))


def test_nads_have_their_energy_where_the_authors_networks_learn():
    assert min(paper.supports().values()) > 0.9 and max(paper.ordering().values()) > 0.9


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


def test_predictions_and_trainings_are_matched_cell_by_cell():
    assert len(predictions.predictions()) == 84
    usual, longer = predictions.reached()
    assert len(longer) == 12 and all(cell in usual for cell in longer)
    found = predictions.samples_and_noise()
    assert found.holds and found.value == 0 and found.interval[1] == pytest.approx(0.2646, abs=1e-3)


def test_intervals_of_few_units_are_exact_or_students():
    assert predictions.gain_pairs().interval == pytest.approx((0.3588, 0.9958), abs=1e-3)
    found = predictions.more_steps()
    assert found.interval == pytest.approx((2.80, 14.58), abs=0.01)
    assert found.value == pytest.approx(np.mean(found.interval))


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


def test_random_filters_as_good_as_free_ones_leave_all_of_the_effect(edit_stored):
    def as_free(row):
        row["frozen"]["test_accuracy"] = row["test_accuracy"]

    edit_stored("law-lenet.json", as_free)
    assert gain.share_left("lenet") == pytest.approx((1, 1, 1))
    assert gain.share_left_in("lenet", 0, 0.25).holds is False
    assert gain.gain_where_filters_learn().holds is False


def test_the_figure_has_a_panel_for_each_arm_and_a_curve_for_each_energy():
    figure = gain.plot_arms()
    assert [len(axis.containers) for axis in figure.axes[:3]] == [3, 3, 3]
    free, random = (figure.axes[i].containers[1].lines[0].get_ydata() for i in (0, 1))
    assert np.ptp(free) > 2 * np.ptp(random)  # the middle energies


# Estimators


def test_the_gradient_at_a_point_orders_waves_worst():
    found = {label: estimators.correlation("DFT", label)[0] for label in estimators.NAMES}
    assert min(found, key=found.get) == "point" and found["smoothed"] > 0.8
    value, low, high = estimators.ahead("point")
    assert value == pytest.approx(found["smoothed"] - found["point"]) and low > 0
    assert estimators.averages_agree().holds
