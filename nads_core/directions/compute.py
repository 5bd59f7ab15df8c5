"""`compute_nads`: from an architecture to its directions, by way of estimator, moments and eigenvectors."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn

from nads_core.directions.accumulation import Accumulation, accumulate
from nads_core.directions.asymmetry import FEWEST_NETWORKS, symmetry_tests
from nads_core.directions.covariance import require_debiasing
from nads_core.directions.eigenpairs import HEAVY, Eigenpairs, find_eigenpairs
from nads_core.directions.estimators import Estimator, SmoothedGradient, with_defaults
from nads_core.directions.evaluation import require_gradients
from nads_core.directions.first_networks import FirstNetworks
from nads_core.directions.moments import DenseMoments, FusedMoments, GramMoments
from nads_core.directions.nads import NADs
from nads_core.directions.stopping import Certain, Goal, Tolerance
from nads_core.directions.symmetry import require_symmetries
from nads_core.networks.architectures import SYMMETRIES, Architecture
from nads_core.networks.ensembles import Ensemble, require_image_shape
from nads_core.networks.named import architecture_named
from nads_core.networks.zero_init import described, find_zero_init, with_fresh_readout
from nads_core.runtime import distributed
from nads_core.runtime.arguments import require_integers
from nads_core.runtime.memory import require_memory
from nads_core.runtime.provenance import RNG_VERSION, environment

DENSE_LIMIT = 8192  # largest D whose D x D moments (2 x 0.5 GB) are kept


def compute_nads(
    architecture: Architecture | Callable[[], nn.Module] | str,
    num_networks: int = 2_000,
    *,
    estimator: Estimator | None = None,
    image_shape: tuple[int, ...] = (1, 32, 32),
    num_directions: int | None = None,
    debiasing: str = "shrink",
    normalise: Literal["network"] | None = None,
    symmetries: tuple[str, ...] | Literal["test"] | None = None,
    output: int = 0,
    fresh_readout: bool = False,
    seed: int = 0,
    evaluation: Literal["loop", "vmap", "rebuild"] | None = None,
    device: torch.device | str | None = None,
    dtype: torch.dtype = torch.float32,
    batch_size: int | None = None,
    kernels: str = "torch",
    tolerance: float | None = None,
    num_leading: int | None = None,
    num_certain: int | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: bool = True,
) -> NADs:
    """Compute the NADs of an architecture: eigenvectors of the second moment of its networks' input gradients.

    Inside a process group of torch.distributed the processes share the networks, and all return the same NADs.

    Source: section 3.1 and eq. (4) of the paper; the estimators differ in the vector that a network contributes.

    Args:
        architecture: one of ours, any function that returns a newly initialised network, or a name: "lenet",
            "torchvision:convnext_tiny", "module:function".
        num_networks: how many networks to draw, N; with a ``tolerance``, how many at most.
        estimator: `SmoothedGradient` by default; or `PointGradient`, `Dipole`, `MixedDerivative`.
        image_shape: of the input: (C, H, W) of images, (C, L) of sequences, (F,) of rows of a table.
        num_directions: how many directions to return; all D by default. With more than 8,192 pixels at most as many
            as are known to have a positive eigenvalue, and all vectors are kept: 2 numbers a network and pixel.
        debiasing: "shrink", "subtract" or "none", see `covariance.debias`; with more than 8,192 pixels "shrink"
            means "subtract".
        normalise: "network" divides the vectors of each network by the norm of their mean, g_ij / ||g_i||, so that the
            directions are those of (1/N) sum g g^T / ||g||^2, of trace 1. All networks count alike: this is the robust
            choice where the norms have heavy tails, and a few networks would hold the second moment. By default the
            vectors stay as they are.
        symmetries: maps of the input that leave the distribution of networks unchanged, averaged over;
            by default those that the architecture declares, none for a factory or for more than 8,192 pixels. With
            "test" those that the first 512 networks do not contradict (`asymmetry`); the provenance has the results.
            A goal (``tolerance``, ``num_certain``) is then judged without them.
        output: which output of the network is f(x).
        fresh_readout: draw the weights of the last linear layer as `nn.Linear` does. For networks which begin with
            a last layer of zeros, as vision transformers do, and have no input gradient before it has been drawn.
        seed: fixes every weight and input. Network i does not depend on how many are drawn, nor on ``batch_size``.
        evaluation: "loop" and "vmap" evaluate one network with the weights and buffers of the others, one after another
            or, by default on a GPU, many at once. "rebuild" evaluates every network as the factory builds it: slower,
            but right for networks that differ in more than weights and buffers, such as a random permutation kept as a
            plain attribute, a random activation or a random structure. It takes no ``readouts`` beyond one.
        device: by default a GPU if there is one.
        dtype: of the networks; moments are summed in float64, by Triton 2,048 vectors at a time in float32.
            ``torch.bfloat16`` halves the time of large networks, on CPUs with AVX-512 or AMX too, and draws the numbers
            of float32, rounded.
        batch_size: networks evaluated together on a GPU; fitted to its memory by default.
        kernels: "triton" draws weights and inputs and, unless ``dtype`` is float64, sums the moments by Triton kernels
            on a GPU; it draws other networks than "torch", which uses PyTorch's generators.
            The default is "torch": no device has timed the kernels yet (benchmarks/kernels.py does).
        tolerance: stop when the first ``num_leading`` directions are known so well: when 1 - overlap with their exact
            subspace is below it, at the upper end of its interval (`Accumulation.error`: from halves of the networks).
            The provenance says what was reached. Where eigenvalues ``num_leading`` and the next are nearly equal, no
            number of networks tells them apart: name a number with a gap after it.
        num_leading: number of directions that ``tolerance`` is about; 10 by default, or all but one of fewer.
        num_certain: stop instead when so many directions are certain by 0.9, each of them (`NADs.certainty`).
        checkpoint: a file in which to keep the state: an interrupted call goes on from it, with the same result as an
            uninterrupted one; a finished one is extended by a call with more networks.
        progress: show a progress bar.

    Returns:
        Directions in order of preference, with their eigenvalues. The provenance holds the effective number of
        networks, (sum |g|^2)^2 / sum |g|^4. Where it is below 0.15 ``num_networks``, a few networks hold the
        second moment: a warning says so, and certainties are those that the effective number supports. Eigenvalues are
        in float32; in float64 where the mean square of the first gradients lies outside of [1e-12, 1e12].

    Raises:
        TypeError: if ``architecture`` is neither an Architecture nor a function that returns a module.
        ValueError: for bad arguments, a network that rejects its input, returns NaN or ignores its input, a factory
            that returns the same weights every time, networks that differ in more than their weights and buffers
            (the message names the difference), or a checkpoint that is damaged or of another computation.
        MemoryError: at once, if more than 8,192 pixels and so many networks need more memory than is free
            (`GramMoments.needed_bytes`).
        KeyboardInterrupt: on Ctrl-C, after saving the state to ``checkpoint`` or, without one, to a file that the
            message names.

    Example:
        >>> from nads_core import LOGREG
        >>> compute_nads(LOGREG, 64, progress=False)
        NADs(logreg, 1024 directions of (1, 32, 32), 64 networks (effective: 63), 0 certain above 0.9)
    """
    if normalise not in (None, "network"):
        raise ValueError(f"normalise must be 'network' or None, got {normalise!r}")
    counts = {"num_directions": num_directions, "batch_size": batch_size, "num_leading": num_leading}
    counts["num_certain"] = num_certain
    require_integers(num_networks=num_networks, **{n: count for n, count in counts.items() if count is not None})
    require_image_shape(image_shape)
    dimension = math.prod(image_shape)
    _require_directions(num_directions, image_shape)
    num_leading = _fitting_leading(num_leading, tolerance, dimension)
    _require_certain(num_certain, tolerance, num_directions or dimension)
    tested = symmetries == "test"
    if symmetries == "test":
        require_integers(least=FEWEST_NETWORKS, num_networks=num_networks)
        _require_averaging(debiasing, SYMMETRIES[:1], image_shape)
        symmetries = ()
    _require_averaging(debiasing, symmetries or (), image_shape)
    if isinstance(architecture, str):
        architecture = architecture_named(architecture, image_shape)
    name, factory, symmetries = _drawn(architecture, image_shape, symmetries)
    if fresh_readout:
        # Validate the factory first, so that its errors are specific
        Ensemble(factory, image_shape, seed=seed, output=output, evaluation=evaluation)
        factory = with_fresh_readout(factory, image_shape)
    ensemble = Ensemble(
        factory, image_shape, seed=seed, device=device, dtype=dtype, output=output, evaluation=evaluation,
        kernels=kernels,
    )  # fmt: skip
    path = Path(checkpoint) if checkpoint else None
    estimator = with_defaults(estimator or SmoothedGradient())
    moments = empty_moments(ensemble)
    if isinstance(moments, GramMoments):
        _require_memory(moments, num_networks, num_directions, estimator, dtype)

    description = _description(name, ensemble, estimator)
    if fresh_readout:
        description["fresh_readout"] = True
    if evaluation == "rebuild":  # the others give the same numbers
        description["evaluation"] = evaluation
    if normalise:
        description["normalise"] = normalise
    drawn_on = "any" if ensemble.keyed else ensemble.device.type
    first, scale = require_gradients(ensemble, estimator, name)
    scale = distributed.broadcast(scale)  # processors differ in their last bits
    state = Accumulation(description, moments, path, tolerance is not None, drawn_on, scale)
    state.identify(first)
    silent = _silent(ensemble, name)
    goal: Goal | None = None
    if tolerance is not None:
        goal = Tolerance(tolerance, num_leading, tuple(image_shape), symmetries)
    elif num_certain is not None:
        goal = Certain(num_certain, tuple(image_shape), debiasing, symmetries)
    num_networks = accumulate(ensemble, estimator, state, num_networks, batch_size, goal, progress, bool(normalise))

    tests: dict[str, Any] = {}
    if tested:
        symmetries, tests = _tested(state, image_shape)
    found = find_eigenpairs(
        state.total(), state.first_networks, num_directions or dimension, image_shape, debiasing, symmetries,
        effective_share=state.effective_share,
    )  # fmt: skip
    effective = _effective(state, num_networks, name)
    provenance = description | {
        "num_networks": num_networks, "debiasing": found.debiasing, "symmetries": list(symmetries),
        "seconds": round(state.elapsed(), 1), "drawn_on": state.devices, **environment(ensemble.device),
        **_reached(state, goal, found), **silent, **tests, **effective,
    }  # fmt: skip
    directions = with_signs(found.directions).reshape(-1, *image_shape)  # (n, D) -> (n, *image_shape)
    eigenvalues, certificates = found.eigenvalues.cpu(), found.certificates
    if state.scale == 1 or normalise:
        return NADs(directions.float().cpu(), eigenvalues.float(), provenance, certificates)
    unit = state.scale**-2
    certificates = replace(certificates, eigenvalue_std=certificates.eigenvalue_std.double() * unit)
    return NADs(directions.float().cpu(), eigenvalues.double() * unit, provenance, certificates)


def _is_dense(image_shape: tuple[int, ...]) -> bool:
    """Whether D x D moments are summed, or vectors kept."""
    return math.prod(image_shape) <= DENSE_LIMIT


def _require_directions(num_directions: int | None, image_shape: tuple[int, ...]) -> None:
    """Raise a ValueError if more directions are asked for than there are."""
    dimension = math.prod(image_shape)
    if num_directions is not None and num_directions > dimension:
        raise ValueError(
            f"num_directions = {num_directions} is more than the {dimension} that {image_shape} images have"
        )


def _fitting_leading(num_leading: int | None, tolerance: float | None, dimension: int) -> int:
    """Return how many leading directions count, 10 by default; refuse what no tolerance can be about."""
    if tolerance is not None and not 0 < tolerance <= 0.1:
        raise ValueError(f"tolerance must be in (0, 0.1], where halves of the networks can tell it, got {tolerance!r}")
    num_leading = min(10, max(1, dimension - 1)) if num_leading is None else num_leading
    limit, why = (dimension, "") if tolerance is None else (dimension - 1, ", for all of them span the whole space")
    if num_leading > limit:
        raise ValueError(f"num_leading must be at most {limit} of {dimension} directions{why}, got {num_leading}")
    return num_leading


def _require_certain(num_certain: int | None, tolerance: float | None, count: int) -> None:
    """Raise a ValueError for more certain directions than are asked for, or a second goal."""
    if num_certain is not None and tolerance is not None:
        raise ValueError("tolerance and num_certain are two goals: ask for one of them")
    if num_certain is not None and num_certain > count:
        raise ValueError(f"num_certain = {num_certain} is more than the {count} directions that are asked for")


def _require_averaging(debiasing: str, symmetries: tuple[str, ...], image_shape: tuple[int, ...]) -> None:
    """Raise a ValueError unless noise and symmetries can be treated like that in images of this shape."""
    require_debiasing(debiasing)
    require_symmetries(image_shape, symmetries)
    if symmetries and not _is_dense(image_shape):
        raise ValueError(
            f"symmetries are averaged over only up to {DENSE_LIMIT:,} pixels, got {math.prod(image_shape):,}: leave "
            "them out"
        )


def _drawn(
    architecture: Architecture | Callable[[], nn.Module],
    image_shape: tuple[int, ...],
    symmetries: tuple[str, ...] | None,
) -> tuple[str, Callable[[], nn.Module], tuple[str, ...]]:
    """Return the name of what is drawn, the factory that draws it, and the symmetries to average over."""
    if not isinstance(architecture, Architecture):
        name = getattr(architecture, "__qualname__", type(architecture).__name__)
        return name, architecture, symmetries or ()
    if len(image_shape) != 3:
        raise ValueError(f"{architecture.name} needs images, got image_shape {image_shape}")
    channels, height, width = image_shape
    if height != width:
        raise ValueError(f"{architecture.name} needs square images, got image_shape {image_shape}")
    if symmetries is None:
        symmetries = architecture.symmetries_at(height, channels) if _is_dense(image_shape) else ()
    return architecture.name, partial(architecture.build, channels, height, 1), symmetries


def empty_moments(ensemble: Ensemble) -> DenseMoments | GramMoments:
    """Return the accumulator for the vectors of these networks, without any."""
    dimension = math.prod(ensemble.image_shape)
    device = ensemble.device if ensemble.device.type == "cuda" else "cpu"  # sums are in float64, which MPS lacks
    if not _is_dense(ensemble.image_shape):
        return GramMoments(dimension, device)
    if ensemble.kernels != "torch" and ensemble.dtype != torch.float64:
        return FusedMoments(dimension, device)
    return DenseMoments(dimension, device)


def _require_memory(
    moments: GramMoments, num_networks: int, num_directions: int | None, estimator: Estimator, dtype: torch.dtype
) -> None:
    """Refuse what cannot be kept, before hours are spent on it."""
    readouts = estimator.readouts
    count = num_networks * readouts
    needed = moments.needed_bytes(moments.dimension, count, min(num_directions or count, count), dtype)
    needed += FirstNetworks.needed_bytes(moments.dimension, num_networks, readouts)
    networks = f"{num_networks:,} networks" + (f" with {readouts} readouts each" if readouts > 1 else "")
    require_memory(
        needed,
        moments.device,
        f"the gradients of {networks} with respect to {moments.dimension:,} pixels, and the directions, take up to",
        "ask for fewer networks (num_networks), directions (num_directions) or readouts",
    )


def _description(name: str, ensemble: Ensemble, estimator: Estimator) -> dict[str, Any]:
    """Return what fixes every number of a computation: only a checkpoint of the same is gone on with."""
    return {
        "architecture": name, "image_shape": list(ensemble.image_shape), "estimator": repr(estimator),
        "seed": ensemble.seed, "dtype": str(ensemble.dtype), "output": ensemble.output, "kernels": ensemble.kernels,
        "numbers": RNG_VERSION, "num_parameters": ensemble.num_parameters, "block_size": ensemble.block_size,
    }  # fmt: skip


def _silent(ensemble: Ensemble, name: str) -> dict[str, Any]:
    """Return, and warn of, branches that begin at or near zero: what the NADs then describe is the rest."""
    parts = find_zero_init(ensemble.template)
    if not parts:
        return {}
    warnings.warn(
        f"parts of {name} are nearly silent at initialisation ({described(parts)}): what they multiply has hardly a "
        "part in these NADs",
        stacklevel=3,
    )
    return {"silent_parts": parts}


def _effective(state: Accumulation, num_networks: int, name: str) -> dict[str, Any]:
    """Return the effective number of networks, and warn if a few hold the second moment."""
    number = state.effective_share * num_networks
    if state.effective_share < HEAVY:
        warnings.warn(
            f"a few networks hold the second moment of {name}: {num_networks:,} networks count as {number:.2g}, and "
            "certainties are what so few support. More networks help little; normalise='network' lets all count alike",
            stacklevel=3,
        )
    return {"effective_networks": float(f"{number:.4g}")}


def _tested(state: Accumulation, image_shape: tuple[int, ...]) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Return the symmetries that the networks do not contradict, and what to write down about the tests."""
    tests = symmetry_tests(state.first_networks.halves(), image_shape)
    held = [symmetry for symmetry, test in tests.items() if test.holds]
    if "transpose" in held and len({"flip_rows", "flip_columns"} & set(held)) == 1:
        held.remove("transpose")  # together with one flip it makes the other, which was refused
    written = {symmetry: asdict(test) for symmetry, test in tests.items()}
    for test in written.values():
        test["limit"] = round(test["limit"], 3) if math.isfinite(test["limit"]) else None  # JSON has no infinity
    return tuple(held), {"symmetry_tests": written}


def _reached(state: Accumulation, goal: Goal | None, found: Eigenpairs) -> dict[str, Any]:
    """Return what became of the goal, if there was one."""
    if isinstance(goal, Certain):
        return {"num_certain": goal.num_certain, "certain": found.certificates.num_certain}
    if not isinstance(goal, Tolerance):
        return {}
    error, spread = state.error(goal.num_directions, goal.symmetries, goal.image_shape)
    return {
        "num_leading": goal.num_directions,
        "error": error,
        "error_interval": [max(0, error - spread), error + spread],
    }


def with_signs(directions: Tensor) -> Tensor:
    """Make the first of the largest entries positive, in place: an antisymmetric one has two, equal up to round-off."""
    for rows in directions.split(64):  # (64, D): so that no second copy of all is made
        magnitudes = rows.abs()
        largest = (magnitudes > 0.999 * magnitudes.amax(dim=1, keepdim=True)).int().argmax(dim=1, keepdim=True)
        rows *= rows.gather(1, largest).sign()
    return directions
