"""Neural anisotropy directions: `compute_nads`, their result type `NADs`, and the ones that ship with the package."""

from __future__ import annotations

import json
import math
import os
import subprocess
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from nads_core import distributed
from nads_core.architectures import Architecture
from nads_core.covariance import (
    DenseMoments,
    GramMoments,
    check_debiasing,
    check_symmetries,
    debias,
    gram_eigenpairs,
    leading_eigenpairs,
    symmetrize,
)
from nads_core.ensembles import Ensemble, check_image_shape
from nads_core.fused_moments import FusedMoments
from nads_core.input_gradients import Draw, Estimator, SmoothedGradient
from nads_core.interrupts import DeferredInterrupt

_DENSE_LIMIT = 8192  # largest D whose D x D moments (2 x 0.5 GB) are kept
_CHECKPOINT_SECONDS = 5.0  # at least, between two of them; 50 times what saving one takes, if that is longer
_EXCHANGE_SECONDS = 5.0  # between two sums over processes
_CHECKED_NETWORKS = 8


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
        return float((ours[:k] @ theirs[:k].T).square().sum() / k)

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

    def save(self, path: str | os.PathLike, *, quantized: bool = False) -> None:
        """Write an npz file; ``quantized`` stores 16-bit integers, which moves no direction by more than 1e-4."""
        rows = self.directions.numpy()
        arrays = {"directions": rows}
        if quantized:
            scale = np.abs(rows).max(axis=(1, 2, 3), keepdims=True) / np.iinfo(np.int16).max
            arrays = {"directions": np.round(rows / scale).astype(np.int16), "scale": scale.astype(np.float32)}
        path = Path(path)
        partial = path.with_name(path.name + ".partial.npz")
        np.savez_compressed(
            partial, eigenvalues=self.eigenvalues.numpy(), provenance=json.dumps(self.provenance), **arrays
        )
        partial.replace(path)

    @classmethod
    def load(cls, path: str | os.PathLike) -> NADs:
        """Read what `save` wrote.

        Raises:
            FileNotFoundError: if there is no such file.
            ValueError: if it holds no NADs.
        """
        try:
            file = np.load(path)
        except (ValueError, EOFError) as error:
            raise ValueError(f"{path} holds no NADs: {error}") from error
        if not isinstance(file, np.lib.npyio.NpzFile):
            raise ValueError(f"{path} holds one array, no NADs: expected an npz file that NADs.save wrote")
        with file:
            missing = {"directions", "eigenvalues", "provenance"} - set(file.files)
            if missing:
                raise ValueError(f"{path} holds no NADs: it lacks {sorted(missing)} and has {file.files}")
            directions = torch.from_numpy(file["directions"])
            eigenvalues, provenance = torch.from_numpy(file["eigenvalues"]), json.loads(str(file["provenance"]))
            if "scale" in file.files:
                rows = (directions.double() * torch.from_numpy(file["scale"]).double()).flatten(1)
                for _ in range(2):  # Newton-Schulz: back to the nearest orthonormal rows
                    rows = 1.5 * rows - 0.5 * (rows @ rows.T) @ rows
                directions = rows.float().view(directions.shape)
        return cls(directions, eigenvalues, provenance)


