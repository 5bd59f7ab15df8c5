import copy
import math
from functools import partial

import pytest
import torch
from convergence import MAPS, assert_mean, assert_normal, normal
from torch import nn
from torch.testing import assert_close

import nads_core as nc
from nads_core.networks.architectures import POOLINGS

PAPERS = list(nc.ARCHITECTURES.values())


def by_name(value):
    return getattr(value, "name", str(value))


inputs = partial(normal, dtype=torch.float64)


def mapped(module, transform, last_size):
    """Apply a map of the image to every kernel, and to the pixels that the first linear layer
    sees.
    """
    module = copy.deepcopy(module)
    for layer in module.modules():
        if isinstance(layer, nn.Conv2d):
            layer.weight.data = transform(layer.weight.data).contiguous()
    first = next(layer for layer in module.modules() if isinstance(layer, nn.Linear))
    rows = first.weight.data.unflatten(1, (-1, last_size, last_size))
    first.weight.data = transform(rows).flatten(1).contiguous()
    return module


def network(architecture, image_size=32, in_channels=1):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return architecture.build(in_channels, image_size, 1).double().eval().requires_grad_(False)


# --- closed form


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("logreg", 3 * 1024 * 10 + 10),
        ("lenet", 62_006),  # LeCun et al.'s with three input channels
        # 9 (3 · 64 + 64 · 128 + 128 · 256 + 256² + 256 · 512 + 3 · 512²) + 3 · 2,752
        # + 2 · 513 · 512 + 5,130
        ("vgg11", 9_756_426),
        ("resnet18", 11_173_962),  # kuangliu/pytorch-cifar
        ("densenet121", 6_956_298),  # kuangliu/pytorch-cifar
    ],
)
def test_parameter_counts(name, count):
    module = nc.ARCHITECTURES[name].build(3, 32, 10)
    assert sum(parameter.numel() for parameter in module.parameters()) == count and module.training


@pytest.mark.parametrize("architecture", PAPERS, ids=by_name)
def test_weights_have_the_initialisation_of_pytorch_or_that_of_vgg(architecture):
    for layer in network(architecture).modules():
        if architecture is nc.VGG11 and isinstance(layer, nn.Conv2d):  # normal with fan-out
            assert_normal(layer.weight[:64], math.sqrt(2 / (9 * layer.out_channels)))
            assert not layer.bias.any()
        elif isinstance(layer, nn.Conv2d | nn.Linear):
            bound = 1 / math.sqrt(layer.weight[0].numel())  # kaiming-uniform with a = sqrt(5)
            assert layer.weight.abs().max() <= bound * (1 + 1e-6)
            assert_mean(layer.weight.flatten().square(), bound**2 / 3)


# --- properties


@pytest.mark.parametrize(
    "architecture", [a for a in PAPERS if "channels" in a.symmetries], ids=by_name
)
def test_channels_are_alike(architecture):
    module = network(architecture, in_channels=3)
    x = inputs(2, 3, 32, 32)
    value = module(x)
    other = copy.deepcopy(module)
    first = next(layer for layer in other.modules() if isinstance(layer, nn.Conv2d))
    # Weights are independent and symmetric about zero: these are as likely.
    first.weight.data = -first.weight.data[:, [1, 0, 2]]
    assert_close(other(-x[:, [1, 0, 2]]), value, rtol=1e-10, atol=1e-13)
    assert architecture.symmetries_at(32, 3) == (*architecture.symmetries_at(32), "channels")


@pytest.mark.parametrize(
    ("architecture", "image_size"),
    [*((each, 32) for each in PAPERS[1:]), (nc.LENET, 34), (nc.VGG11, 40), (nc.DENSENET121, 12)],
    ids=by_name,
)
def test_exactly_the_symmetries_hold_that_are_declared(architecture, image_size):
    """No flip is one where an edge is dropped."""
    module = network(architecture, image_size)
    x = inputs(2, 1, image_size, image_size)
    first = next(layer for layer in module.modules() if isinstance(layer, nn.Linear))
    last_size = math.isqrt(first.in_features // 16) if architecture is nc.LENET else 1
    for symmetry, transform in MAPS.items():
        there = mapped(module, transform, last_size)(transform(x))
        same = torch.allclose(there, module(x), rtol=1e-10, atol=1e-13)
        assert same == (symmetry in architecture.symmetries_at(image_size)), symmetry


SMALLEST = {"logreg": 1, "lenet": 16, "vgg11": 32, "resnet18": 8, "densenet121": 8}


@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("architecture", PAPERS[1:], ids=by_name)
def test_pooling_variants(architecture, pooling):
    size = 4 if pooling == "none" and architecture is not nc.LENET else SMALLEST[architecture.name]
    variant = architecture.variant(pooling=pooling)
    assert (variant.name, variant.symmetries) == (f"{architecture.name}-{pooling}", ())
    if pooling == "max":
        with pytest.raises(ValueError, match=f"{size - 1} .*at least {size}"):
            variant.build(2, size - 1, 3)
    x = inputs(2, 2, size, size).float().requires_grad_()
    out = variant.build(2, size, 3).eval()(x)
    assert out.shape == (2, 3)
    assert (torch.autograd.grad(out.sum(), x)[0] != 0).any()
