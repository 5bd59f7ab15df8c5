"""The method that the book shows, in a file of its own, against the library."""

import math

import pytest
import torch
from examples import compute
from nads_book.theory import reference
from torch import nn

import nads_core as nc

SHAPE = (1, 6, 6)
D = 36


def convnet():
    return nn.Sequential(nn.Conv2d(1, 3, 3), nn.Tanh(), nn.Flatten(), nn.Linear(48, 1))


def test_the_method_from_a_factory_to_directions():
    before = torch.get_rng_state()
    values, directions = reference.compute_reference_nads(convnet, 400, SHAPE, seed=3)
    assert torch.equal(torch.get_rng_state(), before)
    assert directions.shape == (D, *SHAPE) and (values[:-1] >= values[1:]).all()
    again = reference.compute_reference_nads(convnet, 400, SHAPE, seed=3)
    assert torch.equal(values, again[0]) and torch.equal(directions, again[1])
    engine = compute(convnet, 400, SHAPE, estimator=nc.SmoothedGradient(64), symmetries=())
    # Other networks from the same distribution: the trace of C varies by about sqrt(2 / N) of
    # itself per eigenvalue.
    assert float(values.sum()) == pytest.approx(
        float(engine.eigenvalues.sum()), rel=4 * math.sqrt(2 / 400)
    )
    assert engine.overlap(directions.float(), 4) > 4 * 4 / D


def test_the_second_moment_is_summed_in_float64():
    """In float32 the small vector would be lost next to the large one."""
    moment = reference.second_moment([torch.tensor([1e5]), torch.tensor([1.0])])
    assert moment.dtype == torch.float64
    assert float(moment) == (1e10 + 1) / 2
