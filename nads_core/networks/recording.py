"""How a factory draws one network: the operations that write to its tensors in place.

They can be replayed on tensors with one more leading dimension if all of them are elementwise, and
if random numbers go nowhere else: neither into another tensor nor into a decision.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from nads_core.networks.architectures import Factory
from nads_core.networks.modules import called, state_of, tensors_in
from nads_core.networks.self_check import plain_attributes
from nads_core.runtime.seeds import seeded

Arguments = tuple[Any, ...]
Keywords = dict[str, Any]

_ATEN = torch.ops.aten
_UNIFORM, _NORMAL = _ATEN.uniform_.default, _ATEN.normal_.default
# Unless given
_ARGUMENTS = {
    _UNIFORM: {"from": 0.0, "to": 1.0},
    _NORMAL: {"mean": 0.0, "std": 1.0},
}
_OVERWRITING = {_UNIFORM, _NORMAL, _ATEN.fill_.Scalar, _ATEN.zero_.default}
_MULTIPLYING = {_ATEN.mul_.Scalar, _ATEN.mul_.Tensor}
_ELEMENTWISE = _OVERWRITING | {
    *_MULTIPLYING,
    _ATEN.add_.Scalar,
    _ATEN.add_.Tensor,
    _ATEN.div_.Scalar,
    _ATEN.div_.Tensor,
    _ATEN.clamp_.default,
    _ATEN.erfinv_.default,
}
# What makes a tensor's values Python's own without an operation
_READING = {
    "tolist",
    "numpy",
    "__array__",
    "__dlpack__",
    "storage",
    "untyped_storage",
    "__reduce_ex__",
}


@dataclass(frozen=True)
class Step:
    """One recorded in-place operation on the whole of one parameter or buffer."""

    name: str
    operation: Callable[..., object]
    args: Arguments
    kwargs: Keywords

    def apply(self, tensor: Tensor, generator: torch.Generator) -> None:
        """Repeat the operation on a tensor of any shape."""
        kwargs = self.kwargs | ({"generator": generator} if self.operation in _ARGUMENTS else {})
        self.operation(tensor, *self.args, **kwargs)

    def distribution(self) -> tuple[float, float] | None:
        """Return mean and standard deviation of what is drawn; None if nothing is."""
        if self.operation not in _ARGUMENTS:
            return None
        defaults = _ARGUMENTS[self.operation]
        values = defaults | dict(zip(defaults, self.args, strict=False)) | self.kwargs
        first, second = (float(values[name]) for name in defaults)
        if self.operation is _NORMAL:
            return first, second
        return (first + second) / 2, (second - first) / 2 / 3**0.5  # uniform


def _of_shape(func: OpOverload) -> bool:
    """Whether an operation reads of a tensor its shape alone, such as zeros_like and new_empty."""
    name = func._schema.name
    return name.endswith("_like") or name.startswith("aten::new_")


def _of_own_generator(kwargs: Keywords) -> bool:
    """Whether a draw takes its numbers from another generator than torch's global one."""
    return kwargs.get("generator") not in (None, torch.default_generator)


