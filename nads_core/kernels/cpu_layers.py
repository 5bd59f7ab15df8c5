"""Layers that PyTorch runs slowly on CPUs: 2x2 max pooling, and convolutions of few channels."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.nn.modules.utils import _pair

_LARGE = 512  # numbers of one image, channels included, below which PyTorch is faster on new data


class _MaxPool2x2(torch.autograd.Function):
    """Two vectorised maxima, over rows and then over columns; the first of equal pixels takes the
    gradient.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        rows = torch.maximum(x[..., ::2, :], x[..., 1::2, :])  # (N, C, H, W) -> (N, C, H / 2, W)
        ctx.save_for_backward(x, rows)
        return torch.maximum(rows[..., ::2], rows[..., 1::2])  # (N, C, H / 2, W / 2)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        x, rows = ctx.saved_tensors
        if torch.is_grad_enabled():  # in a second derivative
            return torch.autograd.grad(
                nn.functional.max_pool2d(x, 2), x, gradient, create_graph=True
            )[0]
        # Gradients of ``rows`` and of ``x``
        along_rows = torch.empty_like(rows)
        out = torch.empty_like(x)
        _split(
            gradient, rows[..., ::2], rows[..., 1::2], along_rows[..., ::2], along_rows[..., 1::2]
        )
        _split(along_rows, x[..., ::2, :], x[..., 1::2, :], out[..., ::2, :], out[..., 1::2, :])
        return out


def _split(
    gradient: Tensor, first: Tensor, second: Tensor, to_first: Tensor, to_second: Tensor
) -> None:
    """Give the gradient of a maximum to the larger of two tensors, without masks, which torch
    converts slowly.
    """
    part = torch.ops.aten.threshold_backward(gradient, second - first, 0)  # where second > first
    to_second.copy_(part)
    torch.sub(gradient, part, out=to_first)


class _FasterMaxPool2d(nn.MaxPool2d):
    """2x2 max pooling: the same values and the same gradient as PyTorch's, twice as fast on a CPU.

    Where two pixels of a window are equal the gradient goes to one of them, in the order left
    before right, then upper before lower; PyTorch takes upper before lower first. Networks whose
    gradients this changes, such as those of binary activations, pool as PyTorch does
    (`networks.checks`).
    """

    def forward(self, x: Tensor) -> Tensor:
        even = x.dim() in (3, 4) and x.numel() > 0 and x.shape[-1] % 2 == x.shape[-2] % 2 == 0
        if not even or x.shape[-3:].numel() < _LARGE or not _plain(x):
            return super().forward(x)
        return _MaxPool2x2.apply(x)


def _is_2x2(layer: nn.MaxPool2d) -> bool:
    """Whether a layer takes the maxima of 2x2 windows that do not overlap."""
    sizes = (*_pair(layer.kernel_size), *_pair(layer.stride))
    borders = (*_pair(layer.padding), *(size - 1 for size in _pair(layer.dilation)))
    return (
        set(sizes) == {2} and not any(borders) and not layer.return_indices and not layer.ceil_mode
    )


def _plain(x: Tensor) -> bool:
    """Whether an input is of a type and in a mode that the operations of this module know."""
    if x.device.type != "cpu" or x.dtype not in (torch.float32, torch.float64, torch.bfloat16):
        return False
    # A network may differentiate itself in its forward pass, by torch.func or in forward mode.
    return not torch._C._are_functorch_transforms_active() and forward_ad._current_level < 0


class _FewChannelConv2d(nn.Conv2d):
    """Convolution by PyTorch's own matrix products: for one channel, its input gradient is up to
    ten times as fast.
    """

    def forward(self, x: Tensor) -> Tensor:
        batch = x.dim() == 4 and x.numel() > 0 and x.shape[1] == self.in_channels
        # oneDNN computes values alone faster.
        if not batch or not x.requires_grad or not _plain(x):
            return super().forward(x)
        return torch.ops.aten.thnn_conv2d(
            x, self.weight, self.kernel_size, self.bias, self.stride, self.padding
        )


def _is_unit_convolution(layer: nn.Conv2d) -> bool:
    """Whether a convolution has steps of one pixel, and zeros as padding of a given width."""
    unit = set(layer.stride + layer.dilation) == {1} and layer.groups == 1
    return unit and layer.padding_mode == "zeros" and not isinstance(layer.padding, str)


def faster_layers(network: nn.Module, convolutions: bool = True) -> nn.Module:
    """Let a network use the faster layers of this module, in place; return the network.

    Values and gradients are those of PyTorch up to the order of sums. Gradients of the weights are
    not faster.

    Args:
        network: the network, whose parameters and hooks stay.
        convolutions: whether to change convolutions of at most three channels beside max pooling.
    """
    for layer in network.modules():
        if type(layer) is nn.MaxPool2d and _is_2x2(layer):
            layer.__class__ = _FasterMaxPool2d
        elif convolutions and type(layer) is nn.Conv2d and layer.in_channels <= 3:
            if _is_unit_convolution(layer):
                layer.__class__ = _FewChannelConv2d
    return network
