"""Factories whose networks differ in more than weights: an error names the difference, or every
network is rebuilt.
"""

import numpy as np
import pytest
import torch
from torch import nn

import nads_core as nc
from nads_core.networks.ensembles import Ensemble
from nads_core.networks.initialisation import Initialisation, state_of
from nads_core.runtime.seeds import seed_sequence, seeded

SHAPE = (1, 4, 4)
OPTIONS = {"image_shape": SHAPE, "device": "cpu", "progress": False}


class Model(nn.Module):
    """A small network, whose subclasses draw something else besides its weights."""

    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(16, 8), nn.Linear(8, 1)
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


class CoinAttribute(Model):
    """A discrete attribute, which can be the same for two seeds."""

    def draw(self):
        self.coin = (torch.rand(()) < 1 / 16).float()

    def change(self, x):
        return x * (1 + self.coin)


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


class Coin(Model):
    """A discrete buffer, rarely 1."""

    def draw(self):
        self.register_buffer("coin", (torch.rand(()) < 1 / 16).float())

    def change(self, x):
        return x * (1 + self.coin)


class CoinFromPython(Coin):
    """The same, by way of one of Python's numbers."""

    def draw(self):
        self.register_buffer("coin", torch.tensor(1.0 if torch.rand(()).item() < 1 / 16 else 0.0))


class PermutationBuffer(Model):
    def draw(self):
        self.register_buffer("order", torch.randperm(16))

    def change(self, x):
        return x[:, self.order]


def deep_or_shallow() -> nn.Module:
    hidden = [nn.Linear(16, 16), nn.Tanh()] * int(torch.randint(1, 4, ()))
    return nn.Sequential(nn.Flatten(), *hidden, nn.Linear(16, 1))


def directly(factory, num_networks, seed=0):
    """The networks of an ensemble that calls its factory, one after another."""
    ensemble = Ensemble(factory, SHAPE, seed=seed, device="cpu", evaluation="factory")
    for block, used in ensemble.blocks(num_networks):
        with seeded(seed_sequence(seed, block, 0)):
            networks = [factory() for _ in range(ensemble.block_size)]
        yield from networks[:used]


@pytest.mark.parametrize(
    ("factory", "named"),
    [
        (MaskAttribute, r"masks\[0\] \(a tensor as a plain attribute\)"),
        (PermutationAttribute, "order"),
        (CoinAttribute, "coin"),
        (Activation, r"act \(class\) \(Tanh or ReLU\)"),
        (NumpyFactor, "factor"),
        (CoinFromPython, r"coin \(a buffer"),
    ],
)
def test_what_differs_besides_weights_is_named(factory, named):
    with pytest.raises(ValueError, match=rf"{named}.*register_buffer.*evaluation='factory'"):
        nc.compute_nads(factory, 1_000, **OPTIONS)


@pytest.mark.parametrize("kind", [Coin, PermutationBuffer])
def test_buffers_that_are_drawn_vary_however_they_come_out(kind):
    drawn = Initialisation.of(kind)
    assert not drawn.unsure and set(drawn.varying) == set(state_of(drawn.network))
    ensemble = Ensemble(kind, SHAPE, device="cpu")
    if kind is Coin:
        coins = torch.cat([ensemble.draw(block)["coin"] for block in range(8)])
        assert coins.mean() == pytest.approx(1 / 16, abs=0.04) and set(coins.tolist()) == {0.0, 1.0}


def test_what_is_constant_after_all_does_not_vary():
    class Constants(Model):
        def draw(self):
            self.register_buffer("filled", torch.randn(3).fill_(2))
            self.register_buffer("shape", torch.ones_like(self.first.weight))
            self.register_buffer("own", torch.randn(3, generator=torch.Generator().manual_seed(0)))
            with torch.random.fork_rng():
                torch.manual_seed(0)
                self.register_buffer("forked", torch.randn(3))
            self.register_parameter("zero", nn.Parameter(torch.randn(3)))
            nn.init.normal_(self.zero, std=0)
            nn.init.zeros_(self.first.bias)
            self.last.weight.data.mul_(0)
            nn.init.normal_(self.last.weight[:, :4])

    result = Initialisation.of(Constants)
    assert set(result.varying) == {"first.weight", "last.weight", "last.bias"} and not result.unsure


