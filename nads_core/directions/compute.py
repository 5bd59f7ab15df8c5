"""`compute_nads`: from an architecture to its directions, by way of estimator, moments and eigenvectors."""

import difflib
import inspect
import logging
import math
import os
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn

from nads_core.directions.accumulation import Accumulation, accumulate
from nads_core.directions.asymmetry import FEWEST_NETWORKS, symmetry_tests
from nads_core.directions.contributions import Evaluation, require_gradients
from nads_core.directions.covariance import DEBIASINGS
from nads_core.directions.eigenpairs import HEAVY, Eigenpairs, find_eigenpairs
from nads_core.directions.estimators import Estimator, SmoothedGradient, require_estimator
from nads_core.directions.moments import (
    DenseMoments,
    FirstNetworks,
    FusedMoments,
    GramMoments,
    Moments,
)
from nads_core.directions.nads import NADs
from nads_core.directions.stopping import StoppingCriterion, StoppingRule
from nads_core.directions.symmetry import require_symmetries
from nads_core.networks.architectures import SYMMETRIES, Architecture, architecture_named, imported
from nads_core.networks.ensembles import Ensemble, require_image_shape
from nads_core.networks.readouts import described, with_fresh_readout
from nads_core.runtime import distributed
from nads_core.runtime.arguments import (
    make_plain,
    plain,
    require_choice,
    require_integers,
    usable_dtype,
)
from nads_core.runtime.memory import require_memory
from nads_core.runtime.provenance import NADS_VERSION, environment, function_identity
from nads_core.runtime.threads import one_thread

logger = logging.getLogger(__name__)

DEFAULT_READOUTS = 8
_SILENT = 0.1  # share of networks without a response from which on a warning is issued
DENSE_LIMIT = 8192  # largest D whose D x D moments (2 x 0.5 GB) are summed


@dataclass(frozen=True)
class ComputeOptions:
    """Options of `compute_nads` that most runs leave as they are.

    Args:
        num_directions: number of directions to return; all D by default. With more than 8,192 pixels at most as many
            as are known to have a positive eigenvalue, and all vectors are kept: 2 numbers per network and pixel.
        debiasing: "shrink", "subtract" or "none", see `covariance.debias`; with more than 8,192 pixels "shrink"
            means "subtract".
        normalise: "network" divides the vectors of each network by the norm of their mean, g_ij / ||g_i||, so that the
            directions are those of (1/N) sum g g^T / ||g||^2, whose trace is the share of networks that respond to
            their input: 1 but for dead ones. All networks have equal weight: the robust
            choice where the norms have heavy tails, and a few networks would hold the second moment. By default the
            vectors stay as they are.
        output: index of the network's output that is f(x); or a function of whatever the network returns for B inputs,
            which returns f of each, (B,): ``lambda y: y["logits"][:, 0] - y["logits"][:, 1]``. The value of an input
            must not depend on the other inputs. "module:function" names such a function. With a function only
            ``readouts=1`` is possible, and threads call it at the same time. The provenance and checkpoints identify it
            by `provenance.function_identity`.
        name: name of the architecture in files, figures and messages; by default that of the architecture or factory,
            which for a lambda is "<lambda>".
        fresh_readout: whether to draw the weights of the last linear layer as `nn.Linear` does. For networks which
            begin with a last layer of zeros, as vision transformers do, and have no input gradient before that.
        evaluation: "loop" evaluates one network after another, "vmap" many at once (the default on
            a GPU), "graph" one after another by a CUDA graph; all load the weights and buffers of
            all networks into one network. "rebuild" evaluates every network as the factory builds
            it: slower, but right for networks that differ in more than weights and buffers, such as
            a random permutation in a plain attribute, a random activation or a random structure. It
            takes ``readouts=1`` only.
        dtype: type of the networks, or its name, such as "float64". Moments are summed in float64, by Triton
            2,048 vectors at a time in float32.
            ``torch.bfloat16`` halves the time of large networks, on CPUs with AVX-512 or AMX too, and draws the numbers
            of float32, rounded.
        batch_size: number of networks evaluated together on a GPU; fitted to its memory by default.
        kernels: "triton" draws weights and inputs and, unless ``dtype`` is float64, sums the moments by Triton kernels
            on a GPU; it draws other networks than "torch", which uses PyTorch's generators.
            The default is "torch": no device has timed the kernels yet (benchmarks/kernels.py does).
    """

    num_directions: int | None = None
    debiasing: str = "shrink"
    normalise: Literal["network"] | None = None
    output: int | str | Callable[[Any], Tensor] = 0
    name: str | None = None
    fresh_readout: bool = False
    evaluation: Literal["loop", "vmap", "graph", "rebuild"] | None = None
    dtype: torch.dtype = torch.float32
    batch_size: int | None = None
    kernels: str = "torch"

    def __post_init__(self) -> None:
        require_choice("debiasing", self.debiasing, DEBIASINGS)
        if self.normalise not in (None, "network"):
            raise ValueError(f"normalise must be 'network' or None, got {self.normalise!r}")
        counts = {"num_directions": self.num_directions, "batch_size": self.batch_size}
        require_integers(**{name: count for name, count in counts.items() if count is not None})
        make_plain(self)
        object.__setattr__(self, "dtype", usable_dtype(self.dtype))
        if isinstance(self.output, str) and ":" in self.output:
            object.__setattr__(self, "output", imported(self.output))


