"""Networks of the field that a fast path can get wrong: each is right against a loop of autograd,
or rejected.

Each row is a small network, adapted from a public bug report or written to defeat a check.
"""

import copy
import re
import warnings

import examples
import pytest
import torch
from examples import perceptron
from plain_loop import built, require_own_gradients
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

import nads_core as nc
from nads_core.networks.ensembles import Ensemble

SHAPE = (1, 6, 6)


class Net(nn.Module):
    """Two layers; ``forward`` is a function of the network and its input."""

    def __init__(self, forward, outputs=10, **layers):
        super().__init__()
        self.first = nn.Linear(36, 24)
        self.last = nn.Linear(24, outputs)
        self.function = forward
        for name, layer in layers.items():
            setattr(self, name, layer)

    def features(self, x):
        return torch.tanh(self.first(x.flatten(1)))

    def forward(self, x):
        return self.function(self, x)


def layers(*after, bias=None, outputs=1):
    network = perceptron(36, 24, outputs).extend(after)
    if bias is not None:
        nn.init.constant_(network[3].bias, bias)
    return network


def computed(factory, num_networks=256, **options):
    options = {"symmetries": (), "debiasing": "subtract"} | options
    return examples.compute(factory, num_networks, SHAPE, **options)


# --- last layers

# Networks whose output is not linear in the weights of a last layer, or not the result of one.


def hooked(change):
    network = layers(outputs=10)
    network[3].register_forward_hook(lambda module, inputs, result: change(result))
    return network


def signed_gradients():
    network = layers(outputs=10)
    network[1].register_full_backward_hook(
        lambda layer, of_inputs, of_outputs: (of_inputs[0].sign(),)
    )
    return network


def scaled_column(net, x):
    y = net.last(net.features(x))
    y[:, 0] *= x.flatten(1)[:, 0]
    return y


def clamped_data(net, x):
    y = net.last(net.features(x))
    y.data.clamp_(-0.1, 0.1)
    return y


def recurrent(net, x):
    h = net.features(x)
    for _ in range(3):
        h = net.last(torch.tanh(h))
    return h


class Casting(nn.Linear):
    """A layer as timm has it, which casts its weights to the type of its input."""

    def forward(self, x):
        return F.linear(x, self.weight.to(x.dtype), self.bias.to(x.dtype))


class Cosine(nn.Linear):
    """A classifier by angles: the norms of its rows do not matter."""

    def forward(self, x):
        return 4 * F.linear(F.normalize(x), F.normalize(self.weight))


class Shaped(nn.Linear):
    """A layer that insists on its number of outputs."""

    def forward(self, x):
        if len(self.weight) != self.out_features:
            raise RuntimeError
        return super().forward(x)


class Paired(nn.Linear):
    """A layer that returns its bias beside its result, and is called with its input by name."""

    def forward(self, hidden):
        return F.linear(hidden, self.weight), self.bias


def ending_in(last):
    return Net(lambda net, x: net.last(net.features(x)), last=last)


NOT_LINEAR = {
    "a cosine classifier": lambda: ending_in(Cosine(24, 10)),
    "a subclass with a fixed number of rows": lambda: ending_in(Shaped(24, 10)),
    "a pair": lambda: Net(lambda net, x: net.last(hidden=net.features(x))[0], last=Paired(24, 10)),
    "weight norm": lambda: ending_in(nn.utils.parametrizations.weight_norm(nn.Linear(24, 10))),
    "ReLU in place, mostly off": lambda: layers(nn.ReLU(inplace=True), bias=-0.4),
    "softmax by a hook": lambda: hooked(lambda y: y.softmax(1)),
    "a column in place": lambda: Net(scaled_column),
    "applied three times": lambda: Net(recurrent, 24),
    "its weight before it": lambda: Net(
        lambda net, x: net.last(net.features(x) * net.last.weight.mean().sign())
    ),
    "gradients behind a hook": signed_gradients,
    "values behind autograd": lambda: Net(clamped_data),
    "two of its outputs": lambda: Net(lambda net, x: net.last(net.features(x))[:, :2]),
    "its number of rows": lambda: Net(
        lambda net, x: net.last(net.features(x) / len(net.last.weight)), outputs=2
    ),
}


