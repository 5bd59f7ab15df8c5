"""The long jobs that the book waits for, in the order in which they matter: ``python -m nads_core run --pending``.

Each is a job of `nads_book.experiments.jobs` at a size, up to a number of networks. What is done is not done again,
so that the command may be stopped at any time, and started again, here or where there is a GPU.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from nads_book.experiments.base import Experiment
from nads_book.experiments.jobs import experiment
from nads_book.experiments.presets import ON_CPUS
from nads_book.experiments.results import Results, results_path
from nads_book.experiments.runner import prefers_bfloat16, run_experiment, step_seconds
from nads_core.data.images import DatasetNotFoundError
from nads_core.training import num_cores, steps_of_training


@dataclass(frozen=True)
class Pending:
    """A part of a job that is wanted.

    Args:
        name: of the job, such as ``fig1-vgg11``.
        preset: its size.
        count: networks, from the beginning of the job; all by default.
    """

    name: str
    preset: str
    count: int | None = None

    @cached_property
    def job(self) -> Experiment:
        """The whole job; about the newest NADs, unless results are there already."""
        done = self.results()
        return experiment(self.name, self.preset) if done is None else done.experiment()

    @property
    def path(self) -> Path:
        """Its results file."""
        return results_path(self.name, self.preset)

    def results(self) -> Results | None:
        """What is there already."""
        return Results.load(self.path) if self.path.exists() else None

    @property
    def wanted(self) -> int:
        """How many networks it has."""
        return min(self.count or len(self.job.units), len(self.job.units))

    @property
    def left(self) -> int:
        """How many are missing."""
        units, done = self.job.units[: self.wanted], self.results()
        return len(units if done is None else done.missing(units))


QUEUE = (
    Pending("fig1-lenet", "laptop"),
    Pending("fig1-vgg11", "laptop", 32),
    Pending("maps-lenet", "laptop"),
    Pending("maps-logreg", "laptop", 12),
    Pending("notes-lenet", "laptop"),
    Pending("fig1-resnet18", "narrow", 16),
    Pending("fig1-densenet121", "narrow", 6),
    Pending("fig6-resnet18", "narrow", 8),
    Pending("fig8-vgg11", "laptop"),
    Pending("fig1-resnet18", "laptop", 16),
    Pending("fig1-densenet121", "laptop", 6),
    Pending("fig2-vgg11", "laptop", 16),
    Pending("fig6-vgg11", "laptop"),
    Pending("fig8-resnet18", "laptop"),
    Pending("maps-resnet18", "narrow", 16),
    Pending("notes-resnet18", "narrow", 16),
    Pending("maps-resnet18", "narrow"),
    Pending("fig3-lenet", "paper"),
    Pending("random-lenet", "paper"),
    Pending("fig7-lenet", "paper"),
    Pending("fig1-vgg11", "laptop"),
    Pending("fig1-resnet18", "laptop", 48),
    Pending("notes-resnet18", "narrow"),
    Pending("maps-resnet18", "laptop", 16),
    Pending("fig1-densenet121", "laptop", 24),
)


def estimates(
    queue: tuple[Pending, ...] = QUEUE, device: torch.device | str = "cpu", workers: int | None = None
) -> Iterator[tuple[Pending, int, float]]:
    """Yield each part that is not done, how many networks it lacks, and about how many seconds these take.

    A step of each kind of training is measured on this machine when it is first needed, alone, in the precision that
    the job would take. Networks that stop early take less, and so do small ones that share each step of a GPU.
    """
    measured: dict[tuple[object, ...], float] = {}
    device = torch.device(device)
    together = (workers or num_cores()) if device.type == "cpu" else 1
    counted: dict[tuple[str, str], int] = {}
    for part in queue:
        job, before = part.job, counted.get((part.name, part.preset), 0)
        left = part.left - before  # an earlier part of the same job comes first
        if left <= 0:
            continue
        counted[part.name, part.preset] = before + left
        precisions = _precisions(part, device)
        kind = (job.architecture, job.on_photos, job.recipe.batch_size, *precisions)
        if kind not in measured:
            measured[kind] = min(step_seconds(job, rounded, device) for rounded in precisions)
        steps = steps_of_training(job.recipe, job.num_train, job.num_test)
        yield part, left, measured[kind] * steps * math.ceil(left / together)


def _precisions(part: Pending, device: torch.device) -> list[bool]:
    """Return in which precision a job goes on; where it is not begun and a trial will decide, both."""
    done = part.results()
    if done is not None and done.precisions:
        return sorted(done.precisions)
    if device.type == "cpu" and part.preset in ON_CPUS:
        return [False, True]
    return [prefers_bfloat16(part.job, device)]


def run_pending(
    queue: tuple[Pending, ...] = QUEUE,
    *,
    time_limit: float | None = None,
    device: torch.device | str | None = None,
    **options: Any,
) -> Iterator[tuple[Pending, Results | DatasetNotFoundError]]:
    """Work the queue off, and yield each part with its results as soon as it is done or the time is up.

    A part that asks for photos that are not here is yielded with the error that says so, and the next one begins.

    Args:
        queue: parts in order.
        time_limit: seconds for all of them.
        device: by default a GPU if there is one.
        **options: of `run_experiment`.
    """
    deadline = None if time_limit is None else time.monotonic() + time_limit
    for part in queue:
        if not part.left:
            continue
        limit = None if deadline is None else deadline - time.monotonic()
        if limit is not None and limit <= 0:
            return
        part.path.parent.mkdir(parents=True, exist_ok=True)
        try:
            found: Results | DatasetNotFoundError = run_experiment(
                part.name, part.preset, out=part.path, count=part.wanted, time_limit=limit, device=device, **options
            )
        except DatasetNotFoundError as error:
            found = error
        yield part, found
