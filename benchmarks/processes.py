"""Throughput of processes under torchrun against one single-threaded process:
``python benchmarks/processes.py``.

Every process has one thread. It writes ``results/processes-ARCHITECTURE-cpu.json``.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from nads_book.benchmarks.stored import write_result

import nads_core as nc

NETWORKS, PROCESSES = {"lenet": 6_400, "resnet18": 80}, 2  # half a minute of each


def compute(architecture: str, processes: int, num_networks: int, out: Path) -> nc.NADs:
    """Compute NADs by so many processes, as one would from a shell."""
    launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
    program = [sys.executable, *(launcher if processes > 1 else []), "-m", "nads_core", "compute"]
    options = ["--num-networks", str(num_networks), "--device", "cpu", "--out", str(out)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    subprocess.run([*program, architecture, *options], check=True, env=environment)
    return nc.NADs.load(out)


def main() -> None:
    """Measure and write the results."""
    for name, count in NETWORKS.items():
        with tempfile.TemporaryDirectory() as folder:
            one, many = (
                compute(name, processes, count, Path(folder) / f"{processes}.npz")
                for processes in (1, PROCESSES)
            )
        moments = [(nads.basis * nads.eigenvalues) @ nads.basis.T for nads in (one, many)]
        alone, together = (nads.provenance["seconds"] for nads in (one, many))
        result = {
            "problem": f"{name}, 1 x 32 x 32, {count} networks",
            "method": f"{PROCESSES} processes",
            "seconds_alone": alone,
            "seconds_together": together,
            "throughput_gained": alone / together,
            "relative_difference": float((moments[0] - moments[1]).norm() / moments[0].norm()),
        }
        write_result(f"processes-{name}-cpu", result)
        print(result, flush=True)


if __name__ == "__main__":
    main()