def rejecting_readouts(factory, evaluation="loop"):
    """Raise unless an ensemble has no readouts, and gradients of its own."""
    ensemble = Ensemble(factory, SHAPE, dtype="float64", evaluation=evaluation)
    assert ensemble.num_features == 0
    require_own_gradients(ensemble, factory)


@pytest.mark.parametrize("name", NOT_LINEAR)
def test_a_last_layer_is_one_only_if_the_output_is_linear_in_it(name):
    rejecting_readouts(NOT_LINEAR[name])


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("a column in place", "last .*in place"),
        ("a cosine classifier", "not the product of last"),
        ("a subclass with a fixed number of rows", "last cannot be replaced .*RuntimeError"),
    ],
)
def test_the_provenance_says_why_there_is_one_readout(name, reason):
    nads = computed(NOT_LINEAR[name], 16)
    assert re.search(reason, nads.provenance["one_readout"])
    assert "readouts=1" in nads.provenance["estimator"]


LINEAR = {
    "plain": lambda: layers(outputs=10),
    "without a bias": lambda: nn.Sequential(
        nn.Flatten(), nn.Linear(36, 24), nn.Tanh(), nn.Linear(24, 2, bias=False)
    ),
    "a large bias": lambda: layers(bias=1e3),
    "a hook that looks": lambda: hooked(lambda y: None),
    "a subclass": lambda: ending_in(Casting(24, 10)),
    "a keyword": lambda: Net(lambda net, x: net.last(input=net.features(x))),
    "its first layer twice": lambda: Net(
        lambda net, x: net.last(net.features(net.features(x).repeat(1, 2)[:, :36]))
    ),
}


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("name", LINEAR)
def test_a_last_linear_layer_has_readouts(name, dtype):
    ensemble = Ensemble(LINEAR[name], SHAPE, dtype=dtype)
    assert ensemble.num_features == 24
    if dtype == "float64":
        require_own_gradients(ensemble, LINEAR[name], readouts=(2, 3, 8))


@pytest.mark.parametrize(
    "factory",
    [
        lambda: torch.compile(layers(outputs=10), backend="eager"),
        lambda: nn.Sequential(
            torch.compile(layers(outputs=24), backend="eager"), nn.Linear(24, 10)
        ),
    ],
)
def test_a_compiled_network_is_evaluated_as_it_was(factory):
    ensemble = Ensemble(factory, SHAPE)
    assert ensemble.num_features == 24 and type(ensemble.template) is nn.Sequential
    assert not any(hasattr(layer, "_orig_mod") for layer in ensemble.template.modules())


# --- other inputs of the batch


def embedded(layer, call):
    """Rows of the image are tokens (B, S, E), read by a layer that may expect (S, B, E)."""
    return Net(
        lambda net, x: net.last(call(net.layer, net.embed(x[:, 0])).mean(1)),
        embed=nn.Linear(6, 16),
        layer=layer,
        last=nn.Linear(16, 10),
    )


