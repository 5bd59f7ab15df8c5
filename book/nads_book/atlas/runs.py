"""Computing an entry of the atlas: eight independent parts of its networks, resumable, and their
results.
"""

import math
import time
import zlib
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from nads_book.atlas.entries import Entry
from nads_book.atlas.measures import Measured, describe
from nads_core.directions import NADs, SmoothedGradient
from nads_core.directions.accumulation import Accumulation, accumulate
from nads_core.directions.eigenpairs import EigenProblem
from nads_core.directions.evaluation import BatchEvaluator
from nads_core.directions.moments import DenseMoments
from nads_core.directions.solving import with_signs
from nads_core.directions.symmetry import symmetrize
from nads_core.networks.ensembles import Ensemble
from nads_core.runtime.arguments import require_integers
from nads_core.runtime.files import atomic_write
from nads_core.runtime.provenance import NADS_VERSION, environment
from nads_core.runtime.seeds import seed_sequence

SHAPE = (1, 32, 32)
PARTS = 8
_FEWEST = 8  # networks of a part
NUM_DIRECTIONS = 64  # that ship
_DIMENSION = math.prod(SHAPE)
_ESTIMATOR = SmoothedGradient(16)


@dataclass(frozen=True)
class Computed:
    """An entry of the atlas, computed.

    Args:
        nads: first directions of the entry.
        eigenvalues: all of them, (D,).
        parts: estimates of C, symmetrised, from independent networks, (8, D, D) float32.
        measures: measures of `describe`.
    """

    nads: NADs
    eigenvalues: Tensor
    parts: Tensor
    measures: dict[str, Measured]


def compute_entry(
    entry: Entry,
    folder: Path,
    num_networks: int | None = None,
    *,
    seed: int = 0,
    progress: bool = True,
) -> Computed:
    """Compute an entry, or resume it, or read it if it is done.

    Args:
        entry: value of `ATLAS`.
        folder: folder of the results: ``NAME.pt`` when it is done, checkpoints of its parts before.
        num_networks: number of networks in all parts together; `Entry.num_networks` by default.
        seed: seed of the networks; those that ship have 0.
        progress: whether to show a bar for each part.

    Raises:
        ValueError: if the file there has another number of networks or seed, or too few are asked
            for.
        KeyboardInterrupt: on Ctrl-C; the next call resumes.
    """
    num_networks = entry.num_networks if num_networks is None else num_networks
    require_integers(num_networks=num_networks)
    if num_networks < PARTS * _FEWEST:
        raise ValueError(
            f"{PARTS} parts of {_FEWEST} networks are needed, got num_networks = {num_networks}"
        )
    path = folder / f"{entry.name}.pt"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        content = _computed(entry, folder, num_networks, seed, progress)
        with atomic_write(path, "wb") as file:
            torch.save(content, file)
        for part in range(PARTS):
            _checkpoint(entry, folder, part).unlink(missing_ok=True)
    content = torch.load(path, weights_only=True)
    known, begun = content["num_networks"], content.get("seed", 0)
    if (known, begun) != (num_networks, seed):
        raise ValueError(
            f"{path} has {known} networks (seed {begun}), not {num_networks} ({seed}): name "
            "another folder"
        )
    nads = NADs.load(folder / f"{entry.name}.npz")
    return Computed(
        nads, content["eigenvalues"], content["parts"], describe(content["parts"], entry.stride)
    )


def part_seed(entry: Entry, part: int, seed: int = 0) -> int:
    """Return the seed of a part's networks; it depends on the entry's name, so that entries are
    independent.
    """
    return seed_sequence(zlib.crc32(entry.name.encode()), part, *([seed] if seed else []))


def _checkpoint(entry: Entry, folder: Path, part: int) -> Path:
    return folder / f"{entry.name}.{part}.ckpt"


def _computed(
    entry: Entry, folder: Path, num_networks: int, seed: int, progress: bool
) -> dict[str, Any]:
    """Draw the networks of all parts, write the NADs, and return the content of the .pt file that
    belongs to them.
    """
    start = time.perf_counter()
    symmetries = entry.architecture.symmetries_at(32)
    states = [
        _drawn(
            entry,
            part_seed(entry, part, seed),
            num_networks // PARTS,
            _checkpoint(entry, folder, part),
            progress,
        )
        for part in range(PARTS)
    ]
    total, first, parts = DenseMoments(_DIMENSION), states[0].half_samples, []
    for state in states:
        subtotal = state.total()
        assert isinstance(subtotal, DenseMoments)
        seen, noise = subtotal.moments()
        parts.append(symmetrize(seen - noise, SHAPE, symmetries).float())
        total.merge(subtotal)
    pairs = EigenProblem(total, first, _DIMENSION, SHAPE, symmetries=symmetries).eigenpairs()
    provenance = (
        states[0].description
        | environment(torch.device("cpu"))
        | {
            "num_networks": PARTS * (num_networks // PARTS),
            "parts": PARTS,
            "symmetries": list(symmetries),
            "seconds": round(
                sum(state.seconds for state in states) + time.perf_counter() - start, 1
            ),
        }
    )
    certificates = pairs.uncertainty.first(NUM_DIRECTIONS)
    directions = with_signs(pairs.directions[:NUM_DIRECTIONS]).reshape(-1, *SHAPE).float()
    nads = NADs(directions, pairs.eigenvalues[:NUM_DIRECTIONS].float(), provenance, certificates)
    nads.save(folder / f"{entry.name}.npz", quantized=True)
    content = {"num_networks": num_networks, "seed": seed, "eigenvalues": pairs.eigenvalues.float()}
    return content | {"parts": torch.stack(parts)}


def _drawn(
    entry: Entry, seed: int, num_networks: int, checkpoint: Path, progress: bool
) -> Accumulation:
    """Draw the networks of one part."""
    ensemble = Ensemble(
        partial(entry.architecture.build, *SHAPE[:2], 1), SHAPE, seed=seed, device="cpu"
    )
    description = {
        "architecture": entry.name,
        "image_shape": list(SHAPE),
        "estimator": repr(_ESTIMATOR),
        "seed": seed,
        "numbers": NADS_VERSION,
        "num_parameters": ensemble.num_parameters,
        "block_size": ensemble.block_size,
    }
    state = Accumulation(description, DenseMoments(_DIMENSION), checkpoint)
    evaluator = BatchEvaluator(ensemble, _ESTIMATOR, entry.name)
    evaluator.set_block_size(state.description["block_size"])
    accumulate(evaluator, state, num_networks, progress=progress)
    return state