def load_nads(name: str) -> NADs:
    """Return the precomputed NADs of an architecture of the paper, for one channel and 32 x 32 pixels.

    Args:
        name: "logreg", "lenet", "vgg11", "resnet18" or "densenet121".

    Raises:
        ValueError: if none ship under that name.
    """
    folder = resources.files("nads_core") / "precomputed"
    available = sorted(entry.name.removesuffix(".npz") for entry in folder.iterdir() if entry.name.endswith(".npz"))
    key = str(name).lower().replace("-", "").replace("_", "")
    if key not in available:
        raise ValueError(
            f"no precomputed NADs for {name!r}: choose from {available}, or compute them with compute_nads"
        )
    with resources.as_file(folder / f"{key}.npz") as path:
        return NADs.load(path)


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
    checkpoint: str | os.PathLike | None = None,
    progress: bool = True,
) -> NADs:
    """Compute the NADs of an architecture: eigenvectors of the second moment of its networks' input gradients.

    Inside a process group of torch.distributed the processes share the networks, and all return the same NADs.

    Source: section 3.1 and eq. (4) of the paper; the estimators differ in the vector that a network contributes.

    Args:
        architecture: one of ours, or any function that returns a newly initialised network.
        num_networks: how many networks to draw, N.
        estimator: `SmoothedGradient` by default; or `PointGradient`, `Dipole`, `MixedDerivative`.
        image_shape: (C, H, W) of the input.
        num_directions: how many directions to return; all D by default. With more than 8,192 pixels at most as many
            as are known to have a positive eigenvalue.
        debiasing: "shrink", "subtract" or "none", see `covariance.debias`; with more than 8,192 pixels "shrink"
            means "subtract".
        symmetries: maps of the input that leave the distribution of networks unchanged, averaged over;
            by default those that the architecture declares, none for a factory or for more than 8,192 pixels.
        output: which output of the network is f(x).
        seed: fixes every weight and input. Network i does not depend on how many are drawn, nor on ``batch_size``.
        device: by default a GPU if there is one.
        dtype: of the networks; moments are summed in float64.
        batch_size: networks evaluated together on a GPU; fitted to its memory by default.
        kernels: "triton" draws weights and inputs and sums the moments by Triton kernels on a GPU, "reference" the
            same in plain PyTorch; both draw other networks than "torch", whose weights come from PyTorch's
            generators. The default is "torch": no device has timed the kernels yet (benchmarks/kernels.py does).
        checkpoint: a file in which to keep the state: an interrupted call goes on from it, with the same result as an
            uninterrupted one; a finished one is extended by a call with more networks.
        progress: show a progress bar.

    Returns:
        Directions in order of preference, with their eigenvalues.

    Raises:
        TypeError: if ``architecture`` is neither an Architecture nor a function that returns a module.
        ValueError: for bad arguments, a network that rejects its input, returns NaN or ignores its input, a factory
            that returns the same weights every time, or a checkpoint of another computation.
        KeyboardInterrupt: on Ctrl-C, after saving the state to ``checkpoint`` or, without one, to a file that the
            message names.

    Example:
        >>> from nads_core import LOGREG
        >>> compute_nads(LOGREG, 64, progress=False)
        NADs(logreg, 1024 directions of (1, 32, 32), 64 networks)
    """
    if not (isinstance(num_networks, int) and num_networks > 0):
        raise ValueError(f"num_networks must be a positive integer, got {num_networks!r}")
    if num_directions is not None and not (isinstance(num_directions, int) and num_directions > 0):
        raise ValueError(f"num_directions must be a positive integer, got {num_directions!r}")
    if batch_size is not None and not (isinstance(batch_size, int) and batch_size > 0):
        raise ValueError(f"batch_size must be a positive integer, got {batch_size!r}")
    check_image_shape(image_shape)
    dimension = math.prod(image_shape)
    dense = dimension <= _DENSE_LIMIT
    if num_directions is not None and num_directions > dimension:
        raise ValueError(
            f"num_directions = {num_directions} is more than the {dimension} that {image_shape} images have"
        )
    check_debiasing(debiasing)
    check_symmetries(image_shape, symmetries or ())
    if symmetries and not dense:
        raise ValueError(
            f"symmetries are averaged over only up to {_DENSE_LIMIT:,} pixels, got {dimension:,}: leave them out"
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
    moments_device = ensemble.device if ensemble.device.type == "cuda" else "cpu"
    moments = (DenseMoments if dense else GramMoments)(dimension, moments_device)
    if dense and kernels != "torch":
        moments = FusedMoments(dimension, moments_device, kernels=kernels)

    description = {
        "architecture": name, "image_shape": list(image_shape), "estimator": repr(estimator), "seed": seed,
        "dtype": str(dtype), "output": output,
    }  # fmt: skip
    if kernels != "torch":
        description["kernels"] = kernels
    state = _Progress(description, moments, Path(checkpoint) if checkpoint else None)
    state.identify(_check_gradients(ensemble, estimator, name))
    _accumulate(ensemble, estimator, moments, num_networks, batch_size, state, progress)

    symmetries = symmetries or ()
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
        means, spreads = moments.rows()
        debiasing, symmetries = "none" if debiasing == "none" or not len(spreads) else "subtract", ()
        spreads = spreads if debiasing == "subtract" else spreads[:0]
        eigenvalues, directions = gram_eigenpairs(means, spreads, num_directions or dimension)
    directions = _with_signs(directions).reshape(-1, *image_shape)
    provenance = description | {
        "num_networks": num_networks, "debiasing": debiasing, "symmetries": list(symmetries),
        "seconds": round(state.elapsed(), 1), **environment(ensemble.device),
    }  # fmt: skip
    return NADs(directions.float().cpu(), eigenvalues.float().cpu(), provenance)


def _with_signs(directions: Tensor) -> Tensor:
    """Make the first of the largest entries positive: an antisymmetric direction has two, equal up to round-off."""
    magnitudes = directions.abs()
    largest = (magnitudes > 0.999 * magnitudes.amax(dim=1, keepdim=True)).int().argmax(dim=1, keepdim=True)
    return directions * directions.gather(1, largest).sign()


def environment(device: torch.device) -> dict:
    """Describe where a result was computed: device, versions, commit and date."""
    model = torch.cuda.get_device_name(device) if device.type == "cuda" else f"{torch.get_num_threads()} CPU threads"
    root = Path(__file__).resolve().parent.parent
    command = ["git", "-C", str(root), "rev-parse", "--short", "HEAD"]
    try:
        commit = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        commit = None  # installed from a wheel
    return {
        "device": model, "torch": torch.__version__, "numpy": np.__version__, "commit": commit,
        "date": datetime.now(UTC).date().isoformat(),
    }  # fmt: skip


class _Progress:
    """Where an accumulation stands, and the file that remembers it."""

    def __init__(self, description: dict, moments: DenseMoments | GramMoments, path: Path | None):
        self.description, self.moments, self.path = description, moments, path
        self.blocks_done, self.seconds, self._saved_at, self._pause = 0, 0.0, time.perf_counter(), _CHECKPOINT_SECONDS
        self.first: Tensor | None = None  # the vector of network 0
        if path and path.exists():
            self._load(path)
        elif path:
            path.parent.mkdir(parents=True, exist_ok=True)

    def _load(self, path: Path) -> None:
        try:
            saved = torch.load(path, weights_only=True)
            found = saved["description"]
        except Exception as error:
            raise ValueError(f"{path} is not a checkpoint of compute_nads: delete it or name another file") from error
        pairs = {key: (found.get(key), self.description.get(key)) for key in {**self.description, **found}}
        different = {key: pair for key, pair in pairs.items() if pair[0] != pair[1]}
        if different:
            changes = "; ".join(f"{key} was {old!r}, now {new!r}" for key, (old, new) in different.items())
            raise ValueError(f"{path} belongs to another computation ({changes}): delete it or name another file")
        self.moments.load_state_dict(saved["moments"])
        self.blocks_done, self.seconds, self.first = saved["blocks_done"], saved["seconds"], saved.get("first")

    def identify(self, first: Tensor) -> None:
        """Refuse a file whose network 0 had another vector: two factories can share a name."""
        first = first.double().cpu()
        if self.first is not None and (first - self.first).norm() > 0.05 * first.norm():
            raise ValueError(
                f"{self.path} belongs to another computation (the gradient of its first network differs): "
                "delete it or name another file"
            )
        self.first = first

    def digest(self) -> str:
        """Return a short name that differs between computations."""
        text = f"{json.dumps(self.description)} {float(self.first.norm()):.3e}"
        return f"{zlib.crc32(text.encode()):08x}"

    def elapsed(self) -> float:
        return self.seconds + time.perf_counter() - self._saved_at

    def save(self, path: Path | None = None) -> None:
        path = path or self.path
        if path is None:
            return
        self.seconds, self._saved_at = self.elapsed(), time.perf_counter()
        state = {"moments": self.moments.state_dict(), "blocks_done": self.blocks_done, "seconds": self.seconds}
        state["first"] = self.first
        partial = path.with_name(path.name + ".partial")
        torch.save({"description": self.description, **state}, partial)
        partial.replace(path)
        self._pause = max(_CHECKPOINT_SECONDS, 50 * (time.perf_counter() - self._saved_at))

    def save_if_due(self) -> None:
        if self.path and time.perf_counter() - self._saved_at > self._pause:
            self.save()


def _check_gradients(ensemble: Ensemble, estimator: Estimator, name: str) -> Tensor:
    """Refuse a network that ignores its input, before hours are spent on it; return the vector of network 0."""
    first = None
    for block, _ in ensemble.blocks(_CHECKED_NETWORKS):
        draw = estimator.draw(ensemble, block)[:_CHECKED_NETWORKS]
        contributions = estimator.contributions(ensemble, draw)
        first = contributions[0].mean(0) if first is None else first
        _require_finite(ensemble.outputs(draw.state, draw.inputs), block * ensemble.block_size, name, ensemble.seed)
        _require_finite(contributions, block * ensemble.block_size, name, ensemble.seed)
        if contributions.any():
            return first
    raise ValueError(
        f"the output of {name} does not depend on its input: "
        f"the estimator's vectors are zero for {_CHECKED_NETWORKS} networks"
    )


def _require_finite(values: Tensor, first: int, name: str, seed: int) -> None:
    finite = values.flatten(1).isfinite().all(1)
    if not finite.all():
        index = first + int((~finite).nonzero()[0])
        raise ValueError(
            f"network {index} of {name} (seed {seed}) returned NaN or infinite values: check its initialisation and "
            "divisions, and that eval mode is meant"
        )


def _accumulate(
    ensemble: Ensemble,
    estimator: Estimator,
    moments: DenseMoments | GramMoments,
    num_networks: int,
    batch_size: int | None,
    state: _Progress,
    progress: bool,
) -> None:
    """Add the networks that the checkpoint does not hold yet."""
    from tqdm import tqdm

    batch_size = batch_size or _fitting_batch(ensemble)
    done = state.blocks_done * ensemble.block_size
    if done > num_networks:
        raise ValueError(f"the checkpoint already holds {done} networks, more than num_networks = {num_networks}")
    name, workers, lead = state.description["architecture"], distributed.size(), distributed.rank() == 0
    bar = tqdm(
        total=num_networks, initial=done, unit="net", desc=f"NADs of {name}", disable=not progress or not lead,
        mininterval=0.5,
    )  # fmt: skip
    blocks = list(ensemble.blocks(num_networks, state.blocks_done))
    rest = [blocks.pop()] if blocks and blocks[-1][1] < ensemble.block_size else []
    per_step = max(1, batch_size // ensemble.block_size)

    def stop_if_interrupted() -> None:
        if distributed.largest(interrupt.received):
            path = state.path or Path(f"interrupted-nads-{state.digest()}.ckpt")
            if lead:
                state.save(path)
            raise KeyboardInterrupt(
                f"stopped after {state.blocks_done * ensemble.block_size} of {num_networks} networks; "
                f"call again with checkpoint={str(path)!r} to go on"
            )

    with bar, DeferredInterrupt("stopping after this batch ...") as interrupt:
        steps = 1  # of each worker, from one exchange to the next
        while blocks:
            start = time.perf_counter()
            share, blocks = blocks[: workers * per_step * steps], blocks[workers * per_step * steps :]
            part = moments if workers == 1 else moments.empty()
            mine = share[distributed.rank() :: workers]
            for group in [mine[i : i + per_step] for i in range(0, len(mine), per_step)]:
                part.update(_contributions(ensemble, estimator, group, batch_size, name))
                bar.update(workers * sum(count for _, count in group))
            if workers > 1:
                distributed.gathered(part)
                moments.merge(part)
                seconds = distributed.agreed(time.perf_counter() - start) / steps
                steps = max(1, round(_EXCHANGE_SECONDS / seconds))
            state.blocks_done = share[-1][0] + 1
            if lead:
                state.save_if_due()
            stop_if_interrupted()
        if lead:
            state.save()  # whole blocks only, so that a later call can add networks
        if rest:  # each worker adds these few for itself
            contributions = _contributions(ensemble, estimator, rest, batch_size, name)
            stop_if_interrupted()
            moments.update(contributions)
            bar.update(rest[0][1])


def _contributions(
    ensemble: Ensemble, estimator: Estimator, blocks: list[tuple[int, int]], batch_size: int, name: str
) -> Tensor:
    """Return the vectors (B, J, D) of the networks of some blocks."""
    draw = Draw.cat([estimator.draw(ensemble, block)[:count] for block, count in blocks])
    parts = [draw[i : i + batch_size] for i in range(0, len(draw), batch_size)]
    contributions = torch.cat([estimator.contributions(ensemble, part) for part in parts])
    _require_finite(contributions, blocks[0][0] * ensemble.block_size, name, ensemble.seed)
    return contributions


def _fitting_batch(ensemble: Ensemble) -> int:
    """Networks evaluated together: one block on a CPU; on a GPU as many as an eighth of its free memory holds."""
    if ensemble.device.type != "cuda":
        return ensemble.block_size
    free, _ = torch.cuda.mem_get_info(ensemble.device)
    activations = 16 * 64 * math.prod(ensemble.image_shape) * 40  # a ResNet's, at 16 inputs; an upper guess for most
    bytes_each = 4 * (3 * ensemble.num_parameters + activations)
    return int(max(1, min(256, free // 8 // bytes_each)))
