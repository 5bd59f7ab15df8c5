"""Every estimator against a plain loop over networks and inputs, in float64."""

import pytest
import torch
from examples import compute, prepared
from plain_loop import contributions, shares
from torch import nn
from torch.testing import assert_close

import nads_core as nc
from nads_core.directions.symmetry import symmetrize

SHAPE = (1, 6, 5)
ESTIMATORS = [
    nc.PointGradient(0.5),
    nc.SmoothedGradient(6),
    nc.SmoothedGradient(3, 2.0, antithetic=False),
    nc.SmoothedGradient(2),  # one pair, which is the network's vector itself
    nc.SmoothedGradient(4, readouts=3),
    nc.Dipole(2.0),
    nc.MixedDerivative(4),
    nc.MixedDerivative(1, antithetic=False),
]


def network():
    return nn.Sequential(nn.Conv2d(1, 3, 3), nn.Tanh(), nn.Flatten(), nn.Linear(36, 2))


SYMMETRIES = "flip_rows", "flip_columns"


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_every_estimator_has_the_second_moment_of_a_plain_loop(estimator):
    run = prepared(network, SHAPE, estimator)
    vectors = torch.stack([contributions(run.networks, estimator, index) for index in range(20)])
    assert_close(run.vectors(range(20)), vectors, rtol=1e-8, atol=1e-12)
    options = {"estimator": estimator, "dtype": "float64", "seed": 1, "symmetries": SYMMETRIES}
    nads = compute(network, 20, SHAPE, **options)
    expected = symmetrize(shares(vectors).sum(0), SHAPE, SYMMETRIES)
    basis = nads.basis.double()  # directions are stored in float32
    scale = float(expected.abs().max())
    assert_close((basis * nads.eigenvalues) @ basis.T, expected, rtol=0, atol=1e-6 * scale)
    assert_close(nads.eigenvalues, torch.linalg.eigvalsh(expected).flip(0))


def test_a_dipole_of_many_pixels_is_the_gradient_of_a_linear_network():
    run = prepared(lambda: nn.Sequential(nn.Flatten(), nn.Linear(680, 1)), (2, 17, 20), nc.Dipole())
    assert_close(run.vectors([3])[0, 0], run.networks.build(3)[1].weight.data.double())
