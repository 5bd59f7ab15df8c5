"""Acceptance of a GPU: results that it computes by another path than a CPU, compared with the CPU.

``python -m pytest tests/gpu`` runs it; `tests/test_kernels.py` compares the kernels, on a GPU where
there is one. Without a GPU the slow tests make every comparison on the CPU, so that the script
stays alive.
"""

import contextlib
import tempfile
from functools import partial
from pathlib import Path
from unittest import mock

import pytest
import torch
from convergence import normal
from examples import Recurrent
from torch import nn

from nads_core.data.fourier import fourier_direction
from nads_core.data.separable import SeparableDatasets
from nads_core.directions import SmoothedGradient, compute_nads
from nads_core.directions.symmetry_tests import self_terms
from nads_core.networks.architectures import LENET, RESNET18
from nads_core.networks.ensembles import Ensemble
from nads_core.runtime.seeds import seeded
from nads_core.training import Recipe, TrainConfig, train_networks, train_new, train_one
from nads_core.training.checkpoint import Checkpoint

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
if DEVICE.type == "cpu":
    pytestmark = pytest.mark.slow


def _small_network():
    return nn.Sequential(
        nn.Conv2d(1, 6, 3),
        nn.BatchNorm2d(6),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(54, 2),
    )


def _in_float64():
    return _small_network().double()


_normal = partial(normal, dtype=torch.float64)
_RECIPE = Recipe(
    epochs=3, learning_rate=0.4, batch_size=32, momentum=0.9, weight_decay=5e-3, clip_norm=0.3
)


def _datasets():
    directions = torch.stack([fourier_direction((1, n), 8) for n in range(3)])
    draw = partial(SeparableDatasets, directions, margin=2.0, noise_std=0.5)
    return draw(160, seed=0), draw(100, seed=1)


def _trained(device, factory=_in_float64, **options):
    """Return the losses of three small networks."""
    options |= {"recipe": _RECIPE, "device": device, "workers": 1, "progress": False}
    return train_networks(factory, *_datasets(), **options).losses


def _largest(a, b):
    """Return the largest difference, relative to the largest number."""
    a, b = a.double().cpu(), b.double().cpu()
    return float((a - b).abs().max() / b.abs().max().clamp(min=1e-300))


def training(device):
    return _largest(_trained(device), _trained(torch.device("cpu")))


def bfloat16_training(device):
    exact, rounded = (
        _trained(device, _small_network, mixed_precision=mixed) for mixed in (False, True)
    )
    return float((exact[:, :4] - rounded[:, :4]).abs().max())


def symmetries_of_channels(device):
    """Compare the sums behind the tests of symmetries, of images with three channels, after a whole
    computation.
    """
    options = {"image_shape": (3, 32, 32), "device": device, "progress": False}
    compute_nads(partial(LENET.build, 3, 32, 1), 32, **options)
    halves = _normal(16, 1, 2, 48)
    here, there = (self_terms(part, (3, 4, 4)) for part in (halves, halves.to(device)))
    return _largest(there, here)


def deep_input_gradients(device):
    """Compare input gradients of the same two ResNet-18 networks with those of a CPU."""
    return _moved(partial(RESNET18.build, 1, 32, 1), (1, 32, 32), device)


def _moved(factory, shape, device):
    """Return the difference of input gradients of two networks on a device from those of a CPU;
    audit what is left on the device, a graph among it.
    """
    here, there = (
        Ensemble(factory, shape, device=place, dtype=torch.float64) for place in ("cpu", device)
    )
    images = _normal(2, 2, *shape)
    blocks = here.draw(0), here.draw(1)  # of at least one network each
    state = {name: torch.cat([block[name] for block in blocks])[:2] for name in blocks[0]}
    moved = {name: tensor.to(device) for name, tensor in state.items()}
    gradients = there.input_gradients(moved, images.to(device))
    there.audit(2)
    return _largest(gradients, here.input_gradients(state, images))


class _ReadsValues(nn.Module):
    """A layer whose result depends on a number that the CPU reads, which no graph can hold."""

    def forward(self, x):
        return x * (1.0 if x.isnan().any().item() else 2.0)


def _of_many_layers(*more):
    others = (nn.Identity() for _ in range(210))
    return nn.Sequential(
        nn.Flatten(), nn.Linear(64, 32), nn.Tanh(), *others, *more, nn.Linear(32, 1)
    )


