"""How a job runs: it stops, goes on, splits over machines, and loses little.

Of a training that is killed its last epoch is lost; where many small networks share each step of a GPU, all of their
group is.

What a unit's network learns is made in the process that trains it; its row is written as soon as it is there, and what
of a training is done when it is killed lies in a file of its own, beside the results.
"""

from __future__ import annotations

import glob
import math
import os
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import torch

from nads_book.experiments.jobs import LOSSES, Experiment, Unit, direction_of, experiment
from nads_book.experiments.photos import PhotoDatasets, measures, photos_of
from nads_book.experiments.presets import ON_CPUS
from nads_book.experiments.results import Results, merge_results, writing
from nads_core.data.separable import SeparableDatasets
from nads_core.runtime.arguments import require_integers, usable_device
from nads_core.runtime.provenance import canonical, environment, fingerprint
from nads_core.runtime.seeds import seed_sequence
from nads_core.training import Dataset, TrainingResult, TrainingState, TrainingTimeout, train_networks


def run_experiment(
    name: str,
    preset: str = "demo",
    *,
    out: str | os.PathLike[str] | None = None,
    count: int | None = None,
    time_limit: float | None = None,
    shard: tuple[int, int] = (1, 1),
    workers: int | None = None,
    device: torch.device | str | None = None,
    mixed_precision: bool | None = None,
    root: str | os.PathLike[str] | None = None,
    nads_version: int | None = None,
    progress: bool = True,
) -> Results:
    """Run what is left of a job.

    Args:
        name: such as ``fig1-lenet``; see `experiment`.
        preset: "smoke", "demo", "laptop", "narrow" or "paper".
        out: results file, replaced after every network; a run that finds one there goes on with it.
        count: networks of the job to train, from its beginning; all by default.
        time_limit: seconds after which to stop; what is finished by then is kept, and the result is not ``complete``.
        shard: (i, n) runs the i-th of n parts; give each part a file of its own and join them with `merge_results`.
        workers: networks trained at once on a CPU; by default one a core.
        device: by default a GPU if there is one.
        mixed_precision: run the layers in bfloat16; by default on a GPU that has it, and at presets "laptop" and
            "narrow" on a CPU where a trial of a few steps says that it is faster. A run that goes on keeps what the
            first one chose.
        root: folder with the photos of Figs. 7 and 8; see `load_images`.
        nads_version: of the NADs that Figs. 6 to 8 are about; by default those that ``out`` is about, else the newest.
        progress: show a progress bar with the time that remains.

    Returns:
        The rows of all networks that are finished, those of earlier runs in ``out`` included.

    Raises:
        ValueError: for an unknown job, a shard that does not exist, or a file of another job or other settings.
        DatasetNotFoundError: where Figs. 7 and 8 find no photos, but for the presets "smoke" and "demo".
        KeyboardInterrupt: on Ctrl-C; ``out`` has what was finished, and the next run goes on.
    """
    out, root = Path(out) if out else None, None if root is None else str(root)
    job = experiment(name, preset, _version_begun_with(name, out) if nads_version is None else nads_version)
    part, parts = shard
    if count is not None:
        require_integers(count=count)
    if not 1 <= part <= parts:
        raise ValueError(f"shard must be i of n with 1 <= i <= n, got {part}/{parts}")
    with writing(out) if out else nullcontext():
        results = _begun(job, out, root)
        left = results.missing(job.units[:count][part - 1 :: parts])
        device, start = usable_device(device), time.monotonic()
        if left:
            mixed_precision = _one_precision(job, results.precisions, device, mixed_precision)
        run = _Run(job, results, left, out, root, device, workers, mixed_precision, start)
        run.train(time_limit, progress)
    return merge_results([results])


def _version_begun_with(name: str, out: Path | None) -> int | None:
    """Return the version of the NADs that a results file of this job is about, if there is one."""
    if out is None or not out.exists():
        return None
    begun = Results.load(out)
    version: int | None = begun.settings.get("nads", {}).get("version")
    return version if begun.job == name else None


