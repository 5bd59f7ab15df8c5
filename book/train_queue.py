"""Run the remaining jobs of the book, in the order of ``book/queue.toml``: ``python book/train_queue.py``.

Networks that are stored are not trained again, so that the queue may be interrupted at any time, and resumed here or
on a machine with a GPU. ``--dry-run`` estimates the duration of each job on this machine.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from nads_book.benchmarks import seconds_per_step
from nads_book.cli import add_training_arguments, require_cpu_for_workers
from nads_book.experiments.base import Experiment
from nads_book.experiments.jobs import experiment
from nads_book.experiments.results import Results, results_path
from nads_book.experiments.runner import choose_precision, run_experiment

from nads_core.cli import console
from nads_core.data.images import DatasetNotFoundError
from nads_core.runtime.arguments import usable_device
from nads_core.training import num_cores

_EVALUATION = 1 / 3  # duration of a forward pass on a batch, in steps


@dataclass(frozen=True)
class QueuedJob:
    """The beginning of a job.

    Args:
        name: name of the job, such as ``fig1-vgg11``.
        preset: size of the job.
        count: number of networks, from the beginning of the job; all by default.
    """

    name: str
    preset: str
    count: int | None = None

    @cached_property
    def job(self) -> Experiment:
        """The whole job; about the newest NADs, unless results are stored."""
        stored = self.results()
        return experiment(self.name, self.preset) if stored is None else stored.experiment()

    @property
    def path(self) -> Path:
        """The results file."""
        return results_path(self.name, self.preset)

    def results(self) -> Results | None:
        """Return the stored results."""
        return Results.load(self.path) if self.path.exists() else None

    @property
    def wanted(self) -> int:
        """Number of networks."""
        return len(self.job.units[: self.count])

    @property
    def missing(self) -> int:
        """Number of networks that are not stored."""
        units, stored = self.job.units[: self.count], self.results()
        return len(units if stored is None else stored.missing(units))


def load_queue() -> tuple[QueuedJob, ...]:
    """Return the queue of the checkout."""
    path = Path(__file__).with_name("queue.toml")
    return tuple(QueuedJob(*row) for row in tomllib.loads(path.read_text("utf8"))["jobs"])


def estimates(
    queue: Iterable[QueuedJob] | None = None, device: torch.device | str = "cpu", workers: int | None = None
) -> Iterator[tuple[QueuedJob, int, float]]:
    """Yield each entry that is not complete, its number of missing networks, and about how many seconds these take.

    A step of each kind of training is timed on this machine. Networks that stop early take less, and so do small ones
    that share each step of a GPU.
    """
    device, timed, counted = torch.device(device), dict[tuple[object, ...], float](), dict[Path, int]()
    parallel = (workers or num_cores()) if device.type == "cpu" else 1
    for entry in load_queue() if queue is None else queue:
        job, before = entry.job, counted.get(entry.path, 0)
        missing = entry.missing - before  # an earlier entry of the same job comes first
        if missing <= 0:
            continue
        counted[entry.path] = before + missing
        rounded = choose_precision(job, entry.results(), device)
        kind = (job.architecture, job.on_photos, job.recipe.batch_size, rounded)
        if kind not in timed:
            timed[kind] = seconds_per_step(
                job.architecture, job.image_shape, job.recipe, num_classes=job.num_classes, mixed_precision=rounded,
                device=device,
            )  # fmt: skip
        steps = job.recipe.num_steps(job.num_train)
        steps += _EVALUATION * (job.num_train + job.num_test) / job.recipe.batch_size
        yield entry, missing, timed[kind] * steps * math.ceil(missing / parallel)


def run_queue(
    queue: Iterable[QueuedJob] | None = None,
    *,
    time_limit: float | None = None,
    device: torch.device | str | None = None,
    **options: Any,
) -> Iterator[tuple[QueuedJob, Results | DatasetNotFoundError]]:
    """Run the queue, and yield each entry with its results as soon as it is complete or the time is up.

    An entry whose photos are missing is yielded with the error, and the next one begins.

    Args:
        queue: entries in order; those of `load_queue` by default.
        time_limit: seconds for all of them.
        device: device of the trainings; by default a GPU if there is one.
        **options: options of `run_experiment`.
    """
    deadline = None if time_limit is None else time.monotonic() + time_limit
    for entry in load_queue() if queue is None else queue:
        if not entry.missing:
            continue
        limit = None if deadline is None else deadline - time.monotonic()
        if limit is not None and limit <= 0:
            return
        entry.path.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield entry, run_experiment(
                entry.name, entry.preset, out=entry.path, count=entry.wanted, time_limit=limit, device=device, **options
            )  # fmt: skip
        except DatasetNotFoundError as error:
            yield entry, error


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the queue, or estimate how long it takes; return 1 if a job was skipped because its photos are missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dry-run", action="store_true", help="only estimate the duration of each job on this machine")
    add_training_arguments(parser)
    given = {name: value for name, value in vars(parser.parse_args(arguments)).items() if value is not None}
    dry_run, workers = given.pop("dry_run"), given.pop("workers", None)
    try:
        device = usable_device(given.pop("device", None))
        require_cpu_for_workers(workers, device)
        if dry_run and given:
            raise ValueError(f"--dry-run is not valid with {', '.join(sorted(given))}: leave it out")
        return _estimate(device, workers) if dry_run else _run(device=device, workers=workers, **given)
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt as interrupt:
        print(f"\n{interrupt}", file=sys.stderr)
        return 130


def _run(**options: Any) -> int:
    skipped = False
    for part, outcome in run_queue(**options):
        done = isinstance(outcome, Results)
        skipped = skipped or not done
        print(f"{outcome} -> {part.path}" if done else f"skipped: {outcome}", flush=True)
    return 1 if skipped else 0


def _estimate(device: torch.device, workers: int | None) -> int:
    total = 0.0
    for part, missing, seconds in estimates(device=device, workers=workers):
        total += seconds
        share = f"{missing:>4} of {part.wanted:>3} networks left"
        print(f"{part.name:<18} {part.preset:<7} {share}  {_duration(seconds):>8}  -> {part.path}", flush=True)
    print(f"about {_duration(total)} on this machine; less if networks stop early")
    return 0


def _duration(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds < 7_200 else f"{seconds / 3_600:.1f} h"


if __name__ == "__main__":
    sys.exit(console(main))
