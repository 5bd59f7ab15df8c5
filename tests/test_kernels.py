"""The faster twins give what PyTorch gives."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

import nads_core as nc
from nads_core.kernels import faster_max_pooling, max_pool2x2


@given(st.integers(0, 1000), st.integers(1, 9), st.integers(1, 9))
def test_pooling_and_its_gradient_are_those_of_torch(seed, height, width):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(2, 3, height + 1, width + 1, generator=generator).requires_grad_()
    pooled = max_pool2x2(x)
    assert torch.equal(pooled, F.max_pool2d(x, 2))
    direction = torch.randn(pooled.shape, generator=generator)
    ours, theirs = (torch.autograd.grad(y, x, direction)[0] for y in (pooled, F.max_pool2d(x, 2)))
    assert torch.equal(ours, theirs)


def test_of_equal_pixels_one_takes_the_whole_gradient():
    x = torch.zeros(1, 1, 4, 4, requires_grad=True)
    (gradient,) = torch.autograd.grad(max_pool2x2(x).sum(), x)
    assert gradient.sum() == 4 and set(gradient.flatten().tolist()) == {0.0, 1.0}


@pytest.mark.parametrize("architecture", [nc.LENET, nc.VGG11], ids=str)
def test_a_network_keeps_its_weights_and_values(architecture):
    network = architecture.build(1, 32, 2).eval()
    names, x = set(network.state_dict()), torch.randn(2, 1, 32, 32)
    before = network(x)
    faster = faster_max_pooling(network)
    assert set(faster.state_dict()) == names and torch.equal(faster(x), before)
    assert not any(isinstance(module, nn.MaxPool2d) for module in faster.modules())


def test_other_poolings_are_left_alone():
    kept = [nn.MaxPool2d(3), nn.MaxPool2d(2, stride=1), nn.MaxPool2d(2, padding=1), nn.MaxPool2d(2, ceil_mode=True),
            nn.AvgPool2d(2)]  # fmt: skip
    network = faster_max_pooling(nn.Sequential(*kept, nn.MaxPool2d((2, 2))))
    assert list(network)[:-1] == kept and not isinstance(network[-1], nn.MaxPool2d)
