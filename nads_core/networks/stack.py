"""Networks of one structure evaluated together on a GPU, by `torch.vmap`.

Their weights come from a replay of the in-place operations by which the factory draws one network,
if it reproduces three networks bit by bit; else from the factory. Only here can a difference
between two networks that is not in weights and buffers be overlooked, so structures are compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter
from typing import Any

import cloudpickle
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, jacrev, vmap

from nads_core.kernels import few_channel_convolutions
from nads_core.networks.network import WEIGHTS, Network, Networks
from nads_core.networks.readouts import InPlaceWrites
from nads_core.runtime.seeds import seeded

TOGETHER = 64  # networks
State = dict[str, Tensor]  # name -> (B, *shape): one parameter or buffer of B networks


class Stack(Network):
    """f of B networks and its derivatives, each at K inputs of its own; all shapes of `Network`
    have one more dimension in front.

    Args:
        networks: the networks of which they are some.
        indices: their numbers.
        template: network into which weights are put.
        state: weights and buffers of the B networks.
    """

    def __init__(
        self, networks: Networks, indices: Sequence[int], template: nn.Module, state: State
    ):
        self.networks, self.indices, self.module, self.state = networks, indices, template, state

    def randn(self, stream: int, *shape: int) -> Tensor:
        """Return standard normal numbers of each network, (B, *shape)."""
        return torch.stack([self.networks.randn(i, stream, *shape) for i in self.indices])

    def outputs(self, images: Tensor) -> Tensor:
        """f(x): (B, K, *image_shape) -> (B, K)."""
        return vmap(self._values)(self.state, images)

    def _values(self, state: State, images: Tensor) -> Tensor:
        return self.networks.value(functional_call(self.module, state, (images.clone(),)))

    def input_gradients(self, images: Tensor, readouts: int = 1) -> Tensor:
        """grad_x f_r(x) of each readout: (B, K, *image_shape) -> (B, R, K, D)."""
        flat = images.dim() - len(self.networks.image_shape)  # first dimension of an input
        if readouts == 1:
            sums = grad(lambda x, state: self._values(state, x).sum())
            return vmap(sums)(images, self.state).flatten(flat)[:, None]
        assert self.networks.readout is not None
        layer = self.networks.readout.layer
        state = self.state | {f"{layer}.weight": self.rows(readouts).mT}
        if f"{layer}.bias" in state:  # its length is the number of outputs
            state[f"{layer}.bias"] = images.new_zeros(len(images), readouts)
        jacobian = jacrev(lambda x, one: functional_call(self.module, one, (x.clone(),)).sum(0))
        return vmap(jacobian)(images, state).flatten(flat + 1)

    def mixed_derivatives(self, images: Tensor) -> Tensor:
        """r^T d/dtheta grad_x f(x): (B, K, *image_shape) -> (B, 1, K, D)."""
        own = zip(self.indices, images, strict=True)
        return torch.stack([Network(self.networks, i).mixed_derivatives(x) for i, x in own])


@dataclass(frozen=True)
class _Step:
    """An in-place operation of a factory, on a weight or, without a name, on a tensor that only
    uses up random numbers.
    """

    operation: str  # such as "aten.normal_.default", because torch's own object has no pickle
    name: str | None
    shape: tuple[int, ...]
    arguments: tuple[Any, ...]
    keywords: dict[str, Any]
    draws: bool


@dataclass(frozen=True)
class Stacking:
    """How the networks of a factory are drawn and evaluated together.

    Args:
        networks: the networks.
        structure: what all of them have in common, see `_structure`.
        steps: operations that draw one; None if the factory has to.
        kernels: "triton" for convolutions of many networks by `kernels.convolutions`.
    """

    networks: Networks
    structure: bytes
    steps: tuple[_Step, ...] | None
    kernels: str = "torch"

    @classmethod
    def of(cls, networks: Networks, kernels: str = "torch") -> Stacking | None:
        """Return how these networks are stacked; None if they cannot be, as most recurrent layers,
        forward passes that read values and networks with a common part cannot.
        """
        if networks.shared:
            return None
        given = networks.source if isinstance(networks.source, tuple) else ()
        few = range(min(3, len(given) or 3))
        structures = [_structure(networks.build(index)) for index in few]
        if len(set(structures)) > 1 or structures[0] is None:
            return None
        stacking = cls(networks, structures[0], None, kernels)
        if not given and (steps := stacking._recorded()) is not None:
            stacking = cls(networks, structures[0], steps, kernels)
        try:
            (stack,) = stacking.batches(few)
            images = stack.inputs(2)
            gradients = stack.input_gradients(images)
        except (RuntimeError, ValueError):  # of vmap
            return None
        own = torch.stack([Network(networks, i).input_gradients(images[i]) for i in few])
        same = (gradients - own).norm() <= 1e-3 * own.norm()
        return replace(stacking) if same else None  # a copy sends no template to workers

    def batches(self, indices: Sequence[int]) -> Iterator[Network]:
        """Yield the networks of these numbers, together where they have the common structure."""
        for start in range(0, len(indices), TOGETHER):
            some = indices[start : start + TOGETHER]
            state = self._built(some) if self.steps is None else self._replayed(self.steps, some)
            if state is None:
                yield from (Network(self.networks, index) for index in some)
            else:
                yield Stack(self.networks, some, self._template, self._prepared(state))

    @cached_property
    def _template(self) -> nn.Module:
        network = self.networks.draw(0)
        return few_channel_convolutions(network) if self.kernels == "triton" else network

    def _prepared(self, state: State) -> State:
        networks = self.networks
        return {
            name: tensor.to(networks.device, networks.dtype if tensor.is_floating_point() else None)
            for name, tensor in state.items()
        }

    def _built(self, indices: Sequence[int]) -> State | None:
        """Return the state of networks that the factory builds; None if a structure differs."""
        states = []
        for index in indices:
            network = self.networks.build(index)
            states.append(_state(network))
            if _structure(network) != self.structure:
                return None
        return {name: torch.stack([state[name] for state in states]) for name in states[0]}

    def _recorded(self) -> tuple[_Step, ...] | None:
        """Return the operations that draw a network, if they reproduce three bit by bit."""
        with InPlaceWrites() as recorded:
            network = self.networks.build(0)
        state = _state(network)
        owners = {tensor.data_ptr(): name for name, tensor in state.items() if tensor.numel()}
        steps = []
        for func, target, args, kwargs in recorded.writes:
            name = owners.get(target.data_ptr())
            draws = torch.Tag.nondeterministic_seeded in func.tags
            if name is None and not draws:
                continue
            whole = name is None or (
                target.shape == state[name].shape and state[name].is_contiguous()
            )
            if not whole or any(isinstance(one, Tensor) for one in (*args, *kwargs.values())):
                return None
            options = {key: value for key, value in kwargs.items() if key != "generator"}
            steps.append(_Step(str(func), name, tuple(target.shape), args, options, draws))
        replayed, built = self._replayed(steps, range(3)), self._built(range(3))
        if built is None or replayed.keys() != built.keys():
            return None
        same = all(torch.equal(replayed[name], built[name]) for name in built)
        return tuple(steps) if same else None

    def _replayed(self, steps: Sequence[_Step], indices: Sequence[int]) -> State:
        """Return the state of networks whose weights are drawn by the recorded operations."""
        state = {name: torch.stack([t] * len(indices)) for name, t in self._first.items()}
        for row, index in enumerate(indices):
            generator = torch.Generator().manual_seed(self.networks.seed_of(index, WEIGHTS))
            for step in steps:
                target = torch.empty(step.shape) if step.name is None else state[step.name][row]
                options = {"generator": generator} if step.draws else {}
                operation = attrgetter(step.operation)(torch.ops)
                operation(target, *step.arguments, **step.keywords, **options)
        return state

    @cached_property
    def _first(self) -> State:
        return _state(self.networks.build(0))


def _state(network: nn.Module) -> State:
    """Return every parameter and buffer of one network, each once."""
    named = [*network.named_parameters(), *network.named_buffers()]
    return {name: tensor.detach() for name, tensor in named}


def _structure(network: nn.Module) -> bytes | None:
    """Return everything of a network but the values of weights and buffers, which is lost; None if
    it cannot be told.
    """
    try:
        with seeded(0):
            return bytes(cloudpickle.dumps(network.to("meta")))
    except Exception:  # whatever a pickler meets in a network
        return None
