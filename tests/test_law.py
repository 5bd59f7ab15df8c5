"""The law with the filters' gain: what a filter responds to, and predicted and measured
accuracies.
"""

import numpy as np
import pytest
import torch
from convergence import normal
from nads_book.experiments import load_nads
from nads_book.theory.first_step import (
    GainCorrection,
    filter_gain,
    predicted_accuracy,
)
from numpy.testing import assert_allclose


def test_the_gain_is_that_of_the_best_filter():
    direction = load_nads("lenet").directions[[40]]
    patches = torch.nn.functional.unfold(direction, 5)[0]
    best = torch.linalg.eigh(patches @ patches.T).eigenvectors[:, -1].view(1, 1, 5, 5)
    heard = float(torch.nn.functional.conv2d(direction, best).square().sum())
    assert heard == pytest.approx(float(filter_gain(direction)[0]), rel=1e-4)
    others = normal(100, 1, 5, 5)
    others /= others.flatten(1).norm(dim=1).view(-1, 1, 1, 1)
    responses = torch.nn.functional.conv2d(direction, others).square().sum((2, 3))
    assert float(responses.max()) <= heard + 1e-6


def test_a_fit_finds_the_powers_that_made_accuracies():
    assert_allclose(predicted_accuracy([0, 1, -2]), [0.5, 0.841345, 0.022750], atol=1e-6)
    rng = np.random.default_rng(0)
    ratios = rng.uniform(0.2, 1.5, 50)
    gains = rng.uniform(1, 10, 50)
    true = GainCorrection((-0.5, 0.4, -0.2))
    fit = GainCorrection.fit(ratios, gains, true.accuracies(ratios, gains))
    assert_allclose(fit.powers, true.powers, atol=1e-6)
    with pytest.raises(ValueError, match="three accuracies .*got 0"):
        GainCorrection.fit(ratios, gains, np.full(50, 0.5))
