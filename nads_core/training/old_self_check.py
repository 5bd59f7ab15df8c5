"""Differences between networks of one factory beyond the weights and buffers that an ensemble
replaces.

An ensemble evaluates one network, the template, with the weights and buffers of the others. That is
right only where nothing else differs between them: no tensor kept as a plain attribute, no choice
of an activation, a permutation or a structure.
"""

import pickle
import random
import sys
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import torch
from torch import Tensor, nn

from nads_core.training.old_modules import state_of

# Of the largest output; 0.05 for less precise types
_TOLERANCE = {torch.float64: 1e-6, torch.float32: 1e-4}
# Parameters, buffers, children and hooks, and lists of parameters in recurrent layers
_OF_ANY_MODULE = {*vars(nn.Module()), "_flat_weights", "_flat_weight_refs"} - {"training"}

_GENERATORS = (random.Random, np.random.Generator, np.random.RandomState, torch.Generator)


class AuditError(ValueError):
    """Raised where a later network shows that those before it may be wrong."""


def plain_attributes(network: nn.Module, seen: set[int] | None = None) -> dict[str, object]:
    """Return the class and the attributes of each module, other than parameters and buffers: name
    -> value.

    A layer in a plain attribute, such as a list, is not registered: its parameters and buffers are
    attributes.

    Args:
        network: network.
        seen: identities of the modules that are listed elsewhere.
    """
    attributes: dict[str, object] = {}
    seen = set() if seen is None else seen
    seen.update(map(id, network.modules()))
    for path, module in network.named_modules():
        attributes[f"{path} (class)".strip()] = type(module).__name__
        for name, value in vars(module).items():
            if name not in _OF_ANY_MODULE:
                attributes |= dict(_leaves(f"{path}.{name}".removeprefix("."), value, seen))
    return attributes


def _leaves(name: str, value: object, seen: set[int]) -> Iterator[tuple[str, object]]:
    if isinstance(value, (list, tuple, Mapping)):
        for key, item in value.items() if isinstance(value, Mapping) else enumerate(value):
            yield from _leaves(f"{name}[{key}]", item, seen)
    elif isinstance(value, nn.Module):
        if id(value) not in seen:
            for key, item in (plain_attributes(value, seen) | state_of(value)).items():
                yield f"{name}.{key}", item
    elif isinstance(value, (Tensor, np.ndarray)):
        yield name, torch.as_tensor(value).detach()
    elif isinstance(value, (bool, int, float, str)):
        yield name, value
    elif callable(value):
        yield name, getattr(value, "__qualname__", type(value).__qualname__)


def differing(first: nn.Module, second: nn.Module) -> dict[str, str]:
    """Return differences of two networks beyond parameters and buffers: name -> description."""
    return _differences(plain_attributes(first), plain_attributes(second))


def different_parts(first: nn.Module, second: nn.Module) -> set[str]:
    """Return the names of all attributes, parameters and buffers that differ, without keys of
    dictionaries, which can be addresses.
    """
    one, other = (plain_attributes(network) | state_of(network) for network in (first, second))
    return {name.partition("[")[0] for name in _differences(one, other)}


def _differences(one: Mapping[str, object], other: Mapping[str, object]) -> dict[str, str]:
    differences = {}
    for name in {**one, **other}:
        a, b = one.get(name), other.get(name)
        if isinstance(a, Tensor) and isinstance(b, Tensor):
            if a.shape != b.shape or a.layout != b.layout or not torch.equal(_dense(a), _dense(b)):
                differences[name] = "a tensor as a plain attribute"
        elif isinstance(a, Tensor) or isinstance(b, Tensor) or a != b:
            differences[name] = (
                f"{a} or {b}" if name in one and name in other else "which not every network has"
            )
    return differences


def _dense(tensor: Tensor) -> Tensor:
    """Return a tensor on the CPU, where one that is sparse is compared by all of its entries."""
    return (tensor if tensor.layout == torch.strided else tensor.to_dense()).cpu()


def same_outputs(outputs: Tensor, expected: Tensor, other_kernels: bool = False) -> bool:
    """Whether two evaluations agree up to rounding. NaN counts as equal, because it is reported
    elsewhere.

    By other kernels than those of PyTorch, which rounds to TF32 on a GPU, more of the difference is
    rounding.
    """
    if outputs.shape != expected.shape or torch.equal(outputs, expected):
        return outputs.shape == expected.shape
    tolerance = 0.05 if other_kernels else _TOLERANCE.get(outputs.dtype, 0.05)
    limit = tolerance * expected.abs().max()
    return not (outputs - expected).abs().max() > limit


def not_reproduced(which: str, differences: Mapping[str, str]) -> ValueError:
    """Return the error for a network that differs from the others in more than an ensemble
    replaces.
    """
    listing = "; ".join(
        f"{name} ({description})" for name, description in [*differences.items()][:4]
    )
    more = f" and {len(differences) - 4} more" if len(differences) > 4 else ""
    return ValueError(
        f"the network {which} differs from the others in more than the weights and buffers "
        f"that vary: {listing or 'not in an attribute'}{more}. "
        "Register what is drawn by self.register_buffer, draw all random numbers with torch, "
        "or use evaluation='factory', which builds every network by the factory and is slower"
    )


def held_generators(network: nn.Module, factory: object = None) -> list[object]:
    """Return the random generators with a state that a network's modules have as attributes, or
    that are variables of the files of their classes and of the factory.
    """
    modules = [*network.modules()]
    files = {type(module).__module__ for module in modules} & sys.modules.keys()
    variables = [*map(vars, modules), *(vars(sys.modules[file]) for file in files)]
    variables.append(getattr(factory, "__globals__", {}))
    values = [value for each in variables for value in [*each.values()]]
    return [
        value
        for value in values
        if isinstance(value, _GENERATORS) and not isinstance(value, random.SystemRandom)
    ]


def foreign_generators(held: Sequence[object] = ()) -> list[object]:
    """Return the states of Python's and numpy's random generators, and of others, which
    torch.manual_seed does not fix.
    """
    return [
        generator.get_state().tolist()
        if isinstance(generator, torch.Generator)
        else pickle.dumps(generator)
        for generator in (random.getstate(), np.random.mtrand._rand, *held)
    ]
