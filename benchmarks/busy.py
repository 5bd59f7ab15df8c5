"""400 LeNets on an idle machine, and beside another PyTorch program of two threads:
``python benchmarks/busy.py``.

The other program trains a small network without pause, as a second notebook does. Each run is a
process of its own, with the default number of threads or with one; times are those of
`compute_nads` alone. It writes ``results/busy.json``, and takes about two minutes.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys

from nads_book.benchmarks.stored import write_result

NETWORKS, REPETITIONS = 400, 5

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


def seconds(threads: str) -> float:
    """Return the seconds of one run in a process of its own."""
    environment = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    command = [sys.executable, "-c", RUN, threads]
    return float(
        subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
    )


def measured() -> dict[str, list[float]]:
    """Return the seconds of all runs, by number of threads; the two alternate."""
    runs: dict[str, list[float]] = {"default": [], "1": []}
    for _ in range(REPETITIONS):
        for threads, times in runs.items():
            times.append(round(seconds(threads), 2))
    return runs


def main() -> None:
    """Measure, write and print the results."""
    places = {"idle": measured()}
    neighbour = subprocess.Popen([sys.executable, "-c", NEIGHBOUR], stdout=subprocess.PIPE)
    try:
        assert neighbour.stdout is not None
        neighbour.stdout.readline()
        places["busy"] = measured()
    finally:
        neighbour.kill()
        neighbour.wait()
    medians = {
        place: {threads: statistics.median(times) for threads, times in runs.items()}
        for place, runs in places.items()
    }
    write_result("busy", {"networks": NETWORKS, "medians": medians} | places)
    print(medians)


if __name__ == "__main__":
    main()
