"""``nads-book queue``: run the remaining jobs of the book in order."""

from __future__ import annotations

import argparse
from typing import Any

from nads_book.cli import add_training_arguments, require_cpu_for_workers
from nads_book.experiments import queue
from nads_book.experiments.results import Results
from nads_core.runtime.arguments import usable_device

CALLS = ("nads_book.experiments:run_experiment",)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the options of ``nads-book queue``."""
    parser.add_argument("--dry-run", action="store_true", help="only estimate the duration of each job on this machine")
    add_training_arguments(parser)


def run(dry_run: bool = False, device: str | None = None, workers: int | None = None, **options: Any) -> int:
    """Run the queue, or estimate how long it takes.

    Args:
        dry_run: whether to estimate only.
        device: device, or None for a GPU if available.
        workers: networks trained in parallel on a CPU.
        **options: options of `run_queue`.

    Returns:
        1 if a job was skipped because its photos are missing.
    """
    place = usable_device(device)
    require_cpu_for_workers(workers, place)
    if dry_run:
        if options:
            raise ValueError(f"--dry-run is not valid with {', '.join(sorted(options))}: leave it out")
        return _estimate(place, workers)
    skipped = False
    for part, outcome in queue.run_queue(device=place, workers=workers, **options):
        done = isinstance(outcome, Results)
        skipped = skipped or not done
        print(f"{outcome} -> {part.path}" if done else f"skipped: {outcome}", flush=True)
    return 1 if skipped else 0


def _estimate(device: Any, workers: int | None) -> int:
    total = 0.0
    for part, missing, seconds in queue.estimates(device=device, workers=workers):
        total += seconds
        share = f"{missing:>4} of {part.wanted:>3} networks left"
        print(f"{part.name:<18} {part.preset:<7} {share}  {_duration(seconds):>8}  -> {part.path}", flush=True)
    print(f"about {_duration(total)} on this machine; less if networks stop early")
    return 0


def _duration(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds < 7_200 else f"{seconds / 3_600:.1f} h"
