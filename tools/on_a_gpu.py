"""What a GPU does, in one run of about ten minutes: ``python tools/on_a_gpu.py [PART ...]``.

Parts, by default in this order: *tests*, those of ``tests/gpu``; *notebooks* at the preset smoke;
*calls*, whole calls of the library against a plain loop, with and without the Triton kernel, and
the time of each part of a network; *trainings* at the preset paper that are not stored yet, of
fig7-resnet18 (needs photos: NADS_DATA) and fig1-vgg11, which go to ``book/results``.

Each row is stored as it comes, in ``benchmarks/results/card-NAME.json``, where it takes the place
of earlier rows of its part; ``benchmarks/tables.py`` makes a table of each card.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch
from nads_book.atlas import ATLAS
from nads_book.benchmarks import measure_network, prepared
from nads_book.benchmarks.own_loop import own_loop
from nads_book.benchmarks.stored import results_folder

import nads_core as nc
from nads_core.runtime.files import atomic_write
from nads_core.runtime.provenance import environment

ROOT = Path(__file__).parents[1]
SHAPE = (1, 32, 32)
CASES = {"lenet": 4_096, "cnn": 1_024, "vit": 256, "resnet18": 64, "densenet121": 32}  # networks
TRAININGS = {"fig7-resnet18": 150, "fig1-vgg11": 60}  # seconds

Row = dict[str, Any]


def calls(device: torch.device, share: float) -> Iterator[Row]:
    """Time whole calls of the library and of a plain loop, and the parts of one network."""
    estimator = nc.SmoothedGradient(16, readouts=8)
    kernels = ("torch", "triton") if device.type == "cuda" else ("torch",)
    cases = [*CASES.items()][: None if device.type == "cuda" else 2]  # a CPU shows that it runs
    for name, networks in cases:
        architecture = nc.ARCHITECTURES.get(name) or ATLAS[name].architecture
        factory, count = partial(architecture.build, 1, 32, 1), max(16, round(share * networks))
        options = {"estimator": estimator, "device": device, "progress": False}
        for method in ("plain loop", *kernels):
            row: Row = {"network": name, "method": method, "networks": count}
            try:
                if method == "plain loop":
                    loop = partial(own_loop, factory, SHAPE, readouts=8, device=device)
                    row["seconds"] = timed(loop, count, device)
                else:
                    library = partial(nc.compute_nads, factory, SHAPE, kernels=method, **options)
                    row["seconds"] = timed(library, count, device)
                    run = prepared(factory, SHAPE, estimator, device=device, kernels=method)
                    row["parts"] = measure_network(run, seconds=2 * share)["parts"]
            except Exception as error:  # the other rows are worth their time
                row["error"] = f"{type(error).__name__}: {error}"
            yield row


def timed(call: Callable[..., Any], count: int, device: torch.device) -> float:
    """Return the seconds of a call for some networks, after one that compiles what it needs."""
    call(16)
    start = time.perf_counter()
    call(count)
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return round(time.perf_counter() - start, 3)


def tests(device: torch.device, share: float) -> Iterator[Row]:
    """Run the tests of the GPU."""
    yield command([sys.executable, "-m", "pytest", "-q", "-x", "tests/gpu"], "tests/gpu")


def notebooks(device: torch.device, share: float) -> Iterator[Row]:
    """Execute the chapters at the preset smoke."""
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        with tempfile.TemporaryDirectory() as folder:
            out = f"{folder}/{path.name}"
            arguments = ["papermill", str(path), out, "-p", "preset", "smoke"]
            yield command([sys.executable, "-m", *arguments], path.stem)


def trainings(device: torch.device, share: float) -> Iterator[Row]:
    """Train networks of the paper's size that are missing, as many as the time allows."""
    for name, seconds in TRAININGS.items():
        limits = ["--preset", "paper", "--time-limit", str(round(share * seconds))]
        run = [sys.executable, "-m", "nads_book", "run", name, *limits]
        yield command([*run, "--device", str(device)], name)


def command(arguments: list[str], name: str) -> Row:
    """Run a command, and return its outcome and the end of what it printed."""
    start = time.perf_counter()
    done = subprocess.run(
        arguments, cwd=ROOT, capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    seconds = round(time.perf_counter() - start, 1)
    end = (done.stdout + done.stderr)[-500:]
    return {"command": name, "returned": done.returncode, "seconds": seconds, "end": end}


PARTS = {"tests": tests, "notebooks": notebooks, "calls": calls, "trainings": trainings}


def main() -> int:
    """Run the parts, and store their rows."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help="all by default")
    parser.add_argument("--share", type=float, default=1.0, help="share of the networks")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--out", type=Path, help="by default named after the card")
    options = parser.parse_args()
    device, failed = torch.device(options.device), False
    if options.out is None and (device.type != "cuda" or options.share != 1):
        parser.error("name a file by --out: the stored ones are whole runs of GPUs")
    facts = environment(device)
    card = re.sub(r"\W+", "-", facts["device"].lower())
    out = options.out or results_folder() / f"card-{card}.json"
    rows = json.loads(out.read_text("utf8"))["rows"] if out.exists() else []
    for part in options.parts or PARTS:
        rows = [row for row in rows if row["part"] != part]
        for row in PARTS[part](device, options.share):
            rows.append({"part": part, **row, **facts})
            failed |= bool(row.get("returned")) or "error" in row
            print(json.dumps(row), flush=True)
            with atomic_write(out) as file:
                json.dump({"rows": rows}, file, indent=1)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