def test_an_attribute_that_follows_from_weights_is_no_difference():
    def factory():
        return nn.Sequential(
            nn.Flatten(), nn.utils.spectral_norm(nn.Linear(16, 4)), nn.Tanh(), nn.Linear(4, 1)
        )

    with_old_norm = Ensemble(factory, SHAPE, device="cpu")
    rebuilt = Ensemble(factory, SHAPE, device="cpu", evaluation="factory")
    images = with_old_norm.randn(0, 1, 2, *SHAPE)
    assert torch.equal(
        with_old_norm.input_gradients(with_old_norm.draw(0), images),
        rebuilt.input_gradients(rebuilt.draw(0), images),
    )


@pytest.mark.parametrize(
    "factory", [MaskAttribute, PermutationAttribute, Activation, deep_or_shallow]
)
def test_rebuilt_networks_are_the_factorys(factory):
    estimator = nc.SmoothedGradient(4)
    options = {"dtype": torch.float64, "debiasing": "none", "symmetries": (), **OPTIONS}
    nads = nc.compute_nads(factory, 70, estimator=estimator, evaluation="factory", **options)
    ensemble = Ensemble(factory, SHAPE, device="cpu", dtype=torch.float64, evaluation="factory")
    inputs = torch.cat(
        [estimator.draw(ensemble, block).inputs[:used] for block, used in ensemble.blocks(70)]
    )
    expected = torch.zeros(16, 16, dtype=torch.float64)
    for network, images in zip(directly(factory, 70), inputs, strict=True):
        network.double().eval()
        for module in network.modules():  # which .double() leaves as they are
            for name, value in list(vars(module).items()):
                if isinstance(value, torch.Tensor) and value.is_floating_point():
                    setattr(module, name, value.double())
        images.requires_grad_()
        gradient = torch.autograd.grad(network(images).sum(), images)[0].mean(0).flatten()
        expected += gradient.outer(gradient) / 70
    assert torch.allclose(
        torch.linalg.eigvalsh(expected).flip(0), nads.eigenvalues.double(), rtol=1e-4, atol=1e-7
    )
    assert nads.provenance["evaluation"] == "factory"


def test_rebuilding_gives_what_the_ensemble_gives(tmp_path):
    def orthogonal():  # which is not replayed
        network = Model()
        nn.init.orthogonal_(network.first.weight)
        return network

    for estimator in (nc.SmoothedGradient(4), nc.Dipole(), nc.MixedDerivative(4)):
        options = OPTIONS | {"estimator": estimator, "symmetries": ("flip_rows",)}
        loop = nc.compute_nads(orthogonal, 200, **options)
        path = tmp_path / f"{type(estimator).__name__}.ckpt"
        nc.compute_nads(orthogonal, 100, evaluation="factory", checkpoint=path, **options)
        rebuilt = nc.compute_nads(orthogonal, 200, evaluation="factory", checkpoint=path, **options)
        for name in ("directions", "eigenvalues", "certainty"):
            assert torch.equal(getattr(loop, name), getattr(rebuilt, name))
        with pytest.raises(ValueError, match="belongs to another computation.*evaluation"):
            nc.compute_nads(orthogonal, 300, checkpoint=path, **options)


def test_what_rebuilding_cannot_do():
    with pytest.raises(ValueError, match="readouts=1"):
        nc.compute_nads(
            Model, 64, estimator=nc.SmoothedGradient(4, readouts=2), evaluation="factory", **OPTIONS
        )
    with pytest.raises(ValueError, match="cannot be stacked"):
        Ensemble(Model, SHAPE, evaluation="factory").stacked_state(2)
    fixed = Model()
    with pytest.raises(ValueError, match="same weights twice"):
        Ensemble(lambda: fixed, SHAPE, evaluation="factory")


class Rotary(Model):
    """A fixed complex buffer, as Llama's freqs_cis."""

    def draw(self):
        self.register_buffer("turns", torch.polar(torch.ones(8), torch.arange(8.0)))

    def change(self, x):
        turned = torch.view_as_complex(x.unflatten(1, (8, 2)).contiguous()) * self.turns
        return torch.view_as_real(turned).flatten(1).to(x.dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_complex_buffers_stay_complex(dtype):
    ensemble = Ensemble(Rotary, SHAPE, device="cpu", dtype=dtype)
    assert ensemble.template.turns.dtype == (
        torch.complex64 if dtype == torch.float32 else torch.complex128
    )
    images = ensemble.randn(0, 1, 2, *SHAPE)
    state = ensemble.draw(0)
    for index in range(4):
        network = Rotary()
        network.load_state_dict(
            {name: tensor[index] for name, tensor in state.items()}, strict=False
        )
        assert torch.allclose(
            ensemble.outputs(state, images)[index].float(),
            network(images[index].float())[:, 0],
            atol=1e-6,
        )