def compute_nads(
    architecture: Architecture | Callable[[], nn.Module] | str,
    num_networks: int = 2_000,
    *,
    estimator: Estimator | None = None,
    image_shape: tuple[int, ...] = (1, 32, 32),
    symmetries: tuple[str, ...] | Literal["test"] | None = None,
    stopping: StoppingCriterion | None = None,
    seed: int = 0,
    device: torch.device | str | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: bool = True,
    **options: Any,
) -> NADs:
    """Compute the NADs of an architecture: eigenvectors of the second moment of its networks' input gradients.

    Inside a process group of torch.distributed the processes share the networks, and all return the same NADs.

    Source: section 3.1 and eq. (4) of the paper; the estimators differ in the vector that a network contributes.

    Args:
        architecture: one of ours, any function that returns a newly initialised network, or a name: "lenet",
            "torchvision:convnext_tiny", "timm:vit_tiny_patch16_224?img_size=32", "module:function".
        num_networks: number of networks to draw, N; with a stopping criterion the largest number.
        estimator: `SmoothedGradient`, `PointGradient`, `Dipole` or `MixedDerivative`. The default is
            ``SmoothedGradient(num_inputs=16)``, with ``readouts=8`` if the network ends in a linear layer of at least 8
            features, drawn around 0, and the input has at most 8,192 pixels.
        image_shape: shape of the input: (C, H, W) of images, (C, L) of sequences, (F,) of rows of a table.
        symmetries: maps of the input that leave the distribution of networks unchanged, averaged over;
            by default those that the architecture declares, "test" for a factory and images, none for fewer than 16
            networks or more than 8,192 pixels. With "test" those that the networks do not contradict (`asymmetry`); the
            provenance has the results. A stopping criterion is then checked without them.
        stopping: criterion that ends the run before ``num_networks``; `StoppingCriterion`. Its fields (``tolerance``,
            ``num_leading``, ``num_certain``) are accepted as keywords too. The provenance has the final value, and a
            warning is issued if it does not meet the criterion.
        seed: seed of every weight and input. Network i does not depend on how many are drawn, nor on ``batch_size``.
        device: device of the networks; by default a GPU if there is one.
        checkpoint: file that stores the state, in whose name ``{run}`` stands for a short fingerprint of everything
            that determines the numbers. An interrupted call resumes from it, with the same result as an
            uninterrupted one; a finished one is extended by a call with more networks.
        progress: whether to show a progress bar.
        **options: fields of `ComputeOptions`, by keyword: ``num_directions``, ``debiasing``, ``dtype`` and others.

    Returns:
        Directions in order of preference, with their eigenvalues: those of the estimate of C, without the noise of the
        inputs unless ``debiasing`` is "none". The provenance holds the effective number of
        networks, ``(sum |g|^2)^2 / sum |g|^4``. Where it is below 0.15 ``num_networks``, a few networks hold the
        second moment: a warning is issued, and certainties are those that the effective number supports. Eigenvalues
        are in float32; in float64 where the mean square of the first gradients is outside of [1e-24, 1e24].

    Raises:
        TypeError: if ``architecture`` is neither an Architecture nor a function that returns a module, or ``stopping``
            is no `StoppingCriterion`.
        ImportError: for the name of a model whose library is not installed.
        ValueError: for bad arguments, a network that rejects its input, returns NaN or ignores its input, a factory
            that returns the same weights every time or fails, networks that differ in more than their weights and
            buffers (the message names the network and the difference), random numbers that torch does not seed, or a
            checkpoint that is damaged, of another computation or of a factory that was edited.
        MemoryError: at once, if more than 8,192 pixels and so many networks need more memory than is free
            (`GramMoments.needed_bytes`).
        KeyboardInterrupt: on Ctrl-C, after saving the state to ``checkpoint`` or, without one, to a file that the
            message names.

    Example:
        >>> from nads_core import LOGREG
        >>> compute_nads(LOGREG, 64, progress=False)
        NADs(logreg, 1024 directions of (1, 32, 32), 64 networks (effective: 64), 0 certain above 0.9)
    """
    require_integers(num_networks=num_networks)
    if (default := torch.get_default_dtype()) not in (torch.float32, torch.float64):
        remedy = "torch.set_default_dtype(torch.float32), and dtype= for the networks"
        raise ValueError(
            f"certainties are not computed in the default type {default}: call {remedy}"
        )
    num_networks, image_shape = plain(num_networks), require_image_shape(image_shape)
    stopping, settings = _settings(stopping, options, image_shape)
    name, factory, declared = _resolved(architecture, image_shape)
    name = settings.name or name
    if symmetries is None:
        symmetries = _default_symmetries(declared, image_shape, num_networks)
    _require_averageable(symmetries, image_shape, num_networks)
    averaged = () if symmetries == "test" else symmetries  # none as long as they are not tested
    with one_thread():
        ensemble = _ensemble(factory, image_shape, seed, device, settings)
        recorded = _one_readout(ensemble) if estimator is None else {}
        estimator = require_estimator(
            _default_estimator(ensemble) if estimator is None else estimator
        )
        moments = empty_moments(ensemble)
        if isinstance(moments, GramMoments):
            _require_memory(moments, num_networks, ensemble.block_size, estimator, settings)

        identity = ensemble.identity()
        vector, scale = require_gradients(ensemble, estimator, name)
        path = Path(checkpoint).expanduser() if checkpoint else None
        state = Accumulation(
            _description(name, ensemble, estimator, settings), moments, path,
            stopping.tolerance is not None, "any" if ensemble.keyed else ensemble.device.type,
            distributed.broadcast(scale),  # processors differ in their last bits
        )  # fmt: skip
        state.identify(identity, vector)
        recorded |= _zero_init(ensemble, name) | _fixed_weights(ensemble, name)
        rule = StoppingRule(stopping, tuple(image_shape), settings.debiasing, averaged)
        normalise = settings.normalise is not None
        evaluation = Evaluation(
            ensemble, estimator, name, settings.batch_size, state.scale, normalise
        )
        num_networks = accumulate(evaluation, state, num_networks, rule, progress)

        if symmetries == "test":
            averaged, recorded["symmetry_tests"] = _tested(state, image_shape)
        pairs = find_eigenpairs(
            state.total(), state.first_networks, settings.num_directions or math.prod(image_shape), image_shape,
            settings.debiasing, averaged, effective_share=state.norms.effective_share,
        )  # fmt: skip
        recorded |= {"num_networks": num_networks, "symmetries": list(averaged)}
        recorded |= rule.final_value(state.groups, pairs, num_networks) | _effective(
            state, num_networks, name
        )
        return _nads(state, ensemble, pairs, recorded)


