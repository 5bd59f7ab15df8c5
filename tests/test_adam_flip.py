"""Adam and the flip: inputs that carry the variance, and one step size per weight matrix."""

import pytest
import torch
from convergence import normal
from nads_book.studies import adam_flip
from torch.testing import assert_close


def test_effective_inputs_count_equal_and_unequal_variances():
    noise = normal(4_000, 1, 4, 4, seed=1)
    assert adam_flip.effective_inputs(noise) == pytest.approx(16, rel=0.02)
    noise[:, :, 0] *= 2
    assert adam_flip.effective_inputs(noise) == pytest.approx(28**2 / 76, rel=0.02)


def test_one_step_size_keeps_the_direction_of_the_gradient():
    weight = torch.nn.Parameter(torch.zeros(2, 3))
    optimiser = adam_flip.SharedScaleAdam([weight], lr=0.1)
    gradient = torch.tensor([[1.0, 10.0, 0.0], [0.0, 0.0, -5.0]])
    for steps in (1, 2):  # Adam's corrections make both steps equally long
        (weight * gradient).sum().backward()
        optimiser.step()
        optimiser.zero_grad()
        expected = -0.1 * steps * gradient / gradient.square().mean().sqrt()
        assert_close(weight.detach(), expected)