class ValueOnly(torch.autograd.Function):
    """The identity, whose gradient is centred over the batch."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return gradient - 0.5 * gradient.mean(0)


def normed(norm):
    return Net(lambda net, x: net.last(torch.tanh(net.norm(net.first(x.flatten(1))))), norm=norm)


def silent_branch(constant):
    """A branch over the batch that a factor near zero silences at initialisation."""
    net = Net(lambda net, x: net.last(net.features(x) + net.gain * net.features(x).mean(0)))
    net.gain = nn.Parameter(torch.full((24,), constant))
    return net


def of_batch(function):
    return Net(lambda net, x: net.last(function(net.features(x))))


def attend(layer, x):
    return layer(x, x, x)[0]


def adapting(net, x):
    """Adapt the last layer to the whole batch by one step."""
    h = net.features(x)
    (step,) = torch.autograd.grad(net.last(h).square().mean(), net.last.weight, create_graph=True)
    return F.linear(h, net.last.weight - step, net.last.bias)


def counting(net, x):
    net.calls = getattr(net, "calls", 0) + 1  # which changes no output
    h = net.features(x)
    return net.last(h - h.mean(0))


DEPENDENT = {
    "a mean, and an attribute that is only stored": (lambda: Net(counting), "last"),
    "BatchNorm without running statistics": (
        lambda: normed(nn.BatchNorm1d(24, track_running_stats=False)),
        "norm",
    ),
    "attention": (lambda: embedded(nn.MultiheadAttention(16, 2), attend), "layer"),
    "LSTM": (lambda: embedded(nn.LSTM(16, 16), lambda layer, x: layer(x)[0]), "layer"),
    "a tiny mean": (lambda: of_batch(lambda h: h + 1e-4 * h.mean(0)), "last"),
    "reshape": (lambda: of_batch(lambda h: h.T.reshape(len(h), -1)), "last"),
    "pairs": (
        lambda: of_batch(
            lambda h: h.view(-1, 2, 24).flip(1).flatten(0, 1) if len(h) % 2 == 0 else h
        ),
        "last",
    ),
    "a batch of one": (lambda: of_batch(lambda h: 2 * h if len(h) == 1 else h), "last"),
    "the first input": (lambda: of_batch(lambda h: h + h[:1]), "last"),
    "gradients alone": (
        lambda: Net(lambda net, x: net.last(torch.tanh(ValueOnly.apply(net.features(x))))),
        "",
    ),
    "a nearly silent branch": (lambda: silent_branch(1e-6), "last"),
    "a step over the batch": (lambda: Net(adapting), ""),
    "no float64": (lambda: of_batch(lambda h: (h + h.mean(0)) @ torch.eye(24)), "last"),
}


@pytest.mark.parametrize("evaluation", ["loop", "factory"])
@pytest.mark.parametrize("name", DEPENDENT)
def test_an_output_that_depends_on_the_batch_is_rejected(name, evaluation):
    factory, layer = DEPENDENT[name]
    with pytest.raises(ValueError, match=rf"other inputs of its batch.*\b{layer}"):
        Ensemble(factory, SHAPE, evaluation=evaluation)


FROM_SOME_SIZE_ON = {
    "a capacity of four": lambda h: torch.cat([h[:4], 0 * h[4:]]),
    "a mean of many": lambda h: h - h.mean(0) * (len(h) > 4),
}


@pytest.mark.parametrize("evaluation", ["loop", "factory"])
@pytest.mark.parametrize("name", FROM_SOME_SIZE_ON)
def test_the_inputs_of_one_network_are_tested_together(name, evaluation):
    def factory():
        return of_batch(FROM_SOME_SIZE_ON[name])

    Ensemble(factory, SHAPE, evaluation=evaluation)  # batches of four show nothing
    computed(factory, 8, estimator=nc.SmoothedGradient(4), evaluation=evaluation)
    for estimator in (None, nc.Dipole()):
        with pytest.raises(ValueError, match=r"other inputs of its batch.*\blast"):
            computed(factory, 8, estimator=estimator, evaluation=evaluation)


@pytest.mark.parametrize("evaluation", ["loop", "factory"])
@pytest.mark.parametrize(("sign", "count"), [(-1, 8), (1, 1_000)], ids=["first", "audits"])
def test_the_batch_is_tested_in_several_networks(sign, count, evaluation):
    def forward(net, x):
        h = net.features(x)
        mixed = sign * net.last.bias[0] * 24**0.5 > 0.6  # in one network of five
        return net.last(h - h.mean(0) * (mixed and len(h) > 4))

    with pytest.raises(ValueError, match=r"other inputs of its batch.*\blast"):
        computed(lambda: Net(forward), count, evaluation=evaluation)


def test_an_output_function_over_the_batch_is_rejected():
    with pytest.raises(ValueError, match="other inputs of its batch"):
        Ensemble(lambda: layers(outputs=10), SHAPE, output=lambda y: y.softmax(0)[:, 0])


def half_in_bfloat16(net, x):
    h = net.features(x).to(torch.bfloat16)
    return net.last((h @ h.new_ones(24, 24) / 24 + h).to(x.dtype))


INDEPENDENT = {
    "BatchNorm": lambda: normed(nn.BatchNorm1d(24)),
    "attention": lambda: embedded(nn.MultiheadAttention(16, 2, batch_first=True), attend),
    "sequence first": lambda: embedded(
        nn.LSTM(16, 16), lambda layer, x: layer(x.transpose(0, 1))[0].transpose(0, 1)
    ),
    "squeeze": lambda: Net(lambda net, x: net.last(net.features(x)).squeeze(), outputs=1),
    "half in bfloat16": lambda: Net(half_in_bfloat16),
}


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("name", INDEPENDENT)
def test_an_output_of_one_input_is_accepted(name, dtype):
    Ensemble(INDEPENDENT[name], SHAPE, dtype=dtype)


@pytest.mark.parametrize("name", ["resnet18", "densenet121", "vit_b_16", "efficientnet_b0"])
@pytest.mark.slow
def test_large_networks_are_accepted_in_all_types(name):
    models = pytest.importorskip("torchvision.models")
    shape = (3, 224, 224) if name.startswith("vit") else (3, 64, 64)
    with warnings.catch_warnings(action="ignore"):
        for dtype in ("float32", "bfloat16"):
            Ensemble(getattr(models, name), shape, dtype=dtype)


# --- forward passes that differentiate, and messages


def energy(net, x):
    x = x.flatten(1)
    x = x if x.requires_grad else x.detach().requires_grad_()
    return torch.autograd.grad(torch.tanh(net.first(x)).square().sum(), x, create_graph=True)[0]


def adapting_each(net, x):
    """Adapt the last layer to each input by one step."""
    outputs = []
    for h in net.features(x):
        (step,) = torch.autograd.grad(
            net.last(h).square().sum(), net.last.weight, create_graph=True
        )
        outputs.append(F.linear(h, net.last.weight - 0.1 * step, net.last.bias))
    return torch.stack(outputs)


def functional_gradient(net, x):
    """The gradient by torch.func of a network with layers that the library replaces."""
    gradient = torch.func.grad(lambda image: torch.tanh(net.pool(net.conv(image[None]))).sum())
    return torch.func.vmap(gradient)(x).flatten(1)


@pytest.mark.parametrize("evaluation", ["loop", "factory"])
@pytest.mark.parametrize("forward", [energy, adapting_each, functional_gradient])
def test_a_forward_pass_may_take_gradients(forward, evaluation):
    rejecting_readouts(
        lambda: Net(forward, conv=nn.Conv2d(1, 2, 3), pool=nn.MaxPool2d(2)), evaluation
    )


def reentrant():
    return Net(lambda net, x: net.last(checkpoint(net.features, x, use_reentrant=True)))


class InAList(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = [nn.Linear(36, 24), nn.Linear(24, 10)]

    def forward(self, x):
        return self.layers[1](torch.tanh(self.layers[0](x.flatten(1))))


class MadeInForward(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = []

    def forward(self, x):
        self.layers = self.layers or [nn.Linear(36, 10)]
        return self.layers[0](x.flatten(1))


class MadeBehind(MadeInForward):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(36, 36)

    def forward(self, x):
        return super().forward(torch.tanh(self.first(x.flatten(1))))


def on_meta():
    with torch.device("meta"):
        return layers()


@pytest.mark.filterwarnings("ignore:None of the inputs have requires_grad")
@pytest.mark.parametrize(
    ("factory", "names"),
    [
        (on_meta, "meta.*to_empty"),
        (reentrant, "use_reentrant=False"),
        (InAList, r"layers\[0\].weight"),
        (MadeInForward, "__init__, not in forward"),
        (MadeBehind, "created in forward"),
    ],
)
def test_an_error_names_what_to_do(factory, names):
    with pytest.raises(ValueError, match=names):
        computed(factory, 8)


def test_inference_mode_is_named():
    with torch.inference_mode(), pytest.raises(ValueError, match="inference_mode"):
        computed(layers, 8)


# --- networks that hardly respond, and weights that hardly vary


def narrow(depth):
    """Units of ReLU that are mostly off: about 5 % of the networks respond at depth 3."""
    parts = [nn.Flatten(), nn.Linear(36, 2), nn.ReLU()]
    for _ in range(depth):
        parts += [nn.Linear(2, 2), nn.ReLU()]
        nn.init.constant_(parts[-2].bias, -0.1)
    return nn.Sequential(*parts, nn.Linear(2, 1))


@pytest.mark.filterwarnings("ignore:a few networks hold")
def test_networks_that_mostly_ignore_their_input_are_accepted():
    with pytest.warns(UserWarning, match="respond"):
        nads = computed(lambda: narrow(3), 256, equal_weights=True, debiasing="none")
    share = 1 - nads.provenance["silent_networks"]
    assert 0.01 < share < 0.15
    assert float(nads.eigenvalues.double().sum()) == pytest.approx(share, abs=0.01)


TEMPLATE = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(64, 10))


def copied():
    network = copy.deepcopy(TEMPLATE)
    nn.init.normal_(network[0].weight, 0, 0.02)
    return network


def test_weights_that_do_not_vary_are_counted():
    with pytest.warns(UserWarning, match=r"\b36\b.*\b654\b"):
        nads = computed(copied, 32)
    assert nads.provenance["fixed_weights"] == 4 + 650
    assert "fixed_weights" not in computed(layers, 32).provenance


# --- directions in weight space


def frozen_first():
    network = layers(outputs=10)
    network[1].requires_grad_(False)
    return network


class Spectral(nn.Module):
    """Complex weights of a Fourier layer."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(6, 4, dtype=torch.cfloat))
        self.phase = nn.Parameter(torch.randn(1, dtype=torch.cfloat))
        self.last = nn.Linear(36, 10)

    def forward(self, x):
        z = torch.fft.irfft2(torch.fft.rfft2(x[:, 0]) * self.weight * self.phase, s=(6, 6))
        return self.last(torch.tanh(z).flatten(1))


