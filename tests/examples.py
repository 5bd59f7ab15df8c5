"""Small networks, and NADs of them without a progress bar."""

from collections.abc import Callable
from pathlib import Path
from unittest.mock import DEFAULT, Mock, patch

import numpy as np
import pytest
import torch
from torch import nn

import nads_core as nc
from nads_core.directions.run import Run
from nads_core.networks.network import WEIGHTS, Networks
from nads_core.training import checkpoint

Factory = Callable[[], nn.Module]


def compute(
    factory: Factory | nc.Architecture,
    num_networks: int,
    image_shape: tuple[int, ...] = (1, 8, 8),
    **options,
) -> nc.NADs:
    """Compute NADs as a script does."""
    return nc.compute_nads(factory, image_shape, num_networks, **{"progress": False} | options)


def prepared(factory, image_shape=(1, 8, 8), estimator=None, **options) -> Run:
    """Return what a call of `compute_nads` evaluates, in float64."""
    options = {"output": 0, "dtype": "float64", "device": "cpu", "kernels": "torch"} | options
    return Run.prepare(factory, image_shape, estimator, equal_weights=False, seed=1, **options)


def same(first: nc.NADs, second: nc.NADs) -> bool:
    """Whether two runs have equal numbers, bit for bit."""
    texts = first.types == second.types and first.bands == second.bands
    return texts and all(
        torch.equal(getattr(first, name), getattr(second, name))
        for name in ("directions", "eigenvalues", "certainty")
    )


def assert_damage_is_named(path: Path, read: Callable[[], nc.NADs]) -> None:
    """Fail unless an error names a file in which one bit is changed, or that is cut."""
    content, whole = path.read_bytes(), read()
    damaged = [content[:end] for end in (0, 1, 21, 100, -1, -40)]
    for place in np.random.default_rng(0).choice(8 * len(content), 99, replace=False):
        damaged.append(bytearray(content))
        damaged[-1][place // 8] ^= 1 << (place % 8)
    for wrong in damaged:
        path.write_bytes(wrong)
        try:
            assert same(read(), whole) and len(wrong) == len(content)  # a date in the archive
        except ValueError as error:
            assert path.name in str(error) and path.read_bytes() == wrong


def perceptron(inputs: int, width: int = 8, outputs: int = 1) -> nn.Sequential:
    """Return a network with one hidden layer."""
    return nn.Sequential(
        nn.Flatten(), nn.Linear(inputs, width), nn.Tanh(), nn.Linear(width, outputs)
    )


def convnet() -> nn.Sequential:
    """Return a convolution and a linear layer, for images (1, 8, 8)."""
    return nn.Sequential(nn.Conv2d(1, 3, 3, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(27, 1))


def small_network(width: int = 3) -> nn.Sequential:
    """Return a classifier of two classes with batch norm, for images (1, 8, 8)."""
    layers = nn.Conv2d(1, width, 3), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(2)
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(9 * width, 2))


RECIPE = nc.Recipe(
    epochs=3, learning_rate=0.4, batch_size=32, momentum=0.9, weight_decay=5e-3, clip_norm=0.3
)


def datasets_and_tests(*counts: int) -> list[nc.SeparableDatasets]:
    """Return data of three waves with each number of samples."""
    waves = torch.stack([nc.fourier_direction((1, k), 8) for k in range(3)])
    return [nc.SeparableDatasets(waves, n, 2.0, 0.5, seed) for seed, n in enumerate(counts)]


def interrupt(train: Callable, path: Path) -> None:
    """Interrupt a training when it writes its checkpoint the second time."""
    saving = Mock(wraps=checkpoint.save_checkpoint, side_effect=[DEFAULT, KeyboardInterrupt])
    with (
        patch.multiple(checkpoint, _SECONDS=0.0, save_checkpoint=saving),
        pytest.raises(KeyboardInterrupt),
    ):
        train(path)


def in_float64(work: Callable):
    """Return what a function returns while float64 is the default type."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        return work()
    finally:
        torch.set_default_dtype(before)


class Unreturned(nn.Sequential):
    """A network whose `train`, and so its `eval`, returns nothing, as many with frozen layers."""

    def train(self, mode=True):
        super().train(mode)


class Applied(nn.Module):
    """A layer that applies a function."""

    def __init__(self, function: Callable):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def reads() -> nn.Module:
    """Return a layer whose result depends on a number that Python reads, which vmap forbids."""
    return Applied(lambda x: x * (1.0 if x.isnan().any().item() else 2.0))


class Recurrent(nn.Module):
    """A recurrent layer over the rows of an image (1, 8, 8), which vmap does not support."""

    def __init__(self, kind=nn.GRU, batch_first=True):
        super().__init__()
        self.cell = kind(8, 6, num_layers=2, dropout=0.5, batch_first=batch_first)
        self.head = nn.Linear(6, 2)

    def forward(self, x):
        return self.head(self.cell(x[:, 0])[0][:, -1])


def numbered(make: Callable[[int], nn.Module]) -> Factory:
    """Return a factory of networks that depend on their number, if that is below 99."""
    networks = Networks(nn.Module, ())
    numbers = {networks.seed_of(index, WEIGHTS): index for index in range(99)}
    return lambda: make(numbers.get(torch.initial_seed(), 99))


def failing(result: Callable) -> Factory:
    """Return a factory whose network 21 returns a function of its output."""
    return numbered(lambda i: perceptron(64, 4).append(Applied(result if i == 21 else torch.clone)))


class Weighted(nn.Module):
    """A deep linear network that reads its pixels with known weights: C is diagonal."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(64, 30, bias=False), nn.Linear(30, 1, bias=False))

    def forward(self, x):
        return self.layers(x.flatten(1) * 0.9 ** torch.arange(64).to(x))


class Net(nn.Module):
    """Two layers for images (1, 8, 8); ``forward`` is a function of the network and its input."""

    def __init__(self, forward, outputs=10, **layers):
        super().__init__()
        self.first = nn.Linear(64, 24)
        self.last = nn.Linear(24, outputs)
        self.function = forward
        for name, layer in layers.items():
            setattr(self, name, layer)

    def features(self, x):
        return torch.tanh(self.first(x.flatten(1)))

    def forward(self, x):
        return self.function(self, x)


def behind(change: Callable) -> Factory:
    """Return a factory of networks with a function of the features before the last layer."""
    return lambda: Net(lambda net, x: net.last(change(net.features(x))))
