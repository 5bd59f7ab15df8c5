"""The networks of a factory, each drawn by its number, and the derivatives of one of them.

Network i is the module that the factory returns under the i-th seed, and that module is evaluated:
whatever it holds in attributes, buffers or lists is its own.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map

from nads_core.kernels import faster_layers
from nads_core.networks.architectures import Factory
from nads_core.networks.readouts import Readout
from nads_core.runtime.arguments import Shape
from nads_core.runtime.seeds import drawn

WEIGHTS, INPUTS, PROBES, READOUTS = range(4)  # random streams of a network

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
            try:
                if isinstance(value, Mapping):
                    value = value[step]
                else:
                    value = value[int(step)] if step.isdigit() else getattr(value, step)
            except (KeyError, IndexError, AttributeError, TypeError) as error:
                raise ValueError(
                    f"output {self.path!r} names nothing in {_shapes(outputs)}: there is no {step!r}"
                ) from error
        column = ".".join(steps) or "0"
        if not column.isdigit() or not isinstance(value, Tensor):
            raise ValueError(
                f"output {self.path!r} ends at {_shapes(value)}, not at a column of a tensor "
                f"(K, outputs): name one in {_shapes(outputs)}"
            )
        return _column(value, int(column))


@dataclass(frozen=True)
class Networks:
    """The networks of a factory, or given ones, by number.

    Args:
        source: function that returns a network with freshly drawn weights at each call; or given
            networks, which are copied and never changed.
        image_shape: shape of one input, (C, H, W), (C, L) or (F,).
        seed: seed of all weights, inputs, probes and readouts.
        device: device of the evaluation; factories are called on the CPU.
        dtype: type of weights and inputs. Weights are drawn in the factory's own type and then
            converted.
        output: index of the output that is f(x); or a function of whatever a network returns for K
            inputs, which returns (K,).
        faster: whether a CPU uses `kernels.cpu_layers`.
        readout: last linear layer of which others can be drawn.
        varying: names of the trainable parameters that differ between networks; of given ones all
            that are trainable.
        shared: whether networks have layers or tensors in common, which stay as they are.
    """

    source: Factory | tuple[nn.Module, ...]
    image_shape: Shape
    seed: int = 0
    device: torch.device = torch.device("cpu")
    dtype: torch.dtype = torch.float32
    output: Output = 0
    faster: bool = False
    readout: Readout | None = None
    varying: tuple[str, ...] = ()
    shared: bool = False

    def seed_of(self, index: int, stream: int) -> int:
        """Return the seed of one random stream of one network."""
        return _seeds(self.seed, index)[stream]

    def build(self, index: int) -> nn.Module:
        """Return network ``index`` as the factory returns it; or a copy of a given one."""
        if isinstance(self.source, tuple):
            return copy.deepcopy(self.source[index])
        default = torch.get_default_dtype()
        try:
            network = drawn(self.source, self.seed_of(index, WEIGHTS))
        except Exception as error:  # whatever the factory's author chose to raise
            error.add_note(f"raised by the factory for network {index} (seed {self.seed})")
            raise
        finally:
            torch.set_default_dtype(default)
        # torch.compile would compile each anew
        return getattr(require_network(network), "_orig_mod", network)

    def draw(self, index: int) -> nn.Module:
        """Return network ``index`` ready to be evaluated."""
        return self.prepared(self.build(index))

    def prepared(self, network: nn.Module) -> nn.Module:
        """Return a network in eval mode, on its device and in its type, changed in place unless
        others share a part of it.
        """
        if self.shared:
            network = copy.deepcopy(network)
        network.eval()  # whose own train may return nothing
        parameters = list(network.parameters())
        for parameter in parameters:  # a scripted module lacks requires_grad_
            parameter.requires_grad_(False)

        def converted(tensor: Tensor) -> Tensor:  # Module.to(dtype) makes complex tensors real
            return tensor.to(self.device, self.dtype if tensor.is_floating_point() else None)

        if any(converted(tensor) is not tensor for tensor in [*parameters, *network.buffers()]):
            network._apply(converted)
        if self.device.type == "cuda":
            for layer in network.modules():
                if isinstance(layer, nn.RNNBase):  # cuDNN has gradients in train mode alone
                    layer.dropout = 0.0
                    layer.train()
        return faster_layers(network) if self.faster else network

    def randn(self, index: int, stream: int, *shape: int) -> Tensor:
        """Return standard normal numbers from a stream of network ``index``."""
        generator = torch.Generator(self.device).manual_seed(self.seed_of(index, stream))
        numbers = torch.randn(shape, generator=generator, device=self.device)
        return numbers.to(self.dtype)

    def value(self, outputs: Any) -> Tensor:
        """Return f, (K,), from what a network returned for K inputs."""
        if callable(self.output):
            return self.output(outputs)
        return _column(outputs, self.output)


@lru_cache(maxsize=64)
def _seeds(seed: int, index: int) -> list[int]:
    """Return the seeds of the random streams of a network."""
    words = np.random.SeedSequence([seed, index]).generate_state(4, np.uint64)
    return [int(word >> np.uint64(1)) for word in words]


def _column(outputs: Any, column: int) -> Tensor:
    """Return a column (K,) of a tensor (K, outputs); of (K,) the only one."""
    if not isinstance(outputs, Tensor) or outputs.dim() not in (1, 2):
        raise ValueError(
            "the network must map (K, *image_shape) to (K,) or (K, outputs), but returned "
            f"{_shapes(outputs)}: name a tensor in it, for example output='logits.0' for column 0 "
            "of y['logits'] and '1.0' for that of y[1], or pass a function as output"
        )
    count = 1 if outputs.dim() == 1 else outputs.shape[1]
    if column >= count:
        raise ValueError(f"output {column} is not there: name one of {count} outputs, from 0")
    return outputs if outputs.dim() == 1 else outputs[:, column]


def _shapes(value: Any) -> Any:
    """Return what a network returned with shapes in place of tensors."""
    return tree_map(lambda x: tuple(x.shape) if isinstance(x, Tensor) else type(x).__name__, value)


def require_network(value: object) -> nn.Module:
    """Return what a factory returned; raise a TypeError unless it is a network."""
    if not isinstance(value, nn.Module):
        raise TypeError(f"the factory must return a torch.nn.Module, got {type(value).__name__}")
    return value


class Network:
    """f of one network and its derivatives at K inputs.

    Args:
        networks: the networks of which it is one.
        index: its number.
        built: what the factory returned for it, if that is there.
    """

    def __init__(self, networks: Networks, index: int, built: nn.Module | None = None):
        self.networks, self.index = networks, index
        self.module = networks.prepared(networks.build(index) if built is None else built)

    def randn(self, stream: int, *shape: int) -> Tensor:
        """Return standard normal numbers of this network, ``(*shape)``."""
        return self.networks.randn(self.index, stream, *shape)

    def inputs(self, count: int, input_std: float = 1.0, antithetic: bool = False) -> Tensor:
        """Return x ~ N(0, input_std^2 I), ``(K, *image_shape)``, K = ``count``; in neighbouring pairs
        (x, -x) if ``antithetic``.
        """
        shape = self.networks.image_shape
        drawn = input_std * self.randn(INPUTS, count // (1 + antithetic), *shape)
        if not antithetic:
            return drawn
        pair = drawn.dim() - len(shape)  # a stack of networks has one more dimension
        return torch.stack([drawn, -drawn], pair).flatten(pair - 1, pair)

    def outputs(self, images: Tensor) -> Tensor:
        """f(x): ``(K, *image_shape)`` -> (K,)."""
        # The network may write to its input, and its next result to the same memory
        return self.networks.value(self.module(images.clone())).detach().clone()

    def input_gradients(self, images: Tensor, readouts: int = 1) -> Tensor:
        """grad_x f_r(x) of each readout: ``(K, *image_shape)`` -> (R, K, D).

        Readouts beyond one are orthogonal rows in place of the last layer's, which share the
        forward pass.
        """
        images = images.detach().requires_grad_()
        with torch.enable_grad():
            if readouts == 1:
                values = self.networks.value(self.module(images.clone()))[:, None]  # (K, 1)
            else:
                assert self.networks.readout is not None
                features = self.networks.readout.features(self.module, images.clone())  # (K, F)
                values = features @ self.rows(readouts)  # (K, R)
            # f at one input does not depend on the others: the gradient of the sum over K has all
            sums = values.sum(0).unbind() if values.requires_grad else ()
            gradients = [
                torch.autograd.grad(
                    total, images, retain_graph=rest > 0, allow_unused=True, materialize_grads=True
                )[0].flatten(1)
                for rest, total in zip(reversed(range(readouts)), sums, strict=False)
            ]
        if not gradients:  # a dead network
            return images.new_zeros(readouts, len(images), images[0].numel())
        return torch.stack(gradients)

    def rows(self, readouts: int) -> Tensor:
        """Return other last layers, (F, R): orthogonal columns of the length that the initial ones
        have on average.
        """
        readout = self.networks.readout
        assert readout is not None
        drawn = self.randn(READOUTS, readout.num_features, readouts)
        orthogonal = torch.linalg.qr(drawn.double()).Q.to(drawn)
        return orthogonal * (readout.std * readout.num_features**0.5)

    def mixed_derivatives(self, images: Tensor) -> Tensor:
        """r^T d/dtheta grad_x f(x) along one probe r ~ N(0, I) in weight space:
        ``(K, *image_shape)`` -> (1, K, D).

        A complex weight counts as two real ones.
        """
        images = images.detach().requires_grad_()
        parameters = self.parameters()
        total = torch.zeros((), dtype=images.dtype, device=images.device)
        with torch.enable_grad():
            value = self.networks.value(self.module(images.clone())).sum()
            slopes = torch.autograd.grad(value, parameters, create_graph=True, allow_unused=True)
            for slope, probe in zip(slopes, self.probe(), strict=True):
                if slope is not None:  # of a complex weight a + ib, df/da + i df/db
                    total = total + (slope.conj() * probe).real.sum()
            if not total.requires_grad:
                return torch.zeros_like(images).flatten(1)[None]
            gradient = torch.autograd.grad(total, images, materialize_grads=True)[0]
        return gradient.flatten(1)[None]

    def parameters(self) -> list[nn.Parameter]:
        """Return the parameters that a probe moves, recording operations on them from now on."""
        own = dict(self.module.named_parameters())
        parameters = [own[name] for name in self.networks.varying if name in own]
        for parameter in parameters:
            parameter.requires_grad_()
        return parameters

    def probe(self) -> list[Tensor]:
        """Return one direction in weight space, a tensor per parameter."""
        parameters = self.parameters()
        sizes = [p.numel() * (1 + p.is_complex()) for p in parameters]
        parts = self.randn(PROBES, sum(sizes)).split(sizes)
        return [
            torch.view_as_complex(part.view(*p.shape, 2)) if p.is_complex() else part.view(p.shape)
            for part, p in zip(parts, parameters, strict=True)
        ]
