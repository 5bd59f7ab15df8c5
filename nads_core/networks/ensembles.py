"""Ensembles of networks of one architecture: weights are drawn for many at once, and many are
evaluated at once.
"""

from __future__ import annotations

import copy
import logging
import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.func import grad, jacrev, vmap

from nads_core.kernels import (
    RandomParameter,
    draw_weights,
    faster_layers,
    few_channel_convolutions,
    require_kernels,
)
from nads_core.networks.batches import NUM_TEST_INPUTS, Evaluated, require_independent_inputs
from nads_core.networks.derivatives import ScalarFunction, cast, mixed, require_real
from nads_core.networks.initialisation import Initialisation, State, failure, state_of
from nads_core.networks.interleaving import interleaved
from nads_core.networks.readouts import NoReadout, Readout, disturbed, find_zero_init, linear_calls
from nads_core.networks.self_check import (
    differing,
    foreign_generators,
    not_reproduced,
    same_outputs,
)
from nads_core.runtime.arguments import (
    is_integer,
    plain,
    require_integers,
    usable_device,
    usable_dtype,
)
from nads_core.runtime.graphs import capture
from nads_core.runtime.seeds import seed_sequence
from nads_core.runtime.threads import LARGE, num_threads, one_thread, threads_for

logger = logging.getLogger(__name__)

# Weights drawn from one generator: a block of networks is this large, or one network
_BLOCK_WEIGHTS = 2**21
# Weights drawn by one launch of a kernel, which has no generator to share
_KEYED_BLOCK_WEIGHTS = 2**26
_MAX_BLOCK = 64
_WEIGHTS = (
    0  # the random stream of the weights; those of the estimators are in `directions.estimators`
)
_IDENTIFYING = 8  # networks by which a factory is recognised
_SCALES = (1.0, 1.0, 10.0, 100.0)  # of the inputs at which it is recognised
_REPETITIONS = 4  # evaluations of the first network, which must agree
_TO_EXPLAIN = 200  # evaluations of a network that differs, for the error
_PAUSES = 8  # parts of one evaluation, between which another one is inserted
_INDEX = "index of the network"  # the only entry of a state where networks are rebuilt
_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def require_image_shape(image_shape: Sequence[int]) -> tuple[int, ...]:
    """Return the shape of an image, a sequence or a row of features; raise a ValueError for
    anything else.
    """
    sizes = image_shape if isinstance(image_shape, Sequence) else ()
    if not 1 <= len(sizes) <= 3 or not all(is_integer(n) and n > 0 for n in sizes):
        raise ValueError(
            f"image_shape must be positive integers (C, H, W), (C, L) or (F,), got {image_shape!r}"
        )
    return tuple(map(int, sizes))