def _begun(job: Experiment, out: Path | None, root: str | None) -> Results:
    """Return what is in the results file, or results without rows where there is none."""
    photos = photos_of(job, False, root).source if job.on_photos else None
    results = Results(job.name, job.preset, job.settings(photos), len(job.units), [], [])
    if out is None or not out.exists():
        return results
    before = Results.load(out)
    try:
        return merge_results([results, before])
    except ValueError as error:
        raise ValueError(f"{out} cannot be continued: {error}") from error


def choose_precision(
    name: str, preset: str, *, out: Path, device: torch.device, mixed_precision: bool | None = None
) -> bool:
    """Return whether `run_experiment` of the same arguments trains in bfloat16: once for all processes of a run.

    Raises:
        ValueError: as `run_experiment`.
    """
    begun_with = Results.load(out).precisions if out.exists() else set()
    return _one_precision(experiment(name, preset, _version_begun_with(name, out)), begun_with, device, mixed_precision)


def _one_precision(job: Experiment, begun_with: set[bool], device: torch.device, mixed_precision: bool | None) -> bool:
    """Return the precision that a job began with; where it begins here, that asked for, or the default.

    Raises:
        ValueError: if another one is asked for than the job began with.
    """
    if begun_with and mixed_precision is not None and begun_with != {mixed_precision}:
        before = " and ".join(str(one) for one in sorted(begun_with))
        raise ValueError(
            f"{job.name} began with mixed_precision={before} and goes on with it: leave mixed_precision out, or "
            "name another file"
        )
    if mixed_precision is not None:
        return mixed_precision
    return min(begun_with) if begun_with else prefers_bfloat16(job, device)


