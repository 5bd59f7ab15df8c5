"""A test that f(x) depends on its own input alone, and not on the inputs that share its batch.

A gradient at one input is read from the gradient of a sum over a batch, which is right only for
such networks.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase
from torch.utils._pytree import tree_leaves

from nads_core.networks.derivatives import ScalarFunction
from nads_core.networks.modules import State

NUM_TEST_INPUTS = 4  # an even number, as pairs of inputs can act on each other
_ROWS = (1,)  # of the images that are compared with themselves alone: others come before and after
_MOST_ALONE = 16  # inputs of a larger batch that are evaluated alone
_EVERY_GRADIENT = 4  # one in so many of these has its gradient compared too
_DEVIATION = 5e-6  # of the spread of values and of the largest gradient
_ROUNDING = 10  # times the precision of the numbers, relative to the largest value and gradient
_JITTER = 10  # times what rounding the input changes
_OF_SEQUENCES = (
    nn.RNNBase,
    nn.MultiheadAttention,
    nn.TransformerEncoderLayer,
    nn.TransformerDecoderLayer,
)


class Evaluated(NamedTuple):
    """The values (K,) and gradients (K, D) of f at K inputs."""

    values: Tensor
    gradients: Tensor

    def distance(self, index: int, other: "Evaluated", other_index: int) -> Tensor:
        """Return how far value and gradient are from others, (2,); infinity where only one is
        finite.
        """
        value, other_value = self.values[index], other.values[other_index]
        if value.isfinite() != other_value.isfinite():
            return torch.full((2,), torch.inf)
        gradients = self.gradients[index] - other.gradients[other_index]
        return torch.stack([(value - other_value).abs(), gradients.norm()]).double().cpu()

    def allowed(self) -> Tensor:
        """Return the distances that rounding of this type explains, (2,)."""
        largest = self.values.abs().max()
        spread = (self.values - self.values.mean()).abs().max()
        longest = self.gradients.norm(dim=1).max()
        precision = min(_DEVIATION, _ROUNDING * torch.finfo(self.values.dtype).eps)
        return (_DEVIATION * torch.stack([spread, longest]) + precision * largest).double().cpu()


class _Compared(NamedTuple):
    """An input alone, or twice, and in a row of a batch, and how much more than rounding the
    results differ, (2,).
    """

    single: Tensor
    alone: Evaluated
    batch: Tensor
    row: int
    beyond: Tensor


class _Call(NamedTuple):
    """One call of a module, and the first tensor that it returned."""

    name: str
    module: nn.Module
    result: Tensor


def require_independent_inputs(
    function: ScalarFunction, weights: State, images: Tensor, with_gradients: bool = True
) -> Evaluated:
    """Return f and its gradients; raise a ValueError if those at one input depend on the other
    inputs of the batch.

    Args:
        function: f.
        weights: varying parameters and buffers of one network.
        images: random inputs, (4, C, H, W), of which one is evaluated alone; or more, with up to 16
            alone: what a layer drops beyond a capacity, or takes from the batch from some size on,
            shows in none of four. All of these have their values compared, a fourth of them their
            gradients too.
        with_gradients: whether the gradients matter, which take more memory than the values.
    """
    try:
        state, rows = function.fixed | weights, _rows_alone(len(images))
        evaluate = evaluated if with_gradients else _valued
        together = evaluate(function, state, images)
        same = _same_values(function, state, images, together, rows)
        if same and with_gradients:
            compared = _comparisons(function, state, images, together, rows[::_EVERY_GRADIENT])
            same = next(compared, None) is None
        if same:
            return together
        message = function.in_float64(weights, images, partial(_dependence, function))
    except Exception as error:  # whatever the network's author chose to raise
        raise ValueError(
            f"the network rejected a batch of 1 to {len(images)} inputs: {error}"
        ) from error
    if message:
        raise ValueError(message)
    return together


def same_in_half(function: ScalarFunction, state: State, images: Tensor) -> bool:
    """Whether the values of f for a batch are, in its second half, those for this half alone, up to
    rounding; False also where a network rejects one of them.

    In the second half, because what exceeds a capacity is often what comes last.
    """
    half = images[len(images) // 2 :]
    try:
        whole, alone = (_valued(function, state, part) for part in (images, half))
    except Exception:  # whatever the network's author chose to raise
        return False
    difference = (alone.values - whole.values[-len(half) :]).abs().max()
    return not difference.double().cpu() > whole.allowed()[0]


def _rows_alone(count: int) -> Sequence[int]:
    """Return which of so many images are compared with themselves alone."""
    return _ROWS if count <= NUM_TEST_INPUTS else range(0, count, -(-count // _MOST_ALONE))


def _same_values(
    function: ScalarFunction,
    state: State,
    images: Tensor,
    together: Evaluated,
    rows: Sequence[int],
) -> bool:
    """Whether f at each of these images alone is its value in the batch, up to rounding; False also
    where a network rejects a single image.
    """
    try:
        with torch.no_grad():
            alone = torch.stack([function(state, images[row : row + 1])[0] for row in rows])
    except Exception:  # whatever the network's author chose to raise
        return False
    difference = (alone - together.values[list(rows)]).abs().max()
    return bool(difference.double().cpu() <= together.allowed()[0])


def _comparisons(
    function: ScalarFunction,
    state: State,
    images: Tensor,
    together: Evaluated,
    rows: Sequence[int],
) -> Iterator[_Compared]:
    """Yield the images whose value or gradient alone is not that in the batch, up to rounding."""
    for row in rows:
        single, alone = _alone(function, state, images[row])
        beyond = alone.distance(0, together, row) - together.allowed()
        if (beyond > 0).any():
            yield _Compared(single, alone, images, row, beyond)


def _dependence(function: ScalarFunction, state: State, images: Tensor) -> str | None:
    """Describe how f at one input depends on others; None if it does not."""
    first: _Call | None = None
    differs, together = False, evaluated(function, state, images)
    for compared in _comparisons(function, state, images, together, _rows_alone(len(images))):
        calls = _recorded(function, state, compared.single)
        precisions = [
            torch.finfo(call.result.dtype).eps for call in calls if call.result.is_floating_point()
        ]
        generator = torch.Generator().manual_seed(0)
        noise = torch.randn(images[0].shape, generator=generator).to(images)
        noise *= max(precisions, default=0)
        # A network that rounds its numbers itself changes as much where its input is rounded.
        rounded = evaluated(function, state, compared.single * (1 + noise))
        if (compared.beyond > _JITTER * compared.alone.distance(0, rounded, 0)).any():
            differs = True
            first = first or _first_difference(
                calls, _recorded(function, state, compared.batch), compared
            )
    return _message(first) if differs else None


def evaluated(function: ScalarFunction, state: State, images: Tensor) -> Evaluated:
    """Return f and its gradients; zeros for the gradients of a network that has none, so that f
    alone is tested.
    """
    try:
        values, gradients = function.values_and_gradients(state, images)
        return Evaluated(values[:, 0], gradients[0].flatten(1))
    except (RuntimeError, ValueError):
        return _valued(function, state, images)


def _valued(function: ScalarFunction, state: State, images: Tensor) -> Evaluated:
    """Return f, and zeros in place of its gradients."""
    with torch.no_grad():
        return Evaluated(function(state, images), torch.zeros_like(images).flatten(1))


def _alone(function: ScalarFunction, state: State, image: Tensor) -> tuple[Tensor, Evaluated]:
    """Evaluate one input as a batch, or as two equal ones if the network needs more than one, as
    after `squeeze`.
    """
    try:
        single = image[None]
        alone = evaluated(function, state, single)
        if alone.values.shape == (1,) and alone.values.isfinite().all():
            return single, alone
    except Exception:  # whatever the network's author chose to raise
        pass
    single = torch.stack([image, image])
    return single, evaluated(function, state, single)


def _recorded(function: ScalarFunction, state: State, images: Tensor) -> list[_Call]:
    """Return what each module of a network returns, in the order in which they end."""
    calls: list[_Call] = []

    def record(name: str, module: nn.Module, _: object, results: object) -> None:
        tensors = [leaf for leaf in tree_leaves(results) if isinstance(leaf, Tensor)]
        calls.extend(_Call(name, module, tensor.detach().clone()) for tensor in tensors[:1])

    with ExitStack() as hooks, torch.no_grad():
        for name, module in function.module.named_modules():
            hooks.enter_context(module.register_forward_hook(partial(record, name)))
        function.outputs(state, images)
    return calls


def _first_difference(
    alone: list[_Call], together: list[_Call], compared: _Compared
) -> _Call | None:
    """Return the first call whose result differs for the compared input; None if no result does."""
    for one, many in zip(alone, together, strict=False):
        if one.name != many.name:
            return None
        if not _has_row(one.result, many.result, compared):
            return one
    return None


def _message(first: _Call | None) -> str:
    where = "in an operation outside its layers, or in the gradient alone"
    remedy = (
        "look for a mean, softmax, top-k or attention over dim=0, "
        "a capacity that a batch can exceed, "
        "batch_first=False, and reshapes that mix the batch"
    )
    if first is not None:
        kind = type(first.module).__name__
        where = f"first in what {first.name or 'the network itself'} ({kind}) returns"
        if isinstance(first.module, _OF_SEQUENCES) and not _is_batch_first(first.module):
            remedy = "set batch_first=True"
        elif isinstance(first.module, _NormBase):
            remedy = "set track_running_stats=True, and use eval mode"
    return f"the output at one input depends on the other inputs of its batch, {where}: {remedy}"


def _is_batch_first(module: nn.Module) -> bool:
    # Of a transformer's layer
    return bool(getattr(getattr(module, "self_attn", module), "batch_first", False))


def _has_row(one: Tensor, many: Tensor, compared: _Compared) -> bool:
    """Whether a module's result for one input is the part of its result for the batch that belongs
    to this input.
    """
    copies, size = len(compared.single), len(compared.batch)
    for dim, length in enumerate(one.shape):
        step = length // copies
        if many.shape == (*one.shape[:dim], step * size, *one.shape[dim + 1 :]):
            part = many.narrow(dim, compared.row * step, step)
            if _close(one.narrow(dim, 0, step), part):
                return True
    return one.shape == many.shape and _close(one, many)


def _close(one: Tensor, many: Tensor) -> bool:
    if not one.is_floating_point():
        return torch.equal(one, many)
    precision = max(_DEVIATION, torch.finfo(one.dtype).eps ** 0.5)
    return not (one - many).abs().max() > precision * many.abs().max()
