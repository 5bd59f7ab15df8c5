"""`compute_nads`: the loop over the networks of an architecture, and what it needs before."""

from __future__ import annotations

import math
import os
import time
import warnings
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor, nn
from tqdm import tqdm

from nads_core.directions import checkpoint as checkpoints
from nads_core.directions.certainty import CERTAIN
from nads_core.directions.estimators import (
    DEFAULT_READOUTS,
    Estimator,
    MixedDerivative,
    SmoothedGradient,
    require_estimator,
)
from nads_core.directions.moments import DENSE_LIMIT
from nads_core.directions.nads import NADs
from nads_core.directions.second_moment import SecondMoment
from nads_core.directions.symmetry import require_symmetries
from nads_core.directions.workers import evaluated
from nads_core.kernels import require_kernels
from nads_core.networks.architectures import Architecture, Factory, architecture_named, imported
from nads_core.networks.checks import checked
from nads_core.networks.network import Network, Networks, Output, OutputAt
from nads_core.networks.stack import TOGETHER, Stacking
from nads_core.runtime.arguments import (
    Facts,
    Shape,
    plain,
    require_image_shape,
    require_integers,
    usable_device,
    usable_dtype,
)
from nads_core.runtime.interrupts import deferred_interrupt
from nads_core.runtime.provenance import NADS_VERSION, environment, function_identity
from nads_core.runtime.threads import one_thread

CHUNK = 8  # networks that a worker evaluates at a time on a CPU
_FIRST_LOOK = 64  # networks after which a stopping criterion is first measured
_GROWTH = 1.25  # between two looks

Symmetries = tuple[str, ...] | Literal["auto"]


def compute_nads(
    factory: Architecture | Factory | str | Sequence[nn.Module],
    image_shape: Shape,
    num_networks: int = 2_000,
    *,
    estimator: Estimator | None = None,
    symmetries: Symmetries = "auto",
    num_directions: int | None = None,
    num_certain: int | None = None,
    output: Output | str = 0,
    dtype: torch.dtype | str = "float32",
    equal_weights: bool = False,
    seed: int = 0,
    device: torch.device | str | None = None,
    workers: int | Executor | None = None,
    kernels: str = "torch",
    checkpoint: str | os.PathLike[str] | None = None,
    progress: bool = True,
) -> NADs:
    """Compute the NADs of an architecture: eigenvectors of the second moment of its networks' input
    gradients.

    Inputs of more than 4,096 entries are large: one readout, no symmetries unless they are named,
    directions of positive eigenvalues only, and all vectors are kept in memory; `repr` says so.

    Source: section 3.1 and eq. (4) of the paper; the estimators differ in the vector that a network
    contributes.

    Args:
        factory: one of our architectures, any function that returns a newly initialised network, or
            a name: "lenet", "torchvision:convnext_tiny", "timm:vit_tiny_patch16_224?img_size=32",
            "module:function". Or a sequence of given networks, for example trained ones, which are
            copied first; they have one readout, and no symmetries unless named.
        image_shape: shape of the input: (C, H, W) of images, (C, L) of sequences, (F,) of rows of a
            table.
        num_networks: number of networks to draw, N; with ``num_certain`` the largest number.
        estimator: `SmoothedGradient`, `PointGradient`, `Dipole` or `MixedDerivative`; by default
            ``SmoothedGradient(num_inputs=16, readouts="auto")``.
        symmetries: maps of the input that leave the distribution of networks unchanged, averaged
            over; "auto" for those that the architecture declares or, for a factory of images or
            sequences and at least 16 networks, that its networks do not contradict
            (`symmetry_tests`; the provenance has the results).
        num_directions: number of directions to return; all D by default.
        num_certain: number of directions; the run ends when as many have a certainty of 0.9.
        output: index of the network's output that is f(x); or a function of whatever the network
            returns for B inputs, which returns f of each, (B,); "module:function" names such a
            function, and "logits.0" is column 0 of ``y["logits"]``.
        dtype: type of the networks, or its name. float64 networks are also summed in float64.
        equal_weights: whether the vectors of each network are divided by the norm of their mean:
            the robust choice where the norms have heavy tails.
        seed: seed of every weight and input. Network i does not depend on how many are drawn.
        device: device of the networks; by default a GPU if there is one.
        workers: number of processes, or any `concurrent.futures.Executor`, such as a Dask client's;
            by default as many processes as cores on a CPU, if after the first networks at least 20
            seconds of work are left. The results do not depend on it.
        kernels: "triton" convolves the inputs of many networks by one kernel on a GPU, if a
            convolution has at most 32 channels.
        checkpoint: file that stores the state. An interrupted call resumes from it, with the same
            result as an uninterrupted one; a finished one is extended by a call with more networks.
        progress: whether to show a progress bar.

    Returns:
        Directions in order of preference, with eigenvalues and certainties.

    Raises:
        TypeError: if ``factory`` is none of these, or returns no network.
        ImportError: for the name of a model whose library is not installed.
        ValueError: for bad arguments, networks that `networks.checks` rejects, or a checkpoint that
            is damaged or of another computation.
        MemoryError: if the matrices of large inputs do not fit.
        KeyboardInterrupt: on Ctrl-C, after saving the state to ``checkpoint`` or, without one, to a
            file that the message names.

    Example:
        >>> from nads_core import LOGREG
        >>> nads = compute_nads(LOGREG, (1, 32, 32), 64, progress=False)
        >>> nads.certainty.max() < 0.9  # all are equivalent
        tensor(True)
    """
    run = Run.prepare(
        factory, image_shape, estimator, output, dtype, equal_weights, seed, device, kernels
    )
    if symmetries != "auto":
        require_symmetries(run.networks.image_shape, symmetries)
    limits = {"num_directions": num_directions, "num_certain": num_certain}
    require_integers(**{name: value for name, value in limits.items() if value is not None})
    moment = _accumulated(run, num_networks, num_certain, symmetries, workers, checkpoint, progress)
    return moment.nads(symmetries, num_directions)


