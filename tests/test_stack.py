"""Networks that a GPU evaluates together, here on the CPU: each is what it is by itself."""

from dataclasses import replace

import cloudpickle
import pytest
import torch
from examples import convnet, perceptron, prepared, reads, small_network
from test_estimators import ESTIMATORS
from torch import nn
from torch.testing import assert_close

import nads_core as nc
from nads_core.networks.network import Network
from nads_core.networks.stack import Stack, Stacking

SMOOTHED = nc.SmoothedGradient(4)


def orthogonal():
    network = perceptron(64, 9)
    nn.init.orthogonal_(network[1].weight)
    return network


@pytest.mark.parametrize(
    ("factory", "estimator"),
    [(orthogonal, SMOOTHED), *((small_network, estimator) for estimator in ESTIMATORS)]
    + [([convnet() for _ in range(9)], SMOOTHED)],
)
def test_a_stack_equals_one_network_at_a_time(factory, estimator):
    run = prepared(factory, estimator=estimator)
    together = replace(run, stacking=Stacking.of(run.networks))
    assert (together.stacking.steps is None) == (factory is not small_network)
    (stack,) = together.stacking.batches(range(9))
    assert isinstance(stack, Stack)
    assert_close(together.vectors(range(9)), run.vectors(range(9)), rtol=1e-7, atol=1e-10)
    assert_close(together.vectors(range(5, 9)), run.vectors(range(5, 9)), rtol=1e-7, atol=1e-10)


def of_some_width():
    return perceptron(64, 8 + int(torch.rand(()) < 0.1))


def masked():
    network = perceptron(64)
    network.mask = torch.randn(64)
    return network


def test_unequal_structures_are_evaluated_one_by_one():
    networks = prepared(of_some_width).networks
    wide = [index for index in range(64) if networks.build(index)[1].out_features == 9]
    assert wide and min(wide) > 2
    run = prepared(of_some_width, estimator=SMOOTHED)
    together = replace(run, stacking=Stacking.of(networks))
    kinds = [type(one) for index in (0, wide[0]) for one in together.stacking.batches([index])]
    assert kinds == [Stack, Network]
    assert_close(together.vectors(range(64)), run.vectors(range(64)), rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize(
    "factory",
    [
        masked,
        lambda: nn.Sequential(*perceptron(64), reads()),
        lambda: nn.Sequential(nn.Flatten(), SHARED, nn.Linear(8, 1)),
    ],
    ids=["an attribute", "reads values", "a common layer"],
)
def test_what_cannot_be_stacked(factory):
    assert Stacking.of(prepared(factory).networks) is None


SHARED = nn.Linear(64, 8)


def test_a_factory_that_reads_its_weights_is_called():
    """A replay of the operations of one network would be that of others, with its choice."""

    def factory():
        network = perceptron(64)
        network[1].weight.data.mul_(1 + float(torch.rand(())))
        return network

    networks = prepared(factory).networks
    stacking = Stacking.of(networks)
    assert stacking.steps is None
    (stack,) = stacking.batches(range(4))
    weights = torch.stack([networks.build(index)[1].weight for index in range(4)])
    assert_close(stack.state["1.weight"], weights.double())


def test_workers_get_what_evaluates_networks_together():
    run = prepared(convnet, estimator=SMOOTHED)
    together = replace(run, stacking=Stacking.of(run.networks))
    content = cloudpickle.dumps(together)
    assert len(content) < 20_000
    again = cloudpickle.loads(content)
    assert torch.equal(again.vectors(range(3)), together.vectors(range(3)))