def prefers_bfloat16(job: Experiment, device: torch.device) -> bool:
    """Whether layers run in bfloat16 unless told: on a GPU that has it, and on a CPU where a trial says so."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    if device.type != "cpu" or job.preset not in ON_CPUS:
        return False
    return job.seconds_per_step(mixed_precision=True) < job.seconds_per_step(mixed_precision=False)


@dataclass
class _Run:
    """The training of what is left of a job.

    Args:
        job: whose networks are trained.
        results: that the rows are added to, and an entry of the provenance about this run.
        left: units without a row.
        out: file of the results, and folder of the trainings that are not finished; None keeps neither.
        root: folder with photos.
        device: where.
        workers: networks trained at once on a CPU.
        mixed_precision: bfloat16 layers.
        start: of the run, in the seconds of `time.monotonic`.
    """

    job: Experiment
    results: Results
    left: list[Unit]
    out: Path | None
    root: str | None
    device: torch.device
    workers: int | None
    mixed_precision: bool | None
    start: float
    entry: dict[str, Any] = field(init=False)  # of this run in the provenance

    def train(self, time_limit: float | None, progress: bool) -> None:
        """Train until all is done, or the time is up."""
        self.entry = self._enter()
        for seed in sorted({unit["seed"] for unit in self.left}):
            try:
                self._train_seed(seed, time_limit, progress)
            except TrainingTimeout:
                break
            except KeyboardInterrupt:
                kept = f"{self.results} kept in {self.out}; the same command goes on"
                told = kept if self.out is not None else "nothing was kept: name a file"
                raise KeyboardInterrupt(f"interrupted. {told}") from None
        if self.out is not None and self.results.complete:  # of trainings begun in other ways and not gone on with
            for dots in (".", ".."):  # two: of a worker that was killed while it wrote
                for stale in self.out.parent.glob(f"{dots}{glob.escape(self.out.name)}.*.part"):
                    stale.unlink(missing_ok=True)

    def _enter(self) -> dict[str, Any]:
        """Return the entry of this run in the provenance, in place of those that trained nothing."""
        started = datetime.now(UTC).isoformat(timespec="milliseconds")
        entry = {**environment(self.device), "started": started, "networks": 0, "seconds": 0.0}
        chosen = {"workers": self.workers, "mixed_precision": self.mixed_precision}
        entry |= {name: value for name, value in chosen.items() if value is not None}
        self.results.provenance = [other for other in self.results.provenance if other["networks"]]
        if self.left:
            self.results.provenance.append(entry)
            if self.out is not None and "mixed_precision" in entry:
                self.results.save(self.out)  # what was chosen must outlive a kill in the first network
        return entry

    def _train_seed(self, seed: int, time_limit: float | None, progress: bool) -> None:
        """Train the units of one seed together, and keep each network as soon as it is there."""
        job, units = self.job, [unit for unit in self.left if unit["seed"] == seed]
        states = None
        if self.out is not None:
            states = [_state(job, unit, self.results, self.out, self.device, self.mixed_precision) for unit in units]

        def keep(b: int, result: TrainingResult) -> None:
            self.results.rows.append({**units[b], **_row(job, result)})
            self.entry["networks"] += 1
            self.entry["seconds"] = round(time.monotonic() - self.start, 1)
            if self.out is not None and states is not None:
                self.results.save(self.out)
                states[b].forget()

        train, test = _datasets(job, units, seed, self.root, self.results.photos)
        train_networks(
            job.architecture, train, test, recipe=job.recipe, num_classes=10 if job.on_photos else 2, seed=seed,
            # Those of one seed that get notes, or maps, begin alike, so that the kinds are compared in pairs
            network_ids=[0 if job.figure in ("maps", "notes") else job.units.index(unit) for unit in units],
            device=self.device, workers=self.workers,
            mixed_precision=self.mixed_precision, stop_loss=LOSSES[-1] if job.figure == "fig2" else None,
            stop_at_full_accuracy=job.stop_perfect,
            timeout=None if time_limit is None else time_limit - (time.monotonic() - self.start),
            measure=measures(job, units, self.root),
            on_result=keep, states=states, progress=progress,
        )  # fmt: skip


def _state(
    job: Experiment, unit: Unit, results: Results, out: Path, device: torch.device, mixed_precision: bool | None
) -> TrainingState:
    """Return the file of a unit's training, under a name that stands for all that decides about it."""
    what = [job.name, job.preset, results.settings, unit, device.type, mixed_precision]
    return TrainingState(out.with_name(f".{out.name}.{fingerprint(canonical(what))}.part"))


def _row(job: Experiment, result: TrainingResult) -> dict[str, Any]:
    """Return what is kept of a training, as JSON: see `Results`."""
    steps = math.ceil(job.num_train / job.recipe.batch_size)  # of an epoch
    losses = result.losses[result.losses.isfinite()]
    row: dict[str, Any] = {
        "test_accuracy": round(float(result.test_accuracy), 5),  # type: ignore[arg-type]  # there is a test set
        "train_accuracy": round(float(result.train_accuracy), 5),
        "final_loss": round(float(losses[-steps:].mean()), 5),
        "seconds": round(float(result.seconds or 0), 2),
    }
    if job.figure == "fig2":
        row["iterations"] = [int(result.iterations_to(loss)) for loss in LOSSES]
    if result.measured is not None:
        row |= result.measured
    return row


# What the networks learn


def _datasets(
    job: Experiment, units: list[Unit], seed: int, root: str | None, photos: str | None
) -> tuple[Sequence[Dataset], Sequence[Dataset]]:
    """Return the training and the test set of each unit, made when they are asked for."""
    if job.on_photos:
        seen = partial(PhotoDatasets, job, tuple(units), root=root, source=photos)
        return seen(train=True), seen(train=False)
    directions = torch.stack([direction_of(job, unit) for unit in units])  # (B, 1, 32, 32)
    draw = partial(SeparableDatasets, directions, margin=1.0, noise_std=job.noise_std)
    test = draw(job.num_test, seed=seed_sequence(seed, 6), paired=job.paired_test)
    return draw(job.num_train, seed=seed_sequence(seed, 5)), test
