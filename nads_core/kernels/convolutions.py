"""2-D convolutions of many networks, each with weights of its own, with bias and ReLU in the same
pass.

For network b with weights w and bias c, over channels k and the places (u, v) of the filter,

    y[b, n, o, i, j] = relu(c[b, o] + sum_{k, u, v} w[b, o, k, u, v] x[b, n, k, i', j'])
    i' = s i + u - p,    j' = s j + v - p    (stride s, padding p)

`torch.vmap` makes grouped convolutions of this. The gradient of the input is the adjoint of that
linear map where the output is positive; the gradient of weights is left to PyTorch. The kernel is
in `convolutions_triton`.
"""

from collections.abc import Sequence
from typing import Any, NoReturn

import torch
from torch import Tensor, nn
from torch.nn import functional as F

_MOST_CHANNELS = 32  # a thread sums so many outputs in registers

Pair = tuple[int, int]
Context = Any  # of autograd and of vmap, which have no types
Inputs = tuple[Any, ...]


def convolution_reference(
    x: Tensor, weight: Tensor, bias: Tensor | None, stride: Pair, padding: Pair, relu: bool
) -> Tensor:
    """Return what the kernel computes, network by network: (B, N, C, H, W) -> (B, N, O, H', W')."""
    biases = [None] * len(x) if bias is None else bias
    outputs = [
        F.conv2d(images, w, c, stride, padding)
        for images, w, c in zip(x, weight, biases, strict=True)
    ]
    return torch.stack(outputs).relu() if relu else torch.stack(outputs)


def _in_front(tensor: Tensor | None, dim: int | None, count: int) -> Tensor | None:
    """Merge a vectorised dimension with that of the networks: (B, ...) -> (count B, ...)."""
    if tensor is None:
        return None
    batched = tensor.expand(count, *tensor.shape) if dim is None else tensor.movedim(dim, 0)
    return batched.flatten(0, 1)


def _as_inputs(tensor: Tensor, dim: int | None) -> Tensor:
    """Merge a vectorised dimension with that of the inputs: (B, N, ...) -> (B, count N, ...)."""
    assert dim is not None, "nothing is vectorised"
    return tensor.movedim(dim, 1).flatten(1, 2)


def _vectorised(
    function: type[torch.autograd.Function], count: int, dims: Sequence[int | None], inputs: Inputs
) -> tuple[Tensor, int]:
    """Apply a function of three tensors and options to ``count`` vectorised ones; return the result
    and its vectorised dimension.
    """
    first, second, third, *options = inputs
    # The networks are shared: more inputs, or cotangents, of each
    if dims[1] is None and dims[2] is None:
        result = function.apply(_as_inputs(first, dims[0]), second, third, *options)
        return result.unflatten(1, (count, -1)), 1
    merged = (_in_front(tensor, dim, count) for tensor, dim in zip(inputs, dims[:3], strict=False))
    return function.apply(*merged, *options).unflatten(0, (count, -1)), 0


class _Convolution(torch.autograd.Function):
    """x (B, N, C, H, W), weights (B, O, C, h, w), bias (B, O) or None -> (B, N, O, H', W')."""

    @staticmethod
    def forward(
        x: Tensor, weight: Tensor, bias: Tensor | None, stride: Pair, padding: Pair, relu: bool
    ) -> Tensor:
        from nads_core.kernels.convolutions_triton import convolve

        return convolve(x, weight, bias, stride, padding, relu)

    @staticmethod
    def setup_context(ctx: Context, inputs: Inputs, output: Tensor) -> None:
        x, weight, _, stride, padding, relu = inputs
        ctx.save_for_backward(weight, output if relu else None)
        ctx.geometry = (tuple(x.shape[-2:]), stride, padding)

    @staticmethod
    def backward(ctx: Context, gradient: Tensor) -> tuple[Tensor | None, ...]:
        if any(ctx.needs_input_grad[1:3]):
            raise NotImplementedError(
                "the Triton convolution has no gradient of weights: set kernels='torch'"
            )
        weight, output = ctx.saved_tensors
        return _Adjoint.apply(gradient, output, weight, *ctx.geometry), *[None] * 5

    @staticmethod
    def vmap(info: Context, in_dims: tuple[int | None, ...], *inputs: Any) -> tuple[Tensor, int]:
        return _vectorised(_Convolution, info.batch_size, in_dims, inputs)


class _Adjoint(torch.autograd.Function):
    """Gradients (B, R N, O, H', W') where outputs (B, N, O, H', W') are positive -> (B, R N, C, H,
    W). Second derivatives raise an error.
    """

    @staticmethod
    def forward(
        gradient: Tensor,
        output: Tensor | None,
        weight: Tensor,
        size: Pair,
        stride: Pair,
        padding: Pair,
    ) -> Tensor:
        from nads_core.kernels.convolutions_triton import convolve_adjoint

        return convolve_adjoint(gradient, output, weight, size, stride, padding)

    @staticmethod
    def setup_context(ctx: Context, inputs: Inputs, output: Tensor) -> None:
        """Save nothing, as `backward` raises."""

    @staticmethod
    def backward(ctx: Context, *gradients: Tensor) -> NoReturn:
        raise NotImplementedError(
            "the Triton convolution has no second derivatives: set kernels='torch'"
        )

    @staticmethod
    def vmap(info: Context, in_dims: tuple[int | None, ...], *inputs: Any) -> tuple[Tensor, int]:
        return _vectorised(_Adjoint, info.batch_size, in_dims, inputs)


class _FewChannelConvolution(nn.Conv2d):
    """A convolution by the kernel, followed by ReLU if one was merged; by PyTorch for gradients of
    weights.
    """

    relu = False

    def forward(self, x: Tensor) -> Tensor:
        trained = self.weight.requires_grad or (self.bias is not None and self.bias.requires_grad)
        if trained or x.dim() != 4 or x.is_meta:  # without values, operations are counted
            y = super().forward(x)
            return F.relu(y) if self.relu else y
        bias = None if self.bias is None else self.bias[None]
        return _Convolution.apply(
            x[None], self.weight[None], bias, self.stride, self.padding, self.relu
        )[0]


def few_channel_convolutions(network: nn.Module) -> nn.Module:
    """Let convolutions of at most 32 channels use the kernel, in place; return the network.

    A ReLU that directly follows one in an `nn.Sequential` becomes part of it.
    """
    for layer in network.modules():
        if type(layer) is nn.Conv2d and _suitable(layer):
            layer.__class__ = _FewChannelConvolution  # parameters and hooks stay
    for container in network.modules():
        if type(container).forward is nn.Sequential.forward:
            _merge_relus(container)
    return network


def _suitable(layer: nn.Conv2d) -> bool:
    plain = layer.groups == 1 and layer.dilation == (1, 1) and layer.padding_mode == "zeros"
    few = max(layer.in_channels, layer.out_channels) <= _MOST_CHANNELS
    return plain and few and not isinstance(layer.padding, str)


def _merge_relus(container: nn.Module) -> None:
    """Merge each ReLU into the convolution before it; only `nn.Identity` may be in between."""
    before: nn.Module | None = None
    for name, layer in list(container.named_children()):
        if type(layer) is nn.ReLU and isinstance(before, _FewChannelConvolution):
            if not (before._forward_hooks or layer._forward_hooks or layer._forward_pre_hooks):
                before.relu = True
                setattr(container, name, nn.Identity())
        if type(layer) is not nn.Identity:
            before = layer
