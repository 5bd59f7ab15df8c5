"""Last layers of which others are drawn: only where f is linear in one, and one draw around 0 made
its weight.
"""

import re

import pytest
import torch
from convergence import assert_mean
from examples import Net, compute, perceptron, prepared
from plain_loop import contributions
from torch import nn
from torch.nn import functional as F
from torch.testing import assert_close

import nads_core as nc
from nads_core.networks.network import Network

SHAPE = (1, 8, 8)


def layers():
    return perceptron(64, 24, 10)


def drawn(initialise):
    """Return a factory whose last layer is initialised by a function of its weight."""

    def factory():
        network = layers()
        initialise(network[3].weight)
        return network

    return factory


def hooked(change):
    network = layers()
    network[3].register_forward_hook(lambda module, inputs, result: change(result))
    return network


def net(read, **layers):
    """Return a factory of networks whose logits are a function of their layers and features."""
    return lambda: Net(
        lambda net, x: read(net, net.features(x)),
        **{name: make() for name, make in layers.items()},
    )


class Cosine(nn.Linear):
    """A classifier by angles: the norms of its rows do not matter."""

    def forward(self, x):
        return 4 * F.linear(F.normalize(x), F.normalize(self.weight))


def checkerboard(weight):
    with torch.no_grad():
        weight.mul_((torch.arange(24) % 2) * 2 - 1)


ONE = {  # what the provenance says
    "a subclass": (
        net(lambda net, h: net.last(h), last=lambda: Cosine(24, 10)),
        "not that of a linear layer",
    ),
    "softmax by a hook": (lambda: hooked(lambda y: y.softmax(1)), "not that"),
    "its weight before it": (
        net(lambda net, h: net.last(h * net.last.weight.mean().sign())),
        "not that",
    ),
    "a norm before it": (
        net(lambda net, h: net.last(h / net.last.weight.norm())),
        "not that",
    ),
    "signs": (drawn(checkerboard), r"3\.weight is not made by one draw"),
    "drawn around 1": (drawn(lambda w: nn.init.normal_(w, 1.0)), "not made by one draw"),
    "one row alone": (drawn(lambda w: nn.init.normal_(w[0])), "not made by one draw"),
    "few features": (lambda: perceptron(64, 5), "5 features"),
}
EIGHT = {  # with the standard deviation of the weights
    "PyTorch's own": (layers, (3 * 24) ** -0.5),
    "without a bias": (
        net(lambda net, h: net.last(h), last=lambda: nn.Linear(24, 2, bias=False)),
        72**-0.5,
    ),
    "normal": (drawn(lambda w: nn.init.normal_(w, std=0.3)), 0.3),
    "uniform": (drawn(lambda w: nn.init.uniform_(w, -0.6, 0.6)), 0.6 / 3**0.5),
    "a hook that looks": (lambda: hooked(lambda y: None), 72**-0.5),
    "a shared backbone": (
        lambda: nn.Sequential(nn.Flatten(), BACKBONE, nn.Linear(24, 3)),
        72**-0.5,
    ),
}
BACKBONE = nn.Linear(64, 24)


@pytest.mark.parametrize("kind", ONE)
def test_another_last_layer_is_not_drawn_where_f_is_not_linear_in_it(kind):
    factory, reason = ONE[kind]
    nads = compute(factory, 16)
    assert nads.provenance["readouts"] == 1 and "readouts=1" in nads.provenance["estimator"]
    assert re.search(reason, nads.provenance["one_readout"])
    assert nads.provenance["one_readout"] in repr(nads)
    with pytest.raises(ValueError, match="readouts=8 is not possible"):
        compute(factory, 16, estimator=nc.SmoothedGradient(readouts=8))
    silent = compute(factory, 16, estimator=nc.SmoothedGradient(readouts=1))
    assert "one_readout" not in silent.provenance


@pytest.mark.parametrize("kind", EIGHT)
def test_last_layers_have_the_deviation_with_which_they_are_drawn(kind):
    factory, std = EIGHT[kind]
    run = prepared(factory, SHAPE, nc.SmoothedGradient(4, readouts="auto"))
    assert run.estimator.readouts == 8 and run.no_readout == ""
    assert run.networks.readout.std == pytest.approx(std, rel=1e-3)
    expected = [contributions(run.networks, run.estimator, index) for index in range(2)]
    assert_close(run.vectors(range(2)), torch.stack(expected), rtol=1e-8, atol=1e-10)


def test_readouts_are_orthogonal_and_change_no_expectation():
    run = prepared(layers, SHAPE, nc.SmoothedGradient(4, readouts=8))
    rows = torch.stack([Network(run.networks, index).rows(8) for index in range(200)])
    gram = rows.mT @ rows
    assert_close(gram, torch.eye(8).double().expand_as(gram) / 3, rtol=0, atol=1e-6)
    products = (rows[:, None] * rows[:, :, None]).mean(-1)  # (networks, F, F)
    assert_mean(products, torch.eye(24) / 72)
    energies = run.vectors(range(300)).mean(1).square().sum(-1).mean(1)
    one = prepared(layers, SHAPE, nc.SmoothedGradient(4)).vectors(range(300)).mean(1)
    assert_mean(energies - one.square().sum(-1)[:, 0], 0.0)
