"""The playground's engine, in Node, against PyTorch and `compute_nads`."""

import base64
import itertools
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
ACTIVATIONS = {"relu": nn.ReLU, "tanh": nn.Tanh, "none": nn.Identity}


class Skip(nn.Module):
    """A layer that adds its input."""

    def __init__(self, layer, stride=1):
        super().__init__()
        self.layer = layer
        self.stride = stride

    def forward(self, x):
        return self.layer(x) + x[..., :: self.stride, :: self.stride]


class Tokens(nn.Linear):
    """A linear layer over all pixels of a map, the same for each map."""

    def forward(self, x):
        return super().forward(x.flatten(2)).view_as(x)


def build(config, outputs=1):
    """Build what the chips describe."""
    kind = config["layers"]
    convolution = kind == "convolution"
    pooling = config["pooling"] if convolution else "none"
    stride = 2 if pooling == "stride" else 1
    channels = config["channels"] * {"convolution": 1, "patches": 4, "dense": 8}[kind]
    layers = []
    side = 16

    def add(layer, skip):
        layers.append(Skip(layer, stride) if skip else layer)
        if config["norm"] == "layer":
            layers.append(nn.GroupNorm(1, channels, affine=False))
        layers.append(ACTIVATIONS[config["activation"]]())

    if not convolution:
        patch = {"patches": 4, "dense": 16}[kind]
        add(nn.Conv2d(1, channels, patch, stride=patch), skip=False)
        side //= patch
    for block in range(config["blocks"] - (kind == "dense")):
        if convolution:
            layer = nn.Conv2d(
                channels if block else 1,
                channels,
                config["kernel"],
                stride=stride,
                padding=config["kernel"] // 2,
                padding_mode=config["padding"],
            )
            add(layer, config["skip"])
        else:
            if kind == "patches":
                add(Tokens(side**2, side**2), config["skip"])
            add(nn.Conv2d(channels, channels, 1), config["skip"])
        if pooling in ("average", "max"):
            layers.append(nn.AvgPool2d(2) if pooling == "average" else nn.MaxPool2d(2))
        side //= 1 if pooling == "none" else 2
    if config["head"] == "global" and kind != "dense":
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


@given(CONFIGS, st.integers(0, 2**31))
def test_outputs_and_gradients_are_those_of_pytorch(ask, config, seed):
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
    strided = config["layers"] == "convolution" and config["pooling"] == "stride"
    flips = [()] if strided else [(), (1,), (2,), (1, 2)]
    return [lambda x, f=f, t=t: (x.mT if t else x).flip(f) for f in flips for t in (False, True)]


@pytest.mark.parametrize(
    "changes", [{}, {"pooling": "stride"}, {"layers": "patches", "norm": "layer"}]
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


def certainty(blocks, basis):
    """Return the library's certainties of the eigenvectors of all groups together, (n,).

    Args:
        blocks: (8, n, n), second moment of each group.
        basis: (n, n), eigenvectors in columns.
    """
    overlap = torch.zeros(basis.shape, dtype=basis.dtype)
    splits = list(itertools.combinations(range(1, 8), 3))
    for others in splits:
        one = torch.zeros(8, dtype=torch.bool)
        one[[0, *others]] = True
        u, v = (torch.linalg.eigh(blocks[part].sum(0))[1].flip(1) for part in (one, ~one))
        overlap += (u.T @ v).square() / len(splits)
    levels, vectors = torch.linalg.eigh((overlap + overlap.T) / 2)
    q = ((vectors * levels.clamp(min=0).sqrt()) @ vectors.T).diagonal().clamp(0, 1)
    claimed = q + (1 - q) * q**2 / 2
    energies = torch.einsum("di,gde,ei->gi", basis, blocks, basis).clamp(min=0)
    held_by = energies.sum(0) ** 2 / energies.square().sum(0).clamp(min=1e-300)
    return claimed * (held_by >= 4).cummin(0).values * (claimed >= 0.3)


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
    expected = certainty(blocks, vectors.T)
    assert (unpack(found["certainties"], 12) - expected).abs().max() < 1e-5
    assert (expected > 0).any() and (expected == 0).any() == bool(outlier)


def test_no_direction_of_networks_without_preference_is_certain(ask):
    """All eigenvalues of these networks are equal: what a sample shows is chance."""
    config = {"activation": "none", "pooling": "none", "padding": "circular", "blocks": 1}
    for seed in range(3):
        run = ask("ensemble", config=DEFAULT | config, networks=400, seed=seed)
        assert len(run["certainties"]) == 8 and max(run["certainties"]) < 0.5


def test_directions_without_energy_are_no_nads(ask):
    """Without nonlinearity and border, a global average leaves the constant image alone."""
    config = {"activation": "none", "pooling": "none", "padding": "circular", "head": "global"}
    run = ask("ensemble", config=DEFAULT | config | {"blocks": 1}, networks=80, seed=1)
    assert len(run["certainties"]) == 1 and run["certainties"][0] > 0.99
    assert unpack(run["directions"], PIXELS).std() < 1e-6


@given(CONFIGS, st.integers(0, 2**31))
def test_a_direction_is_pushed_through_all_layers_as_in_pytorch(ask, config, seed):
    """The last responses are the derivative of the features, on average over the images."""
    torch.manual_seed(seed)
    network = build(config).double()
    weights = torch.cat([parameter.detach().flatten() for parameter in network.parameters()])
    torch.nn.utils.vector_to_parameters(weights.float().double(), network.parameters())
    images = torch.randn(16, 1, 16, 16).double()
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
    first, values = seen[0]
    convolution = network[0].layer if isinstance(network[0], Skip) else network[0]
    filtered = convolution(change) - convolution(torch.zeros_like(change))
    if isinstance(network[0], Skip):
        filtered = filtered + change[..., :: network[0].stride, :: network[0].stride]
    assert first == "filter"
    assert relative_error(unpack(values, -1), filtered.detach().flatten()) < 1e-4


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
