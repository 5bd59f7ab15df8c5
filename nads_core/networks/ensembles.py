"""Many networks of one architecture: their weights drawn together, and one forward and backward through them all.

How a factory initialises its network is recorded once, as the in-place operations that it applies to its parameters,
and replayed on tensors with one more leading dimension. The replay is used only when, from the same seed, it
repeats the factory's own network bit for bit; otherwise the factory is called once a network.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, jacrev, vmap
from torch.utils._python_dispatch import TorchDispatchMode

from nads_core.kernels import RandomParameter, draw_weights, faster_first_convolutions, require_kernels
from nads_core.machinery.arguments import is_integer, require_integers, usable_device
from nads_core.machinery.seeds import seed_sequence, seeded

State = dict[str, Tensor]  # name -> (B, *shape): one parameter or buffer of B networks

_BLOCK_NUMBERS = 2**21  # weights drawn from one generator: a block of networks is this large, or one network
_KEYED_BLOCK_NUMBERS = 2**26  # weights drawn by one launch of a kernel, which has no generator to share
_MAX_BLOCK = 64
_RANDOM = {torch.ops.aten.uniform_.default, torch.ops.aten.normal_.default}
_OVERWRITING = _RANDOM | {torch.ops.aten.fill_.Scalar, torch.ops.aten.zero_.default}
_ELEMENTWISE = _OVERWRITING | {
    torch.ops.aten.mul_.Scalar, torch.ops.aten.mul_.Tensor, torch.ops.aten.add_.Scalar, torch.ops.aten.add_.Tensor,
    torch.ops.aten.div_.Scalar, torch.ops.aten.div_.Tensor, torch.ops.aten.clamp_.default,
    torch.ops.aten.erfinv_.default,
}  # fmt: skip


def require_image_shape(image_shape: tuple[int, int, int]) -> None:
    """Raise a ValueError unless ``image_shape`` is (C, H, W)."""
    if len(image_shape) != 3 or not all(is_integer(n) and n > 0 for n in image_shape):
        raise ValueError(f"image_shape must be three positive integers (C, H, W), got {image_shape!r}")


@dataclass(frozen=True)
class _Readout:
    """The last linear layer of a network."""

    weight: str
    bias: str | None
    num_features: int
    std: float  # of one weight


@dataclass(frozen=True)
class _Step:
    """One recorded in-place operation on the whole of one parameter or buffer."""

    name: str
    operation: Callable
    args: tuple
    kwargs: tuple[tuple[str, Any], ...]

    def apply(self, tensor: Tensor, generator: torch.Generator) -> None:
        kwargs = dict(self.kwargs) | ({"generator": generator} if self.operation in _RANDOM else {})
        self.operation(tensor, *self.args, **kwargs)


class _Recorder(TorchDispatchMode):
    """Notes every operation that writes to a tensor, with the storage that it writes to."""

    def __init__(self):
        super().__init__()
        self.writes: list[tuple[Any, Tensor, tuple, dict]] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        if func._schema.is_mutable:
            self.writes.append((func, args[0], args[1:], kwargs))
        return out


def _record(
    factory: Callable[[], nn.Module], seed: int, device: torch.device | str = "cpu"
) -> tuple[nn.Module, list[_Step] | None]:
    """Call the factory from ``seed``; return its network and the steps that drew it, None if they can't be replayed."""
    with seeded(seed, device), _Recorder() as recorder:
        module = factory()
    if not isinstance(module, nn.Module):
        raise TypeError(f"the factory must return a torch.nn.Module, got {type(module).__name__}")
    state = _state(module)
    owners = {tensor.untyped_storage().data_ptr(): name for name, tensor in state.items() if tensor.numel()}
    steps = []
    for func, target, args, kwargs in recorder.writes:
        name = owners.get(target.untyped_storage().data_ptr())
        if name is None:
            continue
        whole = target.shape == state[name].shape and target.is_contiguous() and state[name].is_contiguous()
        scalars = not any(isinstance(value, Tensor) and value.dim() for value in (*args, *kwargs.values()))
        if func not in _ELEMENTWISE or not whole or not scalars:
            return module, None
        kwargs = tuple((key, value) for key, value in kwargs.items() if key != "generator")
        steps.append(_Step(name, func, tuple(args), kwargs))
    return module, steps


