"""Acceptance of a GPU: results that it computes by another path than a CPU, compared with the CPU.

``python -m pytest tests/gpu`` runs it; `tests/test_kernels.py` compares the kernels, on a GPU where
there is one. Without a GPU the slow tests make every comparison on the CPU, so that the script
stays alive.
"""

import tempfile
from functools import partial
from pathlib import Path
from unittest import mock

import pytest
import torch
from convergence import normal
from examples import (
    RECIPE,
    Recurrent,
    datasets_and_tests,
    interrupt,
    prepared,
    small_network,
)
from torch import nn

from nads_core.directions import SmoothedGradient, compute_nads, second_moment
from nads_core.networks import LENET, RESNET18, Network, Networks
from nads_core.networks.stack import Stacking
from nads_core.runtime.seeds import seeded
from nads_core.training import TrainConfig, train_networks, train_new

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
if DEVICE.type == "cpu":
    pytestmark = pytest.mark.slow


def _in_float64():
    return small_network(6).double()


_normal = partial(normal, dtype=torch.float64)
_datasets = partial(datasets_and_tests, 160, 100)


def _trained(device, factory=_in_float64, **options):
    """Return the losses of three small networks."""
    options |= {"recipe": RECIPE, "device": device, "workers": 1, "progress": False}
    return train_networks(factory, *_datasets(), **options).losses


def _largest(a, b):
    """Return the largest difference, relative to the largest number."""
    a, b = a.double().cpu(), b.double().cpu()
    return float((a - b).abs().max() / b.abs().max().clamp(min=1e-300))


def training(device):
    return _largest(_trained(device), _trained(torch.device("cpu")))


def bfloat16_training(device):
    exact, rounded = (
        _trained(device, partial(small_network, 6), mixed_precision=mixed)
        for mixed in (False, True)
    )
    return float((exact[:, :4] - rounded[:, :4]).abs().max())


def _moved(factory, shape, device, readouts=1):
    """Return the difference of input gradients of two networks, one by one and stacked where they
    can be, on a device from those of a CPU.
    """
    estimator = SmoothedGradient(2, readouts=readouts)
    here, there = (
        prepared(factory, shape, estimator, device=str(place)).networks for place in ("cpu", device)
    )
    images = _normal(2, 2, *shape)
    with mock.patch.object(Networks, "randn", _drawn_on_the_cpu):
        expected = torch.stack(
            [Network(here, i).input_gradients(images[i], readouts) for i in range(2)]
        )
        images = images.to(device)
        each = [Network(there, i).input_gradients(images[i], readouts) for i in range(2)]
        differences = [_largest(torch.stack(each), expected)]
        if stacking := Stacking.of(there):
            (stack,) = stacking.batches(range(2))
            differences.append(_largest(stack.input_gradients(images, readouts), expected))
    return max(differences)


def _drawn_on_the_cpu(networks, index, stream, *shape):
    generator = torch.Generator().manual_seed(networks.seed_of(index, stream))
    return torch.randn(shape, generator=generator).to(networks.device, networks.dtype)


def deep_input_gradients(device):
    """Compare input gradients of the same two ResNet-18 networks with those of a CPU."""
    return _moved(partial(RESNET18.build, 1, 32, 1), (1, 32, 32), device)


def recurrent_layers(device):
    """Compare input gradients of networks that cannot share a vectorised step."""
    return max(
        _moved(partial(Recurrent, kind), (1, 8, 8), device) for kind in (nn.RNN, nn.GRU, nn.LSTM)
    )


def input_gradients_of_readouts(device):
    return _moved(partial(LENET.build, 1, 16, 1), (1, 16, 16), device, readouts=2)


def nads_of_a_device(device):
    """Compare NADs of 128 networks of a device with those of a CPU: 1 - overlap, less that of two
    runs of a CPU. A GPU draws other inputs.
    """
    compute = partial(compute_nads, LENET, (1, 32, 32), 128, num_directions=10, progress=False)
    here, again, moved = (
        compute(seed=seed, device=place) for seed, place in ((1, "cpu"), (2, "cpu"), (1, device))
    )
    return here.overlap(again, k=10) - here.overlap(moved, k=10)


def one_kernel(device):
    """Compare second moments by the Triton kernel with those of torch, where there is a GPU."""
    if device.type == "cpu":
        return 0.0
    factory = partial(LENET.build, 1, 32, 1)
    shares = [
        second_moment(
            factory, (1, 32, 32), 64, device=device, kernels=kernels, progress=False
        ).shares()
        for kernels in ("triton", "torch")
    ]
    return _largest(*shares)


def resumed_training(device):
    train, test = (part[0] for part in _datasets())
    config = TrainConfig(RECIPE, device=device)

    def losses(path):
        return train_new(_in_float64, 0, train, test, config, checkpoint=path)[1].losses

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "0.part"
        interrupt(losses, path)
        return _largest(losses(path), _trained(device)[0])


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
    (recurrent_layers, 1e-9),  # input gradients through recurrent layers, against the CPU
    (one_kernel, 1e-2),  # TF32 of cuDNN
    (training, 1e-6),  # training of three networks, against the CPU
    (bfloat16_training, 0.05),  # first losses in bfloat16, against float32
    # Overlaps of the first 10 NADs of 128 networks with those of others vary between .83 and .95.
    (nads_of_a_device, 0.1),
    (resumed_training, 1e-8),  # training resumed after an epoch
    (restored_generators, 0.0),  # generators restored after seeding
)


@pytest.mark.parametrize(
    ("compare", "rounding"), CHECKS, ids=[check.__name__ for check, _ in CHECKS]
)
def test_a_device_agrees_with_the_cpu(compare, rounding):
    difference = compare(DEVICE)
    assert difference <= rounding, f"differs by {difference:.1e}, rounding explains {rounding:.0e}"
