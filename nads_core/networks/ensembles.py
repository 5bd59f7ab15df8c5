"""Many networks of one architecture: their weights drawn together, and one forward and backward through them all."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import grad, jacrev, vmap

from nads_core.kernels import RandomParameter, draw_weights, faster_first_convolutions, require_kernels
from nads_core.networks.derivatives import ScalarFunction
from nads_core.networks.initialisation import Initialisation, State, state_of
from nads_core.networks.readouts import Readout
from nads_core.runtime.arguments import is_integer, require_integers, usable_device
from nads_core.runtime.seeds import seed_sequence

_BLOCK_NUMBERS = 2**21  # weights drawn from one generator: a block of networks is this large, or one network
_KEYED_BLOCK_NUMBERS = 2**26  # weights drawn by one launch of a kernel, which has no generator to share
_MAX_BLOCK = 64
_NUMBER = "number of the network"  # the only entry of a state where networks are rebuilt


def require_image_shape(image_shape: tuple[int, ...]) -> None:
    """Raise a ValueError unless ``image_shape`` is that of an image, a sequence or a row of features."""
    if not 1 <= len(image_shape) <= 3 or not all(is_integer(n) and n > 0 for n in image_shape):
        raise ValueError(
            "image_shape must be positive integers, (C, H, W) of an image, (C, L) of a sequence or (F,) of features, "
            f"got {image_shape!r}"
        )


class Ensemble:
    """The networks that a factory returns, drawn and evaluated many at a time, in eval mode.

    On one kind of device network ``i`` is a function of ``seed`` and ``i`` alone: blocks of ``block_size`` networks are
    each drawn from a generator of their own. A GPU's generators give other numbers than a CPU's, unless `keyed`.

    Args:
        factory: function that returns a network with freshly drawn weights at each call.
        image_shape: (C, H, W) of one input; or (C, L), or (F,). Where shapes below say C, H, W, these stand instead.
        seed: seed of all weights and inputs.
        device: device of the networks.
        dtype: number type of weights and inputs. Weights are drawn in the factory's own type and then converted.
        output: index of the network output that is the scalar f(x).
        evaluation: ``"loop"`` evaluates one network after another, ``"vmap"`` all at once; by default vmap on a GPU.
            Both load the weights and buffers of other networks into one network, the template. ``"rebuild"`` evaluates
            each network as the factory builds it, one at a time: for factories whose networks differ in structure, in
            activations or in tensors that are plain attributes.
        kernels: ``"torch"``, or ``"triton"``, where one launch draws all weights of a block, with other values. The
            latter requires that each parameter is drawn by one ``uniform_`` or ``normal_`` in float32; see `keyed`.

    Raises:
        TypeError: if the factory is not callable or does not return an `nn.Module`.
        ValueError: if the network rejects (K, C, H, W) inputs, returns something else than (K,) or (K, outputs),
            has the same weights at every call, or draws them from outside torch's random generator; if a second
            network's weights and buffers, put into the template, do not give that network's outputs; for a device or
            kernels that cannot run here.
    """

    def __init__(
        self,
        factory: Callable[[], nn.Module],
        image_shape: tuple[int, ...],
        *,
        seed: int = 0,
        device: torch.device | str | None = None,
        dtype: torch.dtype = torch.float32,
        output: int = 0,
        evaluation: str | None = None,
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
        self.evaluation = evaluation or ("vmap" if self.device.type == "cuda" else "loop")
        if self.evaluation not in ("loop", "vmap", "rebuild"):
            raise ValueError(f"evaluation must be 'loop', 'vmap' or 'rebuild', got {evaluation!r}")
        rebuild = self.evaluation == "rebuild"
        if rebuild and kernels != "torch":
            raise ValueError("evaluation='rebuild' draws networks by their factory: leave kernels out")
        initialisation = Initialisation.of(factory, self.device, rebuild)
        self._initialisation = replace(initialisation, second=None)
        self._rebuilt: dict[int, list[nn.Module]] = {}  # the networks of the last block
        self._keyed_parameters = None if kernels == "torch" else initialisation.random_parameters()
        self.num_parameters = sum(shape.numel() for shape in initialisation.shapes.values())
        numbers = _KEYED_BLOCK_NUMBERS if self.keyed else _BLOCK_NUMBERS
        self.block_size = int(
            min(_MAX_BLOCK, max(1, 2 ** int(np.log2(max(1, numbers // max(1, self.num_parameters))))))
        )
        network = self._prepared(initialisation.network)
        self._function = ScalarFunction(network, set() if rebuild else set(initialisation.shapes), output)
        self._probe_shapes = {name: tuple(tensor.shape) for name, tensor in network.named_parameters()}
        # Any weights would do to see what the network returns.
        weights = {} if rebuild else _network(self._converted(initialisation.draw(1, seed_sequence(seed, 0, 0))), 0)
        images = torch.zeros(2, *self.image_shape, dtype=dtype, device=self.device)
        layers = self._function.require_outputs(weights, images)
        self._readout = None if rebuild else Readout.of(network, layers, initialisation.steps)
        if initialisation.second is not None and not rebuild:
            self._require_reproduced(initialisation.second)

    def _prepared(self, network: nn.Module) -> nn.Module:
        """Return a network of the factory's in eval mode, on the device and in the type of the ensemble."""
        network = network.eval().requires_grad_(False).to(device=self.device)
        network._apply(partial(_as_precise, dtype=self.dtype))  # Module.to(dtype) makes complex tensors real
        return network if self.evaluation == "vmap" else faster_first_convolutions(network)

    def _require_reproduced(self, network: nn.Module) -> None:
        """Raise a ValueError unless the template, with the weights of a newly built network, does what that does."""
        state = state_of(self._prepared(network))
        weights = {name: state[name].detach() for name in self._initialisation.shapes if name in state}
        generator = torch.Generator().manual_seed(0)
        images = torch.randn(2, *self.image_shape, generator=generator).to(self.device, self.dtype)
        self._function.require_reproduces(network, weights, images)

    def _networks(self, state: State) -> Iterator[tuple[ScalarFunction, State]]:
        """Yield f of each network of a state, with the weights to give it."""
        if self.evaluation != "rebuild":
            yield from ((self._function, _network(state, b)) for b in range(len(next(iter(state.values())))))
            return
        for number in state[_NUMBER].tolist():
            block, row = divmod(number, self.block_size)
            if block not in self._rebuilt:
                built = self._initialisation.build(self.block_size, seed_sequence(self.seed, block, 0))
                self._rebuilt = {block: list(map(self._prepared, built))}
            yield ScalarFunction(self._rebuilt[block][row], set(), self.output), {}

    @property
    def template(self) -> nn.Module:
        """A network of the ensemble's type, on its device: evaluating others puts their weights in place of its own."""
        return self._function.module

    @property
    def num_features(self) -> int | None:
        """What the last linear layer reads; None where the network does not end in one with fresh, centred weights."""
        return None if self._readout is None else self._readout.num_features

    @property
    def replays(self) -> bool:
        """Whether the weights of many networks are drawn together (else the factory is called for each)."""
        return self._initialisation.steps is not None and self.evaluation != "rebuild"

    @property
    def keyed(self) -> bool:
        """Whether (seed, network, element) fixes each weight and input, whatever the block and the device."""
        return self._keyed_parameters is not None

    def duplicate(self) -> Ensemble:
        """Return the same networks for another thread: evaluating them writes to a module, of which it has its own."""
        other = copy.copy(self)
        other._function = self._function.duplicate()
        return other

    def blocks(self, num_networks: int, first: int = 0) -> Iterator[tuple[int, int]]:
        """Yield (block, networks to use of it) for the first ``num_networks`` networks, from block ``first`` on."""
        for block in range(first, -(-num_networks // self.block_size)):
            yield block, min(self.block_size, num_networks - block * self.block_size)

    def generator(self, block: int, stream: int) -> torch.Generator:
        """Return the generator of one block: stream 0 draws its weights, higher ones its inputs and probes."""
        return torch.Generator(self.device).manual_seed(seed_sequence(self.seed, block, stream))

    def draw(self, block: int) -> State:
        """Draw the weights of networks ``block * block_size`` up to the next block.

        Returns:
            name -> ``(block_size, *shape)``, for every parameter and buffer that varies between networks. Where
            networks are rebuilt, nothing but their numbers.

        Raises:
            ValueError: if a factory that looks at random numbers built a network that its weights do not reproduce.
        """
        if self.evaluation == "rebuild":
            return {_NUMBER: torch.arange(self.block_size) + block * self.block_size}
        if self._keyed_parameters is not None:
            tensors = self._draw_keyed(self._keyed_parameters, block, 0)
            return dict(zip(self._initialisation.shapes, tensors, strict=True))
        seed = seed_sequence(self.seed, block, 0)
        return self._converted(self._initialisation.draw(self.block_size, seed, self._require_reproduced))

    def _draw_keyed(self, parameters: list[RandomParameter], block: int, stream: int) -> list[Tensor]:
        drawn = draw_weights(
            parameters, seed=seed_sequence(self.seed), first=block * self.block_size, count=self.block_size,
            stream=stream, device=self.device,
        )  # fmt: skip
        return [tensor.to(self.dtype) for tensor in drawn]

    def _converted(self, state: State) -> State:
        """Move weights to the device, and those that are floating-point numbers to the ensemble's type."""
        return {name: _as_precise(tensor.to(self.device), self.dtype) for name, tensor in state.items()}

    def randn(self, block: int, stream: int, *shape: int) -> Tensor:
        """Draw ``(block_size, *shape)`` standard normal numbers for one block; in bfloat16 those of float32, rounded.

        Args:
            block: number of the block of networks.
            stream: number of the random stream; independent quantities have different streams. Stream 0 draws the
                weights. The library's estimators draw inputs from 1, probes from 2 and readouts from 3, so streams from
                4 are free.
            shape: shape of the numbers of one network.
        """
        if self.keyed:
            return self._draw_keyed([RandomParameter(shape, "normal")], block, stream)[0]
        generator, drawn = self.generator(block, stream), torch.promote_types(self.dtype, torch.float32)
        numbers = torch.randn((self.block_size, *shape), generator=generator, device=self.device, dtype=drawn)
        return numbers.to(self.dtype)

    def probes(self, block: int, stream: int) -> State:
        """Draw one standard normal direction in weight space for each network of a block; streams as in `randn`."""
        if self.keyed:
            parameters = [RandomParameter(shape, "normal") for shape in self._probe_shapes.values()]
            return dict(zip(self._probe_shapes, self._draw_keyed(parameters, block, stream), strict=True))
        generator = self.generator(block, stream)
        return {
            name: torch.randn((self.block_size, *shape), generator=generator, device=self.device, dtype=self.dtype)
            for name, shape in self._probe_shapes.items()
        }

    def draw_readouts(self, block: int, stream: int, count: int) -> Tensor:
        """Draw ``count`` last linear layers for each network of one block, at right angles to each other.

        Each alone is uniform on a sphere, with the second moment E[w w^T] of the layer's own initialisation: as f is
        linear in them, they give the same second moment of gradients.

        Returns:
            (block_size, count, F), F the number of features.

        Raises:
            ValueError: if the network does not end in a linear layer with fresh, centred weights, or it has less than
                ``count`` features.
        """
        readout = self._require_readout()
        if count > readout.num_features:
            raise ValueError(f"{count} readouts asked for, but the last layer reads {readout.num_features} features")
        normal = self.randn(block, stream, readout.num_features, count)  # (B, F, count)
        precise = normal.to(torch.promote_types(self.dtype, torch.float32))  # there is no QR in bfloat16
        return readout.orthogonal(precise).to(self.dtype)

    def _require_readout(self) -> Readout:
        if self._readout is None:
            raise ValueError(
                "several readouts need a network that ends in a linear layer, whose weights are drawn by one uniform "
                "or normal distribution around 0: use readouts=1"
            )
        return self._readout

    def stack(self, count: int) -> State:
        """Return the first ``count`` networks whole: every parameter and buffer, name -> (count, *shape)."""
        if self.evaluation == "rebuild":
            raise ValueError("networks that are rebuilt cannot be stacked: use another evaluation")
        parts = [
            {name: tensor[:used] for name, tensor in self.draw(block).items()} for block, used in self.blocks(count)
        ]
        drawn = {name: torch.cat([part[name] for part in parts]) for name in self._initialisation.shapes}
        fixed = {name: tensor.expand(count, *tensor.shape).clone() for name, tensor in self._function.fixed.items()}
        return {name: (drawn | fixed)[name] for name in state_of(self.template)}

    def outputs(self, state: State, images: Tensor) -> Tensor:
        """Evaluate B networks on K inputs each: (B, K, C, H, W) -> (B, K)."""
        with torch.no_grad():
            if self.evaluation != "vmap":
                return torch.stack(
                    [f(weights, x) for (f, weights), x in zip(self._networks(state), images, strict=True)]
                )
            return vmap(self._function)(state, images)

    def input_gradients(self, state: State, images: Tensor, readouts: Tensor | None = None) -> Tensor:
        """Return the gradient of f with respect to its input, for B networks at K inputs each.

        Args:
            state: weights of B networks, as `draw` returns them.
            images: (B, K, C, H, W).
            readouts: (B, R, F), other last layers for each network, as `draw_readouts` returns them. They share the
                forward pass, and most of what it costs to draw a network.

        Returns:
            (B, K, C, H, W), or (B * R, K, C, H, W) with readouts.

        Raises:
            ValueError: if the output does not depend on the input.
        """
        f, many_outputs = self._function, readouts is not None
        if readouts is not None:
            state = self._require_readout().replaced(state, readouts)
        if self.evaluation != "vmap":
            networks = zip(self._networks(state), images, strict=True)
            return torch.cat([own.input_gradients(weights, x, many_outputs) for (own, weights), x in networks])
        # An output at one input does not depend on the others: derivatives of sums over K hold those at all K.
        if many_outputs:
            jacobian = jacrev(lambda x, weights: f.outputs(weights, x).sum(0))  # (K, C, H, W) -> (R, K, C, H, W)
            return vmap(jacobian)(images, state).flatten(0, 1)
        return vmap(grad(lambda x, weights: f(weights, x).sum()))(images, state)

    def mixed_derivatives(self, state: State, images: Tensor, probes: State) -> Tensor:
        """Return r^T d/dtheta (df/dx): how the input gradient moves when the weights move along the probe r.

        Args:
            state: weights of B networks.
            images: (B, K, C, H, W).
            probes: one direction in weight space a network, name -> ``(B, *shape)``, for every parameter.

        Returns:
            (B, K, C, H, W).
        """
        networks = enumerate(zip(self._networks(state), images, strict=True))
        return torch.stack([f.mixed_derivative(weights, x, _network(probes, b)) for b, ((f, weights), x) in networks])


def _as_precise(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    """Convert floating-point numbers to a type, and complex ones to the complex type of its precision."""
    if tensor.is_complex():
        return tensor.to(torch.complex128 if dtype == torch.float64 else torch.complex64)
    return tensor.to(dtype) if tensor.is_floating_point() else tensor


def _network(state: State, index: int) -> State:
    """Return what ``state`` holds of one network: name -> (*shape)."""
    return {name: tensor[index] for name, tensor in state.items()}
