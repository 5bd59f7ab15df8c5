"""The library against a plain loop, from plain factories: ``python benchmarks/own_loop.py``.

`nads_book.benchmarks.own_loop` is the same method in sixty lines of PyTorch. Measured are processor
seconds of one core for the same numbers of networks, inputs and readouts, eigenvectors and
certainties included, without imports. Run it on an idle machine.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial

import torch
from nads_book.atlas import ATLAS
from nads_book.benchmarks.own_loop import own_loop
from nads_book.benchmarks.stored import write_result

import nads_core as nc

SHAPE = (1, 32, 32)
CASES = {  # networks, and readouts
    "lenet": (1_000, 8),
    "cnn": (1_000, 8),
    "mixer": (256, 8),
    "vit": (256, 8),
    "mlp": (1_000, 8),
    "resnet18": (24, 8),
    "densenet121": (8, 8),
}


def seconds(call: Callable[[], object]) -> float:
    """Return the smaller of the processor seconds of two calls."""
    times = []
    for _ in range(2):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return min(times)


def main() -> None:
    """Measure and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--share", type=float, default=1.0, help="share of the networks")
    parser.add_argument("--name", default="own_loop-library", help="name of the results file")
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    for name in options.cases:
        architecture = nc.ARCHITECTURES.get(name) or ATLAS[name].architecture
        factory = partial(architecture.build, 1, 32, 1)
        count, readouts = round(options.share * CASES[name][0]), CASES[name][1]
        estimator = nc.SmoothedGradient(16, readouts=readouts)
        settings = {"estimator": estimator, "workers": 1, "device": "cpu", "progress": False}
        library = partial(nc.compute_nads, factory, SHAPE, count, **settings)
        row = {"network": name, "networks": count, "readouts": readouts}
        row["own loop"] = seconds(partial(own_loop, factory, SHAPE, count, readouts))
        row["library"] = seconds(library)
        print(row, flush=True)
        rows.append(row)
    write_result(options.name, {"rows": rows})


if __name__ == "__main__":
    main()
