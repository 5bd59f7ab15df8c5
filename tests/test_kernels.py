"""Faster implementations equal their references in PyTorch.

Without a GPU the Triton kernels run in Triton's interpreter, and a test compiles them for GPUs that
are not there.
"""

import copy
import importlib.util
import sys
from dataclasses import replace
from functools import partial

import pytest
import torch
from conftest import run_python
from convergence import normal
from examples import compute, prepared
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.func import functional_call
from torch.nn import functional as F
from torch.testing import assert_close

import nads_core as nc
from nads_core.kernels import faster_layers, few_channel_convolutions, require_kernels
from nads_core.kernels.convolutions import _Convolved
from nads_core.kernels.direction import Convolution
from nads_core.networks.stack import Stacking

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
needs_triton = pytest.mark.skipif(
    not importlib.util.find_spec("triton"), reason="there is no Triton for this platform"
)


@pytest.fixture(autouse=True)
def exact(monkeypatch):
    """Let cuDNN round to float32: the kernels are compared with it."""
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)


# --- layers on a CPU


@given(st.integers(0, 1000), st.integers(1, 9), st.integers(1, 9))
def test_pooling_and_its_gradient_are_those_of_torch(seed, height, width):
    x = normal(2, 640, height + 1, width + 1, seed=seed).requires_grad_()
    x.data[:, 0] = 0  # of equal pixels one takes the whole gradient
    pooled = faster_layers(nn.MaxPool2d(2))(x)
    expected = F.max_pool2d(x, 2)
    assert torch.equal(pooled, expected)
    direction = normal(*pooled.shape, seed=seed + 1).requires_grad_()

    def curve(y):
        (slope,) = torch.autograd.grad(y, x, direction, create_graph=True)
        return torch.autograd.grad(slope[:, 1:].sin().sum(), direction)[0]

    assert_close(curve(pooled), curve(expected))
    ours, theirs = (torch.autograd.grad(y, x, direction)[0] for y in (pooled, expected))
    assert torch.equal(ours[:, 1:], theirs[:, 1:])
    assert_close(ours.sum((2, 3)), theirs.sum((2, 3)))


STRANGE = ({"groups": 2}, {"dilation": 2}, {"padding": "same"}, {"padding_mode": "circular"})


def test_other_layers_are_left_alone():
    strange = [nn.Conv2d(2, 4, 3, **options) for options in STRANGE]
    one = [nn.Conv1d(1, 4, 3), *strange, nn.Conv2d(4, 4, 3), nn.Conv2d(2, 4, 3, stride=2)]
    few = [nn.Conv1d(1, 4, 3), *strange, nn.Conv2d(2, 33, 3), nn.Conv2d(33, 2, 3)]
    options = ({"kernel_size": 3}, {"stride": 1}, {"padding": 1}, {"ceil_mode": True})
    poolings = [nn.MaxPool2d(**{"kernel_size": 2} | each) for each in options]
    for change, layers in (
        (faster_layers, [*one, *poolings, nn.AvgPool2d(2)]),
        (partial(faster_layers, convolutions=False), [nn.Conv2d(1, 1, 3)]),
        (few_channel_convolutions, few),
    ):
        replaced = change(nn.Sequential(*copy.deepcopy(layers)))
        assert [type(layer) for layer in replaced] == [type(layer) for layer in layers]


@pytest.mark.parametrize(
    ("layer", "channels", "inputs", "wrong"),
    [
        (nn.MaxPool2d([2], [2]), 70, [torch.Tensor.half, lambda x: (9 * x).int()], (2, 6)),
        (nn.MaxPool2d((2, 2), 2, [0, 0], [1, 1]), 70, [lambda x: x[0]], (2, 6)),
        (nn.Conv2d(1, 4, [3, 3]), 1, [lambda x: x[0], lambda x: x[:0]], (2, 2, 6, 6)),
        (nn.Conv2d(1, 4, 3, dtype=torch.cfloat), 1, [torch.Tensor.cfloat], (2, 2, 6, 6)),
    ],
)
def test_faster_layers_take_what_torch_takes(layer, channels, inputs, wrong):
    twin = faster_layers(copy.deepcopy(layer))
    assert type(twin) is not type(layer)
    for change in inputs:
        x = change(torch.randn(2, channels, 6, 6)).requires_grad_(channels == 1)
        assert_close(twin(x), layer(x))
    with pytest.raises(RuntimeError):
        twin(torch.zeros(wrong, requires_grad=True))


