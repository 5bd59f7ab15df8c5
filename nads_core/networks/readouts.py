"""The last linear layer of a network: f is linear in it, so that several of them share one forward pass."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from nads_core.networks.initialisation import State, Step


@dataclass(frozen=True)
class Readout:
    """The linear layer whose result is the network's, with weights that are drawn around 0 and used once.

    Attributes:
        weight: name of its weights.
        bias: name of its bias, if it has one.
        num_features: what it reads, F.
        std: standard deviation of one weight.
    """

    weight: str
    bias: str | None
    num_features: int
    std: float

    @classmethod
    def of(cls, network: nn.Module, layers: Sequence[str], steps: Sequence[Step] | None) -> Readout | None:
        """Describe a network's last layer; None if it is no single linear one with fresh weights, used there alone.

        Args:
            network: network that contains the layers.
            layers: names of the linear layers that return the output.
            steps: operations that draw the network's weights; None if they are unknown.
        """
        if len(layers) != 1 or steps is None:
            return None
        layer, weight = network.get_submodule(layers[0]), f"{layers[0]}.weight"
        if not isinstance(layer, nn.Linear):
            return None
        bias = None if layer.bias is None else f"{layers[0]}.bias"
        uses = {name for name, tensor in network.named_parameters(remove_duplicate=False)
                if tensor is layer.weight or tensor is layer.bias}  # fmt: skip
        distributions = [step.distribution() for step in steps if step.name == weight]
        if uses != {weight, bias} - {None} or len(distributions) != 1 or distributions[0] is None:
            return None
        kind, centre, scale = distributions[0]
        if centre != 0:
            return None
        return cls(weight, bias, layer.in_features, scale / 3**0.5 if kind == "uniform" else scale)

    def orthogonal(self, normal: Tensor) -> Tensor:
        """Turn standard normal numbers (B, F, R) into R weights a network at right angles, (B, R, F).

        Each alone is uniform on a sphere, with the second moment E[w w^T] of the layer's own initialisation.
        """
        orthonormal = torch.linalg.qr(normal).Q.mT  # (B, R, F)
        return orthonormal * (self.std * self.num_features**0.5)

    def replaced(self, state: State, rows: Tensor) -> State:
        """Return the weights of B networks with the rows (B, R, F) for a last layer, which then has R outputs."""
        state = state | {self.weight: rows}
        if self.bias:  # which moves no gradient, but has another length than there are readouts
            state[self.bias] = rows.new_zeros(rows.shape[:2])
        return state


@contextmanager
def linear_results(network: nn.Module) -> Iterator[list[tuple[str, Tensor]]]:
    """Note (name, result) of each call of a linear layer while the context lasts."""
    results: list[tuple[str, Tensor]] = []
    hooks = [
        layer.register_forward_hook(lambda _, __, result, name=name: results.append((name, result)))
        for name, layer in network.named_modules() if type(layer) is nn.Linear
    ]  # fmt: skip
    try:
        yield results
    finally:
        for hook in hooks:
            hook.remove()
