"""Which numbers of inputs and readouts have the least error per second?
``python benchmarks/estimator_grid.py``.

For each architecture and each pair (inputs, readouts) of a small grid, four runs estimate the
second moment C of the smoothed gradient, without symmetries and with the variance over inputs
subtracted, so that all estimate the same C. The error is the mean of |C_i - C_j|^2 / 2 over pairs
of runs (Frobenius norm), divided by |C|^2, which is the mean of <C_i, C_j> over all pairs of the
architecture; it falls as 1/networks. What is compared is error x processor seconds per network,
relative to the best of the grid, on one core; 1.2 means that the same error takes 1.2 times as
long. Fixed costs of a run (symmetry tests, eigenvectors) are subtracted. It writes
``results/estimator_grid-cpu.json``. Run it on an idle machine.

``--leading`` measures instead what most users look at: 1 - overlap of the first ten directions with
a long run, with tested symmetries and all defaults, at numbers of networks that take about the same
time, times the seconds. It writes ``results/estimator_leading-cpu.json``.
"""

from __future__ import annotations

import argparse
import itertools
import time

import numpy as np
import torch
from nads_book.benchmarks.long_runs import CASES as LONG_RUNS
from nads_book.benchmarks.long_runs import SHAPE, architecture, reference
from nads_book.benchmarks.own_loop import overlap
from nads_book.benchmarks.stored import write_result
from torch import Tensor

import nads_core as nc

GRID = [(16, 4), (16, 1), (16, 2), (16, 8), (8, 1), (8, 4), (8, 8), (4, 4), (4, 8), (32, 4)]
CASES = {"lenet": 384, "cnn": 256, "resnet18": 24, "vit": 48, "mlp": 192}
# Pair: number of networks
LEADING = {(16, 4): 700, (16, 1): 1_540, (16, 8): 420, (8, 4): 735, (32, 4): 434, (64, 4): 252}
SEEDS = 4
FEWEST = 8  # networks of the run whose time is subtracted


def run(name: str, count: int, num_inputs: int, readouts: int, seed: int) -> tuple[Tensor, float]:
    """Return C (D, D) and the processor seconds."""
    build = architecture(name).build
    estimator = nc.SmoothedGradient(num_inputs, readouts=readouts)
    options = {"image_shape": SHAPE, "symmetries": (), "debiasing": "subtract", "progress": False}
    start = time.process_time()
    nads = nc.compute_nads(
        lambda: build(1, 32, 1), count, estimator=estimator, seed=seed, **options
    )
    seconds = time.process_time() - start
    basis = nads.basis.double()
    return (basis * nads.eigenvalues.double()) @ basis.T, seconds


def measure(name: str, count: int, num_inputs: int, readouts: int) -> dict[str, float]:
    """Return the error and the seconds of one pair."""
    fewest = min(run(name, FEWEST, num_inputs, readouts, seed)[1] for seed in range(2))
    moments, seconds = zip(
        *(run(name, count, num_inputs, readouts, seed) for seed in range(SEEDS)), strict=True
    )
    pairs = list(itertools.combinations(moments, 2))
    return {
        "inputs": num_inputs,
        "readouts": readouts,
        "error": float(
            np.mean([float((first - second).square().sum()) / 2 for first, second in pairs])
        ),
        "product": float(np.mean([float((first * second).sum()) for first, second in pairs])),
        "seconds": (min(seconds) - fewest) / (count - FEWEST),
    }


def leading(name: str) -> list[dict[str, float]]:
    """Return the error of the first ten directions times seconds, relative to the best, for each
    pair.
    """
    build, rows = architecture(name).build, []
    goal = reference(name, LONG_RUNS[name][1])
    for (num_inputs, readouts), count in LEADING.items():
        estimator, errors, seconds = nc.SmoothedGradient(num_inputs, readouts=readouts), [], []
        for seed in range(SEEDS):
            start = time.process_time()
            nads = nc.compute_nads(
                lambda: build(1, 32, 1),
                count,
                estimator=estimator,
                image_shape=SHAPE,
                seed=seed,
                progress=False,
            )
            seconds.append(time.process_time() - start)
            errors.append(1 - overlap(nads.directions.flatten(1), goal))
        rows.append(
            {
                "inputs": num_inputs,
                "readouts": readouts,
                "networks": count,
                "seconds": float(np.mean(seconds)),
                "error": float(np.mean(errors)),
                "deviation": float(np.std(errors, ddof=1)),
            }
        )
    best = min(row["error"] * row["seconds"] for row in rows)
    for row in rows:
        row["relative"] = row["error"] * row["seconds"] / best
        print(name, row, flush=True)
    return rows


def main() -> None:
    """Measure, write and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--leading",
        action="store_true",
        help="judge the first ten directions, of LeNet and the CNN",
    )
    options = parser.parse_args()
    torch.set_num_threads(1)
    results: dict = {}
    if options.leading:
        for name in ("lenet", "cnn"):
            results[name] = {"rows": leading(name)}
        write_result("estimator_leading-cpu", {"seeds": SEEDS, "cases": results})
        return
    for name, count in CASES.items():
        run(name, FEWEST, 16, 4, 0)  # warm up
        rows = [measure(name, count, *pair) for pair in GRID]
        # |C|^2, which is the same for all
        norm = float(np.mean([row.pop("product") for row in rows]))
        for row in rows:
            row["error"] /= norm
        best = min(row["error"] * row["seconds"] for row in rows)
        for row in rows:
            row["relative"] = row["error"] * row["seconds"] / best
            print(name, row, flush=True)
        results[name] = {"networks": count, "rows": rows}
    write_result("estimator_grid-cpu", {"seeds": SEEDS, "cases": results})


if __name__ == "__main__":
    main()