def _settings(
    stopping: StoppingCriterion | None, options: dict[str, Any], image_shape: tuple[int, ...]
) -> tuple[StoppingCriterion, ComputeOptions]:
    """Return the stopping criterion and the other options, from objects and keywords, checked."""
    if not isinstance(stopping, StoppingCriterion | None):
        raise TypeError(
            f"stopping must be a StoppingCriterion(tolerance=0.05), for example, got {stopping!r}"
        )
    criteria = {
        name: options.pop(name)
        for name in ("tolerance", "num_leading", "num_certain")
        if name in options
    }
    if stopping is not None and criteria:
        raise ValueError(f"stopping and {', '.join(criteria)} are given: leave one of them out")
    if unknown := options.keys() - ComputeOptions.__dataclass_fields__.keys():
        names = [*inspect.signature(compute_nads).parameters, *ComputeOptions.__dataclass_fields__]
        names.remove("options")
        close = [match for name in unknown for match in difflib.get_close_matches(name, names, n=1)]
        meant = f" (did you mean {', '.join(close)}?)" if close else ""
        raise TypeError(
            f"unknown options {', '.join(sorted(unknown))}{meant}: options of "
            "gradients are fields of the estimator, such as estimator=SmoothedGradient(num_inputs=16); others are "
            f"{', '.join(names)}"
        )
    settings, dimension = ComputeOptions(**options), math.prod(image_shape)
    if settings.num_directions is not None and settings.num_directions > dimension:
        raise ValueError(
            f"num_directions = {settings.num_directions} is more than the {dimension} of {image_shape}"
        )
    stopping = stopping or StoppingCriterion(**criteria)
    return stopping.resolved(dimension, settings.num_directions or dimension), settings