def networks_of_many_layers(device):
    """Compare input gradients of networks that a graph evaluates by default, and of those whose
    values are read, which it does not.
    """
    return max(
        _moved(partial(_of_many_layers, *more), (1, 8, 8), device)
        for more in ([], [_ReadsValues()])
    )


def recurrent_layers(device):
    """Compare input gradients of networks that cannot share a vectorised step."""
    return max(
        _moved(partial(Recurrent, kind), (1, 8, 8), device) for kind in (nn.RNN, nn.GRU, nn.LSTM)
    )


def norms_of_inputs(device):
    """Compare input gradients through a batch norm of the images themselves."""

    def network():
        return nn.Sequential(
            nn.BatchNorm2d(1), nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 2)
        )

    return _moved(network, (1, 8, 8), device)


def input_gradients_of_readouts(device):
    """Compare vectorised input gradients of eight networks with two readouts with sequential ones
    on a CPU.
    """
    build = partial(Ensemble, partial(LENET.build, 1, 16, 1), (1, 16, 16), dtype=torch.float64)
    here = build(device="cpu", evaluation="loop")
    there = build(device=device, evaluation="vmap")
    drawn = SmoothedGradient(4, readouts=2).draw(here, 0)[:8]
    state = {name: tensor.to(device) for name, tensor in drawn.state.items()}
    moved = there.input_gradients(state, drawn.inputs.to(device), drawn.readouts.to(device))
    return _largest(moved, here.input_gradients(drawn.state, drawn.inputs, drawn.readouts))


def nads_resumed_on_the_cpu(device):
    """Compare NADs of 64 networks of each device with those of a CPU: 1 - overlap, less that of two
    runs of a CPU. A GPU draws other networks.
    """
    compute = partial(compute_nads, LENET, num_directions=10, progress=False)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "nads.ckpt"
        compute(64, seed=1, device=device, checkpoint=path)
        moved = compute(128, seed=1, device="cpu", checkpoint=path)
    here, again = (compute(128, seed=seed, device="cpu") for seed in (1, 2))
    return here.overlap(again, k=10) - here.overlap(moved, k=10)


class _StoppedError(Exception):
    """Signal that ends a training early."""


class _Stopping(Checkpoint):
    """Checkpoint that stops its training after the first epoch has been written."""

    def save_if_due(self, *arguments):
        self.saved_at = -1e9
        super().save_if_due(*arguments)
        raise _StoppedError


def resumed_training(device):
    train, test = (part[0] for part in _datasets())
    config = TrainConfig(_RECIPE, device=device)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "0.part"
        with mock.patch.object(train_one, "Checkpoint", _Stopping):
            with contextlib.suppress(_StoppedError):
                train_new(_in_float64, 0, train, test, config, checkpoint=path)
        assert path.exists()
        resumed = train_new(_in_float64, 0, train, test, config, checkpoint=path)[1]
    return _largest(resumed.losses, _trained(device)[0])


def restored_generators(device):
    torch.randn(1, device=device)
    with seeded(5, device):
        first = torch.randn(3, device=device)
    before = torch.randn(3, device=device)
    with seeded(5, device):
        second = torch.randn(3, device=device)
    return _largest(first, second) + float(torch.equal(before, first))


# Each comparison with the difference that rounding explains.
CHECKS = (
    (deep_input_gradients, 1e-9),  # input gradients of ResNet-18, against the CPU
    (input_gradients_of_readouts, 1e-9),  # input gradients of two readouts, against the CPU
    (networks_of_many_layers, 1e-9),  # by a graph, against the CPU
    (recurrent_layers, 1e-9),  # input gradients through recurrent layers, against the CPU
    (norms_of_inputs, 1e-9),  # input gradients through a batch norm of inputs, against the CPU
    (symmetries_of_channels, 1e-9),  # sums behind the tests of symmetries, against the CPU
    (training, 1e-6),  # training of three networks, against the CPU
    (bfloat16_training, 0.05),  # first losses in bfloat16, against float32
    # Overlaps of the first 10 NADs of 128 networks with those of others vary between .83 and .95.
    (nads_resumed_on_the_cpu, 0.1),
    (resumed_training, 1e-8),  # training resumed after an epoch
    (restored_generators, 0.0),  # generators restored after seeding
)


@pytest.mark.parametrize(
    ("compare", "rounding"), CHECKS, ids=[check.__name__ for check, _ in CHECKS]
)
def test_a_device_agrees_with_the_cpu(compare, rounding):
    difference = compare(DEVICE)
    assert difference <= rounding, f"differs by {difference:.1e}, rounding explains {rounding:.0e}"
