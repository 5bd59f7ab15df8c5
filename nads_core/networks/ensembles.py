"""The networks that a factory returns, tested before many of them are drawn and evaluated."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import KW_ONLY, InitVar, dataclass
from functools import partial
from typing import NotRequired, Self, TypedDict

import torch
from torch import Tensor, nn

from nads_core.kernels import (
    exact_max_pooling,
    faster_layers,
    faster_max_pooling,
    require_kernels,
)
from nads_core.networks.architectures import Factory
from nads_core.networks.batches import NUM_TEST_INPUTS, evaluated, require_independent_inputs
from nads_core.networks.derivatives import Output, ScalarFunction, cast, require_real
from nads_core.networks.evaluator import (
    EVALUATIONS,
    NetworkEvaluator,
    default_evaluations,
    networks_of,
    prepared,
)
from nads_core.networks.initialisation import Initialisation
from nads_core.networks.modules import State, failure, recorded_calls, state_of
from nads_core.networks.readouts import NoReadout, Readout, disturbed, find_zero_init
from nads_core.networks.sampler import NetworkSampler
from nads_core.networks.self_check import (
    AuditError,
    different_parts,
    differing,
    foreign_generators,
    held_generators,
    not_reproduced,
    same_outputs,
)
from nads_core.runtime.arguments import (
    Shape,
    is_integer,
    plain,
    require_choice,
    require_integers,
    usable_device,
    usable_dtype,
)

_IDENTIFYING = 8  # networks by which a factory is recognised
_SCALES = (1.0, 1.0, 10.0, 100.0)  # of the inputs at which it is recognised
_REPETITIONS = 4  # evaluations of the first network, which must agree
_TO_EXPLAIN = 200  # evaluations of a network that differs, for the error


def require_image_shape(image_shape: Sequence[int]) -> Shape:
    """Return the shape of an image, a sequence or a row of features; raise a ValueError for
    anything else.
    """
    sizes = image_shape if isinstance(image_shape, Sequence) else ()
    if not 1 <= len(sizes) <= 3 or not all(is_integer(n) and n > 0 for n in sizes):
        raise ValueError(
            f"image_shape must be positive integers (C, H, W), (C, L) or (F,), got {image_shape!r}"
        )
    return tuple(map(int, sizes))


class Identity(TypedDict):
    """What identifies a factory and an estimator, from the first networks, in checkpoints.

    Args:
        replayed: whether the networks' weights are drawn together.
        outputs: f(x) of 8 networks at fixed inputs of several scales, (8, K).
        layers: description of each layer of the first network.
        vector: vector of the first network, (D,) in float64, by which an estimator is recognised.
    """

    replayed: bool
    outputs: Tensor
    layers: dict[str, str]
    vector: NotRequired[Tensor]


@dataclass(eq=False, repr=False)
class Ensemble(NetworkSampler, NetworkEvaluator):
    """The networks that a factory returns, drawn and evaluated many at a time, in eval mode.

    It is a sampler and an evaluator of these networks. Before it is either, it tests that f is a
    function of one input, and that weights and buffers are all that differs between two networks;
    `audit` repeats the last for other networks.

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
        evaluation: ``"loop"`` evaluates one network after another, ``"vmap"`` all at once. Both
            load the weights and buffers of other networks into one network, the template.
            ``"graph"`` evaluates as "loop" does, by a CUDA graph of one network into which the
            weights of each are copied (on a CPU by the same calls). By default vmap on a GPU, and a
            graph for networks of very many layers, if the network allows it: recurrent layers do
            not, nor a forward pass that reads values. ``"factory"`` evaluates each network as the
            factory builds it, one at a time: for factories whose networks differ in structure, in
            activations or in tensors that are plain attributes. Factories whose random numbers
            cannot be replayed are evaluated so too, and reject "vmap" and "graph".
        kernels: ``"torch"``, or ``"triton"``, where one launch convolves the inputs of all
            networks, if a convolution has few channels.

    Raises:
        TypeError: if the factory is not callable or does not return an `nn.Module`.
        ValueError: if the network rejects (K, C, H, W) inputs, returns something else than (K,) or
            (K, outputs), has the same weights at every call, or draws them from outside torch's
            random generator; if a second network's weights and buffers, put into the template, do
            not give that network's outputs; for a device or kernels that cannot run here.
    """

    factory: InitVar[Factory]
    image_shape: Shape
    _: KW_ONLY
    seed: int = 0
    device: InitVar[torch.device | str | None] = None
    dtype: InitVar[torch.dtype | str] = torch.float32
    output: Output = 0
    evaluation: InitVar[str | None] = None
    kernels: str = "torch"

    def __post_init__(
        self,
        factory: Factory,
        device: torch.device | str | None,
        dtype: torch.dtype | str,
        evaluation: str | None,
    ) -> None:
        if not callable(factory) or isinstance(factory, nn.Module):
            raise TypeError(
                "expected an Architecture or a function that returns a new network, "
                f"such as `lambda: MyNet()`, got {type(factory).__name__}"
            )
        self.image_shape = require_image_shape(self.image_shape)
        require_integers(
            least=0, seed=self.seed, output=0 if callable(self.output) else self.output
        )
        device, dtype = usable_device(device), usable_dtype(dtype)
        require_kernels(self.kernels, device)
        require_choice("evaluation", evaluation, (None, *EVALUATIONS))
        initialisation = Initialisation.of(factory, device, evaluation == "factory")
        from_factory = evaluation == "factory" or initialisation.steps is None
        if from_factory and (evaluation in ("vmap", "graph") or self.kernels != "torch"):
            raise ValueError(
                "the factory builds each of these networks, because evaluation is 'factory' or its "
                "random numbers cannot be replayed: "
                f"leave out evaluation={evaluation!r}, and kernels={self.kernels!r}"
            )
        choices: tuple[str, ...] = ("factory",)
        if not from_factory:
            network = initialisation.network
            choices = (evaluation,) if evaluation else default_evaluations(network, device)
        NetworkSampler.__init__(
            self,
            initialisation,
            plain(self.seed),
            device,
            dtype,
            from_factory=from_factory,
        )
        NetworkEvaluator.__init__(
            self,
            prepared(initialisation.network, device, dtype, choices[0] != "vmap", self.kernels),
            set() if from_factory else set(initialisation.varying),
            self.output,
            choices[0],
            self._built_network,
        )
        self._of_block: dict[int, list[nn.Module]] = {}  # the networks of the last block, if built
        self._inputs_at_once = NUM_TEST_INPUTS  # at which gradients are evaluated
        self._pools_exactly = False  # whether equal pixels of a max pooling have a gradient
        self._test_function()
        self.audit(0)
        for self.evaluation in choices:
            if not (obstacle := self._obstacle()):
                break
            if evaluation:
                raise ValueError(
                    f"evaluation={evaluation!r} cannot run this network ({obstacle}): "
                    "use evaluation='loop'"
                )

    def _prepared(self, network: nn.Module) -> nn.Module:
        network = prepared(network, self.device, self.dtype, self.evaluation != "vmap")
        if self._pools_exactly:
            exact_max_pooling(network)
        return network

    def _built_network(self, index: int) -> nn.Module:
        """Return a network as the factory builds it, with the others of its block."""
        block, row = divmod(index, self.block_size)
        if block not in self._of_block:
            built = self.initialisation.build(self.block_size, self.seed_of(block), index - row)
            self._of_block = {block: [self._prepared(network) for network in built]}
        return self._of_block[block][row]

    def _test_function(self) -> None:
        """Raise a ValueError unless f is a function of one input; find out whether it is linear in
        a last layer.
        """
        images, function = self.test_images(NUM_TEST_INPUTS), self.function
        first, second = networks_of(self.draw_some(2))
        with recorded_calls(self.template, nn.Linear) as calls:
            outputs = function.require_outputs(first, images[:2])
        self._choose_pooling(first, images[:2])
        if self.from_factory:
            function = function.of(self._built_network(1))
        active = disturbed(function.module, function.fixed | second)
        self._require_independent(function, active, images, "number 1")
        if self.from_factory or self.initialisation.steps is None:
            return
        try:
            readout = Readout.of(function, calls, outputs, self.initialisation.steps)
            readout.require_linear(function, first, images)
            readout.require_linear(function, active, images)
            self.readout = readout
        except NoReadout as reason:
            self.no_readout = str(reason)

    def _choose_pooling(self, weights: State, images: Tensor) -> None:
        """Let networks pool as PyTorch does if faster layers give the gradient to other pixels."""
        if not exact_max_pooling(self.template):
            return
        state = self.function.fixed | weights
        exact = evaluated(self.function, state, images).gradients
        faster_max_pooling(self.template)
        faster = evaluated(self.function, state, images).gradients
        self._pools_exactly = not same_outputs(faster, exact)
        if self._pools_exactly:
            exact_max_pooling(self.template)

    def require_independent_inputs(self, state: State, images: Tensor, at_once: int) -> None:
        """Raise a ValueError if f of a network depends on the other inputs of its batch.

        The ensemble has tested batches of a few inputs. Larger ones are tested here, those of the
        first network input by input, those of others by their halves, because a capacity can be
        exceeded in some networks alone.

        Args:
            state: weights of B networks.
            images: their inputs, (B, K, C, H, W), at which gradients are evaluated.
            at_once: number of inputs at which f is evaluated at once, K or more.
        """
        self._inputs_at_once = count = images.shape[1]
        networks = self.functions_and_weights(state)
        function, weights = next(networks)
        if at_once > max(count, NUM_TEST_INPUTS):
            more = self.test_images(at_once)
            self._require_independent(function, weights, more, "number 0", with_gradients=False)
        if count > NUM_TEST_INPUTS:
            self._require_independent(function, weights, images[0], "number 0")
            for index, (function, weights) in enumerate(networks, start=1):
                which = f"number {index}"
                self._require_independent(function, weights, images[index], which, by_half=True)

    def _require_independent(
        self, function: ScalarFunction, weights: State, images: Tensor, which: str, **how: bool
    ) -> None:
        """Raise a ValueError if f or its gradients at K inputs depend on each other, or are random;
        see `batches.require_independent_inputs`.
        """
        try:
            require_independent_inputs(function, weights, images, **how)
        except ValueError:
            self._explain(function.module, which)
            raise

    def _obstacle(self) -> str | None:
        """Return why these networks cannot be evaluated together or by a graph, for example a
        recurrent layer; None if they can.
        """
        if self.evaluation not in ("vmap", "graph"):
            return None
        state, images = self.draw_some(2), self.test_images(2, 2)
        try:
            self.outputs(state, images)
            self.input_gradients(state, images)
        except (RuntimeError, ValueError) as error:  # of the forward or of the backward pass
            return str(error).splitlines()[0]
        finally:
            self._graphs.clear()  # of shapes that will not come again
        return None

    def _reproduces(
        self, network: nn.Module, ours: ScalarFunction, weights: State, which: str
    ) -> bool:
        """Whether f of the template, with the weights of a network, has its values; and its
        gradients, where attributes differ, which may act in the backward pass alone.
        """
        images = self.test_images(2)
        same = partial(same_outputs, other_kernels=self.kernels == "triton")
        expected = self._own_values(network, images, which)
        theirs = self.function.of(network)
        with torch.no_grad():
            values = ours(weights, images)
            if not same(values, expected):
                return False
            # A small difference can be rounding, or one that a large constant hides
            if not torch.equal(values, expected):
                precise = ours.in_float64(weights, images, ours)
                if not same(precise, theirs.in_float64({}, images, theirs)):
                    return False
        if not differing(ours.module, network):
            return True
        gradients = evaluated(ours, ours.fixed | weights, images).gradients
        return same(gradients, evaluated(theirs, theirs.fixed, images).gradients)

    def _own_values(self, network: nn.Module, images: Tensor, which: str) -> Tensor:
        """Return f of a network as it is, (K,)."""
        try:
            values = self.function.own_values(network, images)
        except Exception as error:  # whatever the network's author chose to raise
            raise failure(f"the network {which} failed", error) from error
        require_real(values)
        return values

    def _require_fixed_outputs(self, network: nn.Module, which: str, repetitions: int) -> None:
        """Raise a ValueError if a network gives other outputs at some calls, or draws random
        numbers for them.
        """
        images, moves, held = self.test_images(2), [], held_generators(network)
        expected = self._own_values(network, images, which)
        same = True
        for _ in range(repetitions):
            before = foreign_generators(held)
            same &= same_outputs(self._own_values(network, images, which), expected)
            # Other threads of the caller can draw too, but not each time
            moves.append(foreign_generators(held) != before)
        if all(moves) or not same:
            raise ValueError(
                f"the network {which} gives another output at a second call: it draws random "
                "numbers, such as by Python's random or numpy, or changes its own state in eval "
                "mode. f(x) must be fixed: let forward do that only if self.training"
            )

    def _explain(self, network: nn.Module, which: str) -> None:
        """Raise a ValueError if a network whose values differ draws random numbers, or if other
        inputs before change what the networks of its factory return.
        """
        self._require_fixed_outputs(network, which, _TO_EXPLAIN)
        first, second = (
            self._prepared(self.initialisation.build(1, self.seed_of(0))[0]) for _ in range(2)
        )
        of_building, images = different_parts(first, second), self.test_images(2)
        self._own_values(second, 10 * images, which)
        changed = different_parts(first, second) - of_building
        one, other = (self._own_values(each, images, which) for each in (first, second))
        if changed and not same_outputs(one, other):
            raise ValueError(
                f"the network {which} depends on earlier inputs, which change "
                f"{', '.join(sorted(changed)[:4])} in eval mode. f(x) must be fixed: compute this "
                "at each call, change it only if self.training, or once in the factory"
            )

    def audit(self, index: int) -> None:
        """Compare a network of the factory with the one that this ensemble draws from the same
        seed.

        Replayed draws, and weights that are loaded into the template, are right only if the factory
        always builds what it built at first. The seed belongs to this network; the generators of
        all others stay as they are. Its outputs for half a batch have to be those for the whole,
        and captured graphs have to give what the template gives.

        Args:
            index: number of the network, from 0.

        Raises:
            AuditError: if outputs differ: the factory chooses something by what is not recorded, or
                an output depends on the other inputs of its batch, or the network keeps what a
                graph reads.
        """
        seed = self.audit_seed(index)
        try:
            (network,) = self.initialisation.build(1, seed, index)
            network = self._audit(network, index, seed)
            if self._inputs_at_once > NUM_TEST_INPUTS:
                images = self.test_images(self._inputs_at_once)
                function = self.function.of(network)
                self._require_independent(function, {}, images, f"number {index}", by_half=True)
            if not all(graph.is_right() for graph in self._graphs.values()):
                raise ValueError(
                    "a CUDA graph no longer gives the gradients of the network that it captured, "
                    "which replaces a tensor that it keeps between calls: use evaluation='loop'"
                )
        except ValueError as error:
            raise AuditError(str(error)) from error

    def _audit(self, network: nn.Module, index: int, seed: int) -> nn.Module:
        """Prepare a network, and compare it with what is drawn."""
        which, network = f"number {index}, of torch.manual_seed({seed}),", self._prepared(network)
        if self.from_factory:
            (again,) = self.initialisation.build(1, seed, index)
            function, weights = self.function.of(self._prepared(again)), State()
        else:
            function, weights = self.function, self._drawn_in_place(seed)
        if self._reproduces(network, function, weights, which):
            return network
        self._explain(network, which)
        if self.from_factory:
            raise ValueError(
                f"the factory builds two networks {which} of which one was expected: "
                "it draws from random numbers that torch does not seed, or counts its calls. "
                "Draw them with torch"
            )
        raise not_reproduced(which, differing(self.template, network))

    def _drawn_in_place(self, seed: int) -> State:
        """Return the weights of the network that the factory draws from a seed, in place of others
        that the template has just been evaluated with, without a new address or version: what it
        has kept by these is then of the others.
        """
        drawn, own = self.initialisation.drawn_alone(seed), state_of(self.template)
        weights = {name: own[name].detach().clone() for name in drawn}
        with torch.no_grad():
            self.function(weights, self.test_images(2))
        for name, tensor in self._converted(drawn).items():
            weights[name].data.copy_(tensor)
        return weights

    def identity(self) -> Identity:
        """Return what identifies the factory, from its first networks as it builds them, and audit
        these.
        """
        dtype = torch.promote_types(self.dtype, torch.float32)
        scales = torch.tensor(_SCALES, dtype=torch.float64).view(-1, *[1] * len(self.image_shape))
        generator = torch.Generator().manual_seed(0)
        images = scales * torch.randn(
            len(_SCALES), *self.image_shape, generator=generator, dtype=torch.float64
        )
        images = images.to(self.initialisation.origin, dtype)
        outputs, layers = [], dict[str, str]()
        for index in range(_IDENTIFYING):
            seed = self.audit_seed(index)
            (network,) = self.initialisation.build(1, seed, index)
            network._apply(partial(cast, dtype=dtype))
            which = f"number {index}, of torch.manual_seed({seed}),"
            values = self._own_values(network, images, which)
            outputs.append(values.double().cpu())
            layers = layers or {
                name: repr(layer)
                for name, layer in network.named_modules()
                if not [*layer.children()]
            }
            if not index:
                if self.device.type == images.device.type == "cpu" and self.evaluation != "vmap":
                    faster = self._own_values(faster_layers(network), images, which)
                    if not same_outputs(faster, values, other_kernels=True):
                        self._explain(self._prepared(network), which)
                        raise ValueError(
                            f"the network {which} gives other values with faster layers: does its "
                            "code depend on their classes? Use isinstance in place of type"
                        )
                self._require_fixed_outputs(self._prepared(network), which, _REPETITIONS)
            # All of small networks; the first is audited already
            if 0 < index < self.block_size:
                self._audit(network, index, seed)
        return {
            "replayed": not self.from_factory,
            "outputs": torch.stack(outputs),
            "layers": layers,
        }

    def test_images(self, *counts: int) -> Tensor:
        """Return the same random images (*counts, C, H, W) at every call."""
        generator = torch.Generator().manual_seed(0)
        return torch.randn(*counts, *self.image_shape, generator=generator).to(
            self.device, self.dtype
        )

    def clone(self) -> Self:
        """Return the same networks for another thread, with a template and random streams of its
        own.
        """
        other = copy.copy(self)
        other.function, other._graphs = copy.deepcopy(self.function), {}
        other.restart()
        return other

    def zero_init(self) -> dict[str, float]:
        """Return the parameters that silence a part of the network at initialisation, see
        `find_zero_init`.
        """
        state = self.function.fixed | next(networks_of(self.draw_some(1)))
        varying = self.initialisation.varying.keys()
        return find_zero_init(self.function, state, varying, self.test_images(1))

    def fixed_weights(self) -> tuple[int, list[str]]:
        """Return how many weights are the same in all networks, and the names of their parameters.

        Constants, such as zeros of a bias, do not count, nor do parameters that require no
        gradient.
        """
        names = self.trainable.keys() - self.initialisation.varying.keys()
        fixed = {
            name: tensor
            for name, tensor in self.function.fixed.items()
            if name in names and not bool((tensor == tensor.flatten()[:1]).all())
        }
        return sum(tensor.numel() for tensor in fixed.values()), [*fixed]
