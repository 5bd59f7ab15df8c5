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
from torch.utils._pytree import tree_leaves

from nads_core.kernels import RandomParameter
from nads_core.networks.self_check import differing, foreign_generators, not_reproduced, plain_attributes
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
_FILLING = {"aten::fill_", "aten::zero_", "aten::copy_"}
_OF_SHAPE = {f"aten::{name}" for name in ("zeros_like", "ones_like", "full_like", "empty_like", "new_zeros", "new_ones",
                                          "new_full", "new_empty", "new_empty_strided")}  # fmt: skip


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
    """Notes every operation that writes to a tensor, and which tensors are made from random numbers.

    Args:
        seed: seed of the global generator. Numbers from a generator that the factory creates or seeds itself are
            the same for every network.
    """

    def __init__(self, seed: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch's has no annotations
        self.writes: list[tuple[Any, Tensor, tuple[Any, ...], dict[str, Any]]] = []
        self.decides = False  # whether a random number became one of Python's, which can decide about anything
        self._seed = seed
        self._random: dict[int, Tensor] = {}  # by address; kept, so that no other tensor gets it

    def is_random(self, tensor: Tensor) -> bool:
        """Whether a tensor, or one that shares its memory, was made from random numbers."""
        return _address(tensor) in self._random

    def __torch_dispatch__(
        self, func: Any, types: object, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        if func._schema.is_mutable:
            self.writes.append((func, args[0], args[1:], kwargs))
        self._trace(func, args, kwargs, out)
        return out

    def _trace(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> None:
        """Note whether what an operation wrote or returned is random."""
        name, mutable = func._schema.name, func._schema.is_mutable
        random = any(isinstance(leaf, Tensor) and self.is_random(leaf) for leaf in tree_leaves((args, kwargs)))
        if name == "aten::_local_scalar_dense":  # item(), or the condition of an if
            self.decides |= random
        whole = mutable and args[0].numel() * args[0].element_size() == args[0].untyped_storage().nbytes()
        if torch.Tag.nondeterministic_seeded in func.tags:
            own = kwargs.get("generator") in (None, torch.default_generator)
            distribution = Step("", func, args[1:], tuple(kwargs.items())).distribution()
            random = own and torch.default_generator.initial_seed() == self._seed
            if distribution and distribution[2] == 0:  # normal_(std=0)
                random = False
            random |= mutable and not whole and self.is_random(args[0])
        elif name in _OF_SHAPE:
            random = False
        elif whole and (name in _FILLING or (name == "aten::mul_" and not isinstance(args[1], Tensor) and not args[1])):
            random = name == "aten::copy_" and self.is_random(args[1])
        for tensor in [args[0]] if mutable else [leaf for leaf in tree_leaves(out) if isinstance(leaf, Tensor)]:
            if random:
                self._random[_address(tensor)] = tensor
            elif mutable:
                self._random.pop(_address(tensor), None)


def _address(tensor: Tensor) -> int:
    """Return where a tensor's memory begins; for an empty one, or one without memory, a number of its own."""
    try:
        return tensor.untyped_storage().data_ptr() or -id(tensor)
    except (RuntimeError, NotImplementedError):  # sparse ones have no storage
        return -id(tensor)


def require_module(network: object) -> nn.Module:
    """Return what a factory returned; raise a TypeError unless it is a network."""
    if not isinstance(network, nn.Module):
        raise TypeError(f"the factory must return a torch.nn.Module, got {type(network).__name__}")
    return network


def record(
    factory: Callable[[], nn.Module], seed: int, device: torch.device | str = "cpu"
) -> tuple[nn.Module, list[Step] | None]:
    """Call the factory from ``seed``; return its network and the steps that drew it, None if they can't be replayed."""
    network, recorder = _recorded(factory, seed, device)
    return network, _steps(network, recorder)


def _recorded(factory: Callable[[], nn.Module], seed: int, device: torch.device | str) -> tuple[nn.Module, _Recorder]:
    with seeded(seed, device), _Recorder(seed) as recorder:
        return require_module(factory()), recorder


def _steps(network: nn.Module, recorder: _Recorder) -> list[Step] | None:
    """Return the recorded operations on parameters and buffers; None if they are no elementwise ones."""
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
            return None
        kwargs = tuple((key, value) for key, value in kwargs.items() if key != "generator")
        steps.append(Step(name, func, tuple(args), kwargs))
    return steps


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
        factory: function that returns a new network at each call.
        device: device on which networks are drawn.
        network: one of them, as the factory returned it.
        second: another one, until it has been compared with the first.
        shapes: of each parameter and buffer that varies between networks: whose values differ between two networks, or
            were drawn from torch's generator.
        dtypes: of the same, as the factory draws them.
        steps: draw the same, in this order; None if the factory has to be called for every network.
        unsure: whether the factory looked at random numbers, so that networks can differ in what two of them do not
            show. Each has to be compared with the first then.
    """

    factory: Callable[[], nn.Module]
    device: torch.device | str
    network: nn.Module
    second: nn.Module | None
    shapes: dict[str, torch.Size]
    dtypes: dict[str, torch.dtype]
    steps: list[Step] | None
    unsure: bool

    @classmethod
    def of(
        cls, factory: Callable[[], nn.Module], device: torch.device | str = "cpu", rebuild: bool = False
    ) -> Initialisation:
        """Find which weights vary from call to call, and whether drawing them can be replayed.

        Args:
            factory: function that returns a new network at each call.
            device: device on which networks are drawn.
            rebuild: whether every network will be built by the factory, so that anything may differ between them.

        Raises:
            TypeError: if the factory does not return an `nn.Module`.
            ValueError: if it returns networks of two structures, NaN, the same weights at every call, or draws them
                from outside torch's random generator.
        """
        network, recorder = _recorded(factory, 1, device)
        first = state_of(network)
        steps, random = _steps(network, recorder), [name for name in first if recorder.is_random(first[name])]
        decides, hidden = recorder.decides, _hidden(network, recorder)
        del recorder  # which holds every tensor that was written
        other, other_recorder = _recorded(factory, 2, device)
        other_steps = _steps(other, other_recorder)
        decides |= other_recorder.decides
        del other_recorder
        foreign = foreign_generators()
        with seeded(1, device):
            again = require_module(factory())
        different = differing(network, other)
        names = _varying(first, state_of(other), state_of(again), random, rebuild, different)
        unsure = decides or foreign != foreign_generators() or not hidden <= different.keys()
        if unsure:
            steps = None
        if steps is not None and steps == other_steps and _repeats(steps, first, names):
            steps = [step for step in without_overwritten(steps) if step.name in names]
        else:
            steps = None
        shapes, dtypes = {name: first[name].shape for name in names}, {name: first[name].dtype for name in names}
        return cls(factory, device, network, other, shapes, dtypes, steps, unsure)

    def build(self, count: int, seed: int) -> list[nn.Module]:
        """Call the factory ``count`` times."""
        with seeded(seed, self.device):
            return [require_module(self.factory()) for _ in range(count)]

    def draw(self, count: int, seed: int, check: Callable[[nn.Module], None] | None = None) -> State:
        """Draw ``count`` networks together: name -> (count, *shape) of what varies, in the factory's own types.

        Args:
            count: B.
            seed: seed of all networks.
            check: function of every network that the factory builds, where `unsure`; it may change them.
        """
        if self.steps is None:
            built = self.build(count, seed)
            networks = [{name: tensor.detach() for name, tensor in state_of(network).items()} for network in built]
            if self.unsure and check:
                for network in built:
                    check(network)
            return {name: torch.stack([network[name] for network in networks]) for name in self.shapes}
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


def _hidden(network: nn.Module, recorder: _Recorder) -> set[str]:
    """Name the random tensors that a network keeps as plain attributes."""
    attributes = plain_attributes(network).items()
    return {name for name, value in attributes if isinstance(value, Tensor) and recorder.is_random(value)}


def _varying(
    first: State, second: State, repeated: State, random: Sequence[str], rebuild: bool, different: dict[str, str]
) -> list[str]:
    """Name what varies between networks: what differs between those of two seeds, or was drawn.

    Args:
        first: parameters and buffers from one seed.
        second: the same from another seed.
        repeated: the same from the seed of ``first``.
        random: names of those that were drawn.
        rebuild: whether networks may differ in more than these.
        different: names of other differences.
    """
    missing = [name for name, tensor in first.items() if tensor.isnan().any()]
    if missing:
        raise ValueError(f"the factory's weights {', '.join(missing)} hold NaN: check how it initialises them")
    if first.keys() != second.keys() or any(first[name].shape != second[name].shape for name in first):
        if not rebuild:
            raise ValueError(
                "the factory returned networks of two different structures: it must return one architecture, or use "
                "evaluation='rebuild', which builds every network by the factory and is slower"
            )
        names = list(first)
    else:
        names = [name for name in first if name in random or not torch.equal(first[name], second[name])]
    if not names and not different:
        raise ValueError(
            "the factory returned the same weights twice: it must draw new ones at every call "
            "(does it return one network again, load a checkpoint, or set a seed?)"
        )
    if first.keys() != repeated.keys() or not all(torch.equal(first[name], repeated[name]) for name in first):
        raise ValueError(
            "the factory's weights are not fixed by torch.manual_seed: draw them with torch rather than numpy or random"
        )
    if not names and not rebuild:
        raise not_reproduced(different)
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
