"""Last linear layers, and parts of a network that are initialised at or near zero.

f is linear in the weights of a last linear layer, so that several of them share one forward pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.modules.conv import _ConvNd
from torch.utils._pytree import tree_leaves

from nads_core.networks.initialisation import State, Step
from nads_core.runtime.seeds import seeded

_NEARLY_ZERO = 0.01  # a constant factor up to here counts; ConvNeXt's layer scale is 1e-6
_GROWTH = 10  # of a factor near zero, in a trial; a zero becomes 1
_LAYERS = (nn.Linear, _ConvNd, _NormBase, nn.LayerNorm, nn.GroupNorm)


@dataclass(frozen=True)
class Readout:
    """The linear layer whose result is the network's output, with weights that are drawn around 0 and used once.

    Attributes:
        weight: name of the layer's weights.
        bias: name of the layer's bias; None without one.
        num_features: number of inputs of the layer, F.
        std: standard deviation of one weight.
    """

    weight: str
    bias: str | None
    num_features: int
    std: float

    @classmethod
    def of(cls, network: nn.Module, layers: Sequence[str], steps: Sequence[Step] | None) -> Readout | None:
        """Describe a network's last layer; None unless it is one linear layer with fresh weights that occur only there.

        Args:
            network: network that contains the layers.
            layers: names of the linear layers that return the output.
            steps: operations that draw the network's weights; None if they are unknown.
        """
        if len(layers) != 1 or steps is None:
            return None
        layer, weight = network.get_submodule(layers[0]), f"{layers[0]}.weight"
        assert isinstance(layer, nn.Linear)
        bias = None if layer.bias is None else f"{layers[0]}.bias"
        uses = {name for name, tensor in network.named_parameters(remove_duplicate=False)
                if tensor is layer.weight or tensor is layer.bias}  # fmt: skip
        match [step.distribution() for step in steps if step.name == weight]:
            case [(kind, 0, scale)] if uses == {weight, bias} - {None}:
                return cls(weight, bias, layer.in_features, scale / 3**0.5 if kind == "uniform" else scale)
        return None

    def replaced(self, state: State, rows: Tensor) -> State:
        """Return the weights of B networks with the rows (B, R, F) for a last layer, which then has R outputs."""
        # A bias changes no gradient, but its length is the number of outputs.
        return state | {self.weight: rows} | ({self.bias: rows.new_zeros(rows.shape[:2])} if self.bias else {})


@contextmanager
def linear_results(network: nn.Module) -> Iterator[list[tuple[str, Tensor]]]:
    """Record (name, result) of each call of a linear layer while the context lasts."""
    results: list[tuple[str, Tensor]] = []
    with ExitStack() as hooks:
        for name, layer in network.named_modules():
            if type(layer) is nn.Linear:
                hooks.enter_context(layer.register_forward_hook(lambda _, __, y, name=name: results.append((name, y))))
        yield results


def find_zero_init(
    network: nn.Module, fixed: State, weights: State, function: Callable[[State], Tensor]
) -> dict[str, float]:
    """Name the parameters that silence what passes through them by a constant at or near zero, with that constant.

    Such a parameter is the weight of a layer, or one that another needs: with a larger constant, f depends on the other
    by the factor more that a product of both gives.

    Args:
        network: network.
        fixed: parameters and buffers that are the same in all networks.
        weights: all others.
        function: f, at some inputs, as a function of parameters and buffers.
    """
    state, parameters = fixed | weights, [name for name, _ in network.named_parameters()]

    def slopes(changed: State) -> dict[str, float]:
        """Return the norm of the derivative of f with respect to each parameter."""
        leaves = {name: (state | changed)[name].detach().requires_grad_() for name in parameters}
        with torch.enable_grad():
            value = function(state | leaves).sum()
            if not value.requires_grad:
                return dict.fromkeys(leaves, 0.0)
            gradients = torch.autograd.grad(value, list(leaves.values()), allow_unused=True, materialize_grads=True)
        return {name: float(gradient.norm()) for name, gradient in zip(leaves, gradients, strict=True)}

    found: dict[str, float] = {}
    before: dict[str, float] = {}
    for name in parameters:
        constant = _constant(fixed.get(name))
        if constant is None or abs(constant) > _NEARLY_ZERO or name.endswith("bias"):
            continue
        layer, _, attribute = name.rpartition(".")
        silent = attribute == "weight" and isinstance(network.get_submodule(layer), _LAYERS)
        if not silent:
            before = before or slopes({})
            after = slopes({name: torch.full_like(fixed[name], _GROWTH * constant or 1)})
            share = 2 / _GROWTH if constant else 0  # of the new derivative that the old one may be
            silent = any(before[peer] <= share * slope and slope > 0 for peer, slope in after.items() if peer != name)
        if silent:
            found[name] = constant
    return found


def _constant(parameter: Tensor | None) -> float | None:
    """Return the value that all entries share; None if they differ, or without entries."""
    values = torch.empty(0) if parameter is None else parameter.flatten()
    return float(values[0]) if len(values) and bool((values == values[0]).all()) else None


def described(parts: dict[str, float]) -> str:
    """Return the names and values in a few words."""
    names = [f"{name} = {value:g}" for name, value in parts.items()]
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def with_fresh_readout(factory: Callable[[], nn.Module], image_shape: tuple[int, ...]) -> Callable[[], nn.Module]:
    """Return a factory whose networks have their last linear layer drawn as ``nn.Linear`` draws its weights.

    Vision transformers, among others, start with a last layer of zeros: their output does not depend on the input.

    Raises:
        ValueError: if the network does not end in one linear layer of zeros.
    """
    with seeded(1):
        network = factory()
    with torch.no_grad(), linear_results(network.eval()) as results:
        outputs = tree_leaves(network(torch.zeros(2, *image_shape)))  # tensors, of a dict too
    last = [name for name, result in results if any(result is output for output in outputs)]
    if len(last) != 1:
        raise ValueError("fresh_readout needs a network whose last layer is an nn.Linear")
    layer = network.get_submodule(last[0])
    if not isinstance(layer, nn.Linear) or layer.weight.any():
        raise ValueError(f"fresh_readout is for last layers of zeros, but {last[0]}.weight is drawn: leave it out")

    def fresh() -> nn.Module:
        drawn = factory()
        drawn.get_submodule(last[0]).reset_parameters()  # type: ignore[operator]  # of an nn.Linear
        return drawn

    fresh.__qualname__ = getattr(factory, "__qualname__", type(factory).__name__)
    return fresh
