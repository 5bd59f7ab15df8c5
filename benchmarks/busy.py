"""400 LeNets on an idle machine, and beside another PyTorch program of two threads:
``python benchmarks/busy.py``.

The other program trains a small network without pause, as a second notebook does. Each run is a
process of its own, with the default number of threads or with one; times are those of
`compute_nads` alone. ``--baseline FOLDER`` measures another checkout alternately. It writes
``results/busy.json``, and takes about two minutes.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
from pathlib import Path

from nads_book.benchmarks.stored import write_result

NETWORKS = 400
HERE = Path(__file__).resolve().parents[1]

NEIGHBOUR = """
import torch
from torch import nn
torch.set_num_threads(2)
network = nn.Sequential(nn.Conv2d(1, 6, 5), nn.ReLU(), nn.Flatten(), nn.Linear(6 * 28 * 28, 10))
images, labels = torch.randn(128, 1, 32, 32), torch.randint(10, (128,))
print("ready", flush=True)
while True:
    nn.functional.cross_entropy(network(images), labels).backward()
"""

RUN = f"""
import sys, time, torch
import nads_core as nc
if sys.argv[1] != "default":
    torch.set_num_threads(int(sys.argv[1]))
nc.compute_nads(nc.LENET, 32, progress=False)
start = time.perf_counter()
nc.compute_nads(nc.LENET, {NETWORKS}, progress=False)
print(time.perf_counter() - start)
"""


def seconds(checkout: Path, threads: str) -> float:
    """Return the seconds of one run of a checkout, in a process of its own."""
    environment = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    environment["PYTHONPATH"] = str(checkout)
    command = [sys.executable, "-c", RUN, threads]
    return float(
        subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
    )


def measured(checkouts: dict[str, Path], repetitions: int) -> dict[str, dict[str, list[float]]]:
    """Return the seconds of all runs, by checkout and number of threads; runs of all kinds
    alternate.
    """
    runs: dict[str, dict[str, list[float]]] = {name: {"default": [], "1": []} for name in checkouts}
    for _ in range(repetitions):
        for name, checkout in checkouts.items():
            for threads, times in runs[name].items():
                times.append(round(seconds(checkout, threads), 2))
    return runs


def main() -> None:
    """Measure, write and print the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument(
        "--baseline", type=Path, help="another checkout, measured on the idle machine too"
    )
    options = parser.parse_args()
    own = {"this": HERE}
    idle = measured(
        own | ({"baseline": options.baseline} if options.baseline else {}), options.repetitions
    )
    neighbour = subprocess.Popen([sys.executable, "-c", NEIGHBOUR], stdout=subprocess.PIPE)
    try:
        assert neighbour.stdout is not None
        neighbour.stdout.readline()
        busy = measured(own, options.repetitions)
    finally:
        neighbour.kill()
        neighbour.wait()
    medians = {
        place: {
            name: {count: statistics.median(times) for count, times in kinds.items()}
            for name, kinds in runs.items()
        }
        for place, runs in (("idle", idle), ("busy", busy))
    }
    ratio = round(medians["busy"]["this"]["default"] / medians["busy"]["this"]["1"], 2)
    write_result(
        "busy",
        {"networks": NETWORKS, "idle": idle, "busy": busy, "medians": medians, "busy_ratio": ratio},
    )
    print(f"medians {medians}, beside another program default / one thread {ratio}")


if __name__ == "__main__":
    main()
