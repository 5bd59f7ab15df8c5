"""The engine against the plain method: the same networks and inputs, one at a time, in float64."""

import math
from itertools import islice

import pytest
import torch
from convergence import second_moment
from examples import compute
from nads_book.theory import reference
from nads_core.networks.ensembles import Ensemble
from torch import nn
from torch.testing import assert_close

import nads_core as nc
from nads_core.directions.symmetry import symmetrize

SHAPE = (1, 6, 6)
D = 36
NETWORKS = 70  # more networks than one block has


def convnet():
    return nn.Sequential(nn.Conv2d(1, 3, 3), nn.Tanh(), nn.Flatten(), nn.Linear(48, 1))


def drawn_networks(estimator):
    """Yield each network of the engine as a module of its own, its inputs (K, C, H, W) and its
    probe, if any.
    """
    ensemble = Ensemble(convnet, SHAPE, dtype=torch.float64)
    block = 0
    while True:
        draw = estimator.draw(ensemble, block)
        for index in range(ensemble.block_size):
            module = convnet().double()
            module.load_state_dict({name: tensor[index] for name, tensor in draw.state.items()})
            probe = draw.probes and {name: tensor[index] for name, tensor in draw.probes.items()}
            yield module, draw.inputs[index], probe
        block += 1


def computed(**options):
    options = {"debiasing": "none", "symmetries": (), "dtype": torch.float64} | options
    return compute(convnet, NETWORKS, SHAPE, **options)


def vector(estimator, network, inputs, probe):
    if isinstance(estimator, nc.MixedDerivative):
        return reference.mixed_derivative(network, inputs, probe)
    if isinstance(estimator, nc.Dipole):
        return reference.dipole(network, inputs, estimator.step)
    return reference.average_gradient(network, inputs)


@pytest.mark.parametrize(
    "estimator",
    [
        nc.PointGradient(0.5),
        nc.SmoothedGradient(6),
        nc.SmoothedGradient(3, 2.0, antithetic=False),
        nc.Dipole(2.0),
        nc.MixedDerivative(4),
        nc.MixedDerivative(1, antithetic=False),
    ],
    ids=repr,
)
def test_every_estimator_has_the_second_moment_of_a_plain_loop(estimator):
    nads = computed(estimator=estimator)
    expected = reference.second_moment(
        vector(estimator, *network) for network in islice(drawn_networks(estimator), NETWORKS)
    )
    scale = float(expected.abs().max())
    assert_close(second_moment(nads), expected, rtol=0, atol=1e-6 * scale)
    eigenvalues, directions = reference.eigenpairs(expected)
    assert_close(nads.eigenvalues.double(), eigenvalues, rtol=1e-5, atol=1e-6 * scale)
    assert nads.overlap(directions, 1) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("symmetries", [(), ("flip_rows", "transpose")])
def test_noise_is_subtracted_by_halves_of_the_inputs_and_symmetric_images_count_alike(symmetries):
    estimator = nc.SmoothedGradient(4, 3.0)
    expected = torch.zeros(D, D).double()  # much noise
    nads = computed(estimator=estimator, debiasing="subtract", symmetries=symmetries)
    for network, inputs, _ in islice(drawn_networks(estimator), NETWORKS):
        x, y = (reference.average_gradient(network, half).flatten() for half in inputs.chunk(2))
        expected += (torch.outer(x, y) + torch.outer(y, x)) / 2 / NETWORKS
    expected = symmetrize(expected, SHAPE, symmetries)
    scale = float(expected.abs().max())
    assert_close(second_moment(nads), expected, rtol=0, atol=1e-6 * scale)


def test_the_method_from_a_factory_to_directions():
    before = torch.get_rng_state()
    values, directions = reference.compute_reference_nads(convnet, 400, SHAPE, seed=3)
    assert torch.equal(torch.get_rng_state(), before)
    assert directions.shape == (D, *SHAPE) and (values[:-1] >= values[1:]).all()
    again = reference.compute_reference_nads(convnet, 400, SHAPE, seed=3)
    assert torch.equal(values, again[0]) and torch.equal(directions, again[1])
    options = {"estimator": nc.SmoothedGradient(), "debiasing": "none", "symmetries": ()}
    engine = compute(convnet, 400, SHAPE, **options)
    # Other networks from the same distribution: the trace of C varies by about sqrt(2 / N) of
    # itself per eigenvalue.
    assert float(values.sum()) == pytest.approx(
        float(engine.eigenvalues.sum()), rel=4 * math.sqrt(2 / 400)
    )
    assert engine.overlap(directions.float(), 4) > 4 * 4 / D
    points = reference.compute_reference_nads(
        convnet, 50, SHAPE, num_inputs=1, contribution=reference.dipole
    )
    assert float(points[0][0]) > 0


def test_the_second_moment_is_summed_in_float64():
    """In float32 the small vector would be lost next to the large one."""
    moment = reference.second_moment([torch.tensor([1e5]), torch.tensor([1.0])])
    assert moment.dtype == torch.float64
    assert float(moment) == (1e10 + 1) / 2
