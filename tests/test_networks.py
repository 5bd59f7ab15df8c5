"""Every network is itself: whatever differs between networks besides their weights, and whatever
they do in their forward pass, is right against a plain loop.
"""

import random
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from examples import (
    Applied,
    Net,
    Recurrent,
    Unreturned,
    compute,
    failing,
    perceptron,
    prepared,
    same,
)
from plain_loop import contributions
from torch import nn
from torch.testing import assert_close
from torch.utils.checkpoint import checkpoint

import nads_core as nc
from nads_core.networks.network import OutputAt

SHAPE = (1, 8, 8)
SMOOTHED, MIXED = nc.SmoothedGradient(4), nc.MixedDerivative(4)


def scaled(net, x):
    return net.last(net.features(x)) * net.factor


def require_own(factory, estimator=SMOOTHED, shape=SHAPE, count=6, **options):
    """Raise unless vectors are those of a plain loop over modules of the factory."""
    run = prepared(factory, shape, estimator, **options)
    expected = [contributions(run.networks, run.estimator, index) for index in range(count)]
    assert_close(run.vectors(range(count)), torch.stack(expected), rtol=1e-6, atol=1e-10)
    return run


class Workspace(nn.Sequential):
    """A network that returns a part of the same memory at every call."""

    results = torch.zeros(99, 1).double()

    def forward(self, x):
        if torch.is_grad_enabled():
            return super().forward(x)
        self.results[: len(x)] = super().forward(x)
        return self.results[: len(x)]


class Spectral(nn.Module):
    """Complex weights of a Fourier layer, and a permutation among the parameters."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8, 5, dtype=torch.cfloat))
        self.order = nn.Parameter(torch.randperm(8), False)
        self.last = nn.Linear(64, 10)

    def forward(self, x):
        z = torch.fft.rfft2(x[:, 0, self.order]).to(torch.cfloat) * self.weight
        return self.last(torch.tanh(torch.fft.irfft2(z, s=(8, 8))).flatten(1).to(x))


def writing(net, x):
    x -= x.mean((1, 2, 3), keepdim=True)
    return net.last(torch.tanh(net.first(x.relu_().flatten(1))))


def functional_gradient(net, x):
    """The gradient by torch.func of a network with layers that the library replaces."""
    gradient = torch.func.grad(lambda image: torch.tanh(net.pool(net.conv(image[None]))).sum())
    return torch.func.vmap(gradient)(x).flatten(1)


def energy(net, x):
    x = x if x.requires_grad else x.detach().requires_grad_()
    return torch.autograd.grad(net.features(x).sum(), x, create_graph=True)[0].flatten(1)


def frozen_first():
    network = perceptron(64, 24, 10)
    network[1].requires_grad_(False)
    return network


def with_a_factor():
    return Net(scaled, factor=random.random())


UNUSUAL = {  # many as in bug reports of other projects
    "a factor of numpy": lambda: Net(scaled, factor=np.random.rand()),
    "a factor of Python": with_a_factor,
    "a workspace": lambda: Workspace(*perceptron(64)),
    "train returns nothing": lambda: Unreturned(*perceptron(64)),
    "one number": lambda: perceptron(64).append(nn.Flatten(0)),
    "a recurrent layer": Recurrent,
    "complex": Spectral,
    "writes to its input": lambda: Net(writing),
    "batch norm": lambda: nn.Sequential(nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), *perceptron(108)),
    "a functional gradient": lambda: Net(
        functional_gradient, conv=nn.Conv2d(1, 2, 3), pool=nn.MaxPool2d(2)
    ),
    "scripted": lambda: torch.jit.script(perceptron(64)),
    # Lightning-AI/pytorch-lightning#4487
    "a network of gradients": lambda: Net(energy),
    # pytorch/xla#8729
    "activation checkpoints": lambda: Net(
        lambda net, x: net.last(checkpoint(net.features, x, use_reentrant=False))
    ),
}


@pytest.mark.filterwarnings("ignore:.torch.jit.script:FutureWarning")
@pytest.mark.parametrize("kind", UNUSUAL)
def test_unusual_networks_have_the_gradients_of_a_plain_loop(kind):
    require_own(UNUSUAL[kind], count=3)


@pytest.mark.parametrize("factory", [frozen_first, Spectral, UNUSUAL["batch norm"]])
def test_mixed_derivatives_move_trainable_weights_that_vary(factory):
    run = require_own(factory, MIXED, count=3)
    trained = {name for name, p in factory().named_parameters() if p.requires_grad}
    assert set(run.networks.varying) == {name for name in trained if not name.startswith("1.")}


@pytest.mark.parametrize(
    "estimator", [nc.SmoothedGradient(4, readouts=3), nc.Dipole(0.1)], ids=repr
)
def test_sequences_and_rows_of_a_table(estimator):
    require_own(lambda: nn.Sequential(nn.Conv1d(2, 4, 3), *perceptron(28)), estimator, (2, 9))
    require_own(lambda: perceptron(7), estimator, (7,))


# --- nothing else moves


def test_layers_that_networks_share_stay_as_they_are():
    backbone = nn.Linear(64, 5)
    weight = backbone.weight.detach().clone()

    def factory():
        return nn.Sequential(nn.Flatten(), backbone, nn.Tanh(), nn.Linear(5, 64), nn.Linear(64, 1))

    compute(factory, 32, dtype="float64")
    assert torch.equal(backbone.weight, weight) and backbone.weight.requires_grad
    assert backbone.weight.dtype == torch.float32


def test_draws_of_other_threads_change_no_network():
    """A thread that draws from Python's generator meanwhile, as those of Dask do."""
    calls = iter(range(9_999))

    def disturbed():
        if next(calls) % 7 == 5:
            random.random()  # by another thread
        return with_a_factor()

    options = {"estimator": SMOOTHED, "symmetries": ()}
    assert same(compute(disturbed, 16, **options), compute(with_a_factor, 16, **options))