class Recording(TorchDispatchMode):
    """One network of a factory, with the operations that drew its weights.

    Args:
        factory: function that returns a new network at each call.
        seed: seed of the global generator. Numbers from a generator that the factory creates or
            seeds itself are the same for every network.
        device: device on which the network is drawn.

    Attributes:
        network: network as the factory returned it.
        state: its parameters and buffers.
        steps: operations that wrote to them; None if they cannot be replayed.
        random: names of those that the steps made from random numbers.
    """

    def __init__(self, factory: Factory, seed: int, device: torch.device | str = "cpu") -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch's has no annotations
        self._writes: list[tuple[OpOverload, Tensor, Arguments, Keywords]] = []
        # Tensors that other operations may have written to
        self._changed: list[Tensor] = []
        # By address, which no other tensor gets as long as these live
        self._random: dict[int, Tensor] = {}
        self._replayable, self._seed = True, seed
        with seeded(seed, device), _Reading(self), self:
            self.network = called(factory, f"of the seed {seed}")
            reseeded = torch.default_generator.initial_seed() != seed
        self.state = state_of(self.network)
        self.steps = self._steps()
        # What follows a seed of the factory's own is the same in all networks
        self.random = set() if reseeded else _random_names(self.steps or [])

    def use(self, values: object) -> None:
        """End the replay if any of these tensors, or one that shares its memory, is random."""
        self._replayable &= not any(
            address(tensor) in self._random for tensor in tensors_in(values)
        )

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # else the first operation imports torch's compiler, which takes a second

    def __torch_dispatch__(
        self, func: OpOverload, types: object, args: Arguments = (), kwargs: Keywords | None = None
    ) -> object:
        kwargs = kwargs or {}
        draws = torch.Tag.nondeterministic_seeded in func.tags
        if func in _ELEMENTWISE:  # in place, and repeated if nothing else is random
            self.use((args[1:], kwargs))
            self._writes.append((func, args[0], args[1:], kwargs))
            if draws:
                self._replayable &= not _of_own_generator(kwargs)
                self._random[address(args[0])] = args[0]
        elif draws:
            # What the factory seeds itself is the same in all networks
            reseeded = torch.default_generator.initial_seed() != self._seed
            self._replayable &= reseeded or _of_own_generator(kwargs)
        elif not func.is_view and not _of_shape(func):
            self.use((args, kwargs))
            if func._schema.is_mutable:
                self._changed += tensors_in((args, kwargs))
        return func(*args, **kwargs)

    def _steps(self) -> list[Step] | None:
        """Return the operations on parameters and buffers; None if they cannot be replayed."""
        state = self.state
        owners = {address(tensor): name for name, tensor in state.items()}
        attributes = tensors_in(plain_attributes(self.network))
        self.use([tensor for tensor in attributes if address(tensor) not in owners])
        if not self._replayable or any(address(tensor) in owners for tensor in self._changed):
            return None
        steps = []
        for func, target, args, kwargs in self._writes:
            name = owners.get(address(target))
            if name is None:
                continue
            whole = (
                target.shape == state[name].shape
                and target.is_contiguous()
                and state[name].is_contiguous()
            )
            if not whole or any(tensor.dim() for tensor in tensors_in((args, kwargs))):
                return None
            options = {key: value for key, value in kwargs.items() if key != "generator"}
            steps.append(Step(name, func, tuple(args), options))
        return steps


class _Reading(TorchFunctionMode):
    """Let a recording know of random tensors that Python reads without an operation, such as by
    ``tolist()``.
    """

    def __init__(self, recording: Recording) -> None:
        super().__init__()
        self._recording = recording

    def __torch_function__(
        self, func: OpOverload, types: object, args: Arguments = (), kwargs: Keywords | None = None
    ) -> object:
        if getattr(func, "__name__", "") in _READING:
            self._recording.use(args[0])
        return func(*args, **(kwargs or {}))


def _random_names(steps: Sequence[Step]) -> set[str]:
    """Return the names of the tensors that steps make from random numbers, and not overwrite."""
    random = set[str]()
    for step in steps:
        distribution = step.distribution()
        by_zero = step.operation in _MULTIPLYING and not step.args[0]
        if distribution is not None and distribution[1] > 0:
            random.add(step.name)
        elif step.operation in _OVERWRITING or by_zero:
            random.discard(step.name)
    return random


def address(tensor: Tensor) -> int:
    """Return the address of a tensor's memory; a unique number for tensors that are empty or have
    none.
    """
    try:
        return tensor.untyped_storage().data_ptr() or -id(tensor)
    except (RuntimeError, NotImplementedError):  # sparse tensors have no storage
        return -id(tensor)


def without_overwritten(steps: Sequence[Step]) -> list[Step]:
    """Drop the steps whose result a later step on the same tensor overwrites."""
    last = {step.name: index for index, step in enumerate(steps) if step.operation in _OVERWRITING}
    return [step for index, step in enumerate(steps) if index >= last.get(step.name, 0)]
