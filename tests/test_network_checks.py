"""What is asked of the first networks: each check rejects one network, with the value that was
found, its cause and the remedy, and accepts its neighbour.
"""

import copy
import random
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from examples import Applied, Net, Recurrent, behind, compute, convnet, perceptron, prepared
from torch import nn
from torch.utils.checkpoint import checkpoint

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


def copies_drawn_anew():
    first = plain()

    def factory():
        network = copy.deepcopy(first)
        network[3].reset_parameters()
        return network

    return factory


def drawn_again_in_place():
    first = cached()

    def factory():
        network = first()
        for layer in (1, 3):
            network[layer].reset_parameters()
        return network

    return factory


def seeded_itself():
    torch.manual_seed(3)
    return plain()


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


def dead(count):
    """Return a factory whose first networks do not respond."""
    networks = Networks(convnet, SHAPE)
    seeds = {networks.seed_of(index, WEIGHTS) for index in range(count)}
    return lambda: Constant(float(torch.initial_seed() not in seeds))


def zero_head():
    network = plain()
    nn.init.zeros_(network[3].weight)
    return network


def even(more=0.0):
    """A function of the moduli of its input's Fourier coefficients, or of more."""
    moduli = Applied(lambda x: torch.fft.rfft(x).abs() + more * x[:, :5])
    return nn.Sequential(moduli, *perceptron(5, 16))


class Implicit(nn.Module):
    """A fixed point that is iterated until the whole batch has converged."""

    def __init__(self, tolerance):
        super().__init__()
        self.first, self.again = nn.Linear(64, 24), nn.Linear(24, 24, bias=False)
        self.last = nn.Linear(24, 10)
        nn.init.normal_(self.again.weight, std=0.15)
        self.tolerance = tolerance

    def forward(self, x):
        u = self.first(x.flatten(1))
        z = torch.zeros_like(u)
        with torch.no_grad():
            for _ in range(200):
                before, z = z, torch.tanh(self.again(z) + u)
                if (z - before).norm() < self.tolerance * z.norm():
                    break
        return self.last(torch.tanh(self.again(z) + u))


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


def checkpointed(net, x):
    return net.last(checkpoint(net.features, x, use_reentrant=True))


def in_a_list():
    network = plain()
    network[2].layers = [nn.Linear(8, 8)]
    network[2].register_forward_hook(lambda layer, inputs, y: layer.layers[0](y))
    return network


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


def squared_by(function):
    return lambda: nn.Sequential(
        nn.Flatten(), nn.Linear(64, 24), Applied(function), nn.Linear(24, 1)
    )


def squared(*options):
    return squared_by(lambda x: Square.apply(x, *options))


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
    "seeded itself": (seeded_itself, "same weights"),
    "a generator of its own": (of_a_generator(), r"1\.weight.*global generators"),
    "an attribute by a counter": (counted(), "plain attribute.*global generators"),
    "moving statistics": (ending_in(Drifting(True)), "buffer 4.table changes"),
    "dropped layers": (
        behind(lambda h: h * (random.random() > 0.5)),
        {"seed": 1},
        "draws random numbers in eval mode.*dropout",
    ),
    "weights without values": (lambda: plain().to("meta"), "meta"),
    "reentrant checkpoints": (lambda: Net(checkpointed), "use_reentrant"),
    # Each input for itself: the value, the layer, the cause
    "batch statistics": (lambda: normed(False), r"0\.\d.*'norm'.*batch norm"),
    "a mean of many": (shifted(0.5, 4), r"batch of 16.*'last' \(Linear\) mixes"),
    "rows before images": (lambda: Recurrent(batch_first=False), "batch_first"),
    "gradients alone": (
        behind(lambda h: ValueOnly.apply(h).tanh()),
        "the network mixes",
    ),
    "a stopping rule": (lambda: Implicit(1e-2), "stopping rule"),
    # The output depends on the input
    "a constant": (Constant, "first 128 networks does not depend"),
    "a head of zeros": (zero_head, r"\(all zeros: 3.weight\).*init.normal_"),
    "tiny gradients": (ending_in(scaling(1e-37)), "e-3.*dtype='float64'"),
    "even": (even, ROW, r"f\(-x\) = f\(x\).*PointGradient"),
    # Second derivatives
    "a square": (squared(False, False), MIXED, "second derivatives.*%.*saved tensors"),
    "frozen weights": (lambda: plain().requires_grad_(False), MIXED, "there are none"),
    "given frozen ones": ([plain().requires_grad_(False)], MIXED, "there are none"),
}
ACCEPTED = {
    "drawn again in place": (drawn_again_in_place(),),
    "copies with a new head": (copies_drawn_anew(),),
    "dropout": (ending_in(nn.Dropout()),),
    "a mean of more than there are": (shifted(0.5, 4), FEW),
    "layers in a list": (in_a_list,),
    "squeezed": (lambda: Net(lambda net, x: net.last(net.features(x)).squeeze(), 1),),
    "half in bfloat16": (behind(lambda h: h.to(torch.bfloat16).to(h)),),
    "a strict stopping rule": (lambda: Implicit(1e-5),),
    "rounding of the batch": (shifted(1e-5),),
    "one of many responds": (dead(20),),
    "tiny gradients in float64": (ending_in(scaling(1e-37)), {"dtype": "float64"}),
    "even at a point": (even, ROW | POINT),
    "even without opposite inputs": (
        even,
        ROW | {"estimator": nc.SmoothedGradient(4, antithetic=False)},
    ),
    "nearly even": (lambda: even(0.3), ROW),
    "a right square": (squared(False, True), MIXED),
    "a right squared ReLU": (squared(True, True), MIXED),
    "a wrong one that is not used": (squared(True, False),),
    "a table of the first call": (ending_in(Drifting(False)),),
    "an estimator of one's own": (convnet, {"estimator": Own(), "num_directions": 64}),
}