def _ensemble(
    factory: Callable[[], nn.Module],
    image_shape: tuple[int, ...],
    seed: int,
    device: Any,
    settings: ComputeOptions,
) -> Ensemble:
    """Return the networks."""
    options: dict[str, Any] = {
        "seed": seed,
        "output": settings.output,
        "evaluation": settings.evaluation,
    }
    if settings.fresh_readout:
        # Validates the factory first, so that its errors are specific
        Ensemble(factory, image_shape, **options)
        factory = with_fresh_readout(factory, image_shape)
    return Ensemble(
        factory,
        image_shape,
        device=device,
        dtype=settings.dtype,
        kernels=settings.kernels,
        **options,
    )


def _nads(
    state: Accumulation, ensemble: Ensemble, pairs: Eigenpairs, recorded: dict[str, Any]
) -> NADs:
    """Return the eigenpairs in the scale of the gradients, with how they were computed."""
    description = {key: value for key, value in state.description.items() if key != "groups"}
    provenance = description | {
        "debiasing": pairs.debiasing, "seconds": round(state.elapsed(), 1), "drawn_on": state.devices,
        **environment(ensemble.device), **recorded,
    }  # fmt: skip
    # (n, D) -> (n, *image_shape)
    directions = with_signs(pairs.directions).reshape(-1, *ensemble.image_shape)
    eigenvalues, uncertainty = pairs.eigenvalues.cpu().float(), pairs.uncertainty
    if state.scale != 1 and "normalise" not in description:
        unit = state.scale**-2
        eigenvalues = pairs.eigenvalues.cpu().double() * unit
        uncertainty = replace(
            uncertainty, eigenvalue_std=uncertainty.eigenvalue_std.double() * unit
        )
    return NADs(directions.float().cpu(), eigenvalues, provenance, uncertainty)


def _resolved(
    architecture: Architecture | Callable[[], nn.Module] | str, image_shape: tuple[int, ...]
) -> tuple[str, Callable[[], nn.Module], tuple[str, ...] | None]:
    """Return an architecture's name, the function that draws its networks, and the symmetries that it declares."""
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


