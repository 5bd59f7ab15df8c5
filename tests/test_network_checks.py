"""What is asked of the first networks: each check rejects one network, with the value that was
found, its cause and the remedy, and accepts its neighbour.
"""

import random
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from examples import (
    Applied,
    Net,
    Recurrent,
    behind,
    compute,
    convnet,
    numbered,
    perceptron,
    prepared,
)
from torch import nn

import nads_core as nc

SHAPE = (1, 8, 8)


def plain(gain=1.0):
    network = perceptron(64, 8, 10)
    network[1].weight.data.mul_(gain)
    return network


def cached():
    networks = []

    def factory():
        networks[:] = networks or [plain()]
        return networks[0]

    return factory


def drawn_again_in_place():
    first = cached()

    def factory():
        network = first()
        for layer in (1, 3):
            network[layer].reset_parameters()
        return network

    return factory


def of_a_generator():
    generator = np.random.default_rng(0)
    return lambda: plain(float(generator.random()))


def counted():
    calls = iter(range(10**6))

    def factory():
        network = plain()
        network.append(scaling(1 + next(calls)))
        return network

    return factory


def scaling(factor):
    return Applied(lambda x: x * factor)


class Drifting(nn.Module):
    """Statistics that move in eval mode, too; or a table that is made at the first call."""

    def __init__(self, moves):
        super().__init__()
        self.moves = moves
        self.register_buffer("table", torch.zeros(10) if moves else None)

    def forward(self, x):
        if self.moves:
            self.table.mul_(1 - 1e-6).add_(1e-6 * x.detach().mean(0))
        elif self.table is None:
            self.table = torch.arange(10) / 10
        return x - self.table


@dataclass(frozen=True)
class Own(nc.PointGradient):
    """An estimator of one's own, with a number of readouts that can be "auto"."""

    readouts: int | str = "auto"


def ending_in(*layers):
    return lambda: nn.Sequential(*plain(), *layers)


class Constant(nn.Linear):
    """A function of zero times the input, whose networks differ."""

    def __init__(self, factor=0.0):
        super().__init__(64, 1)
        self.factor = factor

    def forward(self, x):
        return self.factor * super().forward(x.flatten(1)) + self.bias


def zero_head():
    network = plain()
    nn.init.zeros_(network[3].weight)
    return network


def even(more=0.0):
    """A function of the moduli of its input's Fourier coefficients, or of more."""
    moduli = Applied(lambda x: torch.fft.rfft(x).abs() + more * x[:, :5])
    return nn.Sequential(moduli, *perceptron(5, 16))


def shifted(factor, size=0):
    return behind(lambda h: h - factor * h.mean(0) * (len(h) > size))


