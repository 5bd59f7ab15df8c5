"""How a factory initialises its networks: recorded once, and replayed for many of them at a time.

The record is the in-place operations that the factory applies to its parameters; they are replayed
on tensors with one more leading dimension. The replay is used only if, from the same seed, it
repeats the factory's own network bit for bit; otherwise the factory is called once per network.
"""

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch._ops import OpOverload
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from nads_core.kernels import RandomParameter
from nads_core.networks.architectures import Factory
from nads_core.networks.self_check import (
    differing,
    foreign_generators,
    not_reproduced,
    plain_attributes,
)
from nads_core.runtime.seeds import seeded

Arguments = tuple[Any, ...]
Keywords = dict[str, Any]
State = dict[str, Tensor]  # name -> (B, *shape): one parameter or buffer of B networks

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
        return _address(tensor) in self._random

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
                self._random[_address(tensor)] = tensor
            elif func._schema.is_mutable:
                self._random.pop(_address(tensor), None)

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


def _address(tensor: Tensor) -> int:
    """Return the address of a tensor's memory; a unique number for tensors that are empty or have
    none.
    """
    try:
        return tensor.untyped_storage().data_ptr() or -id(tensor)
    except (RuntimeError, NotImplementedError):  # sparse tensors have no storage
        return -id(tensor)


def called(factory: Factory, which: str) -> nn.Module:
    """Return a new network of a factory in eval mode, which can change weights, as that of low-rank
    updates does.

    The default number type is the caller's again afterwards.

    Args:
        factory: function that returns a new network.
        which: the network in errors, such as "number 12".

    Raises:
        TypeError, ImportError, OSError: if the factory does.
        MemoryError: if memory ran out.
        ValueError: for any other exception of the factory.
    """
    dtype = torch.get_default_dtype()
    try:
        return require_module(factory()).eval()
    except TypeError as error:
        if error.__traceback__ and error.__traceback__.tb_next:
            raise  # not of this call, but of the factory's code
        remedy = "pass a function without arguments that returns a new network"
        raise TypeError(f"{error}: {remedy}") from error
    except (ImportError, OSError, MemoryError, torch.OutOfMemoryError):
        raise
    except Exception as error:  # whatever the factory's author chose to raise
        raise failure(f"the factory failed for the network {which}", error) from error
    finally:
        torch.set_default_dtype(dtype)


def failure(subject: str, error: Exception) -> Exception:
    """Return the error of the library for one of a user's code: a MemoryError if memory ran out,
    else a ValueError.
    """
    kind = MemoryError if "alloc" in str(error) and "memory" in str(error) else ValueError
    return kind(f"{subject}: {type(error).__name__}: {error}")


def require_module(network: object) -> nn.Module:
    """Return the result of a factory; raise a TypeError unless it is a network whose weights can be
    replaced.
    """
    if not isinstance(network, nn.Module):
        raise TypeError(f"the factory must return a torch.nn.Module, got {type(network).__name__}")
    network = _uncompiled(network)
    if any(isinstance(layer, torch.jit.ScriptModule) for layer in network.modules()):
        raise TypeError(
            "the weights of a compiled ScriptModule cannot be replaced: "
            "leave torch.jit out of the factory"
        )
    # Its eval is replaced by a function that raises
    if isinstance(network, torch.fx.GraphModule) and "eval" in vars(network):
        raise TypeError(
            "a graph of torch.export has no eval mode: return the module that was exported"
        )
    state = state_of(network)
    if any(nn.parameter.is_lazy(tensor) for tensor in state.values()):
        raise TypeError(
            "the factory returns a network with lazy layers: "
            "call it once on an input in the factory"
        )
    sparse = [f"{name} ({t.layout})" for name, t in state.items() if t.layout != torch.strided]
    if sparse:
        raise TypeError(
            f"weights and buffers must be dense, got {', '.join(sparse)}: "
            "convert them by to_dense()"
        )
    empty = [name for name, tensor in state.items() if tensor.is_meta]
    if empty:
        names = ", ".join(empty[:3])
        remedy = "call to_empty(device='cpu') on the network, and initialise its weights"
        raise ValueError(
            f"weights and buffers on the meta device have no values ({names}): {remedy}"
        )
    return network


