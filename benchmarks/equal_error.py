"""Time to the same error, ours against the authors' procedure:
``python benchmarks/equal_error.py``.

The authors' procedure is `Dipole` on one network after another, as published. Ours is
`SmoothedGradient` at growing numbers of networks. Error is what finitely many networks leave: both
are judged by the overlap of the first 10 and of the first 50 directions, and by the rank
correlation of the energies of all directions with their order, twice: against the directions that
the authors published (10,000 dipoles; without NADS_REFERENCE those that ship with the library), and
each against its own long run, because the two estimators have slightly different limits, which is
visible in the last digits of the rank correlation. Times are of whole calls, from the first weight
to the last eigenvector. It writes ``results/equal_error-ARCHITECTURE-cpu.json``.
"""

from __future__ import annotations

import os
import time

import nads_book as nb
import numpy as np
import torch
from nads_book.benchmarks.stored import write_result
from scipy.stats import spearmanr

import nads_core as nc
from nads_core.networks import Ensemble

# Dipoles, minutes of them on two cores, and the type of our numbers
CASES = {"lenet": (3_000, torch.float32), "resnet18": (24, torch.bfloat16)}
ESTIMATOR, SEEDS = nc.SmoothedGradient(16, readouts=8), 3
MEASURES = [
    f"{measure}, against {whose}"
    for whose in ("published directions", "its own long run")
    for measure in (
        "overlap of the first 10",
        "overlap of the first 50",
        "rank correlation of all energies",
    )
]
GROWTH = 2**0.5


def references(name: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the long runs of the dipole and of ours, each (n, 1, 32, 32) in order."""
    ours, published = nc.load_nads(name).directions, nb.published.directions(name, 1023)
    return ours if published is None else published, ours


def judge(nads: nc.NADs, *judges: torch.Tensor) -> list[float]:
    """Return three measures for each of the long runs, all at most 1."""
    values = []
    for directions in judges:
        order = spearmanr(nads.energy(directions), -np.arange(len(directions))).statistic
        values += [nads.overlap(directions, 10), nads.overlap(directions, 50), float(order)]
    return values


def run(
    name: str, judges: tuple[torch.Tensor, torch.Tensor], num_networks: int, seed: int, **options
) -> tuple[float, list[float]]:
    """Return the seconds of one call, and its measures."""
    start = time.perf_counter()
    nads = nc.compute_nads(
        nc.ARCHITECTURES[name], num_networks, seed=seed, progress=False, **options
    )
    return time.perf_counter() - start, judge(nads, *judges)


def compare(name: str, num_dipoles: int, dtype: torch.dtype) -> dict:
    """Measure both, ours until it is better than the dipole in everything."""
    dipoles, judges = references(name)[0], references(name)
    options = {"estimator": nc.Dipole(), "debiasing": "none", "symmetries": (), "device": "cpu"}
    dipole_seconds, dipole = run(name, (dipoles, dipoles), num_dipoles, 0, **options)
    checked = min(8, Ensemble(nc.ARCHITECTURES[name].build, (1, 32, 32)).block_size)
    # `compute_nads` first tries a few, for nothing
    dipole_seconds *= num_dipoles / (num_dipoles + checked)
    print(
        f"{name}: {num_dipoles} dipoles, {dipole_seconds:.1f} s, {np.round(dipole, 3)}", flush=True
    )

    ours, size, reached = [], 4.0, [None] * len(MEASURES)
    options = {"estimator": ESTIMATOR, "dtype": dtype, "device": "cpu"}
    run(name, judges, 4, 99, **options)  # warm up
    while None in reached and (not ours or ours[-1]["seconds"] < dipole_seconds / 10):
        runs = [run(name, judges, round(size), seed, **options) for seed in range(1, SEEDS + 1)]
        seconds, values = float(np.median([s for s, _ in runs])), np.array([v for _, v in runs])
        mean, error = values.mean(0), values.std(0, ddof=1) / SEEDS**0.5
        ours.append(
            {
                "num_networks": round(size),
                "seconds": seconds,
                "mean": mean.tolist(),
                "error": error.tolist(),
            }
        )
        print(f"  {round(size)} networks, {seconds:.2f} s, {np.round(mean, 3)}", flush=True)
        reached = [
            seconds if time_ is None and value >= goal else time_
            for time_, value, goal in zip(reached, mean, dipole, strict=True)
        ]
        size *= GROWTH
    ratios = [dipole_seconds / seconds if seconds else None for seconds in reached]
    return {
        "problem": f"NADs of {name}, 1 x 32 x 32, to the error of {num_dipoles} dipoles",
        "method": repr(ESTIMATOR),
        "dtype": str(dtype),
        "measures": MEASURES,
        "dipole_networks": num_dipoles,
        "dipole_seconds": dipole_seconds,
        "dipole": dipole,
        "ours": ours,
        "seeds": SEEDS,
        "times_less": ratios,
    }


def main() -> None:
    """Measure and write the results."""
    if "NADS_REFERENCE" not in os.environ:
        print("NADS_REFERENCE is not set: judged by the directions that ship")
    for name, case in CASES.items():
        write_result(f"equal_error-{name}-cpu", compare(name, *case))


if __name__ == "__main__":
    main()
