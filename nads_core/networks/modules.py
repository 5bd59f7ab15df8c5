"""Networks that a factory returns, as modules whose weights can be replaced, and their state."""

import torch
from torch import Tensor, nn

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
