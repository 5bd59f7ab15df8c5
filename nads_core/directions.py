"""Neural anisotropy directions: `compute_nads`, their result type `NADs`, and the ones that ship with the package."""

from __future__ import annotations

import json
import math
import os
import re
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import resources
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from nads_core import distributed
from nads_core.accumulation import Accumulation, Tolerance, accumulate, check_gradients, read_checkpoint
from nads_core.architectures import Architecture
from nads_core.arguments import require_integers
from nads_core.budget import run_pilot
from nads_core.covariance import (
    DenseMoments,
    GramMoments,
    check_debiasing,
    check_symmetries,
    debias,
    gram_eigenpairs,
    leading_eigenpairs,
    subspace_overlap,
    symmetrize,
)
from nads_core.ensembles import Ensemble, check_image_shape
from nads_core.files import replacing
from nads_core.fused_moments import FusedMoments
from nads_core.input_gradients import Estimator, SmoothedGradient
from nads_core.memory import require_memory
from nads_core.provenance import NUMBERS_VERSION, environment, fingerprint

DENSE_LIMIT = 8192  # largest D whose D x D moments (2 x 0.5 GB) are kept


@dataclass(frozen=True, eq=False)
class NADs:
    """Neural anisotropy directions of one architecture, most preferred first.

    Args:
        directions: (n, C, H, W) float32, orthonormal.
        eigenvalues: (n,) float32, descending: of the uncentred second moment (1/N) sum g g^T.
        provenance: how they were computed.
    """

    directions: Tensor
    eigenvalues: Tensor
    provenance: dict = field(default_factory=dict)

    def __post_init__(self):
        if self.directions.dim() != 4 or self.eigenvalues.shape != self.directions.shape[:1]:
            raise ValueError(
                "expected directions (n, C, H, W) and eigenvalues (n,), got "
                f"{tuple(self.directions.shape)} and {tuple(self.eigenvalues.shape)}"
            )

    @cached_property
    def fingerprint(self) -> str:
        """Names the stored bytes (of the file, or what `save` would write), which are the same on every machine."""
        return _fingerprint(self._stored(quantized=False))

    def __len__(self) -> int:
        return len(self.directions)

    def __repr__(self) -> str:
        name, count = self.provenance.get("architecture", "unnamed"), self.provenance.get("num_networks", "?")
        return f"NADs({name}, {len(self)} directions of {tuple(self.directions.shape[1:])}, {count} networks)"

    @property
    def basis(self) -> Tensor:
        """The paper's U, of shape (D, n), one direction a column."""
        return self.directions.flatten(1).T

    def overlap(self, other: NADs | Tensor | np.ndarray, k: int = 10) -> float:
        """Mean squared cosine of the principal angles between the first k directions of each: 1 for the same subspace.

        Two random subspaces overlap by k / D on average.

        Args:
            other: NADs, or orthonormal directions (n, ...) with the same number of pixels.
            k: how many directions.

        Raises:
            ValueError: if either has fewer than k directions or the sizes differ.
        """
        theirs = torch.as_tensor(other.directions if isinstance(other, NADs) else other).flatten(1).double()
        ours = self.directions.flatten(1).double()
        if not 1 <= k <= min(len(ours), len(theirs)):
            raise ValueError(f"k = {k} directions asked for, but there are {len(ours)} and {len(theirs)}")
        if ours.shape[1] != theirs.shape[1]:
            raise ValueError(f"directions of {ours.shape[1]} and {theirs.shape[1]} pixels cannot be compared")
        return subspace_overlap(ours[:k], theirs[:k])

    def energy(self, direction: Tensor | np.ndarray) -> Tensor:
        """Return v^T C v, with C rebuilt from the eigenpairs: the prior variance of the slope of f along v.

        Args:
            direction: (C, H, W), or many as (m, C, H, W); unit norm.

        Returns:
            A scalar, or (m,).

        Raises:
            ValueError: if the shape is not that of the NADs.
        """
        direction = torch.as_tensor(direction, dtype=torch.float64)
        shape = self.directions.shape[1:]
        if direction.shape[-3:] != shape or direction.dim() not in (3, 4):
            raise ValueError(f"expected a direction of shape {tuple(shape)}, got {tuple(direction.shape)}")
        coordinates = direction.flatten(-3) @ self.basis.double()
        return coordinates.square() @ self.eigenvalues.double()

    def completed(self) -> NADs:
        """Return a full basis of D directions: the missing ones come last, in any order, with eigenvalue 0."""
        rows = self.directions.flatten(1)
        size = rows.shape[1]
        if len(rows) == size:
            return self
        complement = torch.linalg.qr(rows.double().T, mode="complete").Q.T[len(rows) :].to(rows.dtype)
        directions = torch.cat([rows, complement]).view(size, *self.directions.shape[1:])
        eigenvalues = torch.cat([self.eigenvalues, self.eigenvalues.new_zeros(size - len(rows))])
        return NADs(directions, eigenvalues, self.provenance)

    def _stored(self, quantized: bool) -> dict[str, np.ndarray]:
        """Return the arrays of an npz file."""
        rows, eigenvalues = self.directions.detach().cpu().numpy(), self.eigenvalues.detach().cpu().numpy()
        if not quantized:
            return {"directions": rows, "eigenvalues": eigenvalues}
        scale = np.abs(rows).max(axis=(1, 2, 3), keepdims=True) / np.iinfo(np.int16).max
        directions = np.round(rows / scale).astype(np.int16)
        return {"directions": directions, "scale": scale.astype(np.float32), "eigenvalues": eigenvalues}

    def save(self, path: str | os.PathLike, *, quantized: bool = False) -> None:
        """Write an npz file; ``quantized`` stores 16-bit integers, which moves no direction by more than 1e-4.

        What `load` returns then has the fingerprint of those integers.
        """
        with replacing(path, "wb") as file:
            np.savez_compressed(file, provenance=json.dumps(self.provenance), **self._stored(quantized))

    @classmethod
    def load(cls, path: str | os.PathLike) -> NADs:
        """Read what `save` wrote.

        Raises:
            FileNotFoundError: if there is no such file.
            ValueError: if it holds no NADs.
        """
        with open(path, "rb") as raw:
            try:
                file = np.load(raw)
            except (ValueError, EOFError, zipfile.BadZipFile) as error:
                raise ValueError(f"{path} holds no NADs, or a part of them: {error}") from error
            if not isinstance(file, np.lib.npyio.NpzFile):
                raise ValueError(f"{path} holds one array, no NADs: expected an npz file that NADs.save wrote")
            missing = {"directions", "eigenvalues", "provenance"} - set(file.files)
            if missing:
                raise ValueError(f"{path} holds no NADs: it lacks {sorted(missing)} and has {file.files}")
            try:
                stored = {name: file[name] for name in ("directions", "scale", "eigenvalues") if name in file.files}
                provenance = json.loads(str(file["provenance"]))
            except (ValueError, OSError, zipfile.BadZipFile, zlib.error) as error:
                raise ValueError(f"{path} is damaged: {error}") from error
        directions = torch.from_numpy(stored["directions"])
        if "scale" in stored:
            rows = (directions.double() * torch.from_numpy(stored["scale"]).double()).flatten(1)
            for _ in range(2):  # Newton-Schulz: back to the nearest orthonormal rows
                rows = 1.5 * rows - 0.5 * (rows @ rows.T) @ rows
            directions = rows.float().view(directions.shape)
        nads = cls(directions, torch.from_numpy(stored["eigenvalues"]), provenance)
        vars(nads)["fingerprint"] = _fingerprint(stored)  # of the file, not of what was rebuilt from it
        return nads