def second_moment(
    factory: Architecture | Factory | str | Sequence[nn.Module],
    image_shape: Shape,
    num_networks: int = 2_000,
    *,
    estimator: Estimator | None = None,
    output: Output | str = 0,
    dtype: torch.dtype | str = "float32",
    equal_weights: bool = False,
    seed: int = 0,
    device: torch.device | str | None = None,
    workers: int | Executor | None = None,
    kernels: str = "torch",
    checkpoint: str | os.PathLike[str] | None = None,
    progress: bool = True,
) -> SecondMoment:
    """Compute the second moment C whose eigenvectors are the NADs, in groups of networks.

    Its ``energy`` of any direction has an interval, ``merge`` adds a run with another seed, and
    ``nads`` returns the eigenvectors. Arguments and errors are those of `compute_nads`.
    """
    run = Run.prepare(
        factory, image_shape, estimator, output, dtype, equal_weights, seed, device, kernels
    )
    return _accumulated(run, num_networks, None, "auto", workers, checkpoint, progress)


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
        require_integers(least=0, seed=seed, output=output if isinstance(output, int) else 0)
        if isinstance(output, str):
            named = imported if ":" in output else OutputAt
            output = int(output) if output.isdigit() else named(output)
        chosen = usable_device(device)
        require_kernels(kernels, chosen)
        if estimator is None:
            estimator = SmoothedGradient(readouts="auto")
        estimator = require_estimator(estimator)
        name, source, symmetries = _resolved(factory, image_shape)
        networks = Networks(source, image_shape, plain(seed), chosen, usable_dtype(dtype), output)
        with one_thread():
            networks, reason = checked(networks, estimator.num_inputs, estimator.antithetic)
            if isinstance(estimator, MixedDerivative):
                _require_second_derivatives(networks, estimator)
            stacking = Stacking.of(networks, kernels) if chosen.type == "cuda" else None
        if kernels == "triton" and stacking is None:
            raise ValueError("kernels='triton' needs networks that vmap evaluates: leave it out")
        large = math.prod(image_shape) > DENSE_LIMIT
        if large:
            symmetries = ()
        if getattr(estimator, "readouts", 1) == "auto":
            features = networks.readout.num_features if networks.readout else 0
            if networks.readout and features < DEFAULT_READOUTS:
                reason = f"its last layer reads {features} features"
            elif large:
                reason = "large inputs"
            count = 1 if reason else DEFAULT_READOUTS
            estimator = replace(estimator, readouts=count)  # type: ignore[type-var]
        elif estimator.readouts == 1:
            reason = ""
        elif reason or estimator.readouts > (
            networks.readout.num_features if networks.readout else 0
        ):
            reason = reason or "its last layer reads fewer features"
            raise ValueError(f"readouts={estimator.readouts} is not possible: {reason}")
        return cls(networks, estimator, name, symmetries, equal_weights, reason, stacking, kernels)

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
        if math.prod(shape) > DENSE_LIMIT:
            notes["large_inputs"] = True
        return SecondMoment(shape, description, self.symmetries, notes)


