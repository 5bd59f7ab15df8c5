"""The playground's engine, in Node, against PyTorch and `compute_nads`."""

import base64
import json
import math
import shutil
import subprocess

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from nads_book.explorer import bundle
from nads_book.explorer.playground import CHOICES
from torch import nn
from torch.nn import functional as F

import nads_core as nc

DEFAULT = {
    "blocks": 2,
    "channels": 8,
    "kernel": 3,
    "pooling": "average",
    "activation": "relu",
    "head": "flat",
    "skip": False,
    "padding": "zeros",
}
CONFIGS = st.fixed_dictionaries({name: st.sampled_from(values) for name, values in CHOICES.items()})
PIXELS = 256
ACTIVATIONS = {"relu": nn.ReLU, "tanh": nn.Tanh, "none": nn.Identity}


class Skip(nn.Module):
    """A convolution that adds its input."""

    def __init__(self, convolution):
        super().__init__()
        self.convolution = convolution

    def forward(self, x):
        stride = self.convolution.stride[0]
        return self.convolution(x) + x[..., ::stride, ::stride]


def build(config, outputs=1):
    """Build what the chips describe."""
    layers = []
    inputs = 1
    side = 16
    channels = config["channels"]
    for _ in range(config["blocks"]):
        stride = 2 if config["pooling"] == "stride" else 1
        convolution = nn.Conv2d(
            inputs,
            channels,
            config["kernel"],
            stride=stride,
            padding=config["kernel"] // 2,
            padding_mode=config["padding"],
        )
        layers += [
            Skip(convolution) if config["skip"] else convolution,
            ACTIVATIONS[config["activation"]](),
        ]
        if config["pooling"] in ("average", "max"):
            layers.append(nn.AvgPool2d(2) if config["pooling"] == "average" else nn.MaxPool2d(2))
        side //= 1 if config["pooling"] == "none" else 2
        inputs = channels
    if config["head"] == "global":
        layers.append(nn.AdaptiveAvgPool2d(1))
        side = 1
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(channels * side**2, outputs))


def pack(values):
    return base64.b64encode(np.ascontiguousarray(values, dtype="<f4").tobytes()).decode()


def unpack(text, *shape):
    return (
        torch.from_numpy(np.frombuffer(base64.b64decode(text), "<f4").copy())
        .double()
        .reshape(shape)
    )


