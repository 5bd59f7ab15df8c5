"""Last linear layers: f is linear in their weights, so that several of them share one forward pass."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from torch import Tensor, nn

from nads_core.networks.initialisation import State, Step


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
        state = state | {self.weight: rows}
        if self.bias:  # it changes no gradient, but its length is the number of outputs
            state[self.bias] = rows.new_zeros(rows.shape[:2])
        return state


@contextmanager
def linear_results(network: nn.Module) -> Iterator[list[tuple[str, Tensor]]]:
    """Record (name, result) of each call of a linear layer while the context lasts."""
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