class ValueOnly(torch.autograd.Function):
    """The identity, whose gradient is centred over the batch."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return gradient - 0.5 * gradient.mean(0)


def normed(tracked):
    layer = nn.BatchNorm1d(24, track_running_stats=tracked)
    return Net(lambda net, x: net.last(torch.tanh(net.norm(net.first(x.flatten(1))))), norm=layer)


class Square(torch.autograd.Function):
    """The square, with a wrong second derivative."""

    @staticmethod
    def forward(ctx, x):
        ctx.slope = 2 * x
        return x.square()

    @staticmethod
    def backward(ctx, gradient):
        return gradient * ctx.slope


def of_features(function):
    return lambda: nn.Sequential(
        nn.Flatten(), nn.Linear(64, 24), Applied(function), nn.Linear(24, 1)
    )


MIXED = {"estimator": nc.MixedDerivative()}
POINT = {"estimator": nc.PointGradient()}
FEW = {"estimator": nc.SmoothedGradient(4)}
ROW = {"image_shape": (8,)}

REJECTED = {  # what the message shows
    # The factory, the shape and the output
    "a network": (plain(), "lambda: MyNet.*got Sequential"),
    "a text from the factory": (lambda: "net", "nn.Module, got .*str"),
    "lazy layers": (lambda: nn.Sequential(nn.Flatten(), nn.LazyLinear(1)), "azy"),
    "a wrong shape": (
        lambda: plain(),
        {"image_shape": (1, 9, 9)},
        r"\(16, 1, 9, 9\).* a wrapper of one",
    ),
    "maps of features": (lambda: nn.Conv2d(1, 1, 3), r"\(16, 1, 6, 6\): .*output"),
    "a function without batch": (plain, {"output": lambda y: y.sum()}, r"shape \(\)"),
    "complex outputs": (
        ending_in(),
        {"output": lambda y: y[:, 0].cfloat()},
        "complex64",
    ),
    "NaN": (ending_in(scaling(np.nan)), "network 0 .*NaN.*16 of 16"),
    # Readouts
    "readouts without a field": (
        convnet,
        {"estimator": type("Bare", (nc.PointGradient,), {"readouts": "auto"})()},
        "Bare is 'auto'.*field readouts",
    ),
    "no number of readouts": (
        convnet,
        {"estimator": Own(readouts=0.5)},
        "readouts .*0.5",
    ),
    # Two networks differ, and one is fixed by its seed
    "a cached network": (cached(), "same weights for networks 0 and 1"),
    "a generator of its own": (of_a_generator(), r"1\.weight.*global generators"),
    "an attribute by a counter": (counted(), "plain attribute.*global generators"),
    "moving statistics": (ending_in(Drifting(True)), "buffer 4.table changes"),
    "dropped layers": (
        behind(lambda h: h * (random.random() > 0.5)),
        {"seed": 1},
        "draws random numbers in eval mode.*dropout",
    ),
    "weights without values": (lambda: plain().to("meta"), "meta"),
    # Each input for itself: the value, the layer, the cause
    "batch statistics": (lambda: normed(False), r"0\.\d.*'norm'.*batch norm"),
    "a mean of many": (shifted(0.02, 4), r"batch of 16.*'last' \(Linear\) mixes"),
    "rows before images": (lambda: Recurrent(batch_first=False), "batch_first"),
    "gradients alone": (
        behind(lambda h: ValueOnly.apply(h).tanh()),
        "the network mixes",
    ),
    # The output depends on the input
    "a constant": (Constant, "first 128 networks does not depend"),
    "a head of zeros": (zero_head, r"\(all zeros: 3.weight\).*init.normal_"),
    "tiny gradients": (ending_in(scaling(1e-37)), "e-3.*dtype='float64'"),
    "even": (even, ROW, r"f\(-x\) = f\(x\).*PointGradient"),
    # Second derivatives
    "a square": (of_features(Square.apply), MIXED, "second derivatives.*%.*saved tensors"),
    "frozen weights": (lambda: plain().requires_grad_(False), MIXED, "there are none"),
    "given frozen ones": ([plain().requires_grad_(False)], MIXED, "there are none"),
}
ACCEPTED = {
    "drawn again in place": (drawn_again_in_place(),),
    "dropout": (ending_in(nn.Dropout()),),
    "a mean of more than there are": (shifted(0.5, 4), FEW),
    "squeezed": (lambda: Net(lambda net, x: net.last(net.features(x)).squeeze(), 1),),
    "half in bfloat16": (behind(lambda h: h.to(torch.bfloat16).to(h)),),
    "rounding of the batch": (shifted(1e-5),),
    "tiny gradients in float64": (ending_in(scaling(1e-37)), {"dtype": "float64"}),
    "even at a point": (even, ROW | POINT),
    "even without opposite inputs": (
        even,
        ROW | {"estimator": nc.SmoothedGradient(4, antithetic=False)},
    ),
    "nearly even": (lambda: even(0.3), ROW),
    "a squared ReLU": (of_features(lambda x: x.relu().square()), MIXED),
    "a wrong one that is not used": (of_features(Square.apply),),
    "a table of the first call": (ending_in(Drifting(False)),),
    "an estimator of one's own": (convnet, {"estimator": Own(), "num_directions": 64}),
}


@pytest.mark.filterwarnings("ignore:Lazy modules", "ignore:None of the inputs")
@pytest.mark.parametrize("kind", REJECTED)
def test_what_is_wrong_with_a_factory_is_named(kind):
    factory, *options, shown = REJECTED[kind]
    with pytest.raises(Exception, match=f"(?s){shown}"):
        compute(factory, 8, **dict(*options))


@pytest.mark.parametrize("kind", ACCEPTED)
def test_its_neighbours_are_accepted(kind):
    factory, *options = ACCEPTED[kind]
    assert compute(factory, 8, **dict(*options)).eigenvalues[0] > 0


def test_inference_mode_is_named():
    with torch.inference_mode(), pytest.raises(ValueError, match="inference_mode"):
        compute(plain, 8)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("factory", [convnet, lambda: normed(True)])
def test_ordinary_networks_are_accepted_in_all_types(factory, dtype):
    assert prepared(factory, SHAPE, dtype=dtype).networks.dtype == getattr(torch, dtype)


def test_networks_that_ignore_their_input_are_counted():
    with pytest.warns(UserWarning, match="50 % .*do not respond"):
        nads = compute(numbered(lambda i: Constant(float(i >= 20))), 40)
    assert nads.provenance["silent_networks"] == 0.5 and nads.eigenvalues[0] > 0