def _uncompiled(network: nn.Module) -> nn.Module:
    """Undo torch.compile, in place: its code would be compiled again for the weights of each
    network.
    """
    for module in network.modules():
        module._compiled_call_impl = None  # of nn.Module.compile
        for name, child in module._modules.items():
            module._modules[name] = (
                getattr(child, "_orig_mod", child) if _is_compiled(child) else child
            )
    return network._orig_mod if _is_compiled(network) else network  # type: ignore[return-value]


def _is_compiled(module: nn.Module | None) -> bool:
    return type(module).__name__ == "OptimizedModule"  # its import takes a second


def without_overwritten(steps: Sequence[Step]) -> list[Step]:
    """Drop the steps whose result a later step on the same tensor overwrites."""
    last = {step.name: index for index, step in enumerate(steps) if step.operation in _OVERWRITING}
    return [step for index, step in enumerate(steps) if index >= last.get(step.name, 0)]


def state_of(network: nn.Module) -> State:
    """Return every parameter and buffer of one network, also those that its class hides."""
    return dict(nn.Module.named_parameters(network)) | dict(nn.Module.named_buffers(network))


@dataclass(frozen=True)
class _Copying:
    """A factory that returns copies of another one's networks."""

    factory: Factory

    def __call__(self) -> nn.Module:
        return copy.deepcopy(self.factory())


