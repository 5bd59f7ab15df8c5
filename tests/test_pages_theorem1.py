"""The page 05_theorem1: its claims, and the figures that a student may change."""

import nads_book as nb
import pytest
import torch

pytest.importorskip("nads_book.pages.theorem1", reason="the figures need matplotlib")

page = nb.pages.theorem1


def test_the_distance_of_the_class_means_gives_the_accuracy_by_the_angle():
    layer = torch.randn(10, 64, generator=torch.Generator().manual_seed(0)).double()
    for frequency in (1, 7, 20):
        v = nb.pooling.direction(frequency, 64)
        by_angle = nb.pooling.bayes_accuracy_after(layer, v[None], 1.0, 1.0)
        assert page.mahalanobis_accuracy(layer, v) == pytest.approx(float(by_angle), abs=1e-9)


def test_the_printed_formula_is_wrong_by_the_root_of_half_the_stride():
    """Its largest error grows with the stride for real signals, and is noise for stride 2."""
    errors = page.errors_by_stride()
    assert errors["theorem1", 2] < 4 < errors["theorem1", 4] < errors["theorem1", 8]
    assert errors["theorem1-complex", 4] < 4 < errors["theorem1-complex", 2]


def test_a_wave_between_the_lines_keeps_a_share_that_depends_on_its_phase():
    shares = page.shares_after_two_averages()
    assert float(shares[4].max() - shares[4].min()) > 0.5
    assert float(shares[3].max() - shares[3].min()) < 1e-9


def test_any_filter_and_stride_can_be_drawn():
    """A student's choices are labelled as such, and never stopped by the book's checks."""
    figure = page.plot_accuracies("binomial", (2, 16), num_samples=200)
    assert [axis.get_title() for axis in figure.axes] == ["binomial, S = 2", "binomial, S = 16"]
    figure = page.plot_phases([("lowpass", 3)], num_samples=200)
    assert figure.axes[0].get_title() == "lowpass, S = 4, ℓ = 3"