def _default_symmetries(
    declared: tuple[str, ...] | None, image_shape: tuple[int, ...], num_networks: int
) -> tuple[str, ...] | Literal["test"]:
    """Return declared symmetries, or "test" for a factory; none for what is no image, or has too many pixels."""
    if math.prod(image_shape) > DENSE_LIMIT or len(image_shape) != 3:
        return ()
    by_tests: Literal["test"] | tuple[()] = "test" if num_networks >= FEWEST_NETWORKS else ()
    return by_tests if declared is None else declared


def _default_estimator(ensemble: Ensemble) -> SmoothedGradient:
    """Return 16 inputs and, where the network has such a last layer, 8 readouts, which share its forward pass."""
    few = math.prod(ensemble.image_shape) > DENSE_LIMIT or ensemble.num_features < DEFAULT_READOUTS
    return SmoothedGradient(readouts=1 if few else DEFAULT_READOUTS)


def _require_averageable(
    symmetries: tuple[str, ...] | Literal["test"], image_shape: tuple[int, ...], num_networks: int
) -> None:
    """Raise a ValueError unless second moments of these inputs can be averaged over these symmetries."""
    if symmetries == "test":
        require_integers(least=FEWEST_NETWORKS, num_networks=num_networks)
        symmetries = SYMMETRIES[:1]  # any one stands for those that are tested
    require_symmetries(image_shape, symmetries)
    if symmetries and math.prod(image_shape) > DENSE_LIMIT:
        raise ValueError(
            f"symmetries need at most {DENSE_LIMIT:,} pixels, got {math.prod(image_shape):,}: omit them"
        )


def empty_moments(ensemble: Ensemble) -> Moments:
    """Return the accumulator for the vectors of these networks, without any."""
    dimension = math.prod(ensemble.image_shape)
    # Sums are in float64, which MPS lacks
    device = ensemble.device if ensemble.device.type == "cuda" else "cpu"
    if dimension > DENSE_LIMIT:
        return GramMoments(dimension, device)
    fused = ensemble.kernels != "torch" and ensemble.dtype != torch.float64
    return (FusedMoments if fused else DenseMoments)(dimension, device)


def _require_memory(
    moments: GramMoments,
    num_networks: int,
    block_size: int,
    estimator: Estimator,
    settings: ComputeOptions,
) -> None:
    """Raise a MemoryError if the vectors of all networks will not fit, before hours are spent on them."""
    readouts, dimension = estimator.readouts, moments.dimension
    count = num_networks * readouts
    needed = moments.needed_bytes(
        dimension, count, min(settings.num_directions or count, count), settings.dtype
    )
    block = (
        min(num_networks, block_size)
        * readouts
        * estimator.num_contributions
        * dimension
        * settings.dtype.itemsize
    )
    require_memory(
        needed + block + FirstNetworks.needed_bytes(dimension, num_networks, readouts),
        moments.device,
        f"{num_networks:,} networks x {readouts} readouts at {dimension:,} pixels, and the directions, take up to",
        "ask for fewer networks (num_networks), directions (num_directions) or readouts",
    )


def _description(
    name: str, ensemble: Ensemble, estimator: Estimator, settings: ComputeOptions
) -> dict[str, Any]:
    """Return everything that fixes the numbers of a run: resuming requires an identical description."""
    output = function_identity(ensemble.output) if callable(ensemble.output) else ensemble.output
    description = {
        "architecture": name, "image_shape": list(ensemble.image_shape), "estimator": repr(estimator),
        "seed": ensemble.seed, "dtype": str(ensemble.dtype), "output": output, "kernels": ensemble.kernels,
        "numbers": NADS_VERSION, "num_parameters": ensemble.num_parameters, "block_size": ensemble.block_size,
    }  # fmt: skip
    # Other evaluations give equal numbers
    rebuild = "rebuild" if settings.evaluation == "rebuild" else None
    optional = {
        "fresh_readout": settings.fresh_readout,
        "evaluation": rebuild,
        "normalise": settings.normalise,
    }
    return description | {key: value for key, value in optional.items() if value}