@pytest.fixture(scope="session")
def ask(tmp_path_factory):
    """Give a function that puts a question to the engine."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is missing")
    folder = tmp_path_factory.mktemp("engine")
    (folder / "package.json").write_text('{"type": "module"}', "utf8")
    shutil.copytree(bundle.SOURCES / "playground", folder / "playground")
    script = shutil.copy(bundle.FOLDER.parents[2] / "tests" / "playground.mjs", folder)
    command = [node, script, str(folder / "playground")]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:

        def question(name, **arguments):
            process.stdin.write(json.dumps({"name": name} | arguments) + "\n")
            process.stdin.flush()
            return json.loads(process.stdout.readline())

        yield question
        process.stdin.close()


def relative_error(found, expected):
    return ((found - expected).abs().max() / expected.abs().max()).item()


@given(CONFIGS, st.integers(0, 2**31), st.booleans())
def test_outputs_and_gradients_are_those_of_pytorch(ask, config, seed, plain):
    torch.manual_seed(seed)
    network = build(config, outputs=2).double()
    weights = torch.cat([parameter.detach().flatten() for parameter in network.parameters()])
    torch.nn.utils.vector_to_parameters(weights.float().double(), network.parameters())
    images = torch.randn(16, 1, 16, 16).double().requires_grad_()
    slopes = torch.randn(2, 16).double()  # of a loss with respect to the outputs
    features = network[:-1](images)
    readouts = torch.randn(3, features.shape[1]).double()

    outputs = network(images)
    by_weights = torch.autograd.grad(
        (outputs.T * slopes).sum(), list(network.parameters()), retain_graph=True
    )
    by_inputs = [
        torch.autograd.grad((features @ readout).sum(), images, retain_graph=True)[0]
        .view(2, 8, PIXELS)
        .mean(1)
        for readout in readouts
    ]

    found = ask(
        "passes",
        config=config,
        outputs=2,
        plain=plain,
        weights=pack(weights),
        images=pack(images.detach().flatten(1)),
        readouts=pack(readouts),
        dOutputs=pack(slopes),
    )
    assert relative_error(unpack(found["values"], 2, 16), outputs.T.detach()) < 1e-5
    assert relative_error(unpack(found["inputs"], 3, 2, PIXELS), torch.stack(by_inputs)) < 1e-5
    flat = torch.cat([gradient.flatten() for gradient in by_weights])
    assert relative_error(unpack(found["weights"], -1), flat) < 1e-5


def test_weights_have_pytorchs_distribution(ask):
    """In each layer the mean square is a third of the squared bound, 1 / fan in."""
    start = ask("training", config=DEFAULT, wave=[0, 1], seed=3, epochs=1)
    weights = unpack(start["weights"], -1)
    at = 0
    fan_in = 0
    for parameter in build(DEFAULT, outputs=2).parameters():
        part, at = weights[at : at + parameter.numel()], at + parameter.numel()
        if parameter.dim() > 1:
            fan_in = parameter[0].numel()  # that of the bias as well, which follows
        assert part.abs().max() <= fan_in**-0.5
        if len(part) > 50:
            share = 3 * fan_in * part.square().mean().item()
            assert abs(share - 1) < 5 * math.sqrt(
                0.8 / len(part)
            )  # the variance of (sqrt(3) u)^2 is 0.8
    assert at == len(weights)


def test_random_numbers_are_standard_normal_and_independent_of_each_other(ask):
    values = unpack(ask("random", count=2**16, seed=5), -1)
    assert abs(values.mean()) < 5 / 256 and abs(values.var() - 1) < 5 * math.sqrt(2) / 256
    assert abs(values.pow(4).mean() - 3) < 5 * math.sqrt(96) / 256
    for lag in (1, 2, 256, 4096):
        assert abs((values[lag:] * values[:-lag]).mean()) < 5 / 256
    other = unpack(ask("random", count=2**16, seed=6), -1)
    assert abs((values * other).mean()) < 5 / 256


def flips_and_transposes(config):
    """The symmetries of the networks: flips move what strides read."""
    flips = [()] if config["pooling"] == "stride" else [(), (1,), (2,), (1, 2)]
    return [lambda x, f=f, t=t: (x.mT if t else x).flip(f) for f in flips for t in (False, True)]


@pytest.mark.parametrize("pooling", ["average", "stride"])
def test_nads_and_energies_are_those_of_the_second_moment(ask, pooling):
    config = DEFAULT | {"pooling": pooling}
    found = ask("ensemble", config=config, networks=64, seed=1)
    halves = unpack(found["vectors"], 64, -1, 2, 16, 16)
    x, y = halves.flatten(0, 1).unbind(1)  # (networks * readouts, 16, 16)
    moment = torch.zeros(PIXELS, PIXELS, dtype=torch.float64)
    for turn in (turns := flips_and_transposes(config)):
        moment += turn(x).flatten(1).T @ turn(y).flatten(1) / len(x) / len(turns)
    moment = (moment + moment.T) / 2
    waves = nc.fourier_basis(16)[0].flatten(1).double()
    energies = (waves @ moment * waves).sum(1)
    assert relative_error(unpack(found["energies"], -1), energies) < 1e-5
    eigenvalues = torch.linalg.eigvalsh(moment).flip(0)[:8]
    assert relative_error(torch.tensor(found["eigenvalues"]), eigenvalues) < 1e-5
    directions = unpack(found["directions"], 8, PIXELS)
    assert (directions @ directions.T - torch.eye(8)).abs().max() < 1e-5
    assert relative_error(directions @ moment, eigenvalues[:, None] * directions) < 1e-4


def test_agreement_is_the_squared_cosine_of_two_runs_of_half_as_many_networks(ask):
    """Agreements of 6 runs for their first three NADs, against pairs of other runs."""
    config = DEFAULT | {"pooling": "max", "blocks": 1, "channels": 4}
    stated = []
    measured = []
    for seed in range(6):
        run = ask("ensemble", config=config, networks=128, seed=seed)
        stated += run["agreements"][:3]
        one, other = (
            unpack(
                ask("ensemble", config=config, networks=64, seed=10 + 2 * seed + half)[
                    "directions"
                ],
                8,
                PIXELS,
            )
            for half in range(2)
        )
        measured += (one[:3] @ other.T).square().max(1).values.tolist()
    assert abs(np.mean(stated) - np.mean(measured)) < 0.12


def test_no_direction_of_networks_without_preference_is_reproducible(ask):
    """All eigenvalues of these networks are equal: what a sample shows is chance."""
    config = {"activation": "none", "pooling": "none", "padding": "circular", "blocks": 1}
    for seed in range(3):
        run = ask("ensemble", config=DEFAULT | config, networks=400, seed=seed)
        assert max(run["agreements"]) < 0.5


ARCHITECTURES = {
    "default": {},
    "stride": {"pooling": "stride"},
    "comb": {"pooling": "stride", "head": "global"},
    "max, tanh": {"pooling": "max", "activation": "tanh"},
    "none, circular": {"pooling": "none", "padding": "circular"},
    "linear": {"activation": "none"},
    "three blocks": {"blocks": 3, "channels": 4},
    "skip": {"skip": True, "kernel": 5},
    "global average": {"head": "global", "channels": 16},
    "one block": {"blocks": 1, "padding": "circular", "pooling": "max"},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ARCHITECTURES)
def test_energies_are_those_of_compute_nads(ask, name):
    """All waves of 400 networks, against 2,000 of the library: z within sampling error."""
    config = DEFAULT | ARCHITECTURES[name]
    vectors = unpack(
        ask("ensemble", config=config, networks=400, seed=0)["vectors"], 400, -1, 2, PIXELS
    )
    waves = nc.fourier_basis(16)[0]
    along = vectors @ waves.flatten(1).double().T  # (networks, readouts, 2, waves)
    products = along.prod(2)  # (networks, readouts, waves), unbiased
    per_network = products.mean(1)
    nads = nc.compute_nads(
        lambda: build(config),
        (1, 16, 16),
        2_000,
        estimator=nc.SmoothedGradient(num_inputs=16),
        symmetries=(),
        progress=False,
    )
    variance = per_network.var(0) / 400 + products[:, 0].var(0) / 2_000
    z = (per_network.mean(0) - nads.energy(waves)) / variance.sqrt()
    assert abs(z.mean()) < 1 and z.square().mean() < 1.8 and z.abs().max() < 5


PAIRS = [
    (name, wave)
    for name in ("default", "stride", "comb", "max, tanh", "linear")
    for wave in ((0, 1), (2, 2), (4, 4), (0, 7))
]


def train_in_pytorch(config, start, epochs):
    """Train from the engine's weights on its data, in its order; return the test accuracy."""
    network = build(config, outputs=2)
    torch.nn.utils.vector_to_parameters(unpack(start["weights"], -1).float(), network.parameters())
    images, test = (
        unpack(start[part]["images"], -1, 1, 16, 16).float() for part in ("train", "test")
    )
    labels, answers = (torch.tensor(start[part]["labels"]) for part in ("train", "test"))
    optimiser = torch.optim.SGD(network.parameters(), lr=0.5)
    steps = epochs * len(images) // 32
    decay = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: 1 - step / steps)
    for order in start["orders"]:
        for batch in torch.tensor(order).split(32):
            optimiser.zero_grad()
            F.cross_entropy(network(images[batch]), labels[batch]).backward()
            nn.utils.clip_grad_norm_(network.parameters(), 0.5)
            optimiser.step()
            decay.step()
    with torch.no_grad():
        return (network(test).argmax(1) == answers).float().mean().item()


@pytest.mark.slow
@pytest.mark.parametrize(("name", "wave"), PAIRS)
def test_trained_accuracies_are_those_of_pytorch(ask, name, wave):
    config = DEFAULT | ARCHITECTURES[name]
    start = ask("training", config=config, wave=wave, seed=0, epochs=20)
    expected = train_in_pytorch(config, start, epochs=20)
    assert abs(start["accuracies"][-1] - expected) < 0.05
