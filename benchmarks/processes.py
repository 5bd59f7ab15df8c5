"""Throughput of processes under torchrun against one single-threaded process:
``python benchmarks/processes.py``.

Every process has one thread. Writes one JSON file an architecture into ``benchmarks/results/``.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from nads_book.benchmarks.stored import write_result

import nads_core as nc


def compute(architecture: str, processes: int, num_networks: int, out: Path) -> nc.NADs:
    """Compute NADs by so many processes, as one would from a shell."""
    launcher = (
        ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
        if processes > 1
        else []
    )
    command = [
        "compute",
        architecture,
        "--num-networks",
        str(num_networks),
        "--device",
        "cpu",
        "--out",
        str(out),
    ]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    subprocess.run(
        [sys.executable, *launcher, "-m", "nads_core", *command], check=True, env=environment
    )
    return nc.NADs.load(out)


def main() -> None:
    """Measure and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--architectures", nargs="+", choices=nc.ARCHITECTURES, default=["resnet18", "lenet"]
    )
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--num-networks", type=int, help="by default half a minute's")
    options = parser.parse_args()
    for name in options.architectures:
        count = options.num_networks or {"lenet": 6_400}.get(name, 80)
        with tempfile.TemporaryDirectory() as folder:
            one, many = (
                compute(name, p, count, Path(folder) / f"{p}.npz") for p in (1, options.processes)
            )
        moments = [(nads.basis * nads.eigenvalues) @ nads.basis.T for nads in (one, many)]
        difference = float((moments[0] - moments[1]).norm() / moments[0].norm())
        seconds = [nads.provenance["seconds"] for nads in (one, many)]
        result = {
            "problem": f"{name}, 1 x 32 x 32, {count} networks",
            "method": f"{options.processes} processes",
            "seconds_alone": seconds[0],
            "seconds_together": seconds[1],
            "throughput_gained": seconds[0] / seconds[1],
            "relative_difference": difference,
        }
        write_result(f"processes-{name}-cpu", result)
        print(
            f"{name}: {seconds[0]:.1f} s alone, {seconds[1]:.1f} s together; difference {difference:.1e}",
            flush=True,
        )


if __name__ == "__main__":
    main()
