"""A test that f(x) depends on its own input alone, and not on the inputs that share its batch.

A gradient at one input is read from the gradient of a sum over a batch, which is right only for
such networks.
"""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase

from nads_core.networks.derivatives import ScalarFunction
from nads_core.networks.modules import Call, State, recorded_calls

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

    def distance(self, row: int, first: "Evaluated") -> Tensor:
        """Return how far value and gradient at one input are from those at the first of others,
        (2,); infinity where only one value is finite.
        """
        value, other = self.values[row], first.values[0]
        if value.isfinite() != other.isfinite():
            return torch.full((2,), torch.inf)
        gradients = self.gradients[row] - first.gradients[0]
        return torch.stack([(value - other).abs(), gradients.norm()]).double().cpu()

    def beyond_rounding(self, row: int, alone: "Evaluated") -> Tensor:
        """Return how much more than rounding value and gradient at an input alone differ, (2,)."""
        return self.distance(row, alone) - self.allowed()

    def allowed(self) -> Tensor:
        """Return the distances that rounding of this type explains, (2,)."""
        largest = self.values.abs().max()
        spread = (self.values - self.values.mean()).abs().max()
        longest = self.gradients.norm(dim=1).max()
        precision = min(_DEVIATION, _ROUNDING * torch.finfo(self.values.dtype).eps)
        return (_DEVIATION * torch.stack([spread, longest]) + precision * largest).double().cpu()


def require_independent_inputs(
    function: ScalarFunction,
    weights: State,
    images: Tensor,
    with_gradients: bool = True,
    by_half: bool = False,
) -> None:
    """Raise a ValueError if f or its gradient at one input depends on the other inputs of a batch.

    Args:
        function: f.
        weights: varying parameters and buffers of one network.
        images: random inputs, (4, C, H, W), of which one is evaluated alone; or more, with up to 16
            alone: what a layer drops beyond a capacity, or takes from the batch from some size
            on, shows in none of four. All of these have their values compared, a fourth of them
            their gradients too.
        with_gradients: whether the gradients matter, which take more memory than the values.
        by_half: whether instead the values of the second half, where what exceeds a capacity comes,
            are first compared with those of this half alone, which is faster.
    """
    try:
        state, rows = function.fixed | weights, _compared_rows(len(images))
        parts = [[row] for row in rows]
        if by_half:
            parts = [[*range(len(images) // 2, len(images))]]
        same = _same_values(function, state, images, parts)
        if same and with_gradients and not by_half:
            together = evaluated(function, state, images)
            for row in rows[::_EVERY_GRADIENT]:
                alone = evaluated(function, state, _alone(function, state, images[row]))
                same &= not (together.beyond_rounding(row, alone) > 0).any()
        if same:
            return
        message = function.in_float64(weights, images, partial(_dependence, function))
    except Exception as error:  # whatever the network's author chose to raise
        raise ValueError(
            f"the network rejected a batch of 1 to {len(images)} inputs: {error}"
        ) from error
    if message:
        raise ValueError(message)


def _same_values(
    function: ScalarFunction, state: State, images: Tensor, parts: Sequence[list[int]]
) -> bool:
    """Whether the values of f for parts of a batch, by their indices, are those in the batch, up to
    rounding; False also where a network rejects one of them.
    """
    try:
        whole = _valued(function, state, images)
        differences = [
            _valued(function, state, images[part]).values - whole.values[part] for part in parts
        ]
        return bool(torch.cat(differences).abs().max().double().cpu() <= whole.allowed()[0])
    except Exception:  # whatever the network's author chose to raise
        return False


def _compared_rows(count: int) -> Sequence[int]:
    """Return which of so many images are compared with themselves alone."""
    return _ROWS if count <= NUM_TEST_INPUTS else range(0, count, -(-count // _MOST_ALONE))


def _alone(function: ScalarFunction, state: State, image: Tensor) -> Tensor:
    """Return an input as a batch, or as two equal ones if the network needs more than one, as after
    `squeeze`.
    """
    single = image[None]
    try:
        alone = evaluated(function, state, single).values
        if alone.shape == (1,) and alone.isfinite().all():
            return single
    except Exception:  # whatever the network's author chose to raise
        pass
    return torch.cat([single, single])


def _dependence(function: ScalarFunction, state: State, images: Tensor) -> str | None:
    """Describe how f at one input depends on others; None if it does not."""
    first: Call | None = None
    differs, together = False, evaluated(function, state, images)
    for row in _compared_rows(len(images)):
        single = _alone(function, state, images[row])
        alone = evaluated(function, state, single)
        beyond = together.beyond_rounding(row, alone)
        if not (beyond > 0).any():
            continue
        calls = _recorded(function, state, single)
        precisions = [
            torch.finfo(call.copy.dtype).eps for call in calls if call.copy.is_floating_point()
        ]
        generator = torch.Generator().manual_seed(0)
        noise = torch.randn(images[0].shape, generator=generator).to(images)
        noise *= max(precisions, default=0)
        # A network that rounds its numbers itself changes as much where its input is rounded.
        rounded = evaluated(function, state, single * (1 + noise))
        if (beyond > _JITTER * alone.distance(0, rounded)).any():
            differs = True
            sizes = len(single), len(images)
            first = first or _first_difference(
                calls, _recorded(function, state, images), row, sizes
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


def _recorded(function: ScalarFunction, state: State, images: Tensor) -> list[Call]:
    with recorded_calls(function.module) as calls, torch.no_grad():
        function.outputs(state, images)
    return calls


def _first_difference(
    alone: list[Call], together: list[Call], row: int, sizes: tuple[int, int]
) -> Call | None:
    """Return the first call whose result for an input alone is not that in its row of a batch; None
    if there is none. The numbers of inputs of both are given.
    """
    for one, many in zip(alone, together, strict=False):
        if one.name != many.name:
            return None
        if not _has_row(one.copy, many.copy, row, *sizes):
            return one
    return None


def _message(first: Call | None) -> str:
    where = "in an operation outside its layers, or in the gradient alone"
    remedy = (
        "look for a mean, softmax, top-k or attention over dim=0, "
        "a capacity that a batch can exceed, "
        "batch_first=False, and reshapes that mix the batch"
    )
    if first is not None:
        kind = type(first.module).__name__
        where = f"first in what {first.name or 'the network itself'} ({kind}) returns"
        sequences = getattr(first.module, "self_attn", first.module)  # of a transformer's layer
        if isinstance(first.module, _OF_SEQUENCES) and not getattr(sequences, "batch_first", False):
            remedy = "set batch_first=True"
        elif isinstance(first.module, _NormBase):
            remedy = "set track_running_stats=True, and use eval mode"
    return f"the output at one input depends on the other inputs of its batch, {where}: {remedy}"


def _has_row(one: Tensor, many: Tensor, row: int, copies: int, size: int) -> bool:
    """Whether a module's result for one input is the part of its result for the batch that belongs
    to this input.
    """
    for dim, length in enumerate(one.shape):
        step = length // copies
        if many.shape == (*one.shape[:dim], step * size, *one.shape[dim + 1 :]):
            part = many.narrow(dim, row * step, step)
            if _close(one.narrow(dim, 0, step), part):
                return True
    return one.shape == many.shape and _close(one, many)


def _close(one: Tensor, many: Tensor) -> bool:
    if not one.is_floating_point():
        return torch.equal(one, many)
    precision = max(_DEVIATION, torch.finfo(one.dtype).eps ** 0.5)
    return not (one - many).abs().max() > precision * many.abs().max()
