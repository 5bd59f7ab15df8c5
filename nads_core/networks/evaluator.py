"""Outputs and derivatives of many networks at many inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import grad, jacrev, vmap
from torch.utils._pytree import tree_leaves, tree_map

from nads_core.kernels import faster_layers, few_channel_convolutions
from nads_core.networks.derivatives import Output, ScalarFunction, cast, combine
from nads_core.networks.modules import State
from nads_core.networks.readouts import Readout
from nads_core.networks.sampler import INDEX
from nads_core.networks.self_check import same_outputs
from nads_core.runtime.graphs import capture

EVALUATIONS = ("loop", "vmap", "graph", "factory")
_MANY_LAYERS = 200  # on an H200, a graph was 1.28 times as fast as vmap for 366, .96 times for 65


class NetworkEvaluator:
    """f and its derivatives, for many networks that have the weights of a state.

    Args:
        network: the template, which evaluates all networks, with their weights in place of its own;
            it has been prepared by `prepared`.
        varying: names of the weights that vary between networks.
        output: index of the network output that is the scalar f(x); or a function of what the
            network returns for K inputs, which returns (K,).
        evaluation: one of `EVALUATIONS`, see `Ensemble`.
        built: function that returns a network by its index, as the factory builds it; used by
            evaluation "factory", whose states hold indices in place of weights.
    """

    def __init__(
        self,
        network: nn.Module,
        varying: set[str],
        output: Output,
        evaluation: str,
        built: Callable[[int], nn.Module],
    ):
        self.evaluation, self.output, self._built = evaluation, output, built
        self.function = ScalarFunction(network, varying, output)
        self.readout: Readout | None = None  # the last layer, if others can take its place
        # Of the input gradients, by the shapes of their arguments
        self._graphs: dict[object, _Captured] = {}

    @property
    def template(self) -> nn.Module:
        """The network that evaluates all others, with their weights in place of its own."""
        return self.function.module

    def functions_and_weights(self, state: State) -> Iterator[tuple[ScalarFunction, State]]:
        """Yield f of each network of a state, with its weights."""
        if self.evaluation == "factory":
            yield from ((self.function.of(self._built(i)), {}) for i in state[INDEX].tolist())
        else:
            yield from ((self.function, weights) for weights in networks_of(state))

    def outputs(self, state: State, images: Tensor) -> Tensor:
        """Evaluate B networks on K inputs each: (B, K, C, H, W) -> (B, K)."""
        with torch.no_grad():
            if self.evaluation == "vmap":
                return vmap(self.function)(state, images)
            networks = zip(self.functions_and_weights(state), images, strict=True)
            return torch.stack([f(weights, x) for (f, weights), x in networks])

    def input_gradients(
        self,
        state: State,
        images: Tensor,
        readouts: Tensor | None = None,
        coefficients: Tensor | None = None,
    ) -> Tensor:
        """Return the gradient of f with respect to its input, for B networks at K inputs each.

        Args:
            state: weights of B networks, as `NetworkSampler.draw` returns them.
            images: (B, K, C, H, W).
            readouts: other last layers for each network, (B, R, F), as
                `NetworkSampler.draw_readouts` returns them. They share the forward pass, and most
                of the cost of drawing a network.
            coefficients: coefficients (J, K) of linear combinations of the K gradients, which then
                take their place.

        Returns:
            (B, K, C, H, W), or (B * R, K, C, H, W) with readouts; J in place of K with
            ``coefficients``.

        Raises:
            ValueError: if the output does not depend on the input.
        """
        many_outputs = readouts is not None
        if readouts is not None:
            assert self.readout is not None, "`draw_readouts` draws none for this network"
            state = self.readout.replaced(state, readouts)
        if self.evaluation != "vmap":
            networks = zip(self.functions_and_weights(state), images, strict=True)
            return torch.cat(
                [self._gradients(*one, x, many_outputs, coefficients) for one, x in networks]
            )
        # An output at one input does not depend on the others: derivatives of sums over K hold
        # those at all K.
        f = self.function
        if many_outputs:  # (B, R, K, C, H, W) -> (B R, K, C, H, W)
            jacobian = jacrev(lambda x, weights: f.outputs(weights, x).sum(0))
            gradients = vmap(jacobian)(images, state).flatten(0, 1)
        else:  # (B, K, C, H, W)
            gradients = vmap(grad(lambda x, weights: f(weights, x).sum()))(images, state)
        return combine(gradients.transpose(0, 1), coefficients).transpose(0, 1)

    def _gradients(
        self,
        f: ScalarFunction,
        weights: State,
        images: Tensor,
        many_outputs: bool,
        coefficients: Tensor | None,
    ) -> Tensor:
        """Return the input gradients of one network, (1 or R, K or J, C, H, W), by a graph where
        that is asked for.
        """
        gradients = partial(f.input_gradients, of_all_outputs=many_outputs)
        arguments: list[Any] = [weights, images, *([] if coefficients is None else [coefficients])]
        if self.evaluation != "graph":
            return gradients(*arguments)
        key = many_outputs, tuple(tensor.shape for tensor in tree_leaves(arguments))
        if key not in self._graphs:
            self._graphs[key] = _Captured(gradients, arguments, images.device)
        return self._graphs[key](arguments)

    def mixed_derivatives(self, state: State, images: Tensor, probes: State) -> Tensor:
        """Return r^T d/dtheta (df/dx), the derivative of the input gradient along the probe r in
        weight space.

        Args:
            state: weights of B networks.
            images: (B, K, C, H, W).
            probes: one direction in weight space per network, name -> ``(B, *shape)``, for every
                parameter.

        Returns:
            (B, K, C, H, W).
        """
        networks = self.functions_and_weights(state)
        return torch.stack(
            [
                f.mixed_derivative(weights, x, probe)
                for (f, weights), x, probe in zip(
                    networks, images, networks_of(probes), strict=True
                )
            ]
        )


class _Captured:
    """A function of tensors as a CUDA graph, which reads copies of its arguments.

    Args:
        function: function of ``arguments``.
        arguments: tensors, and dictionaries of tensors, that give shapes and types.
        device: device of all of them.
    """

    def __init__(
        self, function: Callable[..., Tensor], arguments: Sequence[Any], device: torch.device
    ):
        self._held, self._function = tree_map(torch.clone, arguments), function
        self._call = capture(lambda: function(*self._held), (), device)

    def __call__(self, arguments: Sequence[Any]) -> Tensor:
        for held, tensor in zip(tree_leaves(self._held), tree_leaves(arguments), strict=True):
            held.copy_(tensor)
        return self._call().clone()

    def is_right(self) -> bool:
        """Whether the graph gives what the function gives for the same arguments, up to rounding.

        It reads memory: what a network keeps, and replaces at another call, is lost to it.
        """
        return same_outputs(self._call(), self._function(*self._held), other_kernels=True)


def default_evaluations(network: nn.Module, device: torch.device) -> tuple[str, ...]:
    """Return the evaluations to try, the fastest first, which not every network allows."""
    if device.type != "cuda":
        return ("loop",)
    layers = sum(not any(layer.children()) for layer in network.modules())
    return ("graph", "vmap", "loop") if layers >= _MANY_LAYERS else ("vmap", "loop")


def networks_of(state: State) -> Iterator[State]:
    """Yield the state of each network: name -> (*shape)."""
    rows = zip(*(tensor.unbind() for tensor in state.values()), strict=True)
    return (dict(zip(state, row, strict=True)) for row in rows)


def prepared(
    network: nn.Module,
    device: torch.device,
    dtype: torch.dtype,
    faster: bool,
    kernels: str = "torch",
) -> nn.Module:
    """Prepare a network of a factory for evaluation, in place; return it.

    It is in eval mode, on its device and in its type, without gradients of its weights, and, if
    asked for, with the faster layers of a CPU, which vmap does not know.
    """
    network.eval()
    network = network.requires_grad_(False).to(device=device)
    for layer in network.modules():
        # cuDNN has gradients in train mode alone
        if isinstance(layer, nn.RNNBase) and device.type == "cuda":
            layer.dropout = 0.0
            layer.train()
    # Module.to(dtype) makes complex tensors real
    network._apply(partial(cast, dtype=dtype))
    if kernels == "triton":
        network = few_channel_convolutions(network)
    return faster_layers(network) if faster and device.type == "cpu" else network
