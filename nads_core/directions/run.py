"""One run of `compute_nads`: its networks, its estimator, and everything that identifies its
numbers.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import torch

from nads_core.directions.accumulation import Accumulation
from nads_core.directions.estimators import Estimator, SmoothedGradient, require_estimator
from nads_core.directions.evaluation import BatchEvaluator, require_gradients
from nads_core.directions.moments import SAMPLED_NETWORKS, DenseMoments, GramMoments, Moments
from nads_core.directions.options import ComputeOptions
from nads_core.directions.stopping import StoppingRule
from nads_core.directions.symmetry import require_symmetries
from nads_core.directions.symmetry_tests import FEWEST_NETWORKS
from nads_core.networks.architectures import SYMMETRIES, Architecture, Factory, architecture_named
from nads_core.networks.ensembles import Ensemble, Identity
from nads_core.networks.readouts import described, with_reinit_readout
from nads_core.runtime import distributed
from nads_core.runtime.arguments import Facts, Shape, require_integers
from nads_core.runtime.memory import require_memory
from nads_core.runtime.provenance import NADS_VERSION, function_identity

DEFAULT_READOUTS = 8
DENSE_LIMIT = 8192  # largest D whose D x D moments (2 x 0.5 GB) are summed

Symmetries = tuple[str, ...] | Literal["test"]


@dataclass(frozen=True)
class Configuration:
    """What is asked for, see `compute_nads`."""

    architecture: Architecture | Factory | str
    num_networks: int
    image_shape: Shape
    estimator: Estimator | None
    symmetries: Symmetries | None
    seed: int
    device: torch.device | str | None
    options: ComputeOptions

    def ensemble(self, factory: Factory) -> Ensemble:
        """Return the networks of a factory."""
        options = self.options
        drawn = partial(
            Ensemble,
            image_shape=self.image_shape,
            seed=self.seed,
            device=self.device,
            dtype=options.dtype,
            output=options.output,  # type: ignore[arg-type]  # the function that it names, by now
            evaluation=options.evaluation,
            kernels=options.kernels,
        )
        if options.reinit_readout:
            drawn(factory)  # validates the factory first, so that its errors are specific
            factory = with_reinit_readout(factory, self.image_shape)
        return drawn(factory)


@dataclass(frozen=True)
class Run:
    """What is computed, and what identifies it.

    Args:
        asked: what was asked for.
        evaluator: networks, and the estimator of each network's vectors.
        symmetries: symmetries of the networks' distribution, or "test".
        rule: stopping criterion, with what measuring it needs.
        scale: factor of the networks' vectors, see `require_gradients`.
        identity: outputs and weights of the first networks, and the vector of network 0, by which a
            file recognises its factory and estimator.
    """

    asked: Configuration
    evaluator: BatchEvaluator
    symmetries: Symmetries
    rule: StoppingRule
    scale: float
    identity: Identity

    @property
    def ensemble(self) -> Ensemble:
        """The networks."""
        return self.evaluator.ensemble

    @property
    def image_shape(self) -> Shape:
        """Shape of an input."""
        return self.ensemble.image_shape

    @property
    def description(self) -> Facts:
        """Everything that fixes the numbers: resuming requires an identical description."""
        ensemble, options = self.ensemble, self.asked.options
        output = (
            function_identity(ensemble.output) if callable(ensemble.output) else ensemble.output
        )
        optional = {
            "reinit_readout": options.reinit_readout,
            # Other evaluations give equal numbers
            "evaluation": "factory" if options.evaluation == "factory" else None,
            "equal_weights": options.equal_weights,
        }
        return {
            "architecture": self.evaluator.name,
            "image_shape": list(self.image_shape),
            "estimator": repr(self.evaluator.estimator),
            "seed": ensemble.seed,
            "dtype": str(ensemble.dtype),
            "output": output,
            "kernels": ensemble.kernels,
            "numbers": NADS_VERSION,
            "num_parameters": ensemble.num_parameters,
            "block_size": ensemble.block_size,
        } | {key: value for key, value in optional.items() if value}

    def new_state(self, checkpoint: Path | None) -> Accumulation:
        """Return the state of the run: that of the checkpoint, or without networks.

        Raises:
            ValueError: if the file is damaged or that of another run.
        """
        state = Accumulation(
            self.description,
            empty_moments(self.ensemble),
            checkpoint,
            measures_error=self.asked.options.tolerance is not None,
            device=self.ensemble.device.type,
            scale=distributed.broadcast(self.scale),  # processors differ in their last bits
        )
        self.evaluator.set_block_size(state.description["block_size"])
        state.identify(self.identity)
        return state

    def notes(self) -> Facts:
        """Return what the provenance says of the networks, and warn of what leaves the NADs
        incomplete.
        """
        ensemble, estimator, name = self.ensemble, self.evaluator.estimator, self.evaluator.name
        notes, warned = Facts(), []
        if self.asked.estimator is None and not ensemble.num_features:
            notes["one_readout"] = ensemble.no_readout
        if estimator.has_input_noise and estimator.num_contributions == 1:
            notes["input_noise"] = "not removed"
            warned.append(
                f"the noise of the inputs of {estimator} cannot be removed, and certainties are "
                "those of C + W: use num_inputs=4 or more, or 2 without antithetic"
            )
        if parts := ensemble.zero_init():
            notes["silent_parts"] = parts
            warned.append(
                f"parts of {name} are nearly silent at initialisation ({described(parts)}): these "
                "branches contribute almost nothing to the NADs"
            )
        count, names = ensemble.fixed_weights()
        if count > ensemble.num_parameters:
            notes["fixed_weights"] = count
            warned.append(
                f"only {ensemble.num_parameters:,} weights of {name} vary between networks; "
                f"{count:,} others do not ({', '.join(names[:3])}): are they drawn for each "
                "network?"
            )
        for message in warned:
            warnings.warn(message, stacklevel=3)
        return notes


def prepare(asked: Configuration) -> Run:
    """Return the run of a configuration, once its first networks have been tested."""
    image_shape, num_networks, options = asked.image_shape, asked.num_networks, asked.options
    dimension = math.prod(image_shape)
    if options.num_directions is not None and options.num_directions > dimension:
        raise ValueError(
            f"num_directions = {options.num_directions}, more than the {dimension} of {image_shape}"
        )
    name, factory, declared = _resolved(asked.architecture, image_shape)
    name = options.name or name
    symmetries = _symmetries(asked, declared)
    rule = StoppingRule(image_shape, options, () if symmetries == "test" else symmetries)
    ensemble = asked.ensemble(factory)
    estimator = asked.estimator
    estimator = require_estimator(_default_estimator(ensemble) if estimator is None else estimator)
    _require_memory(ensemble, num_networks, estimator, options.num_directions)
    identity = ensemble.identity()
    vector, scale = require_gradients(ensemble, estimator, name)
    identity["vector"] = vector.double().cpu()
    if options.equal_weights:
        scale = 1.0  # all vectors have about unit norm
    evaluator = BatchEvaluator(ensemble, estimator, name, options.batch_size, options.equal_weights)
    return Run(asked, evaluator, symmetries, rule, scale, identity)


def _resolved(
    architecture: Architecture | Factory | str, image_shape: Shape
) -> tuple[str, Factory, tuple[str, ...] | None]:
    """Return an architecture's name, the function that draws its networks, and the symmetries that
    it declares.
    """
    if isinstance(architecture, str):
        architecture = architecture_named(architecture, image_shape)
    if not isinstance(architecture, Architecture):
        return (
            getattr(architecture, "__qualname__", type(architecture).__name__),
            architecture,
            None,
        )
    if len(image_shape) != 3 or image_shape[1] != image_shape[2]:
        raise ValueError(
            f"{architecture.name} needs square images (C, H, H), got image_shape {image_shape}"
        )
    channels, size, _ = image_shape
    return (
        architecture.name,
        partial(architecture.build, channels, size, 1),
        architecture.symmetries_at(size, channels),
    )


def _symmetries(asked: Configuration, declared: tuple[str, ...] | None) -> Symmetries:
    """Return the symmetries to average over, "test" for those that are tested.

    By default those that an architecture declares, "test" for a factory; none for what is neither
    image nor sequence, or has too many pixels.

    Raises:
        ValueError: if second moments of these inputs cannot be averaged over them.
    """
    image_shape, dimension = asked.image_shape, math.prod(asked.image_shape)
    symmetries = asked.symmetries
    if symmetries is None:
        if dimension > DENSE_LIMIT or len(image_shape) not in (2, 3):
            return ()
        by_default: Symmetries = "test" if asked.num_networks >= FEWEST_NETWORKS else ()
        symmetries = by_default if declared is None else declared
    if symmetries == "test":
        require_integers(least=FEWEST_NETWORKS, num_networks=asked.num_networks)
        require_symmetries(image_shape, SYMMETRIES[:1])  # any one stands for those that are tested
    else:
        require_symmetries(image_shape, symmetries)
    if symmetries and dimension > DENSE_LIMIT:
        raise ValueError(
            f"symmetries need at most {DENSE_LIMIT:,} pixels, got {dimension:,}: omit them"
        )
    return symmetries


def _default_estimator(ensemble: Ensemble) -> SmoothedGradient:
    """Return 16 inputs and, where the network has such a last layer, 8 readouts, which share its
    forward pass.
    """
    few = math.prod(ensemble.image_shape) > DENSE_LIMIT or ensemble.num_features < DEFAULT_READOUTS
    return SmoothedGradient(readouts=1 if few else DEFAULT_READOUTS)


def empty_moments(ensemble: Ensemble) -> Moments:
    """Return the accumulator for the vectors of these networks, without any."""
    dimension = math.prod(ensemble.image_shape)
    # Sums are in float64, which MPS lacks
    device = ensemble.device if ensemble.device.type == "cuda" else "cpu"
    if dimension > DENSE_LIMIT:
        return GramMoments(dimension, device)
    return DenseMoments(dimension, device)


def _require_memory(
    ensemble: Ensemble, num_networks: int, estimator: Estimator, num_directions: int | None
) -> None:
    """Raise a MemoryError if the vectors of all networks will not fit, before hours are spent on
    them.
    """
    dimension = math.prod(ensemble.image_shape)
    if dimension <= DENSE_LIMIT:
        return  # D x D moments do not grow with the number of networks
    readouts = estimator.readouts
    vectors = num_networks * readouts
    directions = min(num_directions or vectors, vectors)
    # Two halves in float32 of each of the first vectors, and a copy for certificates
    halves = 4 * 4 * min(num_networks, SAMPLED_NETWORKS) * readouts * dimension
    require_memory(
        GramMoments.needed_bytes(dimension, vectors, directions, ensemble.dtype) + halves,
        empty_moments(ensemble).device,
        f"{num_networks:,} networks x {readouts} readouts at {dimension:,} pixels, and the "
        "directions, take up to",
        "ask for fewer networks (num_networks), directions (num_directions) or readouts",
    )
