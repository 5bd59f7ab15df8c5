"""The library against a loop of one's own, from plain factories on one core:
``python benchmarks/own_loop.py --name NAME``.

`nads_book.benchmarks.own_loop` is what a competent user of PyTorch writes in an afternoon. Both get
16 Gaussian inputs per network in opposite pairs. Measured are processor seconds for the same
numbers of networks, and until the first ten directions overlap by 0.99 with those of a long run
(`reference`), whose seed is another one. The Mixer and the ViT see 4 x 4 patches through a layer of
independent weights, so 16 eigenvalues are equal in expectation and the first ten directions are not
defined: there the first 16 are compared. All eigenvalues of the MLP are equal: no goal. The
library's default has several readouts, each of which gives a vector per network; with one readout,
as the loop, it is timed at equal numbers too. The time to import torch and nads_core is reported
separately. Run it on an idle machine. It writes ``results/NAME.json``; ``--equal`` leaves out the
long runs: ``--equal --name own_loop-counts`` made the times that chapter 16 reads.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np
import torch
from nads_book.benchmarks.long_runs import CASES, SHAPE, architecture, reference
from nads_book.benchmarks.own_loop import overlap, own_loop
from nads_book.benchmarks.stored import write_result
from nads_core.directions.run import DEFAULT_READOUTS
from torch import Tensor, nn

import nads_core as nc

GOAL, LIMIT = 0.99, 900  # overlap; seconds after which a method is not run again


def library(factory: Callable[[], nn.Module], count: int, seed: int = 0) -> Tensor:
    """Return directions (n, D), by the call that a user makes."""
    return nc.compute_nads(
        factory, count, image_shape=SHAPE, seed=seed, progress=False
    ).directions.flatten(1)


def one_readout(factory: Callable[[], nn.Module], count: int, seed: int = 0) -> Tensor:
    """Return directions (n, D), from as many vectors as `own_loop` computes."""
    options = {
        "estimator": nc.SmoothedGradient(readouts=1),
        "image_shape": SHAPE,
        "seed": seed,
        "progress": False,
    }
    return nc.compute_nads(factory, count, **options).directions.flatten(1)


def curve(
    method: Callable[..., Tensor],
    factory: Callable[[], nn.Module],
    goal: Tensor,
    first: int,
) -> list[dict[str, float]]:
    """Run a method at growing numbers of networks until it reaches the goal, or a time limit."""
    rows, count = [], first
    while not rows or (rows[-1]["overlap"] < GOAL and rows[-1]["seconds"] < LIMIT):
        start = time.process_time()
        directions = method(factory, count)
        seconds = time.process_time() - start
        rows.append({"networks": count, "seconds": seconds, "overlap": overlap(directions, goal)})
        print(
            f"    {count:6} networks, {seconds:6.1f} s, overlap {rows[-1]['overlap']:.3f}",
            flush=True,
        )
        count = 2 * count if rows[-1]["overlap"] < 0.95 else round(1.4 * count)
    return rows


def seconds_to_goal(rows: list[dict[str, float]]) -> float | None:
    """Return when the overlap reaches the goal, interpolated where 1 - overlap is a power of the
    time.
    """
    x = np.log([row["seconds"] for row in rows])
    y = np.log([max(1e-6, 1 - row["overlap"]) for row in rows])
    if y[-1] > np.log(1 - GOAL):
        return None
    later = int(np.argmax(y <= np.log(1 - GOAL)))
    if later == 0:
        return float(np.exp(x[0]))
    share = (y[later - 1] - np.log(1 - GOAL)) / (y[later - 1] - y[later])
    return float(np.exp(x[later - 1] + share * (x[later] - x[later - 1])))


def timed(method: Callable[..., Tensor], factory: Callable[[], nn.Module], count: int) -> float:
    """Return the processor seconds of one run."""
    start = time.process_time()
    method(factory, count)
    return time.process_time() - start


def import_seconds(module: str) -> float:
    """Return the wall-clock seconds of an import in a new process."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", f"import {module}; {module}.__name__"], check=True)
    return time.perf_counter() - start


def compare(name: str, counts: tuple[int, ...], goal: Tensor | None) -> dict:
    """Compare the two on one architecture, from a plain factory."""
    build = architecture(name).build

    def factory() -> nn.Module:
        return build(1, 32, 1)

    print(f"{name}, {counts} networks", flush=True)
    methods = {"own loop": own_loop, "library": library, "library, 1 readout": one_readout}
    result: dict = {"networks": counts}
    for label, method in methods.items():
        timed(method, factory, min(16, *counts))  # warm up
        result[label] = {
            "seconds": [min(timed(method, factory, count) for _ in range(2)) for count in counts]
        }
        print(f"  {label}: {result[label]['seconds']} s", flush=True)
        if goal is not None and method is not one_readout:
            rows = curve(method, factory, goal, max(16, counts[0] // 16))
            result[label] |= {"curve": rows, "seconds_to_goal": seconds_to_goal(rows)}
    return result


def main() -> None:
    """Measure and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument(
        "--equal", action="store_true", help="compare equal numbers of networks alone"
    )
    parser.add_argument("--name", required=True, help="name of the results file")
    options = parser.parse_args()
    torch.set_num_threads(1)
    results = {}
    for name in options.cases:
        counts, long_run = CASES[name]
        results[name] = compare(name, counts, None if options.equal else reference(name, long_run))
    imports = {module: import_seconds(module) for module in ("torch", "nads_core")}
    write_result(
        options.name,
        {"goal": GOAL, "readouts": DEFAULT_READOUTS, "imports": imports, "cases": results},
    )


if __name__ == "__main__":
    main()