def _fingerprint(stored: dict[str, np.ndarray]) -> str:
    """Name NADs by their stored arrays: what is rebuilt from them differs between processors in its last bits."""
    return fingerprint(*(part for name in sorted(stored) for part in (name, stored[name])))


def load_nads(name: str, version: int | None = None) -> NADs:
    """Return the precomputed NADs of an architecture of the paper, for one channel and 32 x 32 pixels.

    Args:
        name: "logreg", "lenet", "vgg11", "resnet18" or "densenet121".
        version: of the file; the newest by default. Older ones stay as long as results refer to them.

    Returns:
        NADs, whose provenance has the ``version``.

    Raises:
        ValueError: if none ship under that name and version.
    """
    folder = resources.files("nads_core") / "precomputed"
    found: dict[str, list[int]] = {}
    for entry in folder.iterdir():
        if shipped := re.fullmatch(r"(\w+)\.v(\d+)\.npz", entry.name):
            found.setdefault(shipped[1], []).append(int(shipped[2]))
    key = str(name).lower().replace("-", "").replace("_", "")
    if key not in found:
        raise ValueError(
            f"no precomputed NADs for {name!r}: choose from {sorted(found)}, or compute them with compute_nads"
        )
    version = max(found[key]) if version is None else version
    if version not in found[key]:
        raise ValueError(f"no version {version!r} of the NADs of {key} ships: choose from {sorted(found[key])}")
    with resources.as_file(folder / f"{key}.v{version}.npz") as path:
        nads = NADs.load(path)
    nads.provenance["version"] = version
    return nads


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
            on a GPU, "reference" the same in plain PyTorch; both draw other networks than "torch", which uses PyTorch's
            generators. The default is "torch": no device has timed the kernels yet (benchmarks/kernels.py does).
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
    check_image_shape(image_shape)
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
    check_debiasing(debiasing)
    check_symmetries(image_shape, symmetries or ())
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
