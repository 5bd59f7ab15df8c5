"""The book's command line ``python -m nads_book``, installed as ``nads-book``: one module per
command.
"""

import argparse
import sys
from pathlib import Path

import torch

from nads_core.cli import console as run_console
from nads_core.cli import run_command

COMMANDS = {
    "run": "compute the units of a study: the trainings of a figure, or another one",
    "merge": "join the results files of shards",
    "score": "apply the registered rule of a study to its stored results",
    "atlas": "compute entries of the atlas",
    "similar": "list the known architectures with the most similar NADs",
    "forecast": "predict how many directions would be certain with more networks",
    "class-differences": "compare the classes of an image folder along NADs",
    "report": "describe what a network prefers before training, on one page",
    "doctor": "list available optional features",
}


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit status.

    Args:
        arguments: command and options; ``sys.argv[1:]`` by default.
    """
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    return run_command("nads_book", COMMANDS, arguments, "Run the book's experiments.")


def console() -> int:
    """Run one command as a program and return its exit status."""
    return run_console(main)


def add_training_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the options of ``run`` about time and place."""
    parser.add_argument(
        "--time-limit",
        type=float,
        metavar="SECONDS",
        help="time after which to stop; the job can resume",
    )
    parser.add_argument(
        "--root", type=Path, help="folder with the images, for jobs on photos; NADS_DATA by default"
    )
    parser.add_argument(
        "--workers", type=int, help="networks trained in parallel on a CPU; one per core by default"
    )
    parser.add_argument("--device", help="cpu, cuda, ...; a GPU if available by default")


def require_cpu_for_workers(workers: int | None, device: torch.device) -> None:
    """Raise a ValueError if a number of workers is given for another device than a CPU."""
    if workers is not None and device.type != "cpu":
        raise ValueError(
            f"--workers {workers} is not valid with {device}: leave it out, or use --device cpu"
        )