class Permuted(nn.Module):
    """A permutation of the pixels, kept as a parameter."""

    def __init__(self):
        super().__init__()
        self.order = nn.Parameter(torch.randperm(36), requires_grad=False)
        self.last = nn.Linear(36, 10)

    def forward(self, x):
        return self.last(torch.tanh(x.flatten(1)[:, self.order]))


class Checkpointed(Net):
    """A network whose first layer is evaluated again in each backward pass."""

    def __init__(self):
        super().__init__(lambda net, x: net.last(checkpoint(net.features, x, use_reentrant=False)))


@pytest.mark.parametrize("evaluation", ["loop", "factory"])
@pytest.mark.parametrize(
    "factory", [frozen_first, Spectral, Permuted, Checkpointed, lambda: normed(nn.BatchNorm1d(24))]
)
def test_mixed_derivatives_move_trainable_weights_alone(factory, evaluation):
    ensemble = Ensemble(factory, SHAPE, dtype="float64", evaluation=evaluation)
    state = {name: tensor[:3] for name, tensor in ensemble.draw(0).items()}
    probes = {name: tensor[:3] for name, tensor in ensemble.probes(0, 2).items()}
    images = ensemble.randn(0, 1, 4, *SHAPE)[:3].requires_grad_()
    found = ensemble.mixed_derivatives(state, images.detach(), probes)
    for row, network in enumerate(built(ensemble, factory)):
        trained = {name: network.get_parameter(name).requires_grad_() for name in probes}
        slopes = torch.autograd.grad(
            network(images[row])[:, 0].sum(), [*trained.values()], create_graph=True
        )
        # Real and imaginary parts are two weights
        moved = sum(
            (slope.conj() * probes[name][row]).real.sum()
            for name, slope in zip(probes, slopes, strict=True)
        )
        (expected,) = torch.autograd.grad(moved, images)
        torch.testing.assert_close(found[row], expected[row])
    kinds = {n: p.dtype.is_complex for n, p in factory().named_parameters() if p.requires_grad}
    assert {name: probe.dtype.is_complex for name, probe in probes.items()} == kinds


def test_networks_without_trainable_weights_have_no_mixed_derivative():
    with pytest.raises(ValueError, match="requires a gradient"):
        computed(lambda: layers().requires_grad_(False), 8, estimator=nc.MixedDerivative(2))