def _live(steps: list[_Step]) -> list[_Step]:
    """Drop the steps whose result a later step on the same tensor overwrites."""
    last = {step.name: index for index, step in enumerate(steps) if step.operation in _OVERWRITING}
    return [step for index, step in enumerate(steps) if index >= last.get(step.name, 0)]


def _plain(step: _Step, shape: tuple[int, ...]) -> RandomParameter | None:
    """Return what a step that draws a whole parameter draws, None for a step of another kind."""
    names = {torch.ops.aten.uniform_.default: ("from", "to"), torch.ops.aten.normal_.default: ("mean", "std")}
    if step.operation not in names:
        return None
    given = dict(zip(names[step.operation], step.args, strict=False)) | dict(step.kwargs)
    if step.operation == torch.ops.aten.normal_.default:
        return RandomParameter(shape, "normal", float(given.get("mean", 0.0)), float(given.get("std", 1.0)))
    low, high = float(given.get("from", 0.0)), float(given.get("to", 1.0))
    return RandomParameter(shape, "uniform", (low + high) / 2, (high - low) / 2)


def _state(module: nn.Module) -> State:
    return {**dict(module.named_parameters()), **dict(module.named_buffers())}


class Ensemble:
    """The networks that a factory returns, drawn and evaluated many at a time, in eval mode.

    On one kind of device network ``i`` is a function of ``seed`` and ``i`` alone: blocks of ``block_size`` networks are
    each drawn from a generator of their own. A GPU's generators give other numbers than a CPU's, unless `keyed`.

    Args:
        factory: returns a new network with freshly drawn weights at each call.
        image_shape: (C, H, W) of one input.
        seed: fixes all weights and inputs.
        device: where the networks live.
        dtype: of weights and inputs. Weights are drawn in the factory's own type and then converted.
        output: which of the network's outputs is the scalar f(x).
        method: ``"loop"`` evaluates one network after another, ``"vmap"`` all at once; by default vmap on a GPU.
        kernels: with ``"triton"`` or ``"reference"`` one launch draws all weights of a block, other ones than
            ``"torch"`` draws, where each parameter is drawn by one uniform_ or normal_ in float32; see `keyed`.

    Raises:
        TypeError: if the factory is not callable or does not return an `nn.Module`.
        ValueError: if the network rejects (K, C, H, W) inputs, returns something else than (K,) or (K, outputs),
            has the same weights at every call, or draws them from outside torch's random generator; for a device or
            kernels that cannot run here.
    """

    def __init__(
        self,
        factory: Callable[[], nn.Module],
        image_shape: tuple[int, int, int],
        *,
        seed: int = 0,
        device: torch.device | str | None = None,
        dtype: torch.dtype = torch.float32,
        output: int = 0,
        method: str | None = None,
        kernels: str = "torch",
    ):
        if not callable(factory) or isinstance(factory, nn.Module):
            raise TypeError(
                f"expected an Architecture or a function that returns a new network, got {type(factory).__name__}: "
                "pass `lambda: MyNet()` rather than a network"
            )
        require_image_shape(image_shape)
        require_integers(least=0, seed=seed, output=output)
        self.image_shape = tuple(image_shape)
        self.device = usable_device(device)
        require_kernels(kernels, self.device)
        self.dtype, self.seed, self.output, self.kernels = dtype, seed, output, kernels
        self.method = method or ("vmap" if self.device.type == "cuda" else "loop")
        if self.method not in ("loop", "vmap"):
            raise ValueError(f"method must be 'loop' or 'vmap', got {method!r}")
        self._factory = factory
        self._prepare()
        self._check_output()
        numbers = _KEYED_BLOCK_NUMBERS if self.keyed else _BLOCK_NUMBERS
        self.block_size = int(min(_MAX_BLOCK, max(1, 2 ** int(np.log2(max(1, numbers // self.num_parameters))))))

    def _prepare(self) -> None:
        """Find which weights vary from call to call, and whether drawing them can be replayed for many networks."""
        module, steps = _record(self._factory, 1, self.device)
        other, other_steps = _record(self._factory, 2, self.device)
        again = self._call_factory(1)
        first, second, repeat = _state(module), _state(other), _state(again)
        if first.keys() != second.keys() or any(first[n].shape != second[n].shape for n in first):
            raise ValueError(
                "the factory returned networks of two different structures: it must return one architecture"
            )
        missing = [name for name, tensor in first.items() if tensor.isnan().any()]
        if missing:
            raise ValueError(f"the factory's weights {', '.join(missing)} hold NaN: check how it initialises them")
        self._varying = [name for name in first if not torch.equal(first[name], second[name])]
        if not self._varying:
            raise ValueError(
                "the factory returned the same weights twice: it must draw new ones at every call "
                "(does it return one network again, load a checkpoint, or set a seed?)"
            )
        if not all(torch.equal(first[name], repeat[name]) for name in first):
            raise ValueError(
                "the factory's weights are not fixed by torch.manual_seed: "
                "draw them with torch rather than numpy or random"
            )
        replayable = steps is not None and steps == other_steps and self._replays(steps, first)
        self._steps = [s for s in _live(steps) if s.name in self._varying] if replayable else None
        self._shapes = {name: first[name].shape for name in self._varying}
        self._drawn_dtype = {name: first[name].dtype for name in self._varying}
        self.num_parameters = sum(first[name].numel() for name in self._varying)
        self._parameters = None if self.kernels == "torch" else self._plain_parameters()
        template = module.eval().requires_grad_(False).to(device=self.device)
        self.template = template.to(dtype=self.dtype)
        if self.method == "loop":
            faster_first_convolutions(self.template)
        self._fixed = {n: t.detach() for n, t in _state(self.template).items() if n not in self._shapes}
        self._parameter_names = [name for name, _ in self.template.named_parameters()]

    def _replays(self, steps: list[_Step], expected: State) -> bool:
        generator = torch.Generator().manual_seed(1)
        drawn = {
            name: torch.full_like(tensor, torch.nan) for name, tensor in expected.items() if tensor.is_floating_point()
        }
        for step in steps:
            if step.name in drawn:
                step.apply(drawn[step.name], generator)
        return all(name in drawn and torch.equal(drawn[name], expected[name]) for name in self._varying)

    def _plain_parameters(self) -> list[RandomParameter] | None:
        """Return how each varying parameter is drawn; None if one takes more than a single uniform_ or normal_."""
        steps = {step.name: _plain(step, tuple(self._shapes[step.name])) for step in self._steps or ()}
        once = len(steps) == len(self._steps or ()) == len(self._shapes) and None not in steps.values()
        single = set(self._drawn_dtype.values()) == {torch.float32}
        return [steps[name] for name in self._shapes] if once and single else None

    def _call_factory(self, seed: int) -> nn.Module:
        with seeded(seed, self.device):
            return self._factory()

    def _drawn_so_far(self) -> Tensor:
        """Return the state of the global generator that the networks could draw from."""
        return torch.cuda.get_rng_state(self.device) if self.device.type == "cuda" else torch.get_rng_state()

    def _check_output(self) -> None:
        state = {name: tensor[:1] for name, tensor in self._draw_factory(0, 1).items()}
        images = torch.zeros(2, *self.image_shape, dtype=self.dtype, device=self.device)
        linear = [(name, layer) for name, layer in self.template.named_modules() if type(layer) is nn.Linear]
        results: list[tuple[str, Tensor]] = []
        hooks = [
            layer.register_forward_hook(lambda _, __, result, name=name: results.append((name, result)))
            for name, layer in linear
        ]
        try:
            drawn = self._drawn_so_far()
            raw = functional_call(self.template, self._one(state, 0), (images,))
        except Exception as error:  # whatever the network's author chose to raise
            raise ValueError(f"the network rejected inputs of shape {tuple(images.shape)}: {error}") from error
        finally:
            for hook in hooks:
                hook.remove()
        if not torch.equal(drawn, self._drawn_so_far()):
            raise ValueError(
                "the network draws random numbers in eval mode (dropout that is always on?): f(x) must be a function "
                "of weights and input"
            )
        self._readout = self._find_readout([name for name, result in results if result is raw], dict(linear))
        shape = tuple(raw.shape) if isinstance(raw, Tensor) else type(raw).__name__
        if not isinstance(raw, Tensor) or raw.dim() not in (1, 2) or raw.shape[0] != 2:
            raise ValueError(
                f"the network must map (K, C, H, W) to (K,) or (K, outputs), but for K = 2 it returned {shape}"
            )
        count = raw.shape[1] if raw.dim() == 2 else 1
        if self.output >= count:
            raise ValueError(f"output {self.output} does not exist: the network has {count} outputs")

    def _find_readout(self, names: list[str], layers: dict[str, nn.Linear]) -> _Readout | None:
        """Describe the linear layer whose result is the network's, if its weights are drawn around 0 and used once."""
        if len(names) != 1 or self._steps is None:
            return None
        layer, weight = layers[names[0]], f"{names[0]}.weight"
        bias = None if layer.bias is None else f"{names[0]}.bias"
        uses = [name for name, tensor in self.template.named_parameters(remove_duplicate=False)
                if tensor is layer.weight or tensor is layer.bias]  # fmt: skip
        steps = [step for step in self._steps if step.name == weight]
        if set(uses) != {weight, bias} - {None} or len(steps) != 1:
            return None
        low, high = (*steps[0].args, *(0.0, 1.0)[len(steps[0].args) :])  # or mean and standard deviation
        if steps[0].operation is torch.ops.aten.uniform_.default and low == -high:
            return _Readout(weight, bias, layer.in_features, high / 3**0.5)
        if steps[0].operation is torch.ops.aten.normal_.default and low == 0:
            return _Readout(weight, bias, layer.in_features, high)
        return None

    @property
    def num_features(self) -> int | None:
        """What the last linear layer reads; None where the network does not end in one with fresh, centred weights."""
        return None if self._readout is None else self._readout.num_features

    @property
    def replays(self) -> bool:
        """Whether the weights of many networks are drawn together (else the factory is called for each)."""
        return self._steps is not None

    @property
    def keyed(self) -> bool:
        """Whether (seed, network, element) fixes each weight and input, whatever the block and the device."""
        return self._parameters is not None

    def _draw_keyed(self, parameters: list[RandomParameter], block: int, stream: int) -> list[Tensor]:
        drawn = draw_weights(
            parameters, seed=seed_sequence(self.seed), first=block * self.block_size, count=self.block_size,
            stream=stream, device=self.device, kernels=self.kernels,
        )  # fmt: skip
        return [self._converted(tensor) for tensor in drawn]

    def twin(self) -> Ensemble:
        """Return the same networks for another thread: evaluating them writes to a module, of which it has its own."""
        other = copy.copy(self)
        other.template = copy.deepcopy(self.template)
        return other

    def generator(self, block: int, stream: int) -> torch.Generator:
        """Return the generator of one block: stream 0 draws its weights, higher ones its inputs and probes."""
        return torch.Generator(self.device).manual_seed(seed_sequence(self.seed, block, stream))

    def draw(self, block: int) -> State:
        """Draw the weights of networks ``block * block_size`` up to the next block.

        Returns:
            name -> (block_size, *shape), for every parameter and buffer that varies between networks.
        """
        if self.keyed:
            return dict(zip(self._shapes, self._draw_keyed(self._parameters, block, 0), strict=True))
        if self._steps is None:
            return self._draw_factory(block, self.block_size)
        state = {
            name: torch.empty((self.block_size, *shape), dtype=self._drawn_dtype[name], device=self.device)
            for name, shape in self._shapes.items()
        }
        generator = self.generator(block, 0)
        for step in self._steps:
            step.apply(state[step.name], generator)
        return {name: self._converted(tensor) for name, tensor in state.items()}

    def _converted(self, tensor: Tensor) -> Tensor:
        return tensor.to(self.device, self.dtype if tensor.is_floating_point() else tensor.dtype)

    def _draw_factory(self, block: int, count: int) -> State:
        with seeded(seed_sequence(self.seed, block, 0), self.device):
            networks = [_state(self._factory()) for _ in range(count)]
        return {
            name: self._converted(torch.stack([network[name].detach() for network in networks]))
            for name in self._shapes
        }

    def randn(self, block: int, stream: int, *shape: int) -> Tensor:
        """Draw (block_size, *shape) standard normal numbers for one block; in bfloat16 those of float32, rounded."""
        if self.keyed:
            return self._draw_keyed([RandomParameter(shape, "normal")], block, stream)[0]
        generator, drawn = self.generator(block, stream), torch.promote_types(self.dtype, torch.float32)
        numbers = torch.randn((self.block_size, *shape), generator=generator, device=self.device, dtype=drawn)
        return numbers.to(self.dtype)

    def readouts(self, block: int, stream: int, count: int) -> Tensor:
        """Draw ``count`` last linear layers for each network of one block, at right angles to each other.

        Each alone is uniform on a sphere, with the second moment E[w w^T] of the layer's own initialisation: as f is
        linear in them, they give the same second moment of gradients.

        Returns:
            (block_size, count, F), F the number of features.

        Raises:
            ValueError: if the network does not end in a linear layer with fresh, centred weights, or it has less than
                ``count`` features.
        """
        if self._readout is None:
            raise ValueError(
                "several readouts need a network that ends in a linear layer, whose weights are drawn by one uniform "
                "or normal distribution around 0: use readouts=1"
            )
        size = self._readout.num_features
        if count > size:
            raise ValueError(f"{count} readouts asked for, but the last layer reads {size} features")
        normal = self.randn(block, stream, size, count).to(torch.promote_types(self.dtype, torch.float32))
        rows = torch.linalg.qr(normal).Q.mT * (self._readout.std * size**0.5)
        return rows.to(self.dtype)

    def stack(self, count: int) -> State:
        """Return the first ``count`` networks whole: every parameter and buffer, name -> (count, *shape)."""
        parts = [
            {name: tensor[:used] for name, tensor in self.draw(block).items()} for block, used in self.blocks(count)
        ]
        drawn = {name: torch.cat([part[name] for part in parts]) for name in self._shapes}
        fixed = {name: tensor.expand(count, *tensor.shape).clone() for name, tensor in self._fixed.items()}
        return {name: (drawn | fixed)[name] for name in _state(self.template)}

    def _one(self, state: State, index: int) -> State:
        return self._fixed | {name: tensor[index] for name, tensor in state.items()}

    def _scalar(self, state: State, images: Tensor) -> Tensor:
        """f(x) of one network: (K, C, H, W) -> (K,)."""
        raw = functional_call(self.template, state, (images,))
        return raw if raw.dim() == 1 else raw[:, self.output]

    def outputs(self, state: State, images: Tensor) -> Tensor:
        """Evaluate B networks on K inputs each: (B, K, C, H, W) -> (B, K)."""
        with torch.no_grad():
            if self.method == "loop":
                return torch.stack([self._scalar(self._one(state, b), x) for b, x in enumerate(images)])
            return vmap(lambda weights, x: self._scalar(self._fixed | weights, x))(state, images)

    def input_gradients(self, state: State, images: Tensor, readouts: Tensor | None = None) -> Tensor:
        """Return the gradient of f with respect to its input, for B networks at K inputs each.

        Args:
            state: weights of B networks, as `draw` returns them.
            images: (B, K, C, H, W).
            readouts: (B, R, F), other last layers for each network, as `readouts` returns them. They share the forward
                pass, and most of what it costs to draw a network.

        Returns:
            (B, K, C, H, W), or (B * R, K, C, H, W) with readouts.

        Raises:
            ValueError: if the output does not depend on the input.
        """
        if readouts is not None:
            state = state | {self._readout.weight: readouts}
            if self._readout.bias:  # which moves no gradient, but has another length than there are readouts
                state[self._readout.bias] = readouts.new_zeros(readouts.shape[:2])
        if self.method == "loop":
            gradients = [
                self._input_gradients(self._one(state, b), x, readouts is not None) for b, x in enumerate(images)
            ]
            return torch.cat(gradients)
        if readouts is None:
            return vmap(grad(lambda x, weights: self._scalar(self._fixed | weights, x).sum()))(images, state)
        every = jacrev(lambda x, weights: functional_call(self.template, self._fixed | weights, (x,)).sum(0))
        return vmap(every)(images, state).flatten(0, 1)

    def _input_gradients(self, state: State, images: Tensor, every_output: bool) -> Tensor:
        """One network: (K, C, H, W) -> (1 or R, K, C, H, W)."""
        images = images.detach().requires_grad_()
        with torch.enable_grad():
            if every_output:
                values = functional_call(self.template, state, (images,)).sum(0)
            else:
                values = self._scalar(state, images).sum()[None]
            if not values.requires_grad:
                raise ValueError("the network's output does not depend on its input: f(x) carries no gradient to x")
            last = len(values) - 1
            gradients = [torch.autograd.grad(v, images, retain_graph=i < last)[0] for i, v in enumerate(values)]
        return torch.stack(gradients)

    def mixed_derivatives(self, state: State, images: Tensor, probes: State) -> Tensor:
        """Return r^T d/dtheta (df/dx): how the input gradient moves when the weights move along the probe r.

        Args:
            state: weights of B networks.
            images: (B, K, C, H, W).
            probes: one direction in weight space a network, name -> (B, *shape), for every parameter.

        Returns:
            (B, K, C, H, W).
        """
        return torch.stack(
            [
                self._mixed_derivative(self._one(state, b), x, {name: r[b] for name, r in probes.items()})
                for b, x in enumerate(images)
            ]
        )

    def _mixed_derivative(self, state: State, images: Tensor, probe: State) -> Tensor:
        images = images.detach().requires_grad_()
        weights = {name: state[name].detach().requires_grad_() for name in probe}
        with torch.enable_grad():
            value = self._scalar({**state, **weights}, images).sum()
            slopes = torch.autograd.grad(value, list(weights.values()), create_graph=True, allow_unused=True)
            along = sum((s * probe[name]).sum() for name, s in zip(weights, slopes, strict=True) if s is not None)
            if not isinstance(along, Tensor) or not along.requires_grad:
                return torch.zeros_like(images)
            (gradient,) = torch.autograd.grad(along, images, materialize_grads=True)
        return gradient

    def probes(self, block: int, stream: int) -> State:
        """Draw one standard normal direction in weight space for each network of a block."""
        generator, state = self.generator(block, stream), dict(self.template.named_parameters())
        if self.keyed:
            normal = [RandomParameter(tuple(state[name].shape), "normal") for name in self._parameter_names]
            return dict(zip(self._parameter_names, self._draw_keyed(normal, block, stream), strict=True))
        return {
            name: torch.randn(
                (self.block_size, *state[name].shape), generator=generator, device=self.device, dtype=self.dtype
            )
            for name in self._parameter_names
        }

    def blocks(self, num_networks: int, first: int = 0) -> Iterator[tuple[int, int]]:
        """Yield (block, networks to use of it) for the first ``num_networks`` networks, from block ``first`` on."""
        for block in range(first, -(-num_networks // self.block_size)):
            yield block, min(self.block_size, num_networks - block * self.block_size)
