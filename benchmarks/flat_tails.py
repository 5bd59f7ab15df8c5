"""Are bands of directions known as well as is claimed where a spectrum is flat? Samples of known C.

python benchmarks/flat_tails.py    # about a minute on one core
"""

from __future__ import annotations

import numpy as np
import torch
from nads_book.benchmarks.stored import write_result
from torch import Tensor

from nads_core.directions import simulation
from nads_core.directions.eigenpairs import EigenProblem
from nads_core.directions.moments import DenseMoments, HalfSamples

DIMENSION, NOISE, SEEDS = 256, 0.02, 10
RANKS = torch.arange(DIMENSION, dtype=torch.float32)
SPECTRA = {  # eigenvalues of C, descending
    "all equal": torch.ones(DIMENSION),
    "20 above a flat tail": torch.where(RANKS < 20, 0.3 + 10 * torch.exp(-RANKS / 6), 0.1),
    "two plateaus": torch.where(RANKS < 60, 5.0, 0.5),
    "power law": 1 / (RANKS + 1),
    "exponential": torch.exp(-RANKS / 40),
}
SIZES = ((200, 1), (200, 8), (1_600, 1))  # networks, readouts of each
MANY = 16  # directions of a band, from which on it counts here


def draw(levels: Tensor, networks: int, readouts: int, seed: int) -> Tensor:
    """Draw vectors (networks * readouts, 4, D) with C = diag(levels), and norms that differ."""
    generator = torch.Generator().manual_seed(seed)
    norms = 0.5 + torch.rand(networks, 1, 1, generator=generator)
    vectors = torch.randn(networks, readouts, DIMENSION, generator=generator) * levels.sqrt()
    vectors = (vectors * norms / norms.square().mean().sqrt()).reshape(-1, 1, DIMENSION)
    noise = torch.randn(networks * readouts, 4, DIMENSION, generator=generator)
    return vectors + NOISE**0.5 * noise


def compared(levels: Tensor, networks: int, readouts: int) -> list[float]:
    """Return the mean claimed and measured overlap of large bands, weighted by their sizes."""
    bands = []
    for seed in range(SEEDS):
        moments, samples = DenseMoments(DIMENSION), HalfSamples()
        vectors = draw(levels, networks, readouts, seed)
        moments.update(vectors)
        samples.update(0, networks, vectors, readouts)
        pairs = EigenProblem(moments, samples, DIMENSION, (DIMENSION,)).eigenpairs()
        squares = pairs.directions.double().square()  # with each exact direction
        for band in pairs.uncertainty.bands:
            inside = list(band.indices)
            shared = float(squares[inside][:, inside].sum()) / len(inside)
            bands.append((len(inside), band.certainty, shared))
    size, claimed, measured = np.array([band for band in bands if band[0] >= MANY]).T
    means = [np.average(values, weights=size) for values in (claimed, measured)]
    return np.round(means, 3).tolist()


def whole_or_none(values: Tensor, noise: Tensor, num_vectors: float) -> int:
    """Return the start of the flat tail if it is the whole spectrum: the rule before."""
    return 0 if START(values, noise, num_vectors) == 0 else len(values)


START = simulation._start_of_flat_tail


def main() -> None:
    """Measure both rules and write the table."""
    torch.set_num_threads(1)
    rows = []
    for rule, start in (("windows", whole_or_none), ("flat tails", START)):
        simulation._start_of_flat_tail = start
        for name, levels in SPECTRA.items():
            for networks, readouts in SIZES:
                row = {"rule": rule, "spectrum": name, "networks": networks, "readouts": readouts}
                rows.append(row | {"bands": compared(levels, networks, readouts)})
                print(rows[-1], flush=True)
    write_result("flat_tails", {"rows": rows, "seeds": SEEDS})


if __name__ == "__main__":
    main()
