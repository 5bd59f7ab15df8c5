"""Factories whose networks differ in more than weights: an error names the difference, or every
network is rebuilt.
"""

import itertools
from functools import partial

import examples
import numpy as np
import pytest
import torch
from convergence import normal
from examples import perceptron, same
from plain_loop import built, require_own_gradients
from torch import nn

import nads_core as nc
from nads_core.networks.ensembles import Ensemble
from nads_core.networks.initialisation import Initialisation
from nads_core.networks.self_check import differing

SHAPE = (1, 4, 4)
compute = partial(examples.compute, image_shape=SHAPE, device="cpu")


class Model(nn.Module):
    """A small network, whose subclasses draw something else besides its weights."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(16, 8)
        self.last = nn.Linear(8, 1)
        self.draw()

    def draw(self):
        pass

    def change(self, x):
        return x

    def forward(self, x):
        return self.last(torch.tanh(self.first(self.change(x.flatten(1)))))


class MaskAttribute(Model):
    def draw(self):
        self.masks = [torch.randn(16)]

    def change(self, x):
        return x * self.masks[0]


class PermutationAttribute(Model):
    def draw(self):
        self.order = torch.randperm(16)

    def change(self, x):
        return x[:, self.order]


class Activation(Model):
    def draw(self):
        self.act = nn.ReLU() if torch.rand(()) < 1 / 16 else nn.Tanh()

    def change(self, x):
        return self.act(x)


class NumpyFactor(Model):
    def draw(self):
        self.factor = float(np.random.rand())

    def change(self, x):
        return self.factor * x


class CountedMask(MaskAttribute):
    """Masks follow from the number of the call, not from random numbers."""

    numbers = itertools.count()

    def draw(self):
        self.masks = [torch.cos(next(self.numbers) * torch.arange(16.0))]


class InTheBackwardPass(CountedMask):
    """Values do not depend on the attribute, gradients do."""

    def change(self, x):
        return x.detach() + self.masks[0] * (x - x.detach())


class BehindALargeConstant(CountedMask):
    """The mask is in no attribute, and what it changes is small beside the output."""

    def draw(self):
        super().draw()
        (mask,) = self.__dict__.pop("masks")
        self.change = lambda x: mask * x

    def forward(self, x):
        return 1e5 + super().forward(x)


class Coin(Model):
    """A discrete buffer, rarely 1."""

    def draw(self):
        self.register_buffer("coin", (torch.rand(()) < 1 / 16).float())

    def change(self, x):
        return x * (1 + self.coin)


class ByAddress(Model):
    """It keeps what it made of its weights, as long as these have one address and version."""

    key = None

    def forward(self, x):
        weight = self.first.weight
        place = weight.data_ptr(), weight._version
        if self.key != place:
            self.key, self.ready = place, weight.round(decimals=1)
        return self.last(torch.tanh(x.flatten(1) @ self.ready.T))


class RunningMaximum(Model):
    def draw(self):
        self.register_buffer("largest", torch.zeros(()))

    def change(self, x):
        self.largest = torch.maximum(self.largest, x.detach().abs().max())
        return x / self.largest


class SparseAttribute(Model):
    def draw(self):
        self.table = (torch.rand(16, 16) < 0.2).float().to_sparse()

    def change(self, x):
        return x @ self.table


def rarely_wide():
    return perceptron(16, 8 + int(torch.rand(()) < 0.3))


@pytest.mark.parametrize("factory", [CountedMask, InTheBackwardPass])
def test_what_differs_besides_weights_is_named(factory):
    with pytest.raises(ValueError, match=r"masks\[0\].*register_buffer.*evaluation='factory'"):
        Ensemble(factory, SHAPE)


def test_a_large_constant_hides_no_difference():
    with pytest.raises(ValueError, match="not in an attribute"):
        Ensemble(BehindALargeConstant, SHAPE)


def test_a_sparse_attribute_is_built_by_the_factory():
    assert Ensemble(SparseAttribute, SHAPE).evaluation == "factory"


def test_what_torchs_seed_does_not_fix_is_rejected():
    with pytest.raises(ValueError, match=r"torch does not seed"):
        compute(NumpyFactor, 1_000)


def test_what_is_kept_for_the_place_of_weights_is_noticed_before_any_network_counts():
    with pytest.raises(ValueError, match="ready"):
        Ensemble(ByAddress, SHAPE, device="cpu")
    options = {"dtype": torch.float64, "evaluation": "factory"}
    require_own_gradients(Ensemble(ByAddress, SHAPE, device="cpu", **options), ByAddress)


def test_what_earlier_inputs_change_is_named():
    with pytest.raises(ValueError, match="largest"):
        compute(RunningMaximum, 16)


def test_recurrent_layers_differ_in_their_weights_alone():
    assert not differing(nn.LSTM(3, 4), nn.LSTM(3, 4))


def test_buffers_that_are_drawn_vary_however_they_come_out():
    ensemble = Ensemble(Coin, SHAPE, device="cpu")
    coins = [
        float(network.coin) for block in range(2) for network in built(ensemble, Coin, block, 64)
    ]
    assert np.mean(coins) == pytest.approx(1 / 16, abs=0.08) and set(coins) == {0.0, 1.0}


def test_what_is_constant_after_all_does_not_vary():
    class Constants(Model):
        def draw(self):
            self.register_buffer("filled", torch.empty(3).normal_().fill_(2))
            self.register_buffer("shape", torch.ones_like(self.first.weight))
            self.register_parameter("zero", nn.Parameter(torch.empty(3)))
            nn.init.normal_(self.zero, std=0)
            nn.init.zeros_(self.first.bias)
            self.last.weight.data.mul_(0)

    result = Initialisation.of(Constants)
    assert set(result.varying) == {"first.weight", "last.bias"} and result.steps is not None


def own_generator():
    network = Model()
    network.first.weight.data.normal_(generator=torch.Generator().manual_seed(0))
    return network


def seeded_in_between():
    network = Model()
    with torch.random.fork_rng():
        torch.manual_seed(0)
        nn.init.normal_(network.first.weight)
    return network


@pytest.mark.parametrize("factory", [own_generator, seeded_in_between])
def test_weights_of_another_generator_stay_as_they_are(factory):
    assert "first.weight" not in Initialisation.of(factory).varying
    require_own_gradients(Ensemble(factory, SHAPE, dtype="float64"), factory)


def table_of_own_generator():
    network = Model()
    table = normal(*network.first.weight.shape)
    network.register_buffer("table", table + 1)
    return network


def table_seeded_in_between():
    network = Model()
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network.register_buffer("table", torch.randn(network.first.weight.shape) + 1)
    return network


@pytest.mark.parametrize("factory", [table_of_own_generator, table_seeded_in_between])
def test_a_table_that_is_the_same_in_all_networks_does_not_end_the_replay(factory):
    result = Initialisation.of(factory)
    assert result.steps is not None and "table" not in result.varying


def with_old_norm():
    """Its weight is an attribute, which follows from a parameter and buffers."""
    normed = nn.utils.spectral_norm(nn.Linear(16, 4))
    return nn.Sequential(nn.Flatten(), normed, nn.Tanh(), nn.Linear(4, 1))


@pytest.mark.parametrize(
    ("factory", "evaluation"),
    [
        (MaskAttribute, "factory"),
        (PermutationAttribute, None),
        (rarely_wide, None),
        (Activation, None),
        (with_old_norm, None),
    ],
)
def test_networks_are_the_factorys(factory, evaluation):
    ensemble = Ensemble(factory, SHAPE, device="cpu", dtype=torch.float64, evaluation=evaluation)
    assert ensemble.evaluation == "factory"
    require_own_gradients(ensemble, factory, 1)


def test_rebuilding_gives_what_the_ensemble_gives(tmp_path):
    def orthogonal():  # which is not replayed
        network = Model()
        nn.init.orthogonal_(network.first.weight)
        return network

    for estimator in (nc.SmoothedGradient(4), nc.Dipole(), nc.MixedDerivative(4)):
        options = {"estimator": estimator, "symmetries": ("flip_rows",)}
        loop = compute(orthogonal, 200, **options)
        path = tmp_path / f"{type(estimator).__name__}.ckpt"
        compute(orthogonal, 100, evaluation="factory", checkpoint=path, **options)
        rebuilt = compute(orthogonal, 200, evaluation="factory", checkpoint=path, **options)
        assert same(loop, rebuilt)


def test_what_rebuilding_cannot_do():
    with pytest.raises(ValueError, match="readouts=1"):
        compute(Model, 64, estimator=nc.SmoothedGradient(4, readouts=2), evaluation="factory")


class Rotary(Model):
    """A fixed complex buffer, as Llama's freqs_cis."""

    def draw(self):
        self.register_buffer("turns", torch.polar(torch.ones(8), torch.arange(8.0)))

    def change(self, x):
        turned = torch.view_as_complex(x.unflatten(1, (8, 2)).contiguous()) * self.turns
        return torch.view_as_real(turned).flatten(1).to(x.dtype)


def test_complex_buffers_stay_complex():
    single, double = (
        Ensemble(Rotary, SHAPE, device="cpu", dtype=t) for t in ("float32", "float64")
    )
    assert single.template.turns.dtype == torch.complex64
    require_own_gradients(double, Rotary)
