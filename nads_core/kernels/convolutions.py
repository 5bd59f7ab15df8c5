"""2-D convolutions of many networks, each with weights of its own, with bias and ReLU in the same
pass.

For network b with weights w and bias c, over channels k and the places (u, v) of the filter,

    y[b, n, o, i, j] = relu(c[b, o] + sum_{k, u, v} w[b, o, k, u, v] x[b, n, k, i', j'])
    i' = s i + u - p,    j' = s j + v - p    (stride s, padding p)

`torch.vmap` makes grouped convolutions of this. The gradient of the input is the adjoint of that
linear map where the output is positive; the gradient of weights is left to PyTorch. The kernel is
in `convolutions_triton`.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nads_core.kernels.direction import Convolution
from nads_core.runtime.arguments import require_choice

_MOST_CHANNELS = 32  # a thread sums so many outputs in registers

Context = Any  # of autograd and of vmap, which have no types


def _in_front(tensor: Tensor | None, dim: int | None, count: int) -> Tensor | None:
    """Merge a vectorised dimension with that of the networks: (B, ...) -> (count B, ...)."""
    if tensor is None:
        return None
    batched = tensor.expand(count, *tensor.shape) if dim is None else tensor.movedim(dim, 0)
    return batched.flatten(0, 1)


class _Convolved(torch.autograd.Function):
    """Values (B, N, C, H, W), weights (B, O, C, h, w), bias (B, O) or None -> (B, N, O, H', W').

    For the adjoint: gradients (B, R N, O, H', W'), weights, outputs (B, N, O, H', W') that have to
    be positive or None -> (B, R N, C, H, W).
    """

    @staticmethod
    def forward(
        source: Tensor, weight: Tensor, other: Tensor | None, convolution: Convolution
    ) -> Tensor:
        from nads_core.kernels.convolutions_triton import convolve

        return convolve(source, weight, other, convolution)

    @staticmethod
    def setup_context(ctx: Context, inputs: tuple[Any, ...], output: Tensor) -> None:
        source, weight, _, convolution = inputs
        ctx.save_for_backward(weight, output if convolution.relu else None)
        ctx.size, ctx.convolution = tuple(source.shape[-2:]), convolution

    @staticmethod
    def backward(ctx: Context, gradient: Tensor) -> tuple[Tensor | None, ...]:
        weight, output = ctx.saved_tensors
        second = ctx.convolution.adjoint_size is not None
        if second or any(ctx.needs_input_grad[1:3]):
            missing = "second derivatives" if second else "gradient of weights"
            raise NotImplementedError(
                f"the Triton convolution has no {missing}: set kernels='torch'"
            )
        adjoint = ctx.convolution._replace(relu=False, adjoint_size=ctx.size)
        return _Convolved.apply(gradient, weight, output, adjoint), None, None, None

    @staticmethod
    def vmap(info: Context, in_dims: tuple[Any, ...], *inputs: Any) -> tuple[Tensor, int]:
        *tensors, convolution = inputs
        dims, count = in_dims[:3], info.batch_size
        if dims[1:] == (None, None):  # more inputs, or cotangents, of the same networks
            source = tensors[0].movedim(dims[0], 1).flatten(1, 2)
            result = _Convolved.apply(source, *tensors[1:], convolution)
            return result.unflatten(1, (count, -1)), 1
        merged = (_in_front(*pair, count) for pair in zip(tensors, dims, strict=True))
        return _Convolved.apply(*merged, convolution).unflatten(0, (count, -1)), 0


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
        assert not isinstance(self.padding, str)
        convolution = Convolution(self.stride, self.padding, self.relu)
        return _Convolved.apply(x[None], self.weight[None], bias, convolution)[0]


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


def require_kernels(kernels: str, device: torch.device | str) -> None:
    """Raise a ValueError unless ``kernels`` is known and can run on ``device``.

    Args:
        kernels: ``"torch"``, or ``"triton"``, where one launch convolves the inputs of many
            networks.
        device: device of the tensors.
    """
    require_choice("kernels", kernels, ("torch", "triton"))
    if kernels == "torch":
        return
    instead = "leave kernels at 'torch'"
    try:
        import triton
    except ImportError as error:
        raise ValueError(f"kernels='triton' needs Triton ({error}): {instead}") from error
    if torch.device(device).type != "cuda" and not triton.knobs.runtime.interpret:
        raise ValueError(
            f"kernels='triton' needs a GPU, got device {str(device)!r}: "
            f"{instead} (or TRITON_INTERPRET=1)"
        )
