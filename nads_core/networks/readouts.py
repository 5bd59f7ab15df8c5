"""Last linear layers, and parts of a network that are initialised at or near zero.

f is linear in the weights of a last linear layer, so that several of them share one forward pass.
Whether a network ends in such a layer is tested by numbers: other weights have to give the products
of features and weights.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.modules.conv import _ConvNd

from nads_core.networks.architectures import Factory
from nads_core.networks.batches import evaluated
from nads_core.networks.derivatives import ScalarFunction, is_differentiable
from nads_core.networks.modules import Call, State, recorded_calls, tensors_in
from nads_core.networks.recording import Step
from nads_core.runtime.arguments import Shape
from nads_core.runtime.seeds import seeded

_NEARLY_ZERO = 0.01  # a constant factor up to here counts; ConvNeXt's layer scale is 1e-6
_GROWTH = 10  # of a factor near zero, in a trial; a zero becomes 1
_LAYERS = (nn.Linear, _ConvNd, _NormBase, nn.LayerNorm, nn.GroupNorm)
_DEVIATION = 1e-4  # of values and gradients that are linear in the rows, relative to the largest


class NoReadout(ValueError):
    """The reason why f is not linear in the weights of one last layer, or why these cannot be drawn
    again.
    """


@dataclass(frozen=True)
class Readout:
    """The linear layer whose result is the network's output, with weights that are drawn around 0
    and used once.

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
    def of(
        cls,
        function: ScalarFunction,
        calls: Sequence[Call],
        outputs: Tensor,
        steps: Sequence[Step],
    ) -> Readout:
        """Describe a network's last layer, of which `require_linear` is still to be asked.

        Args:
            function: f.
            calls: calls of linear layers in one forward pass.
            outputs: results of this pass.
            steps: operations that draw the network's weights.

        Raises:
            NoReadout: unless there is one linear layer with fresh weights around 0, which returned
                the outputs.
        """
        if callable(function.output):
            raise NoReadout("what a function of the output returns is no layer's result")
        alone = [call for call in calls if isinstance(call.results, Tensor)]
        last = [call for call in alone if call.results.data_ptr() == outputs.data_ptr()]
        if not last:
            raise NoReadout("the output is not the result of an nn.Linear")
        name, layer = last[-1].name, last[-1].module
        if last[-1].results._version != last[-1].version:
            raise NoReadout(f"what {name} returns is changed in place")
        if not name:
            raise NoReadout("the whole network is one linear layer")
        assert isinstance(layer, nn.Linear)
        match [step.distribution() for step in steps if step.name == f"{name}.weight"]:
            case [(0, std)]:
                pass
            case _:
                raise NoReadout(f"{name}.weight is not drawn by one distribution around 0")
        bias = None if layer.bias is None else f"{name}.bias"
        return cls(f"{name}.weight", bias, layer.in_features, std)

    def require_linear(self, function: ScalarFunction, weights: State, images: Tensor) -> None:
        """Raise NoReadout unless values are products of features and rows, and gradients are linear
        in the rows.

        Args:
            function: f.
            weights: varying parameters and buffers of one network.
            images: inputs, (K, C, H, W).
        """
        assert isinstance(function.output, int)
        layer, index = self.weight.removesuffix(".weight"), function.output
        generator = torch.Generator().manual_seed(0)
        step = 0.5 * self.std * torch.randn(self.num_features, generator=generator)

        def pairs(state: State, images: Tensor) -> list[tuple[Tensor, Tensor]]:
            """Return what should be equal, for two other rows whose difference is the network's
            own.
            """
            own, weight = evaluated(function, state, images), state[self.weight]
            row = weight[index]
            # Most odd functions of a row change sign
            two = torch.stack([-row + step.to(row), -2 * row + step.to(row)])
            # Neither the number of outputs nor a selection of them may matter
            rows = torch.cat([two, weight])
            with recorded_calls(function.module, nn.Linear) as calls, torch.no_grad():
                values = function.outputs(self.replaced(state, rows), images)
            features = next(call.given for call in calls if call.name == layer)
            assert features is not None
            first, second = function.input_gradients(
                self.replaced(state, two), images, of_all_outputs=True
            )
            bias = state[self.bias][index] if self.bias else 0
            return [
                (values, features @ rows.mT),
                (values[:, 0] - values[:, 1] + bias, own.values),
                ((first - second).flatten(1), own.gradients),
            ]

        try:
            linear = _agree(pairs(function.fixed | weights, images))
            if not linear:  # rounding may be the reason
                linear = _agree(function.in_float64(weights, images, pairs))
        except Exception as error:  # whatever the network's author chose to raise
            reason = repr(error).splitlines()[0]
            raise NoReadout(f"{layer} cannot be replaced ({reason})") from error
        if not linear:
            raise NoReadout(f"the output is not the product of {layer}'s input and weights")

    def replaced(self, state: State, rows: Tensor) -> State:
        """Return the weights of a network, or of B networks, with the rows (R, F) or (B, R, F) for
        a last layer, which then has R outputs.
        """
        # A bias changes no gradient, but its length is the number of outputs.
        biases = {self.bias: rows.new_zeros(rows.shape[:-1])} if self.bias else {}
        return state | {self.weight: rows} | biases


