"""The page 06_lemma1_hessian: its claims, and what a student may change."""

import pytest
import torch
from nads_book.pages import lemma1_hessian as page
from nads_book.theory import deep_linear
from nads_book.theory.descent import gradient_descent


def test_the_loss_at_the_drawn_weights_is_the_expected_loss_of_the_model():
    """At t = p = 0 the signal is ignored: 1 plus the noise of the other weights, as samples say."""
    response = page.response_of("average", 16)
    theta = torch.randn(4, generator=(generator := torch.Generator().manual_seed(0))).double() / 2
    phi = torch.randn(16, generator=generator).double() / 2
    theta[2] = 0.7
    phi[2] = -0.3
    x = 0.8 * torch.randn(200_000, 16, generator=generator).double()
    y = torch.randn(200_000, generator=generator).sign().double()
    x[:, 2] += y
    output = deep_linear.deep_linear_output(theta, phi, x, response, 4)
    expected = float(page.loss_at(*torch.tensor([0.7, -0.3]).double(), 2, response, 0.8))
    losses = (y - output).square()
    assert float(losses.mean()) == pytest.approx(
        expected, abs=4 * float(losses.std()) / 200_000**0.5
    )


def test_a_rate_that_is_safe_for_one_filter_is_safe_for_another():
    for prefilter in ("identity", "binomial"):
        response = page.response_of(prefilter)
        options = {"num_steps": 50, "num_runs": 2, "theta_std": 0.5, "phi_std": 0.5}
        options["learning_rate"] = page.safe_rate(response)
        descent = gradient_descent(torch.tensor([1]), response, 4, 1.0, 0.5, **options)
        assert torch.isfinite(descent.losses).all()
        assert (descent.losses[..., -1] < descent.losses[..., 0]).all()