@pytest.mark.filterwarnings("ignore:Lazy modules", "ignore:None of the inputs")
@pytest.mark.parametrize("kind", REJECTED)
def test_what_is_wrong_with_a_factory_is_named(kind):
    factory, *options, shown = REJECTED[kind]
    with pytest.raises(Exception, match=f"(?s){shown}"):
        compute(factory, 8, **dict(*options))


@pytest.mark.filterwarnings("ignore:.*do not respond")
@pytest.mark.parametrize("kind", ACCEPTED)
def test_its_neighbours_are_accepted(kind):
    factory, *options = ACCEPTED[kind]
    nads = compute(factory, 40 if kind == "one of many responds" else 8, **dict(*options))
    assert nads.eigenvalues[0] > 0


def test_inference_mode_is_named():
    with torch.inference_mode(), pytest.raises(ValueError, match="inference_mode"):
        compute(plain, 8)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("factory", [convnet, lambda: normed(True)])
def test_ordinary_networks_are_accepted_in_all_types(factory, dtype):
    assert prepared(factory, SHAPE, dtype=dtype).networks.dtype == getattr(torch, dtype)


def test_mixed_derivatives_are_those_of_right_functions():
    """B03: with operations on saved tensors the trace is that of PyTorch's own square."""
    ours, theirs = (
        compute(factory, 16, dtype="float64", **MIXED)
        for factory in (squared(False, True), squared_by(torch.square))
    )
    torch.testing.assert_close(ours.eigenvalues, theirs.eigenvalues)


# --- networks that hardly respond, and noise that hides a signal


def narrow(depth):
    """Units of ReLU that are mostly off: about 5 % of the networks respond at depth 3."""
    parts = [nn.Flatten(), nn.Linear(36, 2), nn.ReLU()]
    for _ in range(depth):
        parts += [nn.Linear(2, 2), nn.ReLU()]
        nn.init.constant_(parts[-2].bias, -0.1)
    return nn.Sequential(*parts, nn.Linear(2, 1))


def test_networks_that_mostly_ignore_their_input_are_counted():
    with pytest.warns(UserWarning, match="respond"):
        nads = compute(lambda: narrow(3), 256, (1, 6, 6), estimator=nc.SmoothedGradient())
    assert 0.01 < 1 - nads.provenance["silent_networks"] < 0.15


def siren():
    layers = []
    for inputs, bound in ((32, (6 / 32) ** 0.5 / 30), (64, 1 / 64)):
        layers = [nn.Linear(inputs, 32), Applied(lambda x: torch.sin(30 * x)), *layers]
        nn.init.uniform_(layers[0].weight, -bound, bound)
    return nn.Sequential(nn.Flatten(), *layers, nn.Linear(32, 1))


def test_noise_of_inputs_invents_no_energy_and_is_named():
    """B01: the trace with 16 inputs is that with 128, and the remedy is more inputs."""
    with pytest.warns(UserWarning, match="noise of the inputs.*num_inputs"):
        few = compute(siren, 128, symmetries=())
    with_many = nc.SmoothedGradient(256, readouts=8)
    many = compute(siren, 128, symmetries=(), estimator=with_many)
    trace = float(many.eigenvalues.sum())
    noise = float(few.eigenvalues.abs().sum())
    assert abs(float(few.eigenvalues.sum()) - trace) < 0.1 * noise
    assert (few.eigenvalues < 0).any() and not few.certainty.any()
