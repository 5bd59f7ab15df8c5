"""What a GPU does, in minutes: ``python tools/on_a_gpu.py [PART ...]``.

Parts, by default in this order: *tests*, those of ``tests/gpu``; *notebooks* at the preset smoke;
*calls*, whole calls of the library against a plain loop, with and without the Triton kernel, and
the time of each part of a network; *trainings* at the preset paper that are not stored yet, of
fig7-resnet18 (needs photos: NADS_DATA) and fig1-vgg11, which go to ``book/results``.

Each row is stored as it comes, in ``benchmarks/results/card-NAME.json``, where it takes the place
of an earlier one of its kind; ``benchmarks/tables.py`` makes a table of each card.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
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
READOUTS, REPEATS = 8, 3  # vectors of a network; calls of the library, whose median is taken
TRAININGS = {"fig7-resnet18": 150, "fig1-vgg11": 60}  # seconds
LIMIT = 240  # seconds of a command

Row = dict[str, Any]


def calls(device: torch.device, share: float) -> Iterator[Row]:
    """Time whole calls of the library and of a plain loop, and the parts of one network."""
    estimator = nc.SmoothedGradient(16, readouts=READOUTS)
    kernels = ("torch", "triton") if device.type == "cuda" else ("torch",)
    cases = [*CASES.items()][: None if device.type == "cuda" else 2]  # a CPU shows that it runs
    for name, networks in cases:
        architecture = nc.ARCHITECTURES.get(name) or ATLAS[name].architecture
        factory, count = partial(architecture.build, 1, 32, 1), max(16, round(share * networks))
        options = {"estimator": estimator, "device": device, "progress": False}
        for method in ("plain loop", *kernels):
            row: Row = {"network": name, "method": method, "networks": count, "readouts": READOUTS}
            try:
                if method == "plain loop":
                    loop = partial(own_loop, factory, SHAPE, readouts=READOUTS, device=device)
                    row["seconds"] = timed(loop, count, device, 1)
                else:
                    library = partial(nc.compute_nads, factory, SHAPE, kernels=method, **options)
                    row["seconds"] = timed(library, count, device, REPEATS)
                    run = prepared(factory, SHAPE, estimator, device=device, kernels=method)
                    row["parts"] = measure_network(run, seconds=2 * share)["parts"]
            except Exception as error:  # the other rows are worth their time
                row["error"] = f"{type(error).__name__}: {error}"
            yield row


def timed(call: Callable[..., Any], count: int, device: torch.device, repeats: int) -> float:
    """Return the median seconds of calls for some networks, after one that compiles what it
    needs.
    """
    call(16)
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        call(count)
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        seconds.append(time.perf_counter() - start)
    return round(statistics.median(seconds), 3)


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
    options: Row = {"capture_output": True, "text": True, "stdin": subprocess.DEVNULL}
    try:
        done = subprocess.run(arguments, cwd=ROOT, timeout=LIMIT, **options)
        row = {"returned": done.returncode, "end": (done.stdout + done.stderr)[-500:]}
    except subprocess.TimeoutExpired:
        row = {"error": f"not finished after {LIMIT} s"}
    return {"command": name, "seconds": round(time.perf_counter() - start, 1), **row}


def kind_of(row: Row) -> list[Any]:
    """Return what a row is about: a command, or a method and a network."""
    return [row.get(name) for name in ("command", "method", "network")]


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
    if unknown := set(options.parts) - PARTS.keys():
        parser.error(f"unknown parts {sorted(unknown)}: choose from {', '.join(PARTS)}")
    facts = environment(device)
    card = re.sub(r"\W+", "-", facts["device"].lower())
    out = options.out or results_folder() / f"card-{card}.json"
    rows = json.loads(out.read_text("utf8"))["rows"] if out.exists() else []
    for part in options.parts or PARTS:
        for row in PARTS[part](device, options.share):
            rows = [one for one in rows if kind_of(one) != kind_of(row)]
            rows.append({"part": part, **row, **facts})
            failed |= bool(row.get("returned")) or "error" in row
            print(json.dumps(row), flush=True)
            with atomic_write(out) as file:
                json.dump({"rows": rows}, file, indent=1)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
