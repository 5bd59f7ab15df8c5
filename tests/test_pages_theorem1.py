"""The page 05_theorem1: its claims, and the figures that a student may change."""

import nads_book as nb
import pytest
from convergence import normal
from nads_book.pages import theorem1 as page


def test_the_distance_of_the_class_means_gives_the_accuracy_by_the_angle():
    layer = normal(10, 64).double()
    for frequency in (1, 7, 20):
        v = nb.pooling.direction(frequency, 64)
        by_angle = nb.pooling.bayes_accuracy_after(layer, v[None], 1.0, 1.0)
        assert page.mahalanobis_accuracy(layer, v) == pytest.approx(float(by_angle), abs=1e-9)


def test_any_filter_and_stride_can_be_drawn():
    """A student's choices are labelled as such, and never stopped by the book's checks."""
    figure = page.plot_accuracies("binomial", (2, 16), num_samples=200)
    assert [axis.get_title() for axis in figure.axes] == ["binomial, S = 2", "binomial, S = 16"]
    figure = page.plot_phases([("lowpass", 3)], num_samples=200)
    assert figure.axes[0].get_title() == "lowpass, S = 4, ℓ = 3"