class Ensemble:
    """The networks that a factory returns, drawn and evaluated many at a time, in eval mode.

    On one kind of device network ``i`` is a function of ``seed`` and ``i`` alone: each block of
    ``block_size`` networks has a generator of its own. A GPU's generators give other numbers than a
    CPU's, unless `keyed`.

    Args:
        factory: function that returns a network with freshly drawn weights at each call.
        image_shape: shape of one input, (C, H, W), (C, L) or (F,). It replaces C, H, W in all
            shapes below.
        seed: seed of all weights and inputs.
        device: device of the networks.
        dtype: number type of weights and inputs. Weights are drawn in the factory's own type and
            then converted.
        output: index of the network output that is the scalar f(x); or a function of what the
            network returns for K inputs, which returns (K,).
        evaluation: ``"loop"`` evaluates one network after another, ``"vmap"`` all at once; by
            default vmap on a GPU, for networks that allow it (recurrent layers do not). Both load
            the weights and buffers of other networks into one network, the template. ``"graph"``
            evaluates as "loop" does, by a CUDA graph of one network into which the weights of each
            are copied (on a CPU by the same calls). ``"factory"`` evaluates each network as the
            factory builds it, one at a time: for factories whose networks differ in structure, in
            activations or in tensors that are plain attributes.
        kernels: ``"torch"``, or ``"triton"``, where one launch draws all weights of a block, with
            other values, and one convolves all networks, where a convolution has few channels. If a
            parameter is not drawn by one ``uniform_`` or ``normal_`` in float32, torch draws the
            weights; see `keyed`.

    Raises:
        TypeError: if the factory is not callable or does not return an `nn.Module`.
        ValueError: if the network rejects (K, C, H, W) inputs, returns something else than (K,) or
            (K, outputs), has the same weights at every call, or draws them from outside torch's
            random generator; if a second network's weights and buffers, put into the template, do
            not give that network's outputs; for a device or kernels that cannot run here.
    """

    def __init__(
        self,
        factory: Callable[[], nn.Module],
        image_shape: tuple[int, ...],
        *,
        seed: int = 0,
        device: torch.device | str | None = None,
        dtype: torch.dtype | str = torch.float32,
        output: int | Callable[[Any], Tensor] = 0,
        evaluation: str | None = None,
        kernels: str = "torch",
    ):
        if not callable(factory) or isinstance(factory, nn.Module):
            expected = "an Architecture or a function that returns a new network, such as `lambda: MyNet()`"
            raise TypeError(f"expected {expected}, got {type(factory).__name__}")
        self.image_shape = require_image_shape(image_shape)
        require_integers(least=0, seed=seed, output=0 if callable(output) else output)
        self.device = usable_device(device)
        require_kernels(kernels, self.device)
        self.dtype, self.seed, self.output, self.kernels = (
            usable_dtype(dtype),
            plain(seed),
            output,
            kernels,
        )
        self.evaluation = evaluation or ("vmap" if self.device.type == "cuda" else "loop")
        if self.evaluation not in ("loop", "vmap", "graph", "factory"):
            raise ValueError(
                f"evaluation must be 'loop', 'vmap', 'graph' or 'factory', got {evaluation!r}"
            )
        rebuild = self.evaluation == "factory"
        if rebuild and kernels != "torch":
            raise ValueError(
                "evaluation='factory' draws networks by their factory: leave kernels out"
            )
        initialisation = Initialisation.of(factory, self.device, rebuild)
        self._initialisation = replace(initialisation, second=None)
        self._rebuilt: dict[int, list[nn.Module]] = {}  # the networks of the last block
        self._graphs: dict[
            Any, _Captured
        ] = {}  # of the input gradients, by the shapes of their arguments
        self._rows = slice(None)  # networks of each block that are drawn
        self._begun: dict[
            int, tuple[Any, ...]
        ] = {}  # block of which parts are drawn, by random stream
        self._keyed_parameters = None if kernels == "torch" else initialisation.random_parameters()
        self.num_parameters = sum(tensor.numel() for tensor in initialisation.varying.values())
        weights_per_block = (_KEYED_BLOCK_WEIGHTS if self.keyed else _BLOCK_WEIGHTS) // max(
            1, self.num_parameters
        )
        # A power of two
        self.block_size = min(_MAX_BLOCK, 2 ** max(0, weights_per_block.bit_length() - 1))
        trainable = {
            name: tensor
            for name, tensor in initialisation.network.named_parameters()
            if tensor.requires_grad
        }
        self._trainable = {
            name: (tuple(tensor.shape), tensor.is_complex()) for name, tensor in trainable.items()
        }
        network = self._prepared(initialisation.network, kernels)  # the template
        self._function = ScalarFunction(
            network, set() if rebuild else set(initialisation.varying), output
        )
        self._readout: Readout | None = None
        self.no_readout = (
            "networks are rebuilt"  # why there is one readout, as long as there is none to replace
        )
        self._test_function(initialisation)
        if initialisation.second is not None and not rebuild:
            self._require_reproduced(initialisation.second, 1)
        if self.evaluation == "vmap" and (obstacle := self._vmap_obstacle()):
            if evaluation:
                raise ValueError(
                    f"evaluation='vmap' cannot run this network ({obstacle}): use evaluation='loop'"
                )
            self.evaluation = "loop"

    def _test_function(self, initialisation: Initialisation) -> None:
        """Raise a ValueError unless f is a function of one input; find out whether it is linear in
        a last layer.
        """
        images, weights = self._test_images(NUM_TEST_INPUTS), self._test_weights(2)
        first, active, second = _state_at(weights, 0), _state_at(weights, 1), self._function
        with linear_calls(self.template) as calls:
            outputs = self._function.require_outputs(first, images[:2])
        if self.evaluation == "factory" and initialisation.second is not None:
            second = self._function_of(self._prepared(initialisation.second))
        active = disturbed(second.module, second.fixed | active)
        own = self._require_independent(second, active, images, "number 1")
        if self.evaluation != "factory":
            try:
                self._readout = Readout.of(second, calls, outputs, initialisation.steps)
                self._readout.require_linear(second, first, images)
                self._readout.require_linear(second, active, images, own)
            except NoReadout as reason:
                self._readout, self.no_readout = None, str(reason)

    def require_independent_inputs(self, state: State, images: Tensor) -> None:
        """Raise a ValueError if f at one of these inputs, (1, K, C, H, W), depends on the others,
        for one network.

        The ensemble has tested batches of a few inputs, so that here K is larger.
        """
        if images.shape[1] > NUM_TEST_INPUTS:
            function, weights = next(self._functions_and_weights(state))
            self._require_independent(function, weights, images[0], "number 0")

    def _require_independent(
        self, function: ScalarFunction, weights: State, images: Tensor, which: str
    ) -> Evaluated:
        """Return f and its gradients at K inputs; raise a ValueError if they depend on each other,
        or are random.
        """
        try:
            return require_independent_inputs(function, weights, images)
        except ValueError:
            self._require_fixed_outputs(function.module, which, _TO_EXPLAIN)
            raise

    def _vmap_obstacle(self) -> str | None:
        """Return why these networks cannot be evaluated together, for example a recurrent layer;
        None if they can.
        """
        state, images = self._test_weights(2), self._test_images(2, 2)
        try:
            self.outputs(state, images)
            self.input_gradients(state, images)
        except RuntimeError as error:
            return str(error).splitlines()[0]
        return None

    def _prepared(self, network: nn.Module, kernels: str = "torch") -> nn.Module:
        """Prepare a network of the factory: eval mode, and the device and type of the ensemble."""
        network = network.eval().requires_grad_(False).to(device=self.device)
        for layer in network.modules():
            # cuDNN has gradients in train mode alone
            if isinstance(layer, nn.RNNBase) and self.device.type == "cuda":
                layer.dropout = 0.0
                layer.train()
        # Module.to(dtype) makes complex tensors real
        network._apply(partial(cast, dtype=self.dtype))
        if kernels == "triton":
            network = few_channel_convolutions(network)
        return network if self.evaluation == "vmap" else faster_layers(network)

    def _require_reproduced(self, network: nn.Module, number: int) -> None:
        """Raise a ValueError unless the template, with the weights of a new network, gives its
        outputs.
        """
        state, images = state_of(self._prepared(network)), self._test_images(2)
        weights = {
            name: state[name].detach() for name in self._initialisation.varying if name in state
        }
        expected = self._own_outputs(network, images, f"number {number}")
        with torch.no_grad():
            outputs = self._function.outputs(weights, images)
        if not same_outputs(outputs, expected, self.kernels == "triton"):
            self._require_fixed_outputs(network, f"number {number}", _TO_EXPLAIN)
            fixed = {
                name: "a buffer or parameter that two networks had in common"
                for name, tensor in self._function.fixed.items()
                if name not in state or not torch.equal(tensor, state[name])
            }
            raise not_reproduced(f"number {number}", fixed | differing(self.template, network))

    def _own_outputs(self, network: nn.Module, images: Tensor, which: str) -> Tensor:
        """Return all outputs of a network as it is, (K,) or (K, outputs)."""
        with torch.no_grad():
            try:
                outputs = self._function_of(network).outputs({}, images)
            except Exception as error:  # whatever the network's author chose to raise
                raise failure(f"the network {which} failed", error) from error
        require_real(outputs)
        return outputs

    def _require_fixed_outputs(self, network: nn.Module, which: str, repetitions: int) -> None:
        """Raise a ValueError if a network gives other outputs at some calls, or draws random
        numbers for them.
        """
        images, moves = self._test_images(2), []
        expected = self._own_outputs(network, images, which)
        same = True
        for _ in range(repetitions):
            before = foreign_generators()
            same &= same_outputs(self._own_outputs(network, images, which), expected)
            # Other threads of the caller can draw too, but not each time
            moves.append(foreign_generators() != before)
        if all(moves) or not same:
            raise ValueError(
                f"the network {which} draws random numbers in eval mode, such as by Python's random or numpy: f(x) "
                "must be fixed, so let forward draw them only if self.training"
            )

    def drawn_tensors(self) -> dict[str, int]:
        """Count the varying tensors by how they are drawn, see `Initialisation.drawn_tensors`."""
        return self._initialisation.drawn_tensors()

    def audit(self, index: int) -> None:
        """Compare a network of the factory with the one that this ensemble draws from the same
        seed.

        Replayed draws, and weights that are loaded into the template, are right only if the factory
        always builds what it built at first. The seed belongs to this network; the generators of
        all others stay as they are.

        Args:
            index: number of the network, from 0.

        Raises:
            ValueError: if their outputs differ: the factory chooses something by what is not
                recorded.
        """
        seed = self._audit_seed(index)
        self._audit(self._initialisation.build(1, seed, index)[0], index, seed)

    def _audit_seed(self, index: int) -> int:
        return seed_sequence(self.seed, index, _WEIGHTS, 1)  # longer than the path of any block

    def _audit(self, network: nn.Module, index: int, seed: int) -> None:
        which, images = f"number {index}, of torch.manual_seed({seed}),", self._test_images(2)
        expected = self._own_outputs(self._prepared(network), images, which)
        if self.evaluation == "factory":
            (other,) = self._initialisation.build(1, seed, index)
            outputs = self._own_outputs(self._prepared(other), images, which)
        else:
            with torch.no_grad():
                outputs = self._function.outputs(
                    self._converted(self._initialisation.drawn_alone(seed, index)), images
                )
        if same_outputs(outputs, expected, self.kernels == "triton"):
            return
        self._require_fixed_outputs(network, which, _TO_EXPLAIN)
        if self.evaluation == "factory":
            raise ValueError(
                f"the factory builds two networks {which} of which one was expected: it draws from random numbers that "
                "torch does not seed, or counts its calls. Draw them with torch"
            )
        raise not_reproduced(which, differing(self.template, network))

    def identity(self) -> dict[str, Any]:
        """Return what identifies the factory, from its first networks as it builds them, and audit
        these.

        Returns:
            replayed: whether their weights are drawn together.
            outputs: f(x) of 8 networks at fixed inputs of several scales, (8, K), at least in
                float32.
            norms: norm of each parameter and buffer of all of them.
            layers: description of each layer of the first one.
        """
        dtype = torch.promote_types(self.dtype, torch.float32)
        scales = torch.tensor(_SCALES, dtype=torch.float64).view(-1, *[1] * len(self.image_shape))
        generator = torch.Generator().manual_seed(0)
        images = scales * torch.randn(
            len(_SCALES), *self.image_shape, generator=generator, dtype=torch.float64
        )
        outputs, squares, layers = [], dict[str, float](), dict[str, str]()
        for index in range(_IDENTIFYING):
            seed = self._audit_seed(index)
            (network,) = self._initialisation.build(1, seed, index)
            network._apply(partial(cast, dtype=dtype))
            which = f"number {index}, of torch.manual_seed({seed}),"
            values = self._own_outputs(
                network, images.to(self._initialisation.origin, dtype), which
            )
            values = (
                values if callable(self.output) or values.dim() == 1 else values[:, self.output]
            )
            outputs.append(values.double().cpu())
            for name, tensor in state_of(network).items():
                squares[name] = squares.get(name, 0.0) + _norm(tensor.detach()) ** 2
            layers = layers or {
                name: repr(layer)
                for name, layer in network.named_modules()
                if not [*layer.children()]
            }
            if not index:
                self._require_fixed_outputs(self._prepared(network), which, _REPETITIONS)
            # All for small networks, one where a block is one large network
            if index < self.block_size:
                self._audit(network, index, seed)
        norms = {name: square**0.5 for name, square in squares.items()}
        return {
            "replayed": self.replays,
            "outputs": torch.stack(outputs),
            "norms": norms,
            "layers": layers,
        }

    def _test_weights(self, count: int) -> State:
        """Draw a few networks, none where networks are rebuilt."""
        seed = seed_sequence(self.seed, 0, _WEIGHTS)
        return (
            {}
            if self.evaluation == "factory"
            else self._converted(self._initialisation.draw(count, seed))
        )

    def _test_images(self, *counts: int) -> Tensor:
        """Return the same random images (*counts, C, H, W) at every call."""
        generator = torch.Generator().manual_seed(0)
        return torch.randn(*counts, *self.image_shape, generator=generator).to(
            self.device, self.dtype
        )

    def _functions_and_weights(self, state: State) -> Iterator[tuple[ScalarFunction, State]]:
        """Yield f of each network of a state, with its weights."""
        if self.evaluation != "factory":
            rows = zip(*(tensor.unbind() for tensor in state.values()), strict=True)
            yield from ((self._function, dict(zip(state, row, strict=True))) for row in rows)
            return
        for index in state[_INDEX].tolist():
            block, row = divmod(index, self.block_size)
            if block not in self._rebuilt:
                seed = seed_sequence(self.seed, block, _WEIGHTS)
                built = self._initialisation.build(self.block_size, seed, block * self.block_size)
                self._rebuilt = {block: list(map(self._prepared, built))}
            yield self._function_of(self._rebuilt[block][row]), {}

    def _function_of(self, network: nn.Module) -> ScalarFunction:
        """Return f of a network with its own weights."""
        function = ScalarFunction(network, set(), self.output)
        function.takes_gradients = self._function.takes_gradients
        return function

    @property
    def template(self) -> nn.Module:
        """The network that evaluates all others, with their weights in place of its own."""
        return self._function.module

    @property
    def replays(self) -> bool:
        """Whether the weights of many networks are drawn together (else the factory is called for
        each).
        """
        return self._initialisation.steps is not None and self.evaluation != "factory"

    @property
    def keyed(self) -> bool:
        """Whether (seed, network, element) fixes each weight and input, whatever the block and the
        device.
        """
        return self._keyed_parameters is not None

    @property
    def num_features(self) -> int:
        """Number of features that the last linear layer reads if `draw_readouts` can draw others,
        else 0.
        """
        return self._readout.num_features if self._readout else 0

    def duplicate(self) -> Ensemble:
        """Return the same networks for another thread, with its own template, to which evaluation
        writes.
        """
        other = copy.copy(self)
        other._function, other._begun, other._graphs = copy.deepcopy(self._function), {}, {}
        return other

    def part(self, rows: slice) -> Ensemble:
        """Return an ensemble that draws some networks of each block, ``rows.start`` to
        ``rows.stop``, as this one does.

        Parts of a block that are drawn in order continue its random numbers.
        """
        if rows == slice(0, self.block_size):
            return self
        other = copy.copy(self)
        other._rows = rows
        return other

    def can_duplicate(self) -> bool:
        """Whether threads can evaluate duplicates at once.

        Two duplicates evaluate one network each, in turns after every instruction of the network's
        code. Their values and gradients must be those of this ensemble, which evaluates one after
        the other: what a module, a class or a hook keeps is shared by all copies of a network.
        """
        state, images = self._test_weights(2), self._test_images(2, 2)

        def evaluated(ensemble: Ensemble, row: int) -> tuple[Tensor, Tensor]:
            own, inputs = (
                {name: tensor[row : row + 1] for name, tensor in state.items()},
                images[row : row + 1],
            )
            # first: a result that is kept with it cannot be copied
            gradients = ensemble.input_gradients(own, inputs)
            return gradients, ensemble.outputs(own, inputs)

        def alike(results: list[tuple[Tensor, Tensor]] | None) -> bool:
            return results is not None and all(
                same_outputs(value, right)
                for result, truth in zip(results, expected, strict=True)
                for value, right in zip(result, truth, strict=True)
            )

        start = time.perf_counter()
        expected = [evaluated(self, row) for row in range(2)]
        patience = 1 + 10 * (time.perf_counter() - start)
        try:
            one, other = self.duplicate(), self.duplicate()
        except Exception:  # of deepcopy
            return False
        interleave = partial(
            interleaved, lambda: evaluated(one, 0), lambda: evaluated(other, 1), patience
        )
        results, steps = interleave()
        pauses = sorted({steps * part // _PAUSES for part in range(1, _PAUSES)} - {0})
        separate = alike(results) and all(alike(interleave(pause).results) for pause in pauses)
        if not separate and not alike([evaluated(self, row) for row in range(2)]):
            raise ValueError(
                "copies of a network share something that an evaluation leaves changed: keep it in self"
            )
        return separate

    def zero_init(self) -> dict[str, float]:
        """Return the parameters that silence a part of the network at initialisation, see
        `find_zero_init`.
        """
        weights, images = _state_at(self._test_weights(1), 0), self._test_images(1)
        return find_zero_init(
            self.template,
            self._function.fixed,
            weights,
            lambda state: self._function(state, images),
        )

    def fixed_weights(self) -> tuple[int, list[str]]:
        """Return how many weights are the same in all networks, and the names of their parameters.

        Constants, such as zeros of a bias, do not count, nor do parameters that require no
        gradient.
        """
        fixed = {
            name: tensor for name, tensor in self._function.fixed.items() if name in self._trainable
        }
        if self.evaluation == "factory":
            return 0, []
        names = [
            name
            for name, tensor in fixed.items()
            if not bool((tensor == tensor.flatten()[:1]).all())
        ]
        return sum(fixed[name].numel() for name in names), names

    def blocks(self, num_networks: int, start_block: int = 0) -> Iterator[tuple[int, int]]:
        """Yield (block, networks to use of it) for the first ``num_networks`` networks, from
        ``start_block`` on.
        """
        for block in range(start_block, -(-num_networks // self.block_size)):
            yield block, min(self.block_size, num_networks - block * self.block_size)

    def draw(self, block: int) -> State:
        """Draw the weights of networks ``block * block_size`` up to the next block.

        Returns:
            name -> ``(block_size, *shape)``, for every parameter and buffer that varies between
            networks. Where networks are rebuilt, only their indices.

        Raises:
            ValueError: if a factory that reads random numbers built a network that its weights do
                not reproduce.
        """
        if self._rows == slice(None):
            return self._draw_block(block)
        if self._begun.get(_WEIGHTS, (None,))[0] != block:
            self._begun[_WEIGHTS] = block, self._draw_block(block)
        return {name: tensor[self._rows] for name, tensor in self._begun[_WEIGHTS][1].items()}

    def _draw_block(self, block: int) -> State:
        if self.evaluation == "factory":
            return {_INDEX: torch.arange(self.block_size) + block * self.block_size}
        if self._keyed_parameters is not None:
            tensors = self._draw_keyed(self._keyed_parameters, block, _WEIGHTS)
            return dict(zip(self._initialisation.varying, tensors, strict=True))
        seed = seed_sequence(self.seed, block, _WEIGHTS)
        first = block * self.block_size
        return self._converted(
            self._initialisation.draw(self.block_size, seed, self._require_reproduced, first)
        )

    def _draw_keyed(
        self, parameters: Sequence[RandomParameter], block: int, stream: int
    ) -> list[Tensor]:
        drawn = draw_weights(
            parameters,
            seed=seed_sequence(self.seed),
            first=block * self.block_size,
            count=self.block_size,
            stream=stream,
            device=self.device,
        )
        return [tensor.to(self.dtype) for tensor in drawn]

    def _normal(
        self, block: int, stream: int, shapes: Iterable[tuple[int, ...]], dtype: torch.dtype
    ) -> list[Tensor]:
        """Draw a tensor ``(block_size, *shape)`` of standard normal numbers for each shape, rounded
        from ``dtype``.
        """
        if self.keyed:
            numbers = self._draw_keyed(
                [RandomParameter(shape, "normal") for shape in shapes], block, stream
            )
        else:
            draw = partial(
                torch.randn,
                generator=self._generator(block, stream),
                device=self.device,
                dtype=dtype,
            )
            numbers = [draw((self.block_size, *shape)).to(self.dtype) for shape in shapes]
        return [tensor[self._rows] for tensor in numbers]

    def _generator(self, block: int, stream: int) -> torch.Generator:
        return torch.Generator(self.device).manual_seed(seed_sequence(self.seed, block, stream))

    def _converted(self, state: State) -> State:
        """Move weights to the device, and those that are floating-point numbers to the ensemble's
        type.
        """
        return {name: cast(tensor.to(self.device), self.dtype) for name, tensor in state.items()}

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
        # networks; the generators of CPUs fill 16 numbers at a time
        step = 16 // math.gcd(16, math.prod(shape))
        if (
            self._rows == slice(None)
            or self.keyed
            or self.device.type != "cpu"
            or self.block_size % step
        ):
            return self._normal(block, stream, [shape], dtype)[0]
        first, stop = self._rows.start // step * step, -(-self._rows.stop // step) * step
        *begun, row, generator = self._begun.get(stream, (block, shape, self.block_size, None))
        if begun != [block, shape] or row > first:
            row, generator = 0, self._generator(block, stream)
        for _ in range(row, first, step):
            torch.randn(step, *shape, generator=generator, dtype=dtype)
        numbers = torch.randn(stop - first, *shape, generator=generator, dtype=dtype)
        self._begun[stream] = block, shape, stop, generator
        return numbers[self._rows.start - first : self._rows.stop - first].to(self.dtype)

    def probes(self, block: int, stream: int) -> State:
        """Draw a standard normal direction in the space of trainable weights for each network;
        streams as in `randn`.

        Real and imaginary parts of complex weights count as two weights.

        Raises:
            ValueError: if no parameter requires a gradient.
        """
        if not self._trainable:
            raise ValueError(
                "no parameter of the network requires a gradient: there is no direction in weight space"
            )
        # A complex number is two real ones.
        shapes = [
            (*shape, 2) if is_complex else shape for shape, is_complex in self._trainable.values()
        ]
        numbers = dict(
            zip(self._trainable, self._normal(block, stream, shapes, self.dtype), strict=True)
        )
        # There are no complex numbers of half of it
        precision = torch.promote_types(self.dtype, torch.float32)
        return {
            name: torch.view_as_complex(tensor.to(precision))
            if self._trainable[name][1]
            else tensor
            for name, tensor in numbers.items()
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
        readout = self._require_readout()
        if count > readout.num_features:
            raise ValueError(
                f"{count} readouts asked for, but the last layer reads {readout.num_features} features"
            )
        normal = self.randn(block, stream, readout.num_features, count)  # (B, F, count)
        # There is no QR in bfloat16.
        # (B, count, F)
        orthonormal = torch.linalg.qr(
            normal.to(torch.promote_types(self.dtype, torch.float32))
        ).Q.mT
        return (orthonormal * (readout.std * readout.num_features**0.5)).to(self.dtype)

    def _require_readout(self) -> Readout:
        if self._readout is None:
            needed = "a network that ends in a linear layer, drawn by one distribution around 0, and an index as output"
            raise ValueError(
                f"several readouts need {needed}, but {self.no_readout}: use readouts=1"
            )
        return self._readout

    def stack(self, count: int) -> State:
        """Return all parameters and buffers of the first ``count`` networks, name -> (count,
        *shape).
        """
        if self.evaluation == "factory":
            raise ValueError("networks that are rebuilt cannot be stacked: use another evaluation")
        parts = [self.draw(block) for block, _ in self.blocks(count)]
        drawn = {name: torch.cat([part[name] for part in parts])[:count] for name in parts[0]}
        fixed = {
            name: tensor.expand(count, *tensor.shape).clone()
            for name, tensor in self._function.fixed.items()
        }
        return {name: (drawn | fixed)[name] for name in state_of(self.template)}

    def outputs(self, state: State, images: Tensor) -> Tensor:
        """Evaluate B networks on K inputs each: (B, K, C, H, W) -> (B, K)."""
        with torch.no_grad():
            if self.evaluation != "vmap":
                networks = zip(self._functions_and_weights(state), images, strict=True)
                return torch.stack([f(weights, x) for (f, weights), x in networks])
            return vmap(self._function)(state, images)

    def input_gradients(
        self,
        state: State,
        images: Tensor,
        readouts: Tensor | None = None,
        mixing: Tensor | None = None,
    ) -> Tensor:
        """Return the gradient of f with respect to its input, for B networks at K inputs each.

        Args:
            state: weights of B networks, as `draw` returns them.
            images: (B, K, C, H, W).
            readouts: other last layers for each network, (B, R, F), as `draw_readouts` returns
                them. They share the forward pass, and most of the cost of drawing a network.
            mixing: weights (J, K) of linear combinations of the K gradients, which then take their
                place.

        Returns:
            (B, K, C, H, W), or (B * R, K, C, H, W) with readouts; J in place of K with ``mixing``.

        Raises:
            ValueError: if the output does not depend on the input.
        """
        f, many_outputs = self._function, readouts is not None
        if readouts is not None:
            state = self._require_readout().replaced(state, readouts)
        if self.evaluation != "vmap":
            networks = zip(self._functions_and_weights(state), images, strict=True)
            return torch.cat(
                [self._gradients(*one, x, many_outputs, mixing) for one, x in networks]
            )
        # An output at one input does not depend on the others: derivatives of sums over K hold
        # those at all K. (K, C, H, W) -> (R, K, C, H, W)
        jacobian = jacrev(lambda x, weights: f.outputs(weights, x).sum(0))
        gradients = vmap(
            jacobian if many_outputs else grad(lambda x, weights: f(weights, x).sum())
        )(images, state)
        # (B * R or B, K, C, H, W)
        gradients = gradients.flatten(0, 1) if many_outputs else gradients
        return mixed(gradients.transpose(0, 1), mixing).transpose(0, 1)

    def _gradients(
        self,
        f: ScalarFunction,
        weights: State,
        images: Tensor,
        many_outputs: bool,
        mixing: Tensor | None,
    ) -> Tensor:
        """Return the input gradients of one network, (1 or R, K or J, C, H, W), by a graph where
        that is asked for.
        """
        if self.evaluation != "graph":
            return f.input_gradients(weights, images, many_outputs, mixing)
        arguments = [*weights.values(), images, *([] if mixing is None else [mixing])]
        key = many_outputs, tuple(tensor.shape for tensor in arguments)
        if key not in self._graphs:

            def gradients(*tensors: Tensor) -> Tensor:
                held = dict(zip(weights, tensors, strict=False))
                rest = tensors[len(held) :]
                return f.input_gradients(held, rest[0], many_outputs, *rest[1:])

            self._graphs[key] = _Captured(gradients, arguments, self.device)
        return self._graphs[key](arguments)

    def mixed_derivatives(self, state: State, images: Tensor, probes: State) -> Tensor:
        """Return r^T d/dtheta (df/dx), the derivative of the input gradient along the probe r in
        weight space.

        Args:
            state: weights of B networks.
            images: (B, K, C, H, W).
            probes: one direction in weight space per network, name -> ``(B, *shape)``, for every
                parameter.

        Returns:
            (B, K, C, H, W).
        """
        networks = enumerate(zip(self._functions_and_weights(state), images, strict=True))
        return torch.stack(
            [
                f.mixed_derivative(weights, x, _state_at(probes, b))
                for b, ((f, weights), x) in networks
            ]
        )


class _Captured:
    """A function of tensors as a CUDA graph, which reads copies of its arguments.

    Args:
        function: function of as many tensors as ``arguments`` has.
        arguments: tensors that give shapes and types.
        device: device of all tensors.
    """

    def __init__(
        self, function: Callable[..., Tensor], arguments: Sequence[Tensor], device: torch.device
    ):
        self._held = [tensor.clone() for tensor in arguments]
        self._call = capture(lambda: function(*self._held), (), device)

    def __call__(self, arguments: Sequence[Tensor]) -> Tensor:
        for held, tensor in zip(self._held, arguments, strict=True):
            held.copy_(tensor)
        return self._call().clone()


def _norm(tensor: Tensor) -> float:
    """Return the norm of all entries, which may be complex numbers or integers."""
    dtype = torch.promote_types(tensor.dtype, torch.float32)
    return float(torch.linalg.vector_norm(tensor.to(dtype)))


def _state_at(state: State, index: int) -> State:
    """Return the state of one network: name -> (*shape)."""
    return {name: tensor[index] for name, tensor in state.items()}


class ThreadedEnsemble:
    """Threads that work on different networks at once, each with a duplicate of one ensemble.

    There are as many as the caller gave torch, each with a single thread of torch
    (`runtime.threads`). Results do not depend on their number. There is a single one on a GPU,
    where the factory has to be called for every network, which draws from torch's one global
    generator, and for networks that cannot be copied or share something with their copies
    (`Ensemble.can_duplicate`): operations of large networks then have all threads.

    Args:
        ensemble: ensemble that the threads draw from and evaluate.
    """

    def __init__(self, ensemble: Ensemble):
        alone = (
            ensemble.device.type != "cpu" or ensemble.evaluation == "vmap" or not ensemble.replays
        )
        self._ensemble, self._thread, threads = ensemble, threading.local(), num_threads()
        self.size = 1 if alone else threads
        with one_thread():
            if self.size > 1 and not ensemble.can_duplicate():
                logger.warning(
                    "one thread evaluates the networks: copies of a network share something, or have locks"
                )
                self.size = 1
        self._pool = ThreadPoolExecutor(self.size, initializer=self._start_thread)

    def _start_thread(self) -> None:
        torch.set_num_threads(1)  # of this thread of Python alone
        self._thread.ensemble = self._ensemble.duplicate()

    def map(
        self, function: Callable[[Ensemble, _Item], _Result], items: Iterable[_Item]
    ) -> list[_Result]:
        """Return ``function(ensemble, item)`` for each item, in order; the first error is raised."""
        if self.size == 1:
            with threads_for(LARGE if self._ensemble.block_size == 1 else 0):
                return [function(self._ensemble, item) for item in items]
        with one_thread():
            return list(self._pool.map(lambda item: function(self._thread.ensemble, item), items))
