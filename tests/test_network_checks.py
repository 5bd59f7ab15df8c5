"""What is asked of the first networks: each check rejects one network, with the value that was
found, its cause and the remedy, and accepts its neighbour.
"""

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from examples import Net, behind, compute, convnet, perceptron, prepared
from torch import nn
from torch.nn import functional as F

import nads_core as nc
from nads_core.networks.network import WEIGHTS, Networks

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
        network.append(Scaling(1 + next(calls)))
        return network

    return factory


class Scaling(nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def forward(self, x):
        return x * self.factor


class Drifting(nn.Module):
    """Statistics that move in eval mode, too."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(10))

    def forward(self, x):
        self.mean.lerp_(x.detach().mean(0), 1e-6)
        return x - self.mean


@dataclass(frozen=True)
class Own(nc.PointGradient):
    """An estimator of one's own, with a number of readouts that can be "auto"."""

    readouts: int | str = "auto"


class Random(nn.Module):
    def __init__(self, p):
        super().__init__()
        self.p = p

    def forward(self, x):
        return F.dropout(x, self.p)  # in eval mode, too


def ending_in(*layers):
    return lambda: nn.Sequential(*plain(), *layers)


class Constant(nn.Linear):
    """A function of zero times the input, whose networks differ."""

    def __init__(self, factor=0.0):
        super().__init__(64, 1)
        self.factor = factor

    def forward(self, x):
        return self.factor * super().forward(x.flatten(1)) + self.bias


def dead(count):
    """Return a factory whose first networks do not respond."""
    networks = Networks(convnet, SHAPE)
    seeds = {networks.seed_of(index, WEIGHTS) for index in range(count)}
    return lambda: Constant(float(torch.initial_seed() not in seeds))


def zero_head():
    network = plain()
    nn.init.zeros_(network[3].weight)
    return network


class Even(nn.Module):
    """A function of the moduli of its input's Fourier coefficients, or of more."""

    def __init__(self, more=0.0):
        super().__init__()
        self.layers = perceptron(5, 16)
        self.more = more

    def forward(self, x):
        return self.layers(torch.fft.rfft(x).abs() + self.more * x[:, :5])


def implicit(tolerance):
    """Return a factory of fixed points, iterated until the whole batch has converged."""

    def forward(net, x):
        u = net.first(x.flatten(1))
        z = 0 * u
        for _ in range(200):
            before, z = z, torch.tanh(net.again(z) + u)
            if (z - before).norm() < tolerance * z.norm():
                break
        return net.last(z)

    return lambda: Net(forward, again=nn.Linear(24, 24))


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
    """The square, or that of its positive part, with a wrong second derivative or a right one."""

    @staticmethod
    def forward(ctx, x, cut, right):
        y = x.relu() if cut else x
        ctx.slope = None if right else 2 * y
        ctx.cut = cut
        ctx.save_for_backward(x)
        return y.square()

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        slope = 2 * (x.relu() if ctx.cut else x) if ctx.slope is None else ctx.slope
        return gradient * slope, None, None


class Squared(nn.Module):
    def __init__(self, *options):
        super().__init__()
        self.options = options

    def forward(self, x):
        return Square.apply(x, *self.options)


def squared(*options):
    return lambda: nn.Sequential(
        nn.Flatten(), nn.Linear(64, 24), Squared(*options), nn.Linear(24, 1)
    )


MIXED = {"estimator": nc.MixedDerivative()}
FEW = {"estimator": nc.SmoothedGradient(4)}
ROW = {"image_shape": (8,)}

REJECTED = {  # what the message shows
    # The factory, the shape and the output
    "a network": (plain(), {}, TypeError, "lambda: MyNet.*got Sequential"),
    "no networks": ([], {}, TypeError, "got list"),
    "a text from the factory": (lambda: "net", {}, TypeError, "nn.Module, got .*str"),
    "lazy layers": (lambda: nn.Sequential(nn.Flatten(), nn.LazyLinear(1)), {}, Exception, "azy"),
    "a wrong shape": (lambda: plain(), {"image_shape": (1, 9, 9)}, ValueError, r"\(16, 1, 9, 9\)"),
    "maps of features": (lambda: nn.Conv2d(1, 1, 3), {}, ValueError, r"\(16, 1, 6, 6\): .*output"),
    "a column that is not there": (convnet, {"output": 3}, ValueError, "output 3 .*of 1 outputs"),
    "two numbers an input": (plain, {"output": lambda y: y[:, :2]}, ValueError, r"\(16, 2\)"),
    "complex outputs": (
        ending_in(),
        {"output": lambda y: y[:, 0].cfloat()},
        ValueError,
        "complex64",
    ),
    "NaN": (ending_in(Scaling(np.nan)), {}, ValueError, "network 0 .*NaN.*16 of 16"),
    # Readouts
    "readouts without a field": (
        convnet,
        {"estimator": type("Bare", (nc.PointGradient,), {"readouts": "auto"})()},
        TypeError,
        "Bare is 'auto'.*field readouts",
    ),
    "no number of readouts": (
        convnet,
        {"estimator": Own(readouts=0.5)},
        ValueError,
        "readouts .*0.5",
    ),
    # Two networks differ, and one is fixed by its seed
    "a cached network": (cached(), {}, ValueError, "same weights for networks 0 and 1"),
    "a generator of its own": (of_a_generator(), {}, ValueError, r"1\.weight.*global generators"),
    "an attribute by a counter": (counted(), {}, ValueError, "plain attribute.*global generators"),
    "moving statistics": (ending_in(Drifting()), {}, ValueError, "buffer 4.mean changes"),
    "dropout in eval mode": (ending_in(Random(0.5)), {}, ValueError, "eval mode.*dropout"),
    # Each input for itself: the value, the layer, the cause
    "batch statistics": (lambda: normed(False), {}, ValueError, r"0\.\d.*'norm'.*batch norm"),
    "a mean of many": (shifted(0.5, 4), {}, ValueError, r"batch of 16.*'last' \(Linear\) mixes"),
    "gradients alone": (
        behind(lambda h: ValueOnly.apply(h).tanh()),
        {},
        ValueError,
        "the network mixes",
    ),
    "a stopping rule": (implicit(1e-2), {}, ValueError, "stopping rule"),
    # The output depends on the input
    "a constant": (Constant, {}, ValueError, "first 128 networks does not depend"),
    "a head of zeros": (zero_head, {}, ValueError, r"\(3.weight is all zeros\).*init.normal_"),
    "tiny gradients": (ending_in(Scaling(1e-37)), {}, ValueError, "e-3.*dtype='float64'"),
    "even": (Even, ROW, ValueError, r"f\(-x\) = f\(x\).*PointGradient"),
    # Second derivatives
    "a square": (squared(False, False), MIXED, ValueError, "second derivatives.*%.*saved tensors"),
    "a squared ReLU": (squared(True, False), MIXED, ValueError, "second derivatives.*%"),
    "frozen weights": (lambda: plain().requires_grad_(False), MIXED, ValueError, "there are none"),
}
ACCEPTED = {
    "drawn again in place": (drawn_again_in_place(), {}),
    "running statistics": (lambda: normed(True), {}),
    "a mean of more than there are": (shifted(0.5, 4), FEW),
    "squeezed": (lambda: Net(lambda net, x: net.last(net.features(x)).squeeze(), 1), {}),
    "half in bfloat16": (behind(lambda h: h.to(torch.bfloat16).to(h)), {}),
    "a strict stopping rule": (implicit(1e-5), {}),
    "a very strict one": (implicit(1e-7), {"dtype": "float64"}),
    "rounding of the batch": (shifted(1e-5), {}),
    "tiny gradients in float64": (ending_in(Scaling(1e-37)), {"dtype": "float64"}),
    "even without opposite inputs": (
        Even,
        ROW | {"estimator": nc.SmoothedGradient(4, antithetic=False)},
    ),
    "nearly even": (lambda: Even(0.3), ROW),
    "a right square": (squared(False, True), MIXED),
    "a wrong one that is not used": (squared(True, False), {}),
    "an estimator of one's own": (convnet, {"estimator": Own(), "num_directions": 64}),
}


@pytest.mark.filterwarnings("ignore:Lazy modules")
@pytest.mark.parametrize("kind", REJECTED)
def test_what_is_wrong_with_a_factory_is_named(kind):
    factory, options, error, shown = REJECTED[kind]
    with pytest.raises(error, match=f"(?s){shown}"):
        compute(factory, 8, **options)


@pytest.mark.parametrize("kind", ACCEPTED)
def test_its_neighbours_are_accepted(kind):
    factory, options = ACCEPTED[kind]
    assert compute(factory, 8, **options).eigenvalues[0] > 0


def test_inference_mode_is_named():
    with torch.inference_mode(), pytest.raises(ValueError, match="inference_mode"):
        compute(plain, 8)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("factory", [convnet, lambda: normed(True), nc.RESNET18])
def test_ordinary_networks_are_accepted_in_all_types(factory, dtype):
    assert prepared(factory, SHAPE, dtype=dtype).networks.dtype == getattr(torch, dtype)


# --- networks that hardly respond, and noise that hides a signal


def test_networks_that_ignore_their_input_are_counted():
    with pytest.warns(UserWarning, match="respond"):
        nads = compute(dead(20), 40)
    assert nads.provenance["silent_networks"] == 0.5


def chaotic():
    layers = [nn.Flatten(), nn.Linear(64, 64)]
    for _ in range(5):
        layers += [nn.Tanh(), nn.Linear(64, 64)]
        nn.init.normal_(layers[-1].weight, std=6 / 8)
    return nn.Sequential(*layers, nn.Tanh(), nn.Linear(64, 1))


def test_noise_of_inputs_invents_no_energy_and_is_named():
    """B01: the trace with 16 inputs is that with 128, and the remedy is more inputs."""
    with pytest.warns(UserWarning, match="noise of the inputs.*num_inputs"):
        few = compute(chaotic, 128, symmetries=())
    with_many = nc.SmoothedGradient(256, readouts=8)
    many = compute(chaotic, 128, symmetries=(), estimator=with_many)
    trace = float(many.eigenvalues.sum())
    noise = float(few.eigenvalues.abs().sum())
    assert abs(float(few.eigenvalues.sum()) - trace) < 0.1 * noise
    assert (few.eigenvalues < 0).any() and not few.certainty.any()
