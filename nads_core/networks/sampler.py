"""Weights and random numbers of the networks of one factory, drawn for many networks at once."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Self

import torch
from torch import Tensor

from nads_core.networks.derivatives import cast
from nads_core.networks.initialisation import Initialisation
from nads_core.networks.modules import State
from nads_core.networks.readouts import Readout
from nads_core.runtime.arguments import Shape
from nads_core.runtime.seeds import seed_sequence

# Weights drawn from one generator: a block of networks is this large, or one network
_BLOCK_WEIGHTS = 2**21
# On a GPU, where starting a draw takes as long as 10^6 numbers
_GPU_BLOCK_WEIGHTS = 2**28
_MAX_BLOCK = 64
# The random stream of the weights; those of the estimators are in `directions.estimators`
_WEIGHTS = 0
INDEX = "index of the network"  # the only entry of a state where the factory builds each network


class NetworkSampler:
    """Weights and random numbers of the networks that a factory returns, in blocks of networks.

    Network ``i`` is a function of ``seed``, ``i``, ``block_size`` and the kind of device, because
    each block has a generator of its own. A GPU has larger blocks than a CPU; a checkpoint is
    continued with the size that it began with.

    Args:
        initialisation: description of how the factory draws its weights.
        seed: seed of all weights and inputs.
        device: device of all numbers.
        dtype: number type of all numbers. Weights are drawn in the factory's own type and then
            converted.
        from_factory: whether the factory builds every network, so that none is drawn here.
    """

    def __init__(
        self,
        initialisation: Initialisation,
        seed: int,
        device: torch.device,
        dtype: torch.dtype,
        *,
        from_factory: bool,
    ):
        self.seed, self.device, self.dtype = seed, device, dtype
        self.initialisation, self.from_factory = initialisation, from_factory
        self.num_parameters = sum(tensor.numel() for tensor in initialisation.varying.values())
        together = _GPU_BLOCK_WEIGHTS if device.type == "cuda" else _BLOCK_WEIGHTS
        per_block = together // max(1, self.num_parameters)
        # A power of two
        self.block_size = min(_MAX_BLOCK, 2 ** max(0, per_block.bit_length() - 1))
        self.trainable = {
            name: initialisation.tensors[name]
            for name, tensor in initialisation.network.named_parameters()
            if tensor.requires_grad
        }
        self.readout: Readout | None = None  # the last layer, of which others can be drawn
        self.no_readout = "the factory builds every network"  # why there is none
        self._rows = slice(None)  # networks of each block that are drawn
        self.restart()

    @property
    def num_features(self) -> int:
        """Number of features that the last linear layer reads if `draw_readouts` can draw others,
        else 0.
        """
        return self.readout.num_features if self.readout else 0

    def blocks(self, num_networks: int, start_block: int = 0) -> Iterator[tuple[int, int]]:
        """Yield (block, networks to use of it) for the first ``num_networks`` networks, from
        ``start_block`` on.
        """
        for block in range(start_block, -(-num_networks // self.block_size)):
            yield block, min(self.block_size, num_networks - block * self.block_size)

    def restart(self) -> None:
        """Forget blocks of which parts are drawn, so that no other sampler continues them."""
        # Shared by the samplers of all parts: the weights of the last block, and its streams
        self._weights: dict[int, State] = {}
        self._begun: dict[int, _Begun] = {}

    def restrict(self, rows: slice) -> Self:
        """Return a sampler of some networks of each block, ``rows.start`` to ``rows.stop``, which
        draws them as this one does.

        Parts of a block that are drawn in order continue its random numbers.
        """
        if rows == slice(0, self.block_size):
            return self
        other = copy.copy(self)
        other._rows = rows
        return other

    def draw(self, block: int) -> State:
        """Draw the weights of networks ``block * block_size`` up to the next block.

        Returns:
            name -> ``(block_size, *shape)``, for every parameter and buffer that varies between
            networks. Where the factory builds the networks, only their indices.
        """
        if self._rows == slice(None):
            return self.draw_some(self.block_size, block)
        if block not in self._weights:
            self._weights.clear()
            self._weights[block] = self.draw_some(self.block_size, block)
        return {name: tensor[self._rows] for name, tensor in self._weights[block].items()}

    def draw_some(self, count: int, block: int = 0) -> State:
        """Draw ``count`` networks together from the generator of a block; a whole block of them is
        what `draw` returns, fewer are networks for tests.
        """
        if self.from_factory:
            return {INDEX: torch.arange(count) + block * self.block_size}
        return self._converted(self.initialisation.draw(count, self.seed_of(block)))

    def seed_of(self, block: int, stream: int = _WEIGHTS) -> int:
        """Return the seed of one block's generator."""
        return seed_sequence(self.seed, block, stream)

    def audit_seed(self, index: int) -> int:
        """Return the seed of one network that is built alone, which no block has."""
        return seed_sequence(self.seed, index, _WEIGHTS, 1)  # longer than the path of any block

    def _converted(self, state: State) -> State:
        """Move weights to the device, and convert those that are floating-point numbers."""
        return {name: cast(tensor.to(self.device), self.dtype) for name, tensor in state.items()}

    def _generator(self, block: int, stream: int) -> torch.Generator:
        return torch.Generator(self.device).manual_seed(self.seed_of(block, stream))

    def _normal(
        self, block: int, stream: int, shapes: Sequence[Shape], dtype: torch.dtype
    ) -> list[Tensor]:
        """Draw a tensor ``(block_size, *shape)`` of standard normal numbers for each shape, rounded
        from ``dtype``.
        """
        draw = partial(
            torch.randn, generator=self._generator(block, stream), device=self.device, dtype=dtype
        )
        numbers = [draw((self.block_size, *shape)) for shape in shapes]
        return [tensor.to(self.dtype)[self._rows] for tensor in numbers]

    def randn(self, block: int, stream: int, *shape: int) -> Tensor:
        """Draw ``(block_size, *shape)`` standard normal numbers for one block; in bfloat16 those of
        float32, rounded.

        Args:
            block: index of the block of networks.
            stream: index of the random stream; independent quantities have different streams.
                Stream 0 draws the weights. The library's estimators draw inputs from 1, probes from
                2 and readouts from 3, so streams from 4 are free.
            shape: shape of the numbers of one network.
        """
        dtype = torch.promote_types(self.dtype, torch.float32)
        group = 16 // math.gcd(16, math.prod(shape))
        rows, on_cpu = self._rows, self.device.type == "cpu"
        if rows == slice(None) or not on_cpu or self.block_size % group:
            return self._normal(block, stream, [shape], dtype)[0]
        # Generators of CPUs fill 16 numbers at a time: only groups of networks whose numbers are a
        # multiple of 16 have those of the whole block
        first, stop = rows.start // group * group, -(-rows.stop // group) * group
        begun = self._begun.get(stream)
        if not begun or (begun.block, begun.shape) != (block, shape) or begun.following > first:
            begun = self._begun[stream] = _Begun(block, shape, self._generator(block, stream))
        draw = partial(torch.randn, generator=begun.generator, dtype=dtype)
        for _ in range(begun.following, first, group):
            draw((group, *shape))
        numbers, begun.following = draw((stop - first, *shape)), stop
        return numbers[rows.start - first : rows.stop - first].to(self.dtype)

    def probes(self, block: int, stream: int) -> State:
        """Draw a standard normal direction in the space of trainable weights for each network;
        streams as in `randn`.

        Real and imaginary parts of complex weights count as two weights.

        Raises:
            ValueError: if no parameter requires a gradient.
        """
        if not self.trainable:
            raise ValueError(
                "no parameter of the network requires a gradient: "
                "there is no direction in weight space"
            )
        # A complex number is two real ones
        shapes = [(*t.shape, 2) if t.is_complex() else t.shape for t in self.trainable.values()]
        numbers = self._normal(block, stream, shapes, self.dtype)
        # There are no complex numbers of half this precision
        precision = torch.promote_types(self.dtype, torch.float32)
        return {
            name: torch.view_as_complex(tensor.to(precision)) if weight.is_complex() else tensor
            for (name, weight), tensor in zip(self.trainable.items(), numbers, strict=True)
        }

    def draw_readouts(self, block: int, stream: int, count: int) -> Tensor:
        """Draw ``count`` orthogonal last linear layers for each network of one block.

        Each alone is uniform on a sphere, with the second moment E[w w^T] of the layer's own
        initialisation. As f is linear in them, they give the same second moment of gradients.

        Returns:
            (block_size, count, F), F the number of features.

        Raises:
            ValueError: if the network does not end in a linear layer with fresh, centred weights,
                or it has fewer than ``count`` features.
        """
        readout = self.readout
        if readout is None:
            raise ValueError(
                "several readouts need a network that ends in a linear layer, drawn by one "
                "distribution around 0, and an index as output, "
                f"but {self.no_readout}: use readouts=1"
            )
        if count > readout.num_features:
            raise ValueError(
                f"{count} readouts asked for, "
                f"but the last layer reads {readout.num_features} features"
            )
        normal = self.randn(block, stream, readout.num_features, count)  # (B, F, count)
        # There is no QR in bfloat16
        precise = normal.to(torch.promote_types(self.dtype, torch.float32))
        orthonormal = torch.linalg.qr(precise).Q.mT  # (B, count, F)
        return (orthonormal * (readout.std * readout.num_features**0.5)).to(self.dtype)


@dataclass
class _Begun:
    """A random stream of one block, of which some numbers are drawn."""

    block: int
    shape: Shape
    generator: torch.Generator
    following: int = 0  # network whose numbers the generator draws next
