"""How a factory draws one network: the operations on its tensors, and what is random.

The record is the in-place operations that the factory applies to its parameters, which can be
replayed on tensors with one more leading dimension, if all of them are elementwise.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from nads_core.networks.architectures import Factory
from nads_core.networks.modules import called, state_of
from nads_core.networks.self_check import plain_attributes
from nads_core.runtime.seeds import seeded

Arguments = tuple[Any, ...]
Keywords = dict[str, Any]

_UNIFORM, _NORMAL = torch.ops.aten.uniform_.default, torch.ops.aten.normal_.default
# Unless given
_ARGUMENTS = {
    _UNIFORM: {"from": 0.0, "to": 1.0},
    _NORMAL: {"mean": 0.0, "std": 1.0},
}
_OVERWRITING = {_UNIFORM, _NORMAL, torch.ops.aten.fill_.Scalar, torch.ops.aten.zero_.default}
_ELEMENTWISE = _OVERWRITING | {
    torch.ops.aten.mul_.Scalar,
    torch.ops.aten.mul_.Tensor,
    torch.ops.aten.add_.Scalar,
    torch.ops.aten.add_.Tensor,
    torch.ops.aten.div_.Scalar,
    torch.ops.aten.div_.Tensor,
    torch.ops.aten.clamp_.default,
    torch.ops.aten.erfinv_.default,
}
_FILLING = {"aten::fill_", "aten::zero_", "aten::copy_"}
# What makes a tensor's values Python's own: functions that no operation shows, and operations
_READING = {
    "tolist",
    "numpy",
    "__array__",
    "__dlpack__",
    "storage",
    "untyped_storage",
    "__reduce_ex__",
}
_DECIDING = {"aten::_local_scalar_dense", "aten::equal"}  # item(), the condition of an if
_OF_SHAPE = {
    f"aten::{name}"
    for name in (
        "zeros_like",
        "ones_like",
        "full_like",
        "empty_like",
        "new_zeros",
        "new_ones",
        "new_full",
        "new_empty",
        "new_empty_strided",
    )
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

    def distribution(self) -> tuple[str, float, float] | None:
        """Return ("uniform", centre, half width) or ("normal", mean, standard deviation); None if
        it draws nothing.
        """
        if self.operation not in _ARGUMENTS:
            return None
        defaults = _ARGUMENTS[self.operation]
        values = defaults | dict(zip(defaults, self.args, strict=False)) | self.kwargs
        first, second = (float(values[name]) for name in defaults)
        if self.operation is _NORMAL:
            return "normal", first, second
        return "uniform", (first + second) / 2, (second - first) / 2


class Recording(TorchDispatchMode):
    """One network of a factory, with every operation that wrote to a tensor, and what was made from
    random numbers.

    Args:
        factory: function that returns a new network at each call.
        seed: seed of the global generator. Numbers from a generator that the factory creates or
            seeds itself are the same for every network.
        device: device on which the network is drawn.

    Attributes:
        network: network as the factory returned it.
        state: its parameters and buffers.
        steps: operations that drew its weights; None if they cannot be replayed.
        random: names of the parameters and buffers that were made from random numbers.
        hidden: names of the plain attributes that were made from random numbers.
        decides: whether a random number became one of Python's, or the shape of a tensor, which can
            decide about anything.
    """

    def __init__(self, factory: Factory, seed: int, device: torch.device | str = "cpu") -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch's has no annotations
        # Operation, tensor, other arguments, and whether one of these is random, which no step can
        # repeat
        self._writes: list[tuple[OpOverload, Tensor, Arguments, Keywords, bool]] = []
        self._seed = seed
        # By address, which no other tensor gets as long as these live
        self._random: dict[int, Tensor] = {}
        self.decides = False
        with seeded(seed, device), _Reading(self), self:
            self.network = called(factory, f"of the seed {seed}")
        self.state = state_of(self.network)
        self.steps = self._steps()
        self.random = self._random_names(self.state)
        self.hidden = self._random_names(plain_attributes(self.network))

    def _random_names(self, values: Mapping[str, object]) -> set[str]:
        return {
            name
            for name, value in values.items()
            if isinstance(value, Tensor) and self._is_random(value)
        }

    def _is_random(self, tensor: Tensor) -> bool:
        """Whether a tensor, or one that shares its memory, was made from random numbers."""
        return address(tensor) in self._random

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # else the first operation imports torch's compiler, which takes a second

    def __torch_dispatch__(
        self, func: OpOverload, types: object, args: Arguments = (), kwargs: Keywords | None = None
    ) -> object:
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        if written := _written(func, args, kwargs):
            by_random = any(map(self._is_random, _tensors((args[1:], kwargs))))
            self._writes += [(func, target, args[1:], kwargs, by_random) for target in written]
        self._trace(func, args, kwargs, written or _tensors(out))
        return out

    def _trace(
        self, func: OpOverload, args: Arguments, kwargs: Keywords, results: list[Tensor]
    ) -> None:
        """Record whether the tensors that an operation wrote, or else returned, are random."""
        reads = any(map(self._is_random, _tensors((args, kwargs))))
        if func._schema.name in _DECIDING or torch.Tag.dynamic_output_shape in func.tags:
            self.decides |= reads
        random = self._makes_random(func, args, kwargs, reads)
        for tensor in results:
            if random:
                self._random[address(tensor)] = tensor
            elif func._schema.is_mutable:
                self._random.pop(address(tensor), None)

    def _makes_random(
        self, func: OpOverload, args: Arguments, kwargs: Keywords, reads: bool
    ) -> bool:
        """Whether the result of an operation is random; ``reads``: whether an argument is."""
        name, in_place = func._schema.name, func._schema.name.endswith("_")
        target = args[0] if in_place and isinstance(args[0], Tensor) else None
        whole = target is not None and _bytes(target) == target.untyped_storage().nbytes()
        # Draws are random if the seed decides them; entries beside those that are drawn stay
        if torch.Tag.nondeterministic_seeded in func.tags:
            distribution = Step("", func, args[1:], kwargs).distribution()
            constant = distribution is not None and distribution[2] == 0  # normal_(std=0)
            by_seed = torch.default_generator.initial_seed() == self._seed
            own = kwargs.get("generator") not in (None, torch.default_generator)
            beside = target is not None and not whole and self._is_random(target)
            return (by_seed and not own and not constant) or beside
        # Only the shape of the argument is read
        if name in _OF_SHAPE:
            return False
        # All values are overwritten: by random ones only if those that are copied are random
        by_zero = name == "aten::mul_" and not isinstance(args[1], Tensor) and not args[1]
        if whole and (name in _FILLING or by_zero):
            return name == "aten::copy_" and self._is_random(args[1])
        # All else that is made from random numbers is random
        return reads

    def _steps(self) -> list[Step] | None:
        """Return the operations on parameters and buffers; None if they are not all elementwise."""
        state = self.state
        owners = {
            tensor.untyped_storage().data_ptr(): name
            for name, tensor in state.items()
            if tensor.numel()
        }
        steps = []
        for func, target, args, kwargs, by_random in self._writes:
            name = owners.get(target.untyped_storage().data_ptr())
            if name is None:
                continue
            whole = (
                target.shape == state[name].shape
                and target.is_contiguous()
                and state[name].is_contiguous()
            )
            scalars = not any(
                isinstance(value, Tensor) and value.dim() for value in (*args, *kwargs.values())
            )
            if func not in _ELEMENTWISE or not whole or not scalars or by_random:
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
        if getattr(func, "__name__", "") in _READING and self._recording._is_random(args[0]):
            self._recording.decides = True
        return func(*args, **(kwargs or {}))


def _tensors(values: object) -> list[Tensor]:
    """Return the tensors in nested lists, tuples and dictionaries."""
    return [leaf for leaf in tree_leaves(values) if isinstance(leaf, Tensor)]


def _written(func: OpOverload, args: Arguments, kwargs: Keywords) -> list[Tensor]:
    """Return the tensors that an operation writes to: that before the dot of ``x.add_(y)``, those
    of a list, or the one that is passed as ``out``.
    """
    if not func._schema.is_mutable:
        return []
    arguments = func._schema.arguments
    given = dict(zip((each.name for each in arguments), args, strict=False)) | kwargs
    changed = [a.name for a in arguments if a.alias_info is not None and a.alias_info.is_write]
    return _tensors([given.get(name) for name in changed])


def _bytes(tensor: Tensor) -> int:
    return tensor.numel() * tensor.element_size()


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
