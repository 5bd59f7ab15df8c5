"""How a factory initialises its networks: recorded once, and replayed for many of them at a time.

The replay is used only if, from the same seed, it repeats the factory's own network bit for bit;
otherwise the factory is called once per network.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor, nn

from nads_core.networks.architectures import Factory
from nads_core.networks.modules import State, called, state_of
from nads_core.networks.recording import Recording, Step, address, without_overwritten
from nads_core.networks.self_check import differing, foreign_generators, not_reproduced
from nads_core.runtime.seeds import seeded


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
        name for name in names if name in second and address(first[name]) == address(second[name])
    ]
    if shared or not (names or differences):
        reasons = "does it return one network again, load a checkpoint, or set a seed?"
        if not first:
            reasons = "none, as its network has no layers: create them in __init__, not in forward"
        raise ValueError(f"the factory returned the same weights twice: {reasons}")
    unfixed = [
        name for name in first if name not in repeated or not _same(first[name], repeated[name])
    ]
    if unfixed or first.keys() != repeated.keys():
        raise ValueError(
            f"the weights {', '.join(unfixed[:4])} are not fixed by torch.manual_seed: draw them "
            "from torch's global generator, which only the option seed seeds, rather than with "
            "numpy, and initialise those that torch.empty created"
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
