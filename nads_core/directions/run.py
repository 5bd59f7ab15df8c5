"""One run of `compute_nads`: what is computed for each network, and what identifies it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor, nn

from nads_core.directions.estimators import (
    DEFAULT_READOUTS,
    Estimator,
    MixedDerivative,
    SmoothedGradient,
    require_estimator,
)
from nads_core.directions.moments import is_large
from nads_core.directions.second_moment import SecondMoment
from nads_core.kernels import require_kernels
from nads_core.networks.architectures import Architecture, Factory, architecture_named, imported
from nads_core.networks.checks import checked
from nads_core.networks.network import Network, Networks, Output, OutputAt
from nads_core.networks.readouts import Readout
from nads_core.networks.stack import Stacking
from nads_core.runtime.arguments import (
    Facts,
    Shape,
    require_image_shape,
    require_integers,
    usable_device,
    usable_dtype,
)
from nads_core.runtime.provenance import NADS_VERSION, function_identity
from nads_core.runtime.threads import one_thread


@dataclass(frozen=True)
class Run:
    """What is computed for each network, and what identifies it.

    Args:
        networks: the networks.
        estimator: turns a network into vectors.
        name: name of the architecture.
        symmetries: symmetries that it declares; None if they have to be tested.
        equal_weights: whether vectors are divided by the norm of their mean.
        no_readout: why other last layers cannot be drawn, "" if they can.
        stacking: how networks are evaluated together on a GPU.
        kernels: kernels of that.
    """

    networks: Networks
    estimator: Estimator
    name: str
    symmetries: tuple[str, ...] | None
    equal_weights: bool = False
    no_readout: str = ""
    stacking: Stacking | None = None
    kernels: str = "torch"

    @classmethod
    def prepare(
        cls,
        factory: Architecture | Factory | str | Sequence[nn.Module],
        image_shape: Shape,
        estimator: Estimator | None,
        output: Output | str,
        dtype: torch.dtype | str,
        equal_weights: bool,
        seed: int,
        device: torch.device | str | None,
        kernels: str,
    ) -> Run:
        """Return the run of some arguments of `compute_nads`, once its first networks are checked."""
        image_shape = require_image_shape(image_shape)
        if isinstance(output, str):
            named = imported if ":" in output else OutputAt
            output = int(output) if output.isdigit() else named(output)
        require_integers(least=0, seed=seed, output=0 if callable(output) else output)
        output = output if callable(output) else int(output)
        chosen = usable_device(device)
        if kernels != "torch":
            require_kernels(kernels, chosen)
        if estimator is None:
            estimator = SmoothedGradient(readouts="auto")
        estimator = require_estimator(estimator)
        name, source, symmetries = _resolved(factory, image_shape)
        networks = Networks(source, image_shape, int(seed), chosen, usable_dtype(dtype), output)
        with one_thread():
            networks, reason = checked(networks, estimator.num_inputs, estimator.antithetic)
            if isinstance(estimator, MixedDerivative):
                _require_second_derivatives(networks, estimator)
            stacking = Stacking.of(networks, kernels) if chosen.type == "cuda" else None
        if kernels == "triton" and stacking is None:
            raise ValueError("kernels='triton' needs networks that vmap evaluates: leave it out")
        large = is_large(image_shape)
        if large:
            symmetries = ()
        estimator, reason = _with_readouts(estimator, networks.readout, reason, large)
        return cls(networks, estimator, name, symmetries, equal_weights, reason, stacking, kernels)

    @one_thread()
    def vectors(self, numbers: Sequence[int]) -> Tensor:
        """Return the vectors of networks, (n, J, R, D)."""
        found = []
        if self.stacking is None:
            for index in numbers:
                try:
                    found.append(self.estimator.vectors(Network(self.networks, index))[None])
                except Exception as error:  # whatever the network's author chose to raise
                    error.add_note(f"raised by network {index} of {self.name}")
                    raise
        else:
            for batch in self.stacking.batches(numbers):
                vectors = self.estimator.vectors(batch)
                found.append(vectors if vectors.dim() == 4 else vectors[None])
        all_vectors = torch.cat(found)
        finite = all_vectors.flatten(1).isfinite().all(1)
        if not finite.all():
            index = numbers[int((~finite).nonzero()[0])]
            raise ValueError(
                f"network {index} of {self.name} (seed {self.networks.seed}) returned NaN or "
                "infinite values: check its initialisation and divisions"
            )
        if self.equal_weights:
            norms = all_vectors.mean(1, keepdim=True).double().norm(dim=-1, keepdim=True)
            all_vectors = (all_vectors / norms.clamp(min=1e-300)).to(all_vectors)
        return all_vectors

    def new_moment(self) -> SecondMoment:
        """Return the second moment without networks."""
        networks = self.networks
        output, shape = networks.output, networks.image_shape
        description: Facts = {
            "architecture": self.name,
            "image_shape": list(shape),
            "estimator": repr(self.estimator),
            "readouts": self.estimator.readouts,
            "seed": networks.seed,
            "dtype": str(networks.dtype),
            "output": function_identity(output) if callable(output) else output,
            "equal_weights": self.equal_weights,
            "device": networks.device.type,
            "numbers": NADS_VERSION,
        }
        notes: Facts = {"num_inputs": self.estimator.num_inputs}
        if self.no_readout:
            notes["one_readout"] = self.no_readout
        if is_large(shape):
            notes["large_inputs"] = True
        return SecondMoment(shape, description, self.symmetries, notes)


def _resolved(
    source: Architecture | Factory | str | Sequence[nn.Module], image_shape: Shape
) -> tuple[str, Factory | tuple[nn.Module, ...], tuple[str, ...] | None]:
    """Return a name, the function that draws networks or given ones, and declared symmetries."""
    if isinstance(source, str):
        source = architecture_named(source, image_shape)
    if isinstance(source, Architecture):
        if len(image_shape) != 3 or image_shape[1] != image_shape[2]:
            raise ValueError(
                f"{source.name} takes square images (C, H, H), got image_shape {image_shape}"
            )
        channels, size = image_shape[:2]
        build = partial(source.build, channels, size)
        return source.name, build, source.symmetries_at(size, channels)
    if isinstance(source, Sequence):
        given = tuple(network for network in source if isinstance(network, nn.Module))
        if given and len(given) == len(source):
            return f"{len(given)} given networks", given, ()
    if not callable(source) or isinstance(source, nn.Module):
        raise TypeError(
            "expected an Architecture, a function that returns a new network, such as "
            f"`lambda: MyNet()`, or a list of networks, got {type(source).__name__}"
        )
    return getattr(source, "__qualname__", type(source).__name__), source, None


def _with_readouts(
    estimator: Estimator, readout: Readout | None, reason: str, large: bool
) -> tuple[Estimator, str]:
    """Return an estimator with a number of readouts, and why there is but one, "" if it was chosen.

    Args:
        estimator: the estimator, whose number can be "auto".
        readout: last layer of which others can be drawn.
        reason: why there is none.
        large: whether inputs are large.
    """
    wanted, features = estimator.readouts, readout.num_features if readout else 0
    if wanted == 1:
        return estimator, ""
    least = DEFAULT_READOUTS if wanted == "auto" else wanted
    if not reason and features < least:
        reason = f"its last layer reads {features} features"
    if wanted != "auto":
        if reason:
            raise ValueError(f"readouts={wanted} is not possible: {reason}")
        return estimator, ""
    if large and not reason:
        reason = "large inputs"
    readouts = 1 if reason else least
    return replace(estimator, readouts=readouts), reason  # type: ignore[type-var]  # a dataclass


def _require_second_derivatives(networks: Networks, estimator: MixedDerivative) -> None:
    """Raise a ValueError if no weight can move, or the mixed derivative of the first network is not
    that of a central difference of its gradients: an autograd.Function can have a wrong second
    derivative.
    """
    if not networks.varying:
        raise ValueError(
            "MixedDerivative moves the weights that are trainable and differ between networks, but "
            "there are none: set their requires_grad, or use nc.SmoothedGradient()"
        )
    precise = replace(networks, dtype=torch.float64)
    network = Network(precise, 0)
    images = network.inputs(estimator.num_inputs, estimator.input_std)
    mixed = network.mixed_derivatives(images)
    parameters, probe = network.parameters(), network.probe()
    scale = max((float(p.detach().abs().max()) for p in parameters), default=1.0)
    step, ends = 1e-6 * (scale or 1.0), []
    with torch.no_grad():
        for sign in (1, -2):
            for parameter, change in zip(parameters, probe, strict=True):
                parameter.add_(change, alpha=sign * step)
            ends.append(network.input_gradients(images))
    difference = (ends[0] - ends[1]) / (2 * step)
    error = float((difference - mixed).norm() / difference.norm().clamp(min=1e-12))
    if difference.norm() > 1e-9 and error > 0.05:
        raise ValueError(
            f"second derivatives of network 0 differ from a central difference by {error:.0%}: an "
            "autograd.Function in it keeps a value that is no argument; write its backward pass "
            "with operations on saved tensors, or use nc.SmoothedGradient()"
        )
