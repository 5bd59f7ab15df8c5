"""The queue of long jobs that the book waits for, in order of importance: ``book/queue.toml``.

Networks that are stored are not trained again, so that the queue may be interrupted at any time, and resumed here or
on a machine with a GPU.
"""

from __future__ import annotations

import math
import time
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from nads_book.experiments.base import Experiment
from nads_book.experiments.jobs import experiment
from nads_book.experiments.results import Results, results_path
from nads_book.experiments.runner import choose_precision, run_experiment
from nads_core.data.images import DatasetNotFoundError
from nads_core.networks.architectures import Architecture
from nads_core.runtime.files import checkout_folder
from nads_core.training import Recipe, num_cores, train_networks

_EVALUATION = 1 / 3  # duration of a forward pass on a batch, in steps
_LONG = 0.2  # seconds of a step from which on a single one is timed


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
        """Return what is stored."""
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
    path = checkout_folder("book/results").with_name("queue.toml")
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


def seconds_per_step(
    architecture: Architecture,
    image_shape: tuple[int, int, int],
    recipe: Recipe,
    *,
    num_classes: int = 2,
    mixed_precision: bool = False,
    device: torch.device | str = "cpu",
) -> float:
    """Measure one step of a training as `train_networks` does it for one network, on one thread of a CPU.

    It is the time that further epochs add, so that what every training does once is not in it.

    Args:
        architecture: architecture of the network.
        image_shape: (C, H, W) of its images.
        recipe: recipe whose batch size is used.
        num_classes: number of outputs.
        mixed_precision: whether layers run in bfloat16.
        device: device of the training.
    """
    on_cpu = torch.device(device).type == "cpu"

    def seconds(epochs: int, batches: int) -> float:
        images = torch.randn(batches * recipe.batch_size, *image_shape, generator=torch.Generator().manual_seed(0))
        result = train_networks(
            architecture, [(images, torch.arange(len(images)) % num_classes)],
            recipe=replace(recipe, epochs=epochs), num_classes=num_classes, mixed_precision=mixed_precision,
            device=device, method="processes" if on_cpu else "auto", workers=1 if on_cpu else None, progress=False,
        )  # fmt: skip
        return float(result.seconds)  # type: ignore[arg-type]  # one network

    seconds(1, 1)  # warms up the worker
    epochs, batches = (2, 1) if seconds(1, 1) > _LONG else (9, 16)
    return (seconds(epochs, batches) - seconds(1, batches)) / ((epochs - 1) * batches)


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
