"""How a factory initialises its networks: recorded once, and replayed for many of them at a time.

The record is the in-place operations that the factory applies to its parameters; they are replayed on tensors with one
more leading dimension. The replay is used only when, from the same seed, it repeats the factory's own network bit for
bit; otherwise the factory is called once a network.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from nads_core.kernels import RandomParameter
from nads_core.runtime.seeds import seeded

State = dict[str, Tensor]  # name -> (B, *shape): one parameter or buffer of B networks

_UNIFORM, _NORMAL = torch.ops.aten.uniform_.default, torch.ops.aten.normal_.default
_ARGUMENTS = {_UNIFORM: ("from", "to"), _NORMAL: ("mean", "std")}  # 0 and 1 unless given
_OVERWRITING = {_UNIFORM, _NORMAL, torch.ops.aten.fill_.Scalar, torch.ops.aten.zero_.default}
_ELEMENTWISE = _OVERWRITING | {
    torch.ops.aten.mul_.Scalar, torch.ops.aten.mul_.Tensor, torch.ops.aten.add_.Scalar, torch.ops.aten.add_.Tensor,
    torch.ops.aten.div_.Scalar, torch.ops.aten.div_.Tensor, torch.ops.aten.clamp_.default,
    torch.ops.aten.erfinv_.default,
}  # fmt: skip


@dataclass(frozen=True)
class Step:
    """One recorded in-place operation on the whole of one parameter or buffer."""

    name: str
    operation: Callable[..., object]
    args: tuple[Any, ...]
    kwargs: tuple[tuple[str, Any], ...]

    def apply(self, tensor: Tensor, generator: torch.Generator) -> None:
        """Repeat the operation on a tensor of any shape."""
        kwargs = dict(self.kwargs) | ({"generator": generator} if self.operation in _ARGUMENTS else {})
        self.operation(tensor, *self.args, **kwargs)

    def distribution(self) -> tuple[str, float, float] | None:
        """Return ("uniform", centre, half width) or ("normal", mean, standard deviation); None if it draws nothing."""
        if self.operation not in _ARGUMENTS:
            return None
        names = _ARGUMENTS[self.operation]
        given = dict(zip(names, self.args, strict=False)) | dict(self.kwargs)
        first, second = (float(given.get(name, default)) for name, default in zip(names, (0.0, 1.0), strict=True))
        if self.operation is _NORMAL:
            return "normal", first, second
        return "uniform", (first + second) / 2, (second - first) / 2


class _Recorder(TorchDispatchMode):
    """Notes every operation that writes to a tensor, with the storage that it writes to."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch's has no annotations
        self.writes: list[tuple[Any, Tensor, tuple[Any, ...], dict[str, Any]]] = []

    def __torch_dispatch__(
        self, func: Any, types: object, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        if func._schema.is_mutable:
            self.writes.append((func, args[0], args[1:], kwargs))
        return out


def require_module(network: object) -> nn.Module:
    """Return what a factory returned; raise a TypeError unless it is a network."""
    if not isinstance(network, nn.Module):
        raise TypeError(f"the factory must return a torch.nn.Module, got {type(network).__name__}")
    return network


def record(
    factory: Callable[[], nn.Module], seed: int, device: torch.device | str = "cpu"
) -> tuple[nn.Module, list[Step] | None]:
    """Call the factory from ``seed``; return its network and the steps that drew it, None if they can't be replayed."""
    with seeded(seed, device), _Recorder() as recorder:
        network = require_module(factory())
    state = state_of(network)
    owners = {tensor.untyped_storage().data_ptr(): name for name, tensor in state.items() if tensor.numel()}
    steps = []
    for func, target, args, kwargs in recorder.writes:
        name = owners.get(target.untyped_storage().data_ptr())
        if name is None:
            continue
        whole = target.shape == state[name].shape and target.is_contiguous() and state[name].is_contiguous()
        scalars = not any(isinstance(value, Tensor) and value.dim() for value in (*args, *kwargs.values()))
        if func not in _ELEMENTWISE or not whole or not scalars:
            return network, None
        kwargs = tuple((key, value) for key, value in kwargs.items() if key != "generator")
        steps.append(Step(name, func, tuple(args), kwargs))
    return network, steps


def without_overwritten(steps: Sequence[Step]) -> list[Step]:
    """Drop the steps whose result a later step on the same tensor overwrites."""
    last = {step.name: index for index, step in enumerate(steps) if step.operation in _OVERWRITING}
    return [step for index, step in enumerate(steps) if index >= last.get(step.name, 0)]


def state_of(network: nn.Module) -> State:
    """Return every parameter and buffer of one network."""
    return {**dict(network.named_parameters()), **dict(network.named_buffers())}


@dataclass(frozen=True)
class Initialisation:
    """What a factory draws anew for every network, and how to draw it for many networks at a time.

    Attributes:
        factory: returns a new network at each call.
        device: where networks are drawn.
        network: one of them, as the factory returned it.
        shapes: of each parameter and buffer that varies between networks.
        dtypes: of the same, as the factory draws them.
        steps: draw the same, in this order; None if the factory has to be called for every network.
    """

    factory: Callable[[], nn.Module]
    device: torch.device | str
    network: nn.Module
    shapes: dict[str, torch.Size]
    dtypes: dict[str, torch.dtype]
    steps: list[Step] | None

    @classmethod
    def of(cls, factory: Callable[[], nn.Module], device: torch.device | str = "cpu") -> Initialisation:
        """Find which weights vary from call to call, and whether drawing them can be replayed.

        Raises:
            TypeError: if the factory does not return an `nn.Module`.
            ValueError: if it returns networks of two structures, NaN, the same weights at every call, or draws them
                from outside torch's random generator.
        """
        network, steps = record(factory, 1, device)
        other, other_steps = record(factory, 2, device)
        with seeded(1, device):
            again = factory()
        first = state_of(network)
        names = _varying(first, state_of(other), state_of(again))
        if steps is not None and steps == other_steps and _repeats(steps, first, names):
            steps = [step for step in without_overwritten(steps) if step.name in names]
        else:
            steps = None
        shapes, dtypes = {name: first[name].shape for name in names}, {name: first[name].dtype for name in names}
        return cls(factory, device, network, shapes, dtypes, steps)

    def draw(self, count: int, seed: int) -> State:
        """Draw ``count`` networks together: name -> (count, *shape) of what varies, in the factory's own types."""
        if self.steps is None:
            with seeded(seed, self.device):
                networks = [state_of(self.factory()) for _ in range(count)]
            return {name: torch.stack([network[name].detach() for network in networks]) for name in self.shapes}
        state = {
            name: torch.empty((count, *shape), dtype=self.dtypes[name], device=self.device)
            for name, shape in self.shapes.items()
        }
        generator = torch.Generator(self.device).manual_seed(seed)
        for step in self.steps:
            step.apply(state[step.name], generator)
        return state

    def random_parameters(self) -> list[RandomParameter] | None:
        """Return how each varying parameter is drawn; None unless one uniform_ or normal_ draws it, in float32."""
        steps = self.steps or []
        drawn = {step.name: distribution for step in steps if (distribution := step.distribution())}
        once = len(drawn) == len(steps) == len(self.shapes)
        if not once or set(self.dtypes.values()) != {torch.float32}:
            return None
        return [RandomParameter(tuple(shape), *drawn[name]) for name, shape in self.shapes.items()]


def _varying(first: State, second: State, repeated: State) -> list[str]:
    """Name what differs between the networks of two seeds; ``repeated`` has the seed of ``first``."""
    if first.keys() != second.keys() or any(first[name].shape != second[name].shape for name in first):
        raise ValueError("the factory returned networks of two different structures: it must return one architecture")
    missing = [name for name, tensor in first.items() if tensor.isnan().any()]
    if missing:
        raise ValueError(f"the factory's weights {', '.join(missing)} hold NaN: check how it initialises them")
    names = [name for name in first if not torch.equal(first[name], second[name])]
    if not names:
        raise ValueError(
            "the factory returned the same weights twice: it must draw new ones at every call "
            "(does it return one network again, load a checkpoint, or set a seed?)"
        )
    if not all(torch.equal(first[name], repeated[name]) for name in first):
        raise ValueError(
            "the factory's weights are not fixed by torch.manual_seed: draw them with torch rather than numpy or random"
        )
    return names


def _repeats(steps: list[Step], expected: State, names: list[str]) -> bool:
    """Whether the steps, from seed 1, draw the named tensors bit for bit as the factory did."""
    generator = torch.Generator().manual_seed(1)
    drawn = {
        name: torch.full_like(tensor, torch.nan) for name, tensor in expected.items() if tensor.is_floating_point()
    }
    for step in steps:
        if step.name in drawn:
            step.apply(drawn[step.name], generator)
    return all(name in drawn and torch.equal(drawn[name], expected[name]) for name in names)
