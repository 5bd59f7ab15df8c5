"""Computing an entry of the atlas, resumable: its NADs, and its second moment in eight groups of
networks.
"""

import zlib
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

import nads_core as nc
from nads_book.atlas.entries import Entry
from nads_book.atlas.measures import describe
from nads_book.statistics import Measured
from nads_core.directions.symmetry import symmetrize
from nads_core.runtime.seeds import seed_sequence

SHAPE = (1, 32, 32)
NUM_DIRECTIONS = 64  # that ship


@dataclass(frozen=True)
class Computed:
    """An entry of the atlas, computed.

    Args:
        nads: first directions of the entry.
        eigenvalues: all of them, (D,).
        parts: estimates of C, symmetrised, from independent networks, (8, D, D) float32.
        measures: measures of `describe`.
    """

    nads: nc.NADs
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
        folder: folder of the results: the NADs, ``NAME.npz``, and the state, ``NAME.state.npz``.
        num_networks: number of networks; `Entry.num_networks` by default.
        seed: seed of the networks; those that ship have 0.
        progress: whether to show a bar.

    Raises:
        ValueError: if the state there is of another seed or has more networks.
        KeyboardInterrupt: on Ctrl-C; the next call resumes.
    """
    folder.mkdir(parents=True, exist_ok=True)
    moment = nc.second_moment(
        entry.architecture,
        SHAPE,
        num_networks or entry.num_networks,
        estimator=nc.SmoothedGradient(16),
        seed=entry_seed(entry, seed),
        device="cpu",
        checkpoint=folder / f"{entry.name}.state.npz",
        progress=progress,
    )
    nads = moment.nads()
    nads[:NUM_DIRECTIONS].save(folder / f"{entry.name}.npz", quantized=True)
    shares, symmetries = moment.shares(), entry.architecture.symmetries_at(SHAPE[1])
    parts = torch.stack([symmetrize(len(shares) * share, SHAPE, symmetries) for share in shares])
    parts = parts.float()
    measures = describe(parts, entry.stride)
    return Computed(nads[:NUM_DIRECTIONS], nads.eigenvalues, parts, measures)


def entry_seed(entry: Entry, seed: int = 0) -> int:
    """Return the seed of an entry's networks, so that entries are independent."""
    return seed_sequence(zlib.crc32(entry.name.encode()), *([seed] if seed else []))