def _agree(pairs: Sequence[tuple[Tensor, Tensor]]) -> bool:
    """Whether the tensors of each pair are equal up to rounding; NaN is accepted, as it is reported
    elsewhere.
    """
    return all(
        got.shape == expected.shape
        and not (got - expected).abs().max() > _DEVIATION * expected.abs().max()
        for got, expected in pairs
    )


def find_zero_init(
    function: ScalarFunction, state: State, varying: Collection[str], images: Tensor
) -> dict[str, float]:
    """Name the parameters that silence what passes through them by a constant at or near zero, with
    that constant.

    Such a parameter is the weight of a layer, or one that another needs: with a larger constant, f
    depends on the other by the factor more that a product of both gives.

    Args:
        function: f.
        state: all parameters and buffers of one network.
        varying: names of those that vary between networks.
        images: some inputs, (K, C, H, W).
    """
    network = function.module
    parameters = [name for name, p in network.named_parameters() if is_differentiable(p)]

    def slopes(changed: State) -> dict[str, float]:
        """Return the norm of the derivative of f with respect to each parameter."""
        gradients = function.weight_gradients(state | changed, parameters, images)
        return {name: float(gradient.norm()) for name, gradient in gradients.items()}

    silent, before = dict[str, float](), dict[str, float]()
    for name in parameters:
        constant = _constant_near_zero(state[name])
        if constant is None or name in varying or name.endswith("bias"):
            continue
        layer, _, attribute = name.rpartition(".")
        if attribute == "weight" and isinstance(network.get_submodule(layer), _LAYERS):
            silent[name] = constant
            continue
        before = before or slopes({})
        larger = _GROWTH * constant if constant else 1.0
        after = slopes({name: torch.full_like(state[name], larger)})
        # Of f = constant * peer, the slope of the peer grows as the constant does
        share = 2 / _GROWTH if constant else 0  # of the new slope that the old one may be
        peers = {peer: slope for peer, slope in after.items() if peer != name and slope > 0}
        if any(before[peer] <= share * slope for peer, slope in peers.items()):
            silent[name] = constant
    return silent


def disturbed(network: nn.Module, state: State) -> State:
    """Return a state with random numbers in place of parameters that are constants at or near zero.

    What such a parameter silences at initialisation then acts as it will in training.
    """
    generator, changed = torch.Generator().manual_seed(0), {}
    for name, _ in network.named_parameters():
        tensor = state[name]
        if tensor.is_floating_point() and _constant_near_zero(tensor) is not None:
            changed[name] = 0.1 * torch.randn(tensor.shape, generator=generator).to(tensor)
    return state | changed


def _constant_near_zero(parameter: Tensor) -> float | None:
    """Return the value at or near zero that all entries share, both parts of complex ones; None if
    there is none.
    """
    values = torch.view_as_real(parameter) if parameter.is_complex() else parameter
    first = values.flatten()[:1]
    shared = first.numel() and (values == first).all() and first.abs() <= _NEARLY_ZERO
    return float(first) if shared else None


def described(parts: dict[str, float]) -> str:
    """Return the names and values in a few words."""
    names = [f"{name} = {value:g}" for name, value in parts.items()]
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def with_reinit_readout(factory: Factory, image_shape: Shape) -> Factory:
    """Return a factory whose networks have their last linear layer drawn as ``nn.Linear`` draws its
    weights.

    Vision transformers, among others, start with a last layer of zeros: their output does not
    depend on the input.

    Raises:
        ValueError: if the network does not end in one linear layer of zeros.
    """
    with seeded(1):
        network = factory()
    network.eval()
    with torch.no_grad(), recorded_calls(network, nn.Linear) as calls:
        outputs = tensors_in(network(torch.zeros(2, *image_shape)))
    last = [call.name for call in calls if any(call.results is output for output in outputs)]
    if len(last) != 1:
        raise ValueError("reinit_readout needs a network whose last layer is an nn.Linear")
    layer = network.get_submodule(last[0])
    if not isinstance(layer, nn.Linear) or layer.weight.any():
        raise ValueError(
            f"reinit_readout is for last layers of zeros, but {last[0]}.weight is drawn: "
            "leave it out"
        )

    def fresh() -> nn.Module:
        drawn = factory()
        # A subclass may reset its weights to zeros
        nn.Linear.reset_parameters(drawn.get_submodule(last[0]))  # type: ignore[arg-type]
        return drawn

    fresh.__qualname__ = getattr(factory, "__qualname__", type(factory).__name__)
    return fresh
