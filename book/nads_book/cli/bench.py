"""``nads-book bench``: measure the cost of architectures and estimators against the limits of the device."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from nads_book.benchmarks import CASES, results_folder, run_suite
from nads_core.networks.architectures import ARCHITECTURES
from nads_core.runtime.arguments import usable_device

CALLS = ("nads_book.benchmarks:run_suite",)
_VALID_WITH_LARGE = {"large", "quick"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the options of ``nads-book bench``."""
    add = parser.add_argument
    add("--architectures", nargs="+", choices=tuple(ARCHITECTURES), help="architectures to measure")
    add("--cases", nargs="+", choices=tuple(CASES), help="estimators and floating-point types to measure")
    add("--no-scale", dest="scale", action="store_false", help="skip the measurements with growing inputs")
    add("--large", action="store_true", help="only compute the first 100 NADs at 3 x 224 x 224 (minutes)")
    add("--quick", action="store_true", help="toy sizes, to check that everything runs")
    add("--out", type=Path, help="folder for the results; benchmarks/results by default")
    add("--device", help="cpu, cuda, ...; a GPU if available by default")
    add("--kernels", help="torch, or triton for the library's own kernels on a GPU")


def run(out: Path | None = None, device: str | None = None, **options: Any) -> int:
    """Measure all cases and print one line per results file."""
    if options.get("large") and (ignored := sorted(options.keys() - _VALID_WITH_LARGE)):
        raise ValueError(f"--large is not valid with {', '.join(ignored)}: leave it out")
    for name in {"architectures", "cases"} & options.keys():
        options[name] = tuple(options[name])
    for path, result in run_suite(out or results_folder(), device=usable_device(device), **options):
        cost = f"{1e3 * result['seconds_per_network']:10.2f} ms per network" if "parts" in result else ""
        ratio = f"{result['times_limit']:8.1f} times the limit" if "times_limit" in result else ""
        print(f"{path.stem:<52} {cost} {ratio}", flush=True)
    return 0
