"""The layers that architectures are varied by: how they downsample, what stands at the border, norms, activations."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

POOLINGS = ("max", "average", "blurred", "strided", "none")
PADDINGS = ("zeros", "circular", "none")
NORMS = ("none", "batch", "layer", "group")
INITIALISATIONS = ("default", "he", "orthogonal", "times 4")


class Sine(nn.Module):
    """The sine of every number."""

    def forward(self, x: Tensor) -> Tensor:
        return x.sin()


class _EveryOther(nn.Module):
    """Keep every other row and column, which turns the convolution before it into one of stride 2."""

    def forward(self, x: Tensor) -> Tensor:
        return x[..., ::2, ::2]


class _Blurred(nn.Module):
    """Keep every other pixel of a blurred image: the filter 1, 3, 3, 1 (over 8) is three averages of two pixels.

    Edge pixels are repeated, so that a flipped image is pooled to the flipped result.
    """

    def forward(self, x: Tensor) -> Tensor:
        x = F.avg_pool2d(F.pad(x, (1, 1, 1, 1), mode="replicate"), 2, stride=1)
        return F.avg_pool2d(F.avg_pool2d(x, 2, stride=1), 2)


ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    "relu": nn.ReLU, "gelu": nn.GELU, "tanh": nn.Tanh, "sine": Sine, "linear": nn.Identity,
}  # fmt: skip


def require_option(what: str, value: str, allowed: tuple[str, ...]) -> None:
    """Raise a ValueError for an option that there is not."""
    if value not in allowed:
        raise ValueError(f"unknown {what} {value!r}: choose from {allowed}")


def downsample(pooling: str) -> nn.Module:
    """Halve the resolution after a convolution: by pooling, by keeping every other pixel, or not at all."""
    require_option("pooling", pooling, POOLINGS)
    modules = {
        "max": nn.MaxPool2d(2), "average": nn.AvgPool2d(2), "blurred": _Blurred(), "strided": _EveryOther(),
        "none": nn.Identity(),
    }  # fmt: skip
    return modules[pooling]


def halved(size: int, pooling: str) -> int:
    """Return the side of an image after `downsample`."""
    return size if pooling == "none" else -(-size // 2) if pooling == "strided" else size // 2


def activation(name: str) -> nn.Module:
    """Return one of `ACTIVATIONS`."""
    require_option("activation", name, tuple(ACTIVATIONS))
    return ACTIVATIONS[name]()


def norm(name: str, channels: int) -> nn.Module:
    """Return a norm of images: over the batch, over all of one image, or over four groups of its channels."""
    require_option("norm", name, NORMS)
    if name == "batch":
        return nn.BatchNorm2d(channels)
    return nn.Identity() if name == "none" else nn.GroupNorm(1 if name == "layer" else 4, channels)


def convolution(
    channels: int, width: int, kernel: int, padding: str = "zeros", *, stride: int = 1, bias: bool = True
) -> nn.Conv2d:
    """Return a convolution with an odd kernel that keeps the size of the image, unless ``padding`` is "none"."""
    require_option("padding", padding, PADDINGS)
    mode: Literal["zeros", "circular"] = "circular" if padding == "circular" else "zeros"
    around = 0 if padding == "none" else kernel // 2
    return nn.Conv2d(channels, width, kernel, stride=stride, padding=around, padding_mode=mode, bias=bias)


class Beside(nn.Module):
    """Concatenation of a layer's input and output."""

    def __init__(self, layer: nn.Module):
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([x, self.layer(x)], 1)


class Residual(nn.Module):
    """Adds the input to what a layer makes of it."""

    def __init__(self, layer: nn.Module):
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor) -> Tensor:
        return x + self.layer(x)


def initialise(network: nn.Module, initialisation: str) -> None:
    """Draw the weights of convolutions and linear layers again, or scale them."""
    require_option("initialisation", initialisation, INITIALISATIONS)
    if initialisation == "default":
        return
    for module in network.modules():
        if not isinstance(module, nn.Conv2d | nn.Linear):
            continue
        if initialisation == "times 4":
            with torch.no_grad():
                for parameter in module.parameters():
                    parameter.mul_(4)
            continue
        if initialisation == "he":
            nn.init.kaiming_normal_(module.weight)
        else:
            nn.init.orthogonal_(module.weight, math.sqrt(2))
        if module.bias is not None:
            nn.init.zeros_(module.bias)