@dataclass(frozen=True)
class Initialisation:
    """The weights that a factory draws for every network, and how to draw them for many networks at
    a time.

    Attributes:
        factory: function that returns a new network at each call.
        device: device on which networks are drawn.
        network: one of them, as the factory returned it.
        second: another one, until it has been compared with the first.
        varying: parameters and buffers that vary between networks, as meta tensors of the factory's
            own types. Their values differ between two networks, or they were drawn from torch's
            generator.
        steps: operations that draw them, in order; None if the factory has to be called for every
            network.
        recorded: all operations, also those whose result others overwrite: they move the generator;
            None without steps.
        tensors: all parameters and buffers, as meta tensors.
        origin: device on which the factory creates them.
        unsure: whether the factory read random numbers. Two networks may then not show all
            differences, and each network has to be compared with the first.
    """

    factory: Factory
    device: torch.device | str
    network: nn.Module
    second: nn.Module | None
    varying: State
    steps: list[Step] | None
    recorded: list[Step] | None
    tensors: State
    origin: torch.device
    unsure: bool

    @classmethod
    def of(
        cls,
        factory: Factory,
        device: torch.device | str = "cpu",
        rebuild: bool = False,
    ) -> Self:
        """Find which weights vary from call to call, and whether drawing them can be replayed.

        Args:
            factory: function that returns a new network at each call.
            device: device on which networks are drawn.
            rebuild: whether every network will be built by the factory, so that anything may differ
                between them.

        Raises:
            TypeError: if the factory does not return an `nn.Module`.
            ValueError: if it returns networks of two structures, NaN, the same weights at every
                call, or draws them from outside torch's random generator.
        """
        # A first call can fill a cache, or import a module that draws numbers
        repeated = _of_seed_1(factory, device)
        foreign = foreign_generators()
        one, other = Recording(factory, 1, device), Recording(factory, 2, device)
        moved = foreign != foreign_generators()
        first, differences = one.state, differing(one.network, other.network)
        if not _equal(first, repeated):
            repeated = _of_seed_1(factory, device)
        random = one.random & other.random  # what one call alone drew is a cache's
        names = _varying(first, other.state, repeated, random, rebuild, differences)
        unsure = one.decides or other.decides or moved or not one.hidden <= differences.keys()
        network, second = one.network, other.network
        if {*map(id, one.network.parameters())} & {*map(id, other.network.parameters())}:
            # What several networks share belongs to the caller, and is prepared in copies
            factory = _Copying(factory)
            network, second = copy.deepcopy(network), copy.deepcopy(second)
        tensors = {name: tensor.detach().to("meta") for name, tensor in first.items()}
        origin = next((tensor.device for tensor in first.values()), torch.device("cpu"))
        steps = recorded = None
        if one.steps is not None and not unsure and one.steps == other.steps:
            drawn = _replayed(one.steps, tensors, 1, origin)
            if all(name in drawn and torch.equal(drawn[name], first[name]) for name in names):
                recorded = one.steps
                steps = [step for step in without_overwritten(recorded) if step.name in names]
        varying = {name: tensors[name] for name in names}
        return cls(
            factory,
            device,
            network,
            second,
            varying,
            steps,
            recorded,
            tensors,
            origin,
            unsure,
        )

    def build(self, count: int, seed: int, first: int = 0) -> list[nn.Module]:
        """Call the factory ``count`` times; errors count the networks from ``first``."""
        networks: list[nn.Module] = []
        self._build(count, seed, first, networks.append)
        if len({*map(id, networks)}) < count:
            raise ValueError(
                "the factory returned one network again: it has to create a new one at each call"
            )
        if count > 1:
            self._require_different(state_of(networks[0]), state_of(networks[1]))
        return networks

    def _build(self, count: int, seed: int, first: int, use: Callable[[nn.Module], object]) -> None:
        """Call a function with each of ``count`` networks before the factory is called again."""
        with seeded(seed, self.device):
            for number in range(first, first + count):
                use(called(self.factory, f"number {number}"))

    def draw(
        self,
        count: int,
        seed: int,
        check: Callable[[nn.Module, int], None] | None = None,
        first: int = 0,
    ) -> State:
        """Draw the varying weights of ``count`` networks together, name -> (count, *shape), in the
        factory's own types.

        Args:
            count: number of networks.
            seed: seed of all networks.
            check: function that is called with every network that the factory builds if `unsure`,
                and its number; it may change the network.
            first: number of the first network, for errors.
        """
        if self.steps is not None:
            state = {
                name: t.new_empty((count, *t.shape), device=self.device)
                for name, t in self.varying.items()
            }
            generator = torch.Generator(self.device).manual_seed(seed)
            for step in self.steps:
                step.apply(state[step.name], generator)
            return state
        drawn: State = {}
        rows = iter(range(count))

        def add(network: nn.Module) -> None:
            state, row = state_of(network), next(rows)
            self._require_structure(state, first + row)
            for name in self.varying:
                tensor = state[name].detach()
                drawn.setdefault(name, tensor.new_empty((count, *tensor.shape)))[row] = tensor
            if self.unsure and check:
                check(network, first + row)

        self._build(count, seed, first, add)
        if count > 1:
            one, other = ({name: t[row] for name, t in drawn.items()} for row in range(2))
            self._require_different(one, other)
        return drawn

    def drawn_alone(self, seed: int, number: int) -> State:
        """Return the varying weights of the network that the factory draws from a seed, name ->
        (*shape).
        """
        if self.recorded is None:
            return {name: tensor[0] for name, tensor in self.draw(1, seed, first=number).items()}
        drawn = _replayed(self.recorded, self.tensors, seed, self.origin)
        return {name: drawn[name] for name in self.varying}

    def _require_different(self, one: State, other: State) -> None:
        """Raise a ValueError if two networks that follow one another have a random tensor in
        common, which then follows from the seed alone. Discrete ones can be equal by chance.
        """
        names = [
            name
            for name in self.varying.keys() & one.keys() & other.keys()
            if one[name].is_floating_point()
            and _same(one[name], other[name])
            and len(one[name].unique()) > 2
        ]
        if names:
            raise ValueError(
                f"the weights {', '.join(sorted(names)[:4])} are the same in two networks that "
                "the factory builds one after another: draw them by torch's generator, not by its "
                "seed"
            )

    def _require_structure(self, state: State, number: int) -> None:
        """Raise a ValueError if a network has other parameters and buffers than the first one."""
        names = self.tensors.keys() ^ state.keys()
        for name in self.tensors.keys() & state.keys():
            tensor, other = self.tensors[name], state[name]
            if (tensor.shape, tensor.dtype) != (other.shape, other.dtype):
                names.add(name)
        if names:
            raise ValueError(
                f"the network number {number} has another structure than the first one "
                f"({', '.join(sorted(names)[:4])})"
                ": use evaluation='factory'"
            )

    def random_parameters(self) -> list[RandomParameter] | None:
        """Return how each varying parameter is drawn; None unless one uniform_ or normal_ in
        float32 draws each.
        """
        steps = self.steps or []
        drawn = {step.name: distribution for step in steps if (distribution := step.distribution())}
        once = len(drawn) == len(steps) == len(self.varying)
        if not once or {tensor.dtype for tensor in self.varying.values()} != {torch.float32}:
            return None
        return [
            RandomParameter(tuple(tensor.shape), *drawn[name])
            for name, tensor in self.varying.items()
        ]


