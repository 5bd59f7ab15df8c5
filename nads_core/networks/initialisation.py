"""How a factory initialises its networks: recorded once, and replayed for many of them at a time.

The replay is used only if, from the same seed, it repeats the factory's own network bit for bit;
otherwise the factory builds every network.
"""

import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import torch
from torch import Tensor, nn

from nads_core.networks.architectures import Factory
from nads_core.networks.modules import State, called, state_of
from nads_core.networks.recording import Recording, Step, address, without_overwritten
from nads_core.networks.self_check import (
    differing,
    foreign_generators,
    held_generators,
    not_reproduced,
)
from nads_core.runtime.seeds import seeded


@dataclass(frozen=True)
class Initialisation:
    """The weights that a factory draws for every network, and how to draw them for many networks at
    a time.

    Attributes:
        factory: function that returns a new network at each call.
        device: device on which networks are drawn.
        network: one of them, as the factory returned it.
        varying: parameters and buffers that vary between networks, as meta tensors of the factory's
            own types. Their values differ between two networks, or they were drawn from torch's
            generator.
        recorded: operations of the factory on its tensors, in order; None if it has to build every
            network, because its random numbers cannot be replayed, or decide about more than
            weights.
        tensors: all parameters and buffers, as meta tensors.
        origin: device on which the factory creates them.
    """

    factory: Factory
    device: torch.device | str
    network: nn.Module
    varying: State
    recorded: list[Step] | None
    tensors: State
    origin: torch.device

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
        earlier = _of_seed_1(factory, device)
        repeated, held = state_of(earlier), held_generators(earlier, factory)
        foreign = foreign_generators(held)
        one, other = Recording(factory, 1, device), Recording(factory, 2, device)
        moved = foreign != foreign_generators(held)
        first, differences = one.state, differing(one.network, other.network)
        if _different(first, repeated):
            repeated = state_of(_of_seed_1(factory, device))
        anything = rebuild or one.steps is None or other.steps is None
        names = _varying(one, other, repeated, anything, differences)
        if not names and not rebuild:
            raise not_reproduced("of the seed 2", differences)
        network = one.network
        if {*map(id, network.parameters())} & {*map(id, other.network.parameters())}:
            # What several networks share belongs to the caller, and is prepared in copies
            shared = factory
            factory = lambda: copy.deepcopy(shared())  # noqa: E731
            network = copy.deepcopy(network)
        tensors = {name: tensor.detach().to("meta") for name, tensor in first.items()}
        origin = next((tensor.device for tensor in first.values()), torch.device("cpu"))
        recorded = None if moved or one.steps != other.steps else one.steps
        if recorded is not None:
            drawn = _replayed(recorded, tensors, 1, origin)
            if not all(name in drawn and torch.equal(drawn[name], first[name]) for name in names):
                recorded = None
        varying = {name: tensors[name] for name in names}
        return cls(factory, device, network, varying, recorded, tensors, origin)

    @cached_property
    def steps(self) -> list[Step] | None:
        """The operations that draw what varies, without those whose result others overwrite, which
        only move the generator; None if the factory has to build every network.
        """
        if self.recorded is None:
            return None
        return [step for step in without_overwritten(self.recorded) if step.name in self.varying]

    def build(self, count: int, seed: int, first: int = 0) -> list[nn.Module]:
        """Call the factory ``count`` times; errors count the networks from ``first``."""
        # A factory may train its networks
        with seeded(seed, self.device), torch.enable_grad():
            networks = [called(self.factory, f"number {first + row}") for row in range(count)]
        if len({*map(id, networks)}) < count:
            raise ValueError(
                "the factory returned one network again: it has to create a new one at each call"
            )
        if count > 1:
            self._require_different(state_of(networks[0]), state_of(networks[1]))
        return networks

    def draw(self, count: int, seed: int) -> State:
        """Draw the varying weights of ``count`` networks together from one seed, name -> (count,
        *shape), in the factory's own types.
        """
        assert self.steps is not None, "the factory has to build these networks"
        state = {
            name: t.new_empty((count, *t.shape), device=self.device)
            for name, t in self.varying.items()
        }
        generator = torch.Generator(self.device).manual_seed(seed)
        for step in self.steps:
            step.apply(state[step.name], generator)
        return state

    def drawn_alone(self, seed: int) -> State:
        """Return the varying weights of the network that the factory draws from a seed, name ->
        (*shape).
        """
        assert self.recorded is not None, "the factory has to build these networks"
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
            and not _equal_by_chance(one[name])
        ]
        if names:
            raise ValueError(
                f"the weights {', '.join(sorted(names)[:4])} are the same in two networks that "
                "the factory builds one after another: draw them by torch's generator, not by its "
                "seed"
            )


def _of_seed_1(factory: Factory, device: torch.device | str) -> nn.Module:
    """Return the network that the factory returns from seed 1."""
    with seeded(1, device):
        return called(factory, "of the seed 1")


def _varying(
    one: Recording, other: Recording, repeated: State, rebuild: bool, differences: dict[str, str]
) -> list[str]:
    """Return the names of weights that vary: they differ between networks of two seeds, or were
    drawn.

    Args:
        one: network of one seed.
        other: network of another seed.
        repeated: parameters and buffers of another network of the first seed.
        rebuild: whether networks may differ in more than these.
        differences: other differences, by name.
    """
    first, second = one.state, other.state
    random = one.random & other.random  # what one call alone drew is a cache's
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
    different = _different(first, second)
    names = [
        name
        for name in first
        if not same or name in different or (name in random and _equal_by_chance(first[name]))
    ]
    shared = [
        name for name in names if name in second and address(first[name]) == address(second[name])
    ]
    if shared or not (names or differences):
        reasons = "does it return one network again, load a checkpoint, or set a seed?"
        if not first:
            reasons = "none, as its network has no layers: create them in __init__, not in forward"
        raise ValueError(f"the factory returned the same weights twice: {reasons}")
    if unfixed := _different(first, repeated):
        raise ValueError(
            f"the weights {', '.join(unfixed[:4])} are not fixed by torch.manual_seed: draw them "
            "from torch's global generator, which only the option seed seeds, rather than with "
            "numpy, and initialise those that torch.empty created"
        )
    return names


def _equal_by_chance(tensor: Tensor) -> bool:
    """Whether a tensor has so few values that two networks may have drawn the same ones."""
    return len(tensor.unique()) <= 2


def _different(first: State, second: State) -> list[str]:
    """Return the names of tensors that differ, or that one state alone has."""
    common = first.keys() & second.keys()
    return [
        name
        for name in {**first, **second}
        if name not in common or not _same(first[name], second[name])
    ]


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