def _zero_init(ensemble: Ensemble, name: str) -> dict[str, Any]:
    """Return, and warn of, branches that begin at or near zero: the NADs describe the rest of the network."""
    if not (parts := ensemble.zero_init()):
        return {}
    message = f"parts of {name} are nearly silent at initialisation ({described(parts)}): these branches contribute"
    warnings.warn(f"{message} almost nothing to the NADs", stacklevel=3)
    return {"silent_parts": parts}


def _one_readout(ensemble: Ensemble) -> dict[str, Any]:
    """Return why the default estimator has one readout, where it is the network that admits no more."""
    if ensemble.num_features:
        return {}
    logger.info("one last layer is drawn for each network: %s", ensemble.no_readout)
    return {"one_readout": ensemble.no_readout}


def _fixed_weights(ensemble: Ensemble, name: str) -> dict[str, Any]:
    """Return, and warn of, weights that are the same in all networks, where few others vary."""
    count, names = ensemble.fixed_weights()
    if count <= ensemble.num_parameters:
        return {}
    message = f"only {ensemble.num_parameters:,} weights of {name} vary between networks; {count:,} others do not"
    warnings.warn(
        f"{message} ({', '.join(names[:3])}): are they drawn for each network?", stacklevel=3
    )
    return {"fixed_weights": count}


def _effective(state: Accumulation, num_networks: int, name: str) -> dict[str, Any]:
    """Return the effective number of networks, and warn if a few hold the second moment."""
    number = state.norms.effective_share * num_networks
    if state.norms.effective_share < HEAVY:
        message = f"a few networks hold the second moment of {name}: {num_networks:,} networks count as {number:.2g}"
        remedy = "more networks help little; normalise='network' gives all equal weight"
        warnings.warn(f"{message}, also for the certainties: {remedy}", stacklevel=3)
    halves = state.first_networks.halves()  # (n, R, 2, D)
    silent = 1 - float(halves.flatten(1).any(1).float().mean())
    if silent > _SILENT:
        message = f"{silent:.0%} of the networks of {name} do not respond to their input: they count as zero"
        warnings.warn(f"{message}, and the NADs describe the others", stacklevel=3)
    share = {"silent_networks": round(silent, 4)} if silent else {}
    return {"effective_networks": float(f"{number:.4g}")} | share


def _tested(
    state: Accumulation, image_shape: tuple[int, ...]
) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Return the symmetries that the networks do not contradict, and the results of all tests."""
    second_moment, noise_moment = state.total().moments()  # type: ignore[union-attr]  # dense, as tests need
    tests = symmetry_tests(
        second_moment - noise_moment, state.self_terms, int(state.norms.count),
        state.first_networks.halves(), image_shape,
    )  # fmt: skip
    accepted = [symmetry for symmetry, test in tests.items() if test.holds]
    if "transpose" in accepted and len({"flip_rows", "flip_columns"} & set(accepted)) == 1:
        # Its group with one flip has the other flip too, which was rejected
        accepted.remove("transpose")
    # JSON has no infinity
    results = {
        symmetry: asdict(test)
        | {"limit": round(test.limit, 3) if math.isfinite(test.limit) else None}
        for symmetry, test in tests.items()
    }
    return tuple(accepted), results


def with_signs(directions: Tensor) -> Tensor:
    """Make the first of the largest entries positive, in place: an antisymmetric one has two, equal up to round-off."""
    for rows in directions.split(64):  # (64, D): so that no second copy of all is made
        magnitudes = rows.abs()
        largest = (
            (magnitudes > 0.999 * magnitudes.amax(dim=1, keepdim=True))
            .int()
            .argmax(dim=1, keepdim=True)
        )
        rows *= rows.gather(1, largest).sign()
    return directions
