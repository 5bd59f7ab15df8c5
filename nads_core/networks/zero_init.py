"""Parts of a network that are initialised at or near zero: zero last layers, and scaled branches."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.modules.conv import _ConvNd

from nads_core.networks.readouts import linear_results
from nads_core.runtime.seeds import seeded

_NEARLY_ZERO = 0.01  # a constant factor up to here counts; ConvNeXt's layer scale is 1e-6
_FACTORS = ("scale", "gamma", "alpha")  # in names of parameters that multiply a branch


def find_zero_init(network: nn.Module) -> dict[str, float]:
    """Name the weights that multiply what passes through them by a constant at or near zero, with that constant.

    Args:
        network: network with its initial weights.
    """
    layers = (nn.Linear, _ConvNd, _NormBase, nn.LayerNorm, nn.GroupNorm)
    found = {}
    for path, module in network.named_modules():
        for name, parameter in module.named_parameters(recurse=False):
            constant = _constant(parameter)
            if constant is None or abs(constant) > _NEARLY_ZERO or name.endswith("bias"):
                continue
            in_layer = isinstance(module, layers) and name == "weight"
            if in_layer or constant or any(word in name.lower() for word in _FACTORS):
                found[f"{path}.{name}" if path else name] = constant
    return found


def _constant(parameter: Tensor) -> float | None:
    """Return the value that all entries share; None if they differ, or if there is only one entry."""
    values = parameter.detach().flatten()
    drawn = len(values) < 2 and bool(values.any())
    return float(values[0]) if len(values) and not drawn and bool((values == values[0]).all()) else None


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
        outputs = network(torch.zeros(2, *image_shape))
    last = [name for name, result in results if result is outputs]
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