@given(st.integers(0, 1000), st.integers(1, 3), st.integers(1, 4), st.integers(0, 2), st.booleans())
def test_a_first_convolution_is_that_of_torch(seed, channels, size, padding, bias):
    layer = nn.Conv2d(channels, 5, (size, size + 1), padding=padding, bias=bias).double()
    twin = faster_layers(copy.deepcopy(layer))
    assert type(twin) is not nn.Conv2d and set(twin.state_dict()) == set(layer.state_dict())
    x = normal(2, channels, 6, 7, seed=seed).double().requires_grad_()
    direction = normal(*layer(x).shape, seed=seed + 1).double()
    results = []
    for one in (layer, twin):
        (slope,) = torch.autograd.grad(one(x).sin(), x, direction, create_graph=True)
        (curve,) = torch.autograd.grad(slope.square().sum(), one.weight)  # as MixedDerivative needs
        results.append((one(x), slope, curve))
    for theirs, ours in zip(*results, strict=True):
        assert_close(ours, theirs)


# --- convolutions of many networks


def convolution(*arguments, relu=True, **options):
    layers = nn.Conv2d(*arguments, **options), nn.ReLU()
    return nn.Sequential(*layers[: 1 + relu])


CASES = [  # a network, and the size of its images
    (convolution(1, 6, 5), (9, 8)),  # LeNet's first
    (convolution(6, 16, 5), (6, 6)),  # LeNet's second
    (convolution(3, 5, 3, 2, 1, relu=False), (7, 8)),
    (convolution(2, 7, (2, 3), (2, 1), (1, 0), bias=False), (6, 5)),
    (convolution(32, 32, 1), (2, 3)),  # as many channels as there may be
    (convolution(2, 2, (3, 5)), (3, 5)),  # one output pixel
]


@needs_triton
@pytest.mark.parametrize(
    ("network", "size", "shared"),
    [pytest.param(*case, (), marks=pytest.mark.slow) for case in CASES[:2]]
    + [(*case, ()) for case in CASES[2:]]
    + [(*CASES[2], shared) for shared in (("0.weight", "0.bias"), ("images", "0.weight"))],
)
def test_convolutions_and_slopes_of_their_outputs_are_those_of_torch(network, size, shared):
    """To 1e-5 of the largest number. `jacrev` vectorises over outputs inside the vectorised
    networks, some of whose parts are shared.
    """
    faster = few_channel_convolutions(copy.deepcopy(network))
    assert not {nn.Conv2d, nn.ReLU} & {type(layer) for layer in faster}
    shapes = {name: p.shape for name, p in network.named_parameters()}
    shapes["images"] = 2, network[0].in_channels, *size
    dims = {name: None if name in shared else 0 for name in shapes}
    parts = {
        name: normal(*(2,) * (name not in shared), *shape, seed=seed).to(DEVICE)
        for seed, (name, shape) in enumerate(shapes.items())
    }

    def slopes(module):
        def sums(images, state):
            two = functional_call(module, state, (images,)).sin().sum((0, 2, 3))[:2]
            return two, two

        return torch.vmap(torch.func.jacrev(sums, has_aux=True), (dims["images"], dims))(
            parts["images"], parts
        )

    ours, theirs = slopes(faster), slopes(network)
    assert (ours[0] - theirs[0]).abs().max() <= 1e-5 * theirs[0].abs().max()
    assert_close(ours[1], theirs[1], rtol=1e-4, atol=1e-4)


@needs_triton
def test_trained_weights_are_left_to_torch_and_second_derivatives_raise():
    """A layer whose weights need gradients takes PyTorch's path; the kernel itself raises."""
    plain = nn.Sequential(nn.Conv2d(2, 3, 3), nn.Identity(), nn.ReLU()).to(DEVICE)
    layer = few_channel_convolutions(copy.deepcopy(plain))
    x = normal(2, 2, 5, 5).to(DEVICE)
    for network in (layer, plain):
        network(x).square().sum().backward()
    weight = plain[0].weight
    assert_close(layer[0].weight.grad, weight.grad)
    layer.requires_grad_(False)
    slope = torch.func.grad(lambda x: layer(x).sin().sum())
    with pytest.raises(NotImplementedError, match="second derivatives"):
        torch.func.grad(lambda x: slope(x).square().sum())(x)
    with pytest.raises(NotImplementedError, match="no gradient of weights"):
        _Convolved.apply(x[None], weight[None], None, Convolution((1, 1), (0, 0))).sum().backward()


def test_a_relu_whose_input_is_observed_is_not_merged():
    hooked = nn.Sequential(
        nn.Conv2d(1, 1, 1), nn.ReLU(), nn.Conv2d(1, 1, 1), nn.BatchNorm2d(1), nn.ReLU()
    )
    hooked[0].register_forward_hook(lambda *_: None)
    few_channel_convolutions(hooked)
    assert [type(layer) is nn.ReLU for layer in hooked] == [False, True, False, False, True]


def small():
    return nn.Sequential(nn.Conv2d(1, 3, 3), nn.ReLU(), nn.Flatten(), nn.Linear(108, 8))


class Peeking(nn.Sequential):
    """A network that reads a convolution without the ReLU after it."""

    def forward(self, x):
        features, flatten, last = self
        return last(flatten(features[0](x)))


