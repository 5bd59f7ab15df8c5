"""Networks that a factory returns, as modules whose weights can be replaced, and their state."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from nads_core.networks.architectures import Factory

State = dict[str, Tensor]  # name -> (B, *shape): one parameter or buffer of B networks


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
        network = require_module(factory())
        network.eval()  # whose own train may return nothing
        return network
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


def state_of(network: nn.Module) -> State:
    """Return every parameter and buffer of one network, also those that its class hides."""
    return dict(nn.Module.named_parameters(network)) | dict(nn.Module.named_buffers(network))


class Call(NamedTuple):
    """One call of a module.

    Args:
        name: name of the module.
        module: the module.
        given: copy of the first tensor among its arguments, None without one.
        results: what it returned.
        copy: copy of the first tensor in it.
        version: how often that tensor had been written to.
    """

    name: str
    module: nn.Module
    given: Tensor | None
    results: Any
    copy: Tensor
    version: int


@contextmanager
def recorded_calls(network: nn.Module, kind: type[nn.Module] = nn.Module) -> Iterator[list[Call]]:
    """Record the calls of a network's modules of one kind while the context lasts, in the order in
    which they end, each before the hooks of others change its result.
    """
    calls: list[Call] = []

    def record(name: str, module: nn.Module, args: object, kwargs: object, results: object) -> None:
        # Tensors of torch.func have no memory of their own
        if torch._C._are_functorch_transforms_active():
            return
        given, returned = tensors_in((args, kwargs)), tensors_in(results)
        if returned:
            first = given[0].detach().clone() if given else None
            copy = returned[0].detach().clone()
            calls.append(Call(name, module, first, results, copy, returned[0]._version))

    with ExitStack() as hooks:
        for name, module in network.named_modules():
            if isinstance(module, kind):
                handle = module.register_forward_hook(
                    partial(record, name), prepend=True, with_kwargs=True
                )
                hooks.enter_context(handle)
        yield calls


def tensors_in(values: object) -> list[Tensor]:
    """Return the tensors in nested lists, tuples and dictionaries."""
    return [leaf for leaf in tree_leaves(values) if isinstance(leaf, Tensor)]