def _of_seed_1(factory: Factory, device: torch.device | str) -> State:
    """Return parameters and buffers of the network that the factory returns from seed 1."""
    with seeded(1, device):
        return state_of(called(factory, "of the seed 1"))


def _varying(
    first: State,
    second: State,
    repeated: State,
    random: set[str],
    rebuild: bool,
    differences: dict[str, str],
) -> list[str]:
    """Return the names of weights that vary: they differ between networks of two seeds, or were
    drawn.

    Args:
        first: parameters and buffers from one seed.
        second: the same from another seed.
        repeated: the same from the seed of ``first``.
        random: names of those that were drawn.
        rebuild: whether networks may differ in more than these.
        differences: other differences, by name.
    """
    missing = [name for name, tensor in first.items() if tensor.isnan().any()]
    if missing:
        raise ValueError(
            f"the factory's weights {', '.join(missing)} hold NaN: check how it initialises them"
        )
    same = first.keys() == second.keys() and all(
        first[name].shape == second[name].shape for name in first
    )
    if not same and not rebuild:
        raise ValueError(
            "the factory returned networks of two different structures: use evaluation='factory'"
        )
    names = [
        name
        for name in first
        if not same or name in random or not torch.equal(first[name], second[name])
    ]
    shared = [
        name for name in names if name in second and _address(first[name]) == _address(second[name])
    ]
    if shared or not (names or differences):
        reasons = "does it return one network again, load a checkpoint, or set a seed?"
        raise ValueError(f"the factory returned the same weights twice: {reasons}")
    unfixed = [
        name for name in first if name not in repeated or not _same(first[name], repeated[name])
    ]
    if unfixed or first.keys() != repeated.keys():
        raise ValueError(
            f"the weights {', '.join(unfixed[:4])} are not fixed by torch.manual_seed: "
            "draw them with torch rather than numpy, and initialise those that torch.empty created"
        )
    if not names and not rebuild:
        raise not_reproduced("of the seed 2", differences)
    return names


def _equal(first: State, second: State) -> bool:
    return first.keys() == second.keys() and all(_same(first[name], second[name]) for name in first)


def _same(first: Tensor, second: Tensor) -> bool:
    return first.shape == second.shape and torch.equal(first, second)


def _replayed(steps: list[Step], tensors: State, seed: int, device: torch.device) -> State:
    """Return the floating-point tensors that the steps draw from a seed, bit for bit as the factory
    does.
    """
    generator = torch.Generator(device).manual_seed(seed)
    drawn = {
        name: t.new_full(t.shape, torch.nan, device=device)
        for name, t in tensors.items()
        if t.is_floating_point()
    }
    for step in steps:
        if step.name in drawn:
            step.apply(drawn[step.name], generator)
    return drawn