def test_global_random_generators_and_types_are_left_alone():
    def states():
        return torch.get_rng_state().tolist(), np.random.get_state()[1].tolist(), random.getstate()

    def with_a_default():
        torch.set_default_dtype(torch.float64)
        return UNUSUAL["a factor of numpy"]()

    before = states()
    compute(with_a_default, 20)
    assert states() == before and torch.get_default_dtype() == torch.float32


def test_a_network_that_fails_is_named():
    with pytest.raises(ValueError, match="network 21 of .*NaN"):
        compute(failing(lambda y: y * np.nan), 99)
    with pytest.raises(ZeroDivisionError) as caught:
        compute(failing(lambda y: 1 / 0), 99)
    assert "network 21 of" in caught.value.__notes__[0]


# --- given networks


@pytest.mark.parametrize("estimator", [MIXED, SMOOTHED], ids=repr)
def test_given_networks_are_evaluated_and_left_as_they_are(estimator):
    networks = prepared(perceptron_of_64).networks
    given = [networks.build(index).train() for index in range(20)]
    given[3].requires_grad_(False)
    before = [{k: v.clone() for k, v in network.state_dict().items()} for network in given]
    options = {"estimator": estimator, "dtype": "float64", "symmetries": ()}
    nads = compute(given, 2_000, seed=networks.seed, **options)
    assert same(nads, compute(perceptron_of_64, 20, seed=networks.seed, **options))
    for index, (network, state) in enumerate(zip(given, before, strict=True)):
        assert network.training
        assert all(map(torch.equal, network.state_dict().values(), state.values()))
        for parameter in network.parameters():
            assert parameter.dtype == torch.float32 and parameter.requires_grad == (index != 3)
    assert "20 given networks" in nads.name


def perceptron_of_64():
    return perceptron(64)


def test_of_given_networks_as_many_as_asked_for_count():
    given = [perceptron(64) for _ in range(20)]
    assert same(compute(given, 16), compute(given[:16], 99))
    facts = compute(given[:1], 16, estimator=nc.PointGradient()).provenance
    assert (facts["num_networks"], facts["readouts"], facts["symmetries"]) == (1, 1, [])
    with pytest.raises(ValueError, match="given"):
        compute(given, 16, estimator=nc.SmoothedGradient(readouts=2))


# --- f of whatever a network returns


def three_logits():
    return perceptron(64, 8, 3)


def wrapped(wrap):
    return three_logits().append(Applied(wrap))


def margin(logits):
    return logits[:, 0] - logits[:, 1]


def test_whatever_the_network_returns():
    options = {"estimator": nc.SmoothedGradient(4), "symmetries": ()}
    expected = compute(three_logits, 16, output=margin, **options)
    result = compute(
        lambda: wrapped(lambda y: (None, y)), 16, output=lambda y: margin(y[1]), **options
    )
    assert same(result, expected)
    assert "output is a function" in repr(compute(three_logits, 16, output=margin))
    expected = compute(three_logits, 16, output=2, **options)
    for factory, output in ((lambda: wrapped(lambda y: {"a": y}), "a.2"), (three_logits, "2")):
        assert same(compute(factory, 16, output=output, **options), expected)


def test_a_path_names_a_column():
    y = SimpleNamespace(a=(torch.arange(6.0).view(2, 3), torch.arange(2.0)))
    assert OutputAt("a.0.2")(y).tolist() == [2, 5] and OutputAt("a.0")(y).tolist() == [0, 3]
    assert OutputAt("a.1")(y).tolist() == [0, 1]
    rejected = {
        "a.1.1": "output 1 .*of 1",
        "a": "'a' ends at .*name one in",
        "a.9": "'9'",
        "a.0.x": "x' ends",
    }
    for wrong, shown in rejected.items():
        with pytest.raises(ValueError, match=shown):
            OutputAt(wrong)(y)
