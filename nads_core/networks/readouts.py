"""Last linear layers of which others can be drawn, so that one network counts as several.

The last layer is the cheapest part of a network to draw: R orthogonal rows in place of the initial
one share the weights below and the forward pass.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import linear
from torch.utils._python_dispatch import TorchDispatchMode

_ATEN = torch.ops.aten
# Draws of one distribution, with the positions of their two numbers
_DRAWS = {_ATEN.uniform_.default: ("from", "to"), _ATEN.normal_.default: ("mean", "std")}
_DEFAULTS = {"from": 0.0, "to": 1.0, "mean": 0.0, "std": 1.0}
_ROUNDING = 1e-4  # of what should be equal


@dataclass(frozen=True)
class Readout:
    """A last linear layer whose rows are drawn around 0.

    Args:
        layer: name of the layer.
        num_features: number of features that it reads, F.
        std: standard deviation of its weights.
    """

    layer: str
    num_features: int
    std: float

    def features(self, network: nn.Module, images: Tensor) -> Tensor:
        """Return what the layer reads of K inputs, (K, F)."""
        seen: list[Tensor] = []
        layer = network.get_submodule(self.layer)
        hook = layer.register_forward_pre_hook(lambda _, arguments: seen.append(arguments[0]))
        try:
            network(images)
        finally:
            hook.remove()
        return seen[-1]


class InPlaceWrites(TorchDispatchMode):
    """The in-place operations that a factory runs, in order.

    Attributes:
        writes: operation, tensor, and the other arguments of each.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch's has no annotations
        self.writes: list[tuple[Any, Tensor, tuple[Any, ...], dict[str, Any]]] = []

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # else the first operation imports torch's compiler, which takes a second

    def __torch_dispatch__(
        self, func: Any, types: object, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> object:
        if func._schema.is_mutable and isinstance(args[0], Tensor):
            self.writes.append((func, args[0], args[1:], kwargs or {}))
        return func(*args, **(kwargs or {}))


def drawn_std(writes: InPlaceWrites, weight: Tensor) -> float | None:
    """Return the standard deviation of a weight that one draw around 0 made; None for any other.

    Args:
        writes: operations of the factory.
        weight: the weight that it returned.
    """
    memory = weight.untyped_storage().data_ptr()
    mine = [write for write in writes.writes if write[1].untyped_storage().data_ptr() == memory]
    if not mine or mine[-1][0] not in _DRAWS or mine[-1][1].shape != weight.shape:
        return None
    func, _, args, kwargs = mine[-1]
    names = _DRAWS[func]
    numbers = [
        float(args[place] if len(args) > place else kwargs.get(name, _DEFAULTS[name]))
        for place, name in enumerate(names)
    ]
    if names[0] == "mean":
        return numbers[1] if numbers[0] == 0 else None
    return numbers[1] / 3**0.5 if numbers[0] == -numbers[1] else None  # uniform on [-b, b]


def drawn_stds(writes: InPlaceWrites, network: nn.Module) -> dict[str, float | None]:
    """Return the standard deviations of the weights of all linear layers, see `drawn_std`."""
    return {
        name: drawn_std(writes, layer.weight)
        for name, layer in network.named_modules()
        if type(layer) is nn.Linear
    }


def find_readout(
    network: nn.Module, stds: dict[str, float | None], images: Tensor
) -> Readout | str:
    """Return the last linear layer of a factory's networks, or why others cannot be drawn.

    Args:
        network: the first network, ready to be evaluated.
        stds: standard deviations of the weights of its linear layers.
        images: some inputs, (K, *image_shape).
    """
    for name, std in reversed(stds.items()):
        layer = network.get_submodule(name)
        assert isinstance(layer, nn.Linear)
        if not _is_last(network, name, layer, images):
            continue
        if std is None:
            return f"{name}.weight is not made by one draw around 0"
        return Readout(name, layer.in_features, std)
    return "the output is not that of a linear layer"


def _is_last(network: nn.Module, name: str, layer: nn.Linear, images: Tensor) -> bool:
    """Whether outputs are the layer's, and what it reads does not depend on its weight."""
    readout = Readout(name, layer.in_features, 0.0)
    try:
        features, outputs = readout.features(network, images.clone()), network(images.clone())
    except IndexError:  # the layer is not called
        return False
    if features.dim() != 2 or not isinstance(outputs, Tensor):
        return False
    own = linear(features, layer.weight, layer.bias)  # without its hooks
    if relative(outputs.detach(), own.detach()) > _ROUNDING:
        return False
    with torch.no_grad():
        layer.weight.mul_(-2)
    again = readout.features(network, images.clone())
    with torch.no_grad():
        layer.weight.mul_(-0.5)
    return relative(features.detach(), again.detach()) <= _ROUNDING


def relative(one: Tensor, other: Tensor) -> float:
    """Return the norm of the difference of two tensors over that of the first; infinite for
    different shapes.
    """
    if one.shape != other.shape:
        return math.inf
    return float((one - other).norm() / one.norm().clamp(min=1e-300))