class Choosing(nn.Sequential):
    """A network that reads the classes of its layers."""

    def forward(self, x):
        first, *rest = self
        return nn.Sequential(*rest)(first(x) if type(first) is nn.Conv2d else 2 * first(x))


@needs_triton
def test_a_network_that_faster_layers_would_change_is_evaluated_without_them():
    """The kernel is used where gradients of three networks are those of PyTorch."""
    for factory, used in ((small, True), (lambda: Peeking(small()[:2], *small()[2:]), False)):
        networks = replace(prepared(factory, device=DEVICE).networks, faster=False)
        stackings = [Stacking.of(networks, kernels) for kernels in ("torch", "triton")]
        assert [stacking is not None for stacking in stackings] == [True, used]
    for factory, faster in ((small, True), (lambda: Choosing(*small()), False)):
        assert prepared(factory).networks.faster == faster


def test_kernels_that_cannot_run_are_rejected(monkeypatch):
    triton = pytest.importorskip("triton")
    with pytest.raises(ValueError, match="vmap"):
        compute(nc.LOGREG, 4, device="cpu", kernels="triton")
    monkeypatch.setattr(triton.knobs.runtime, "interpret", False)
    with pytest.raises(ValueError, match="needs a GPU.*TRITON_INTERPRET=1"):
        compute(nc.LOGREG, 4, device="cpu", kernels="triton")
    monkeypatch.setitem(sys.modules, "triton", None)
    with pytest.raises(ValueError, match="needs Triton"):
        require_kernels("triton", "cuda")


COMPILE = """
import re, subprocess, tempfile
from pathlib import Path
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
import triton.language as tl
from nads_core.kernels import convolutions_triton

kernels = []
convolution = dict.fromkeys(("out", "source", "taps", "other"), "*fp32")
convolution |= dict(samples="i32", other_samples="i32")
tuned = dict(convolutions_triton.TUNING)
for depth, channels, size, side, step, border in CONVOLUTIONS:
    small = (size + 2 * border - side) // step + 1
    for adjoint in (False, True):
        source, target = (depth, size), (channels, small)
        if adjoint:
            source, target = target, source
        constants = dict(
            DEPTH=source[0], ROWS=source[1], COLUMNS=source[1],
            CHANNELS=target[0], HEIGHT=target[1], WIDTH=target[1],
            FILTER_ROWS=side, FILTER_COLUMNS=side, STEP_Y=step, STEP_X=step,
            PADDING_Y=border, PADDING_X=border, ADJOINT=adjoint, OTHER=True, RELU=not adjoint,
            SUMS=tl.float32, PIXELS=tuned["PIXELS"],
            CHANNEL_TILE=triton.next_power_of_2(target[0]),
        )
        options = {name: tuned[name] for name in ("num_warps", "num_stages")}
        options["enable_fp_fusion"] = True
        kernels.append((convolutions_triton._convolve, convolution, constants, options))
tool = next(Path(triton.__file__).parent.glob("backends/nvidia/bin/cuobjdump*"))
for capability in CAPABILITIES:
    for function, signature, constants, options in kernels:
        signature = signature | dict.fromkeys(constants, "constexpr")
        source = ASTSource(function, signature, constants)
        kernel = triton.compile(source, target=GPUTarget("cuda", capability, 32), options=options)
        with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
            file.write(kernel.asm["cubin"])
            file.flush()
            usage = subprocess.check_output([tool, "-res-usage", file.name], text=True)
        stack = re.search(r"STACK:(\\d+)", usage).group(1)
        print(capability, stack, kernel.metadata.shared)
"""
# Channels in and out, size, filter, stride, padding: both of LeNet, one of the small CNN, and the
# largest that is used.
CONVOLUTIONS = [
    (1, 6, 32, 5, 1, 0),
    (6, 16, 14, 5, 1, 0),
    (16, 16, 16, 3, 1, 1),
    (32, 32, 32, 3, 2, 1),
]
SHARED = {
    75: 64,
    80: 163,
    86: 99,
    89: 99,
    90: 227,
    100: 227,
    120: 99,
}  # by compute capability: KiB for one block


@needs_triton
@pytest.mark.slow
def test_the_kernels_compile_for_gpus_that_are_not_there(tmp_path, monkeypatch):
    """For T4, A100, RTX 30 and 40, H100 and Blackwell: what the binary needs is within the limits
    of the card.
    """
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    script = COMPILE.replace("CAPABILITIES", str(tuple(SHARED)))
    printed = run_python("-c", script.replace("CONVOLUTIONS", str(CONVOLUTIONS)))
    rows = [tuple(map(int, line.split())) for line in printed.splitlines()]
    assert len(rows) == 2 * len(CONVOLUTIONS) * len(SHARED)
    for capability, spilled, shared in rows:
        assert spilled <= 256 and shared <= 1024 * SHARED[capability]  # bytes, of a thread and all