def _accumulated(
    run: Run,
    num_networks: int,
    num_certain: int | None,
    symmetries: Symmetries,
    workers: int | Executor | None,
    checkpoint: str | os.PathLike[str] | None,
    progress: bool,
) -> SecondMoment:
    """Return the second moment of the networks of a run: the Monte-Carlo loop."""
    require_integers(num_networks=num_networks)
    if isinstance(workers, int):
        require_integers(workers=workers)
    if isinstance(run.networks.source, tuple):
        num_networks = min(num_networks, len(run.networks.source))
    moment = run.new_moment()
    file = checkpoints.Checkpoint(checkpoint, run.vectors(range(1)))
    file.restore(moment)
    done = moment.num_networks
    if done > num_networks:
        raise ValueError(f"{file.path} holds {done:,} networks, more than {num_networks:,}")
    size = CHUNK if run.stacking is None else TOGETHER
    chunks = [range(i, min(i + size, num_networks)) for i in range(done, num_networks, size)]
    next_look, enough, started = (
        max(_FIRST_LOOK, math.ceil(_GROWTH * done)),
        False,
        time.monotonic(),
    )
    bar = tqdm(total=num_networks, initial=done, unit=" networks", disable=not progress)
    with bar, one_thread(), deferred_interrupt("finishing the networks in work ...") as interrupts:
        results = evaluated(run, chunks, workers, run.networks.device)
        try:
            for vectors in results:
                moment.add(vectors)
                bar.update(len(vectors))
                file.save_if_due(moment)
                if interrupts:
                    raise KeyboardInterrupt
                if num_certain and moment.num_networks >= next_look:
                    next_look = math.ceil(_GROWTH * moment.num_networks)
                    known = moment.eigenpairs(symmetries, None)[2]
                    if enough := bool((known.certainty >= CERTAIN).sum() >= num_certain):
                        break
        except KeyboardInterrupt:
            path = file.save(moment, fallback=f"interrupted-nads-{run.name}.npz")
            raise KeyboardInterrupt(
                f"stopped after {moment.num_networks:,} of {num_networks:,} networks; the same "
                f"call with checkpoint={str(path)!r} resumes"
            ) from None
        except BaseException:
            file.save(moment)
            raise
        finally:
            results.close()  # type: ignore[attr-defined]  # a generator
    if chunks:
        file.save(moment)
    if num_certain and not enough:
        known = moment.eigenpairs(symmetries, None)[2]
        count = int((known.certainty >= CERTAIN).sum())
        if count < num_certain:
            warnings.warn(
                f"num_certain {num_certain} not reached after {moment.num_networks:,} networks: "
                f"{count} directions are certain by {CERTAIN}",
                stacklevel=3,
            )
    moment.provenance |= environment(run.networks.device)
    moment.provenance["seconds"] = round(file.seconds + time.monotonic() - started, 1)
    return moment


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
        architecture = source
        return (
            source.name,
            lambda: architecture.build(channels, size),
            source.symmetries_at(size, channels),
        )
    if isinstance(source, Sequence) and source and all(isinstance(n, nn.Module) for n in source):
        return f"{len(source)} given networks", tuple(source), ()
    if not callable(source) or isinstance(source, nn.Module):
        raise TypeError(
            "expected an Architecture, a function that returns a new network, such as "
            f"`lambda: MyNet()`, or a list of networks, got {type(source).__name__}"
        )
    return getattr(source, "__qualname__", type(source).__name__), source, None


def _require_second_derivatives(networks: Networks, estimator: MixedDerivative) -> None:
    """Raise a ValueError if the mixed derivative of the first network is not that of a central
    difference of its gradients: an autograd.Function can have a wrong second derivative.
    """
    precise = replace(networks, dtype=torch.float64)
    network = Network(precise, 0)
    images = network.inputs(estimator.num_inputs, estimator.input_std)
    mixed = network.mixed_derivatives(images)
    parameters, probe = network.parameters(), network.probe()
    scale = max(float(p.detach().abs().max()) for p in parameters) if parameters else 1.0
    step, ends = 1e-6 * (scale or 1.0), []
    with torch.no_grad():
        for sign in (1, -2):
            for parameter, change in zip(parameters, probe, strict=True):
                parameter += sign * step * change
            ends.append(network.input_gradients(images))
    difference = (ends[0] - ends[1]) / (2 * step)
    error = float((difference - mixed).norm() / difference.norm().clamp(min=1e-12))
    if difference.norm() > 1e-9 and error > 0.05:
        raise ValueError(
            f"second derivatives of network 0 differ from a central difference by {error:.0%}: an "
            "autograd.Function in it keeps a value that is no argument; write its backward pass "
            "with operations on saved tensors, or use nc.SmoothedGradient()"
        )
