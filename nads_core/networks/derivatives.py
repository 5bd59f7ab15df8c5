"""f(x) of one network, and its derivatives with respect to the input and along a direction in
weight space.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self, TypeVar

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map

from nads_core.networks.modules import State, state_of
from nads_core.runtime.seeds import generator_state

_Result = TypeVar("_Result")
# Index of an output, or a function of whatever a network returns
Output = int | Callable[[Any], Tensor]


@dataclass(frozen=True)
class OutputAt:
    """One number for each input from a dictionary, a tuple or an object of tensors.

    Args:
        path: keys, indices and attributes up to a tensor, then the column of the tensor, 0 by
            default.

    >>> OutputAt("heads.1.2")({"heads": (None, torch.arange(6).view(2, 3))})
    tensor([2, 5])
    """

    path: str

    def __call__(self, outputs: Any) -> Tensor:
        """Return the column that the path names, (K,)."""
        value, steps = outputs, self.path.split(".")
        while steps and not isinstance(value, Tensor):
            step = steps.pop(0)
            if isinstance(value, Mapping):
                value = value[step]
            else:
                value = value[int(step)] if step.isdigit() else getattr(value, step)
        column = ".".join(steps) or "0"
        several = value.dim() == 2
        if not column.isdigit() or value.dim() > 2 or not (several or column == "0"):
            raise ValueError(f"output {self.path!r} names no column of a tensor (K, outputs)")
        return value[:, int(column)] if several else value


class _OutputError(RuntimeError):
    """Raised where an output function fails, not the network."""


def _shapes(value: Any) -> Any:
    """Return what a network returned with shapes in place of tensors."""
    return tree_map(lambda x: tuple(x.shape) if isinstance(x, Tensor) else type(x).__name__, value)


class ScalarFunction:
    """One output of a network, as a function of weights and images.

    Evaluating it writes to its module for that time, so that each thread needs one of its own.

    Args:
        module: network in eval mode, without gradients of its weights.
        varying: names of the weights that callers pass; all others keep their values in ``module``.
        output: index of the output that is the scalar f(x); or a function of whatever the network
            returns for K inputs, which returns (K,).

    Attributes:
        takes_gradients: whether the network's forward pass takes gradients, so that it has to
            record operations and weights even where only values are needed; found by
            `require_outputs`.
    """

    def __init__(self, module: nn.Module, varying: set[str], output: Output = 0):
        self.module, self.output, self.takes_gradients = module, output, False
        state = state_of(module)
        self.fixed = {
            name: tensor.detach() for name, tensor in state.items() if name not in varying
        }
        self._places = _places(module)

    def __call__(self, weights: State, images: Tensor) -> Tensor:
        """f(x) at K inputs: (K, C, H, W) -> (K,)."""
        # The network may write its next result to the same memory
        return self._value(self.outputs(weights, images)).clone()

    def _value(self, outputs: Tensor) -> Tensor:
        return outputs if callable(self.output) or outputs.dim() == 1 else outputs[:, self.output]

    def outputs(self, weights: State, images: Tensor) -> Tensor:
        """Return all outputs, (K,) or (K, outputs), with the weights of one network; (K,) from an
        output function.
        """
        with self._loaded(weights):
            return self._outputs_of(self.module, images)

    def of(self, network: nn.Module) -> Self:
        """Return f of another network, with its own weights."""
        function = type(self)(network, set(), self.output)
        function.takes_gradients = self.takes_gradients
        return function

    def own_values(self, network: nn.Module, images: Tensor) -> Tensor:
        """Return f of another network with its own weights, at K inputs, without gradients."""
        with torch.no_grad():
            if self.takes_gradients:
                return self.of(network)({}, images)
            return self._value(self._outputs_of(network, images)).clone()

    def _outputs_of(self, network: nn.Module, images: Tensor) -> Tensor:
        """Return all outputs of a network with the weights that it has now."""
        recording = torch.is_grad_enabled()
        with torch.set_grad_enabled(recording or self.takes_gradients):
            # The network may write to its input
            outputs = self._selected(network(images.clone()))
        return outputs.detach() if self.takes_gradients and not recording else outputs

    def _selected(self, outputs: Any) -> Tensor:
        if not callable(self.output):
            return outputs
        try:
            return self.output(outputs)
        except torch.OutOfMemoryError:
            raise
        except Exception as error:  # whatever the function's author chose to raise
            name = getattr(self.output, "path", getattr(self.output, "__name__", ""))
            raise _OutputError(
                f"output {name!r} (--output) fails for a network that returns {_shapes(outputs)}: "
                f"{error}"
            ) from error

    @contextmanager
    def _loaded(self, weights: State) -> Iterator[None]:
        """Put weights into the module, as functional_call does in ten times the time, and its own
        back at the end.
        """
        state, before = self.fixed | weights, [tensors[key] for tensors, key, _ in self._places]
        if self.takes_gradients:
            state |= {name: _leaf(state[name]) for name, _ in self.module.named_parameters()}
        try:
            for tensors, key, name in self._places:
                tensors[key] = state[name]
            yield
        finally:
            for (tensors, key, _), tensor in zip(self._places, before, strict=True):
                tensors[key] = tensor

    def require_outputs(self, weights: State, images: Tensor) -> Tensor:
        """Return all outputs; raise a ValueError unless f is a function of weights and images (K,
        C, H, W).
        """
        if torch.is_inference_mode_enabled():
            raise ValueError("gradients are needed: leave torch.inference_mode() for this call")
        before, names = generator_state(images.device), state_of(self.module).keys()
        try:
            outputs = self._first_outputs(weights, images)
        except _OutputError as error:
            raise ValueError(str(error)) from error
        except Exception as error:  # whatever the network's author chose to raise
            remedy = "Is image_shape (--image-shape) right? Several inputs need a wrapper of one"
            raise ValueError(
                f"the network rejected inputs of shape {tuple(images.shape)}: {error}. {remedy}"
            ) from error
        if created := state_of(self.module).keys() - names:
            raise ValueError(
                f"the network creates {', '.join(sorted(created))} in its first forward pass: "
                "create them in __init__, or call it once on an input in the factory"
            )
        if not torch.equal(before, generator_state(images.device)):
            raise ValueError(
                "the network draws random numbers in eval mode: "
                "is dropout always on, or a layer created in forward? f(x) must be fixed"
            )
        most = 1 if callable(self.output) else 2
        if (
            not isinstance(outputs, Tensor)
            or not 1 <= outputs.dim() <= most
            or len(outputs) != len(images)
        ):
            raise ValueError(
                "the network must map (K, C, H, W) to (K,) or (K, outputs), "
                "or a function as output its result to (K,), "
                f"but for K = {len(images)} it returned {_shapes(outputs)}: "
                "for example output='logits.0' "
                "(--output logits.0) for column 0 of y['logits'], '1.0' for that of y[1], or a "
                "function (MODULE:FUNCTION)"
            )
        count = outputs.shape[1] if outputs.dim() == 2 else 1
        if not callable(self.output) and self.output >= count:
            raise ValueError(
                f"output {self.output} does not exist: the network has {count} outputs"
            )
        require_real(outputs)
        return outputs

    def _first_outputs(self, weights: State, images: Tensor) -> Tensor:
        """Return the outputs, and find out whether the forward pass takes gradients itself."""
        with torch.no_grad():
            try:
                return self.outputs(weights, images)
            except RuntimeError as error:
                self.takes_gradients = True
                try:
                    return self.outputs(weights, images)
                except Exception:
                    self.takes_gradients = False
                    raise error from None

    def input_gradients(
        self,
        weights: State,
        images: Tensor,
        coefficients: Tensor | None = None,
        of_all_outputs: bool = False,
    ) -> Tensor:
        """Return the gradient of f, or of each of R outputs, `combine`d.

        (K, C, H, W) -> (1 or R, K or J, C, H, W).
        """
        return self.values_and_gradients(weights, images, coefficients, of_all_outputs)[1]

    def values_and_gradients(
        self,
        weights: State,
        images: Tensor,
        coefficients: Tensor | None = None,
        of_all_outputs: bool = False,
    ) -> tuple[Tensor, Tensor]:
        """Return the values, (K, 1 or R), and what `input_gradients` returns."""
        images = images.detach().requires_grad_()
        with (
            torch.enable_grad(),
            self._loaded(weights),
        ):  # checkpoints evaluate layers again in the backward pass
            # An output at one input does not depend on the others: the gradient of the sum over K
            # holds all K.
            outputs = self._outputs_of(self.module, images)
            values = outputs if of_all_outputs else self._value(outputs)[:, None]  # (K, R or 1)
            if not values.requires_grad:
                raise ValueError(
                    "the network's output does not depend on its input: "
                    "f(x) carries no gradient to x"
                )
            # Rows: the sum of one output over K
            sums = torch.eye(values.shape[1], dtype=values.dtype, device=values.device)
            gradients = []
            for index, one in enumerate(sums, start=1):
                try:
                    (gradient,) = torch.autograd.grad(
                        values, images, one.expand_as(values), retain_graph=index < len(sums)
                    )
                except torch.OutOfMemoryError:
                    raise
                except RuntimeError as error:  # such as that of checkpoints with use_reentrant=True
                    raise ValueError(
                        f"the gradient of the network's output to its input failed: {error}"
                    ) from error
                gradients.append(combine(gradient, coefficients))
            return values.detach().clone(), torch.stack(gradients)

    def in_float64(
        self, weights: State, images: Tensor, evaluate: Callable[[State, Tensor], _Result]
    ) -> _Result:
        """Return what a function of the whole state and images returns in float64, where rounding
        hides nothing.

        A network that rejects float64, such as one with constants of another type, is evaluated in
        its own type.
        """
        state = self.fixed | weights
        try:
            precise = {name: cast(tensor, torch.float64) for name, tensor in state.items()}
            return evaluate(precise, images.double())
        except Exception:  # whatever the network's author chose to raise
            return evaluate(state, images)

    def weight_gradients(self, state: State, names: Sequence[str], images: Tensor) -> State:
        """Return the gradient of the sum of f over K inputs with respect to parameters, by name."""
        leaves = {name: state[name].detach().requires_grad_() for name in names}
        # Checkpoints evaluate layers again in the backward pass
        with torch.enable_grad(), self._loaded(state | leaves):
            value = self._value(self._outputs_of(self.module, images)).sum()
            if not value.requires_grad:
                return {name: torch.zeros_like(leaf) for name, leaf in leaves.items()}
            gradients = torch.autograd.grad(
                value, list(leaves.values()), allow_unused=True, materialize_grads=True
            )
        return dict(zip(names, gradients, strict=True))

    def mixed_derivative(self, weights: State, images: Tensor, probe: State) -> Tensor:
        """Return r^T d/dtheta (df/dx) along the probe r, name -> (*shape): (K, C, H, W) -> (K, C,
        H, W).

        A complex weight counts as two real ones, its real and imaginary parts.
        """
        images = images.detach().requires_grad_()
        whole = self.fixed | weights
        along = {name: whole[name].detach().requires_grad_() for name in probe}
        # Checkpoints evaluate layers again in both backward passes
        with torch.enable_grad(), self._loaded(whole | along):
            total = self._value(self._outputs_of(self.module, images)).sum()
            slopes = torch.autograd.grad(
                total, list(along.values()), create_graph=True, allow_unused=True
            )
            # The slope of a complex weight a + ib is df/da + i df/db.
            moved = sum(
                (slope.conj() * probe[name]).real.sum()
                for name, slope in zip(along, slopes, strict=True)
                if slope is not None
            )
            # No weight moves the gradient
            if not isinstance(moved, Tensor) or not moved.requires_grad:
                return torch.zeros_like(images)
            (gradient,) = torch.autograd.grad(moved, images, materialize_grads=True)
        return gradient


def require_real(outputs: Tensor) -> None:
    """Raise a ValueError unless outputs are real floating-point numbers, which alone have gradients
    here.
    """
    if not outputs.is_floating_point():
        raise ValueError(
            f"outputs must be real floating-point numbers, got {outputs.dtype}: "
            "convert them in output="
        )


def combine(gradients: Tensor, coefficients: Tensor | None) -> Tensor:
    """Return the linear combinations (J, ...) of gradients (K, ...) that have coefficients (J, K);
    all gradients without them.
    """
    return gradients if coefficients is None else torch.tensordot(coefficients, gradients, 1)


def cast(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    """Convert floating-point numbers to a type, and complex ones to the complex type of its
    precision.
    """
    if tensor.is_complex():
        return tensor.to(torch.complex128 if dtype == torch.float64 else torch.complex64)
    return tensor.to(dtype) if tensor.is_floating_point() else tensor


def _leaf(tensor: Tensor) -> Tensor:
    """Return a parameter of which the forward pass can take gradients; integers have none."""
    if tensor.requires_grad or not is_differentiable(tensor):
        return tensor
    return tensor.detach().requires_grad_()


def is_differentiable(tensor: Tensor) -> bool:
    """Whether gradients with respect to a tensor exist."""
    return tensor.is_floating_point() or tensor.is_complex()


def _places(module: nn.Module) -> list[tuple[dict[str, Any], str, str]]:
    """Return where a module's layers read each parameter and buffer: (dictionary, key in it, name
    in `state_of`).
    """
    # Tensors that layers share have one name
    names = {id(tensor): name for name, tensor in state_of(module).items()}
    return [
        (tensors, key, names[id(tensor)])
        for layer in module.modules()
        for tensors in (layer._parameters, layer._buffers)
        for key, tensor in tensors.items()
        if tensor is not None
    ]
