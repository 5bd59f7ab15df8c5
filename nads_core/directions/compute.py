"""`compute_nads`: from an architecture to its directions, by way of estimator, moments and eigenvectors."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor, nn

from nads_core.directions.accumulation import Accumulation, Tolerance, accumulate, check_gradients, read_checkpoint
from nads_core.directions.budget import run_pilot
from nads_core.directions.covariance import (
    DenseMoments,
    GramMoments,
    debias,
    gram_eigenpairs,
    leading_eigenpairs,
    require_debiasing,
    require_symmetries,
    symmetrize,
)
from nads_core.directions.fused_moments import FusedMoments
from nads_core.directions.input_gradients import Estimator, SmoothedGradient
from nads_core.directions.nads import NADs
from nads_core.machinery import distributed
from nads_core.machinery.arguments import require_integers
from nads_core.machinery.memory import require_memory
from nads_core.machinery.provenance import NUMBERS_VERSION, environment
from nads_core.networks.architectures import Architecture
from nads_core.networks.ensembles import Ensemble, require_image_shape

DENSE_LIMIT = 8192  # largest D whose D x D moments (2 x 0.5 GB) are kept


def compute_nads(
    architecture: Architecture | Callable[[], nn.Module],
    num_networks: int = 2_000,
    *,
    estimator: Estimator | None = None,
    image_shape: tuple[int, int, int] = (1, 32, 32),
    num_directions: int | None = None,
    debiasing: str = "shrink",
    symmetries: tuple[str, ...] | None = None,
    output: int = 0,
    seed: int = 0,
    device: torch.device | str | None = None,
    dtype: torch.dtype = torch.float32,
    batch_size: int | None = None,
    kernels: str = "torch",
    tolerance: float | None = None,
    num_leading: int | None = None,
    checkpoint: str | os.PathLike | None = None,
    progress: bool = True,
) -> NADs:
    """Compute the NADs of an architecture: eigenvectors of the second moment of its networks' input gradients.

    Inside a process group of torch.distributed the processes share the networks, and all return the same NADs.

    Source: section 3.1 and eq. (4) of the paper; the estimators differ in the vector that a network contributes.

    Args:
        architecture: one of ours, or any function that returns a newly initialised network.
        num_networks: how many networks to draw, N; with a ``tolerance``, how many at most.
        estimator: `SmoothedGradient` by default; or `PointGradient`, `Dipole`, `MixedDerivative`. With
            ``num_inputs="auto"`` a pilot of 16 networks finds the numbers of inputs and readouts that make the error of
            the first ``num_leading`` directions smallest in a given time (`budget`); the provenance names them.
        image_shape: (C, H, W) of the input.
        num_directions: how many directions to return; all D by default. With more than 8,192 pixels at most as many
            as are known to have a positive eigenvalue, and all vectors are kept: 2 numbers a network and pixel.
        debiasing: "shrink", "subtract" or "none", see `covariance.debias`; with more than 8,192 pixels "shrink"
            means "subtract".
        symmetries: maps of the input that leave the distribution of networks unchanged, averaged over;
            by default those that the architecture declares, none for a factory or for more than 8,192 pixels.
        output: which output of the network is f(x).
        seed: fixes every weight and input. Network i does not depend on how many are drawn, nor on ``batch_size``. With
            ``num_inputs="auto"`` the pilot measures times, so that one seed can give other numbers of inputs, and with
            them other NADs: repeat such a run with the numbers that its provenance names.
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
        num_leading: of the directions that ``tolerance`` and ``num_inputs="auto"`` are about; 10 by default, or all but
            one where there are no more than 10.
        checkpoint: a file in which to keep the state: an interrupted call goes on from it, with the same result as an
            uninterrupted one; a finished one is extended by a call with more networks.
        progress: show a progress bar.

    Returns:
        Directions in order of preference, with their eigenvalues.

    Raises:
        TypeError: if ``architecture`` is neither an Architecture nor a function that returns a module.
        ValueError: for bad arguments, a network that rejects its input, returns NaN or ignores its input, a factory
            that returns the same weights every time, or a checkpoint of another computation.
        MemoryError: at once, if more than 8,192 pixels and so many networks need more memory than is free
            (`GramMoments.needed_bytes`).
        KeyboardInterrupt: on Ctrl-C, after saving the state to ``checkpoint`` or, without one, to a file that the
            message names.

    Example:
        >>> from nads_core import LOGREG
        >>> compute_nads(LOGREG, 64, progress=False)
        NADs(logreg, 1024 directions of (1, 32, 32), 64 networks)
    """
    counts = {"num_directions": num_directions, "batch_size": batch_size, "num_leading": num_leading}
    require_integers(num_networks=num_networks, **{n: count for n, count in counts.items() if count is not None})
    require_image_shape(image_shape)
    dimension = math.prod(image_shape)
    dense = dimension <= DENSE_LIMIT
    if num_directions is not None and num_directions > dimension:
        raise ValueError(
            f"num_directions = {num_directions} is more than the {dimension} that {image_shape} images have"
        )
    if tolerance is not None and not 0 < tolerance <= 0.1:
        raise ValueError(f"tolerance must be in (0, 0.1], where halves of the networks can tell it, got {tolerance!r}")
    num_leading = min(10, max(1, dimension - 1)) if num_leading is None else num_leading
    most, why = (dimension, "") if tolerance is None else (dimension - 1, ", for all of them span the whole space")
    if num_leading > most:
        raise ValueError(f"num_leading must be at most {most} of {dimension} directions{why}, got {num_leading}")
    require_debiasing(debiasing)
    require_symmetries(image_shape, symmetries or ())
    if symmetries and not dense:
        raise ValueError(
            f"symmetries are averaged over only up to {DENSE_LIMIT:,} pixels, got {dimension:,}: leave them out"
        )
    estimator = estimator or SmoothedGradient()
    factory, name = architecture, getattr(architecture, "__qualname__", type(architecture).__name__)
    if isinstance(architecture, Architecture):
        channels, height, width = image_shape
        if height != width:
            raise ValueError(f"{architecture.name} needs square images, got image_shape {image_shape}")
        name, factory = architecture.name, lambda: architecture.build(channels, height, 1)
        symmetries = architecture.symmetries_at(height) if symmetries is None else symmetries
    ensemble = Ensemble(factory, image_shape, seed=seed, device=device, dtype=dtype, output=output, kernels=kernels)
    path = Path(checkpoint) if checkpoint else None
    estimator, budget = _within_budget(ensemble, estimator, path, num_leading)
    moments_device = ensemble.device if ensemble.device.type == "cuda" else "cpu"
    moments = (DenseMoments if dense else GramMoments)(dimension, moments_device)
    if dense and kernels != "torch" and dtype != torch.float64:
        moments = FusedMoments(dimension, moments_device, kernels=kernels)

    if not dense:
        _require_memory(dimension, num_networks, num_directions, estimator, ensemble, moments_device)

    symmetries = symmetries or ()
    description = {
        "architecture": name, "image_shape": list(image_shape), "estimator": repr(estimator), "seed": seed,
        "dtype": str(dtype), "output": output, "kernels": kernels, "numbers": NUMBERS_VERSION,
        "num_parameters": ensemble.num_parameters, "block_size": ensemble.block_size, **budget,
    }  # fmt: skip
    drawn_on = "any" if ensemble.keyed else ensemble.device.type
    state = Accumulation(description, moments, path, tolerance is not None, drawn_on)
    state.identify(check_gradients(ensemble, estimator, name))
    goal = None if tolerance is None else Tolerance(tolerance, num_leading, symmetries)
    num_networks = accumulate(ensemble, estimator, state, num_networks, batch_size, goal, progress)
    moments = state.total()

    if dense:
        seen, noise = moments.moments()
        if not noise.any():
            debiasing = "none"  # one contribution a network: there is no noise to tell apart
        matrix = debias(
            symmetrize(seen, image_shape, symmetries), symmetrize(noise, image_shape, symmetries), debiasing
        )
        eigenvalues, directions = leading_eigenpairs(matrix, num_directions or dimension)
        if debiasing != "subtract":
            eigenvalues = eigenvalues.clamp(min=0)  # semi-definite but for rounding
    else:
        means, spreads = moments.vectors()
        debiasing, symmetries = "none" if debiasing == "none" or not spreads else "subtract", ()
        spreads = spreads if debiasing == "subtract" else []
        eigenvalues, directions = gram_eigenpairs(means, spreads, num_directions or dimension)
    directions = _with_signs(directions).reshape(-1, *image_shape)
    provenance = description | {
        "num_networks": num_networks, "debiasing": debiasing, "symmetries": list(symmetries),
        "seconds": round(state.elapsed(), 1), "drawn_on": state.devices, **environment(ensemble.device),
    }  # fmt: skip
    if goal is not None:
        error, spread = state.error(num_leading, symmetries, image_shape)
        provenance |= {
            "num_leading": num_leading,
            "error": error,
            "error_interval": [max(0, error - spread), error + spread],
        }
    return NADs(directions.float().cpu(), eigenvalues.float().cpu(), provenance)


def _require_memory(
    dimension: int,
    num_networks: int,
    num_directions: int | None,
    estimator: Estimator,
    ensemble: Ensemble,
    device: torch.device | str,
) -> None:
    """Refuse what cannot be kept, before hours are spent on it."""
    readouts = getattr(estimator, "readouts", 1)
    count = num_networks * readouts
    needed = GramMoments.needed_bytes(dimension, count, min(num_directions or count, count), ensemble.dtype)
    each = f"{num_networks:,} networks" + (f" with {readouts} readouts each" if readouts > 1 else "")
    what = f"the gradients of {each} with respect to {dimension:,} pixels, and the directions, take up to"
    require_memory(
        needed, device, what, "ask for fewer networks (num_networks), directions (num_directions) or readouts"
    )


def _within_budget(
    ensemble: Ensemble, estimator: Estimator, path: Path | None, num_leading: int
) -> tuple[Estimator, dict]:
    """Fill in what ``num_inputs="auto"`` leaves open, and return what to write down about it.

    A checkpoint remembers the choice, which rests on measured times.
    """
    if getattr(estimator, "num_inputs", None) != "auto":
        return estimator, {}
    if path and path.exists() and (chosen := read_checkpoint(path)["description"].get("budget")):
        return replace(estimator, **chosen), {"budget": chosen}
    best = run_pilot(ensemble, estimator, num_leading).best(estimator) if distributed.rank() == 0 else estimator
    names = [name for name in ("num_inputs", "readouts") if hasattr(estimator, name)]
    first = distributed.rank() == 0
    chosen = {name: int(distributed.agreed(getattr(best, name) if first else 0)) for name in names}
    return replace(estimator, **chosen), {"budget": chosen}


def _with_signs(directions: Tensor) -> Tensor:
    """Make the first of the largest entries positive, in place: an antisymmetric one has two, equal up to round-off."""
    for some in directions.split(64):  # so that no second copy of all is made
        magnitudes = some.abs()
        largest = (magnitudes > 0.999 * magnitudes.amax(dim=1, keepdim=True)).int().argmax(dim=1, keepdim=True)
        some *= some.gather(1, largest).sign()
    return directions
