"""The playground's engine, in Node, against PyTorch and `compute_nads`."""

import base64
import json
import math
import shutil
import subprocess

import numpy as np
import pytest
import torch
from conftest import ROOT
from hypothesis import given
from hypothesis import strategies as st
from nads_book.explorer import bundle
from nads_book.explorer.playground import CHOICES
from torch import nn
from torch.nn import functional as F

import nads_core as nc
from nads_core.directions.certainty import solve_type

DEFAULT = {
    "layers": "convolution",
    "blocks": 2,
    "channels": 8,
    "kernel": 3,
    "pooling": "average",
    "activation": "relu",
    "norm": "none",
    "head": "flat",
    "skip": False,
    "padding": "zeros",
}
CONFIGS = st.fixed_dictionaries({name: st.sampled_from(values) for name, values in CHOICES.items()})
PIXELS = 256


def factory(ask, config, outputs=1):
    """Return the factory that the page shows as Python, for networks with so many outputs."""
    exec(ask("python", config=config).split("nads = ")[0], made := {})  # noqa: S102

    def build():
        network = made["build"]()
        network[-1] = nn.Linear(network[-1].in_features, outputs)
        return network

    return build


def random_network(ask, config, seed, outputs=1):
    """Return a network in double precision, its weights, and 16 images."""
    torch.manual_seed(seed)
    network = factory(ask, config, outputs)().double()
    weights = torch.nn.utils.parameters_to_vector(network.parameters()).detach().float()
    torch.nn.utils.vector_to_parameters(weights.double(), network.parameters())
    return network, weights, torch.randn(16, 1, 16, 16).double()


def pack(values):
    return base64.b64encode(np.ascontiguousarray(values, dtype="<f4").tobytes()).decode()


def unpack(text, *shape):
    return torch.tensor(np.frombuffer(base64.b64decode(text), "<f4")).double().reshape(shape)


@pytest.fixture(scope="session")
def ask(tmp_path_factory):
    """Give a function that puts a question to the engine."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is missing")
    folder = tmp_path_factory.mktemp("engine")
    (folder / "package.json").write_text('{"type": "module"}', "utf8")
    shutil.copytree(bundle.SOURCES / "playground", folder / "playground")
    command = [node, ROOT / "tests" / "playground.mjs", folder / "playground"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as process:

        def question(name, **arguments):
            process.stdin.write(json.dumps({"name": name} | arguments) + "\n")
            process.stdin.flush()
            return json.loads(process.stdout.readline())

        yield question
        process.stdin.close()


def relative_error(found, expected):
    return ((found - expected).abs().max() / expected.abs().max()).item()


@given(CONFIGS, st.integers(0, 2**31))
def test_outputs_and_gradients_are_those_of_pytorch(ask, config, seed):
    network, weights, images = random_network(ask, config, seed, outputs=2)
    images.requires_grad_()
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
        weights=pack(weights),
        images=pack(images.detach().flatten(1)),
        readouts=pack(readouts),
        dOutputs=pack(slopes),
    )
    assert relative_error(unpack(found["values"], 2, 16), outputs.T.detach()) < 1e-5
    assert relative_error(unpack(found["inputs"], 3, 2, PIXELS), torch.stack(by_inputs)) < 1e-5
    flat = torch.cat([gradient.flatten() for gradient in by_weights])
    assert relative_error(unpack(found["weights"], -1), flat) < 1e-5


def test_random_numbers_are_standard_normal_and_independent(ask):
    values, other = (unpack(ask("random", count=2**16, seed=seed), -1) for seed in (5, 6))
    assert abs(values.mean()) < 5 / 256 and abs(values.var() - 1) < 5 * math.sqrt(2) / 256
    assert abs(values.pow(4).mean() - 3) < 5 * math.sqrt(96) / 256
    shifted = [values.roll(lag) for lag in (1, 2, 256, 4096)]
    for independent in (other, *shifted):
        assert abs((values * independent).mean()) < 5 / 256


def flips_and_transposes(config):
    """The symmetries of the networks: flips move what strides read."""
    strided = config["layers"] == "convolution" and config["pooling"] == "stride"
    flips = [()] if strided else [(), (1,), (2,), (1, 2)]
    return [lambda x, f=f, t=t: (x.mT if t else x).flip(f) for f in flips for t in (False, True)]


@pytest.mark.parametrize(
    "changes",
    [
        {"pooling": "stride"},
        pytest.param({}, marks=pytest.mark.slow),
        pytest.param({"layers": "patches", "norm": "layer"}, marks=pytest.mark.slow),
    ],
)
def test_nads_and_energies_are_those_of_the_second_moment(ask, changes):
    config = DEFAULT | changes
    found = ask("ensemble", config=config, networks=80, seed=1, last=False)
    halves = unpack(found["vectors"], 80, -1, 2, 16, 16)
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


@pytest.mark.parametrize("outlier", [0, 4])
def test_certainties_are_those_of_the_library(ask, outlier):
    """Random groups, also with one that holds most of the energy of a direction."""
    generator = torch.Generator().manual_seed(3)
    scales = 0.8 ** torch.arange(12)
    samples = torch.randn(8, 40, 12, generator=generator, dtype=torch.float64) * scales
    samples[0, :, 6] *= outlier or 1
    blocks = (samples.mT @ samples / 320).float().double()
    found = ask("certainties", groups=[pack(block) for block in blocks], n=12)
    vectors = unpack(found["vectors"], 12, 12)
    assert (vectors @ blocks.sum(0) - unpack(found["values"], 12, 1) * vectors).abs().max() < 1e-5
    expected = solve_type(blocks, 400).certainty
    assert (unpack(found["certainties"], 12) - expected).abs().max() < 1e-5
    assert (expected > 0).any() and (expected == 0).any() == bool(outlier)


@given(CONFIGS, st.integers(0, 2**31))
def test_a_direction_is_pushed_through_all_layers_as_in_pytorch(ask, config, seed):
    """The last responses are the derivative of the features, on average over the images."""
    network, weights, images = random_network(ask, config, seed)
    change = torch.randn(1, 1, 16, 16).double()
    seen = ask(
        "push",
        config=config,
        weights=pack(weights),
        images=pack(images.flatten(1)),
        change=pack(change.flatten()),
    )
    change_of_all = change.expand_as(images)
    _, expected = torch.autograd.functional.jvp(network[:-1], images, change_of_all)
    step, values = seen[-1]
    assert step == "features" and relative_error(unpack(values, -1), expected.mean(0)) < 1e-4
    stem = network[: 1 + isinstance(network[0], nn.Flatten)]
    filtered = stem(change) - stem(torch.zeros_like(change))
    first, values = seen[0]
    assert first == "filter"
    assert relative_error(unpack(values, -1), filtered.detach().flatten()) < 1e-4


ARCHITECTURES = {
    "default": {},
    "stride": {"pooling": "stride"},
    "comb": {"pooling": "stride", "head": "global"},
    "max, tanh": {"pooling": "max", "activation": "tanh"},
    "none, circular": {"pooling": "none", "padding": "circular"},
    "linear": {"activation": "none"},
    "skip": {"skip": True, "kernel": 5},
    "patches": {"layers": "patches"},
    "dense": {"layers": "dense", "activation": "tanh"},
    "normalised": {"norm": "layer", "skip": True},
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
        factory(ask, config),
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


def train_in_pytorch(network, start, epochs):
    """Train from the engine's weights on its data, in its order; return the test accuracy."""
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
    expected = train_in_pytorch(factory(ask, config, outputs=2)(), start, epochs=20)
    assert abs(start["accuracies"][-1] - expected) < 0.05
