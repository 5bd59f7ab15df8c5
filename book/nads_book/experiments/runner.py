"""How a job runs: it can be interrupted, resumed, and split over processes and machines, and loses little.

A row is written as soon as its network is trained. The state of an unfinished training is in a file of its own next to
the results, so that a killed training loses its last epoch. Where many small networks share each step of a GPU, the
whole group is lost.
"""

import glob
import os
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import torch

from nads_book.experiments.base import Experiment, Unit
from nads_book.experiments.jobs import experiment
from nads_book.experiments.poison_and_flip_experiments import PhotoExperiment
from nads_book.experiments.presets import ON_CPUS
from nads_book.experiments.results import Results, merge_results, writing
from nads_core.runtime import distributed
from nads_core.runtime.arguments import require_integers, usable_device
from nads_core.runtime.provenance import canonical, environment, fingerprint
from nads_core.training import TrainingResult, TrainingState, TrainingTimeout, train_networks

# A step in bfloat16 takes .68, .47 and .52 of the time in float32 for these on a CPU, but 1.4 for LeNet and 1.7 for
# logistic regression (benchmarks/results/training_step-*.json).
DEEP = ("vgg11", "resnet18", "densenet121")
_POLL_SECONDS = 0.1


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
    """Run a job, or resume it.

    Args:
        name: name of the job, such as ``fig1-lenet``; see `experiment`.
        preset: "smoke", "demo", "laptop", "narrow" or "paper".
        out: results file, replaced after every network; an existing one is resumed.
        count: number of networks to train, from the beginning of the job; all by default.
        time_limit: seconds after which to stop; finished networks are kept, and the result is not ``complete``.
        shard: (i, n) runs the i-th of n parts; give each part a file of its own and join them with `merge_results`.
        workers: number of networks trained in parallel on a CPU; by default one per core.
        device: device of the trainings; by default a GPU if there is one.
        mixed_precision: whether layers run in bfloat16; see `choose_precision` for the default.
        root: folder with the photos of CIFAR-10; see `load_images`.
        nads_version: version of the NADs that a job is about; by default that of ``out``, else the newest.
        progress: whether to show a progress bar with the remaining time.

    Returns:
        The rows of all finished networks, those of earlier runs in ``out`` included.

    Raises:
        ValueError: for an unknown job, a shard that does not exist, or a file of another job or other settings.
        DatasetNotFoundError: if photos are missing, except at the presets "smoke" and "demo".
        KeyboardInterrupt: on Ctrl-C; ``out`` has all finished networks, and the next run resumes.
    """
    out, root = Path(out) if out else None, None if root is None else str(root)
    job = experiment(name, preset, _stored_version(name, out) if nads_version is None else nads_version)
    part, parts = shard
    if count is not None:
        require_integers(count=count)
    if not 1 <= part <= parts:
        raise ValueError(f"shard must be i of n with 1 <= i <= n, got {part}/{parts}")
    with writing(out) if out else nullcontext():
        start, device, results = time.monotonic(), usable_device(device), _stored(job, out, root)
        units = results.missing(job.units[:count][part - 1 :: parts])
        if units:
            mixed_precision = choose_precision(job, results, device, mixed_precision)
        run = _Run(job, results, units, out, root, device, workers, mixed_precision, start)
        run.train(time_limit, progress)
    return merge_results([results])


def _stored_version(name: str, out: Path | None) -> int | None:
    """Return the version of the NADs that a results file of this job is about, if there is one."""
    if out is None or not out.exists():
        return None
    stored = Results.load(out)
    return stored.nads_version if stored.job == name else None


def _stored(job: Experiment, out: Path | None, root: str | None) -> Results:
    """Return the content of the results file, or results without rows if there is none."""
    photos = job.photos(False, root).source if isinstance(job, PhotoExperiment) else None
    results = Results(job.name, job.preset, job.settings(photos), len(job.units), [], [])
    if out is None or not out.exists():
        return results
    stored = Results.load(out)
    try:
        return merge_results([results, stored])
    except ValueError as error:
        raise ValueError(f"{out} cannot be continued: {error}") from error


def choose_precision(
    job: Experiment, stored: Results | None, device: torch.device, requested: bool | None = None
) -> bool:
    """Return whether a job runs its layers in bfloat16.

    A job keeps the precision of its stored networks. By default a new job takes bfloat16 on a GPU that has it, and on a
    CPU for deep networks at the presets "laptop" and "narrow".

    Raises:
        ValueError: if another precision is requested than that of the stored networks.
    """
    before = set() if stored is None else stored.precisions
    if requested is not None and before - {requested}:
        names = " and ".join(map(str, sorted(before)))
        raise ValueError(f"{job.name} began with mixed_precision={names}: leave it out, or name another file")
    if before or requested is not None:
        return min(before) if requested is None else requested
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    return device.type == "cpu" and job.preset in ON_CPUS and job.architecture.name in DEEP


@dataclass
class _Run:
    """The training of the missing units of a job.

    Args:
        job: job of the units.
        results: results that rows are added to, and one entry of the provenance.
        units: units without a row.
        out: results file, in whose folder unfinished trainings are kept; None keeps nothing.
        root: folder with photos.
        device: device of the trainings.
        workers: number of networks trained in parallel on a CPU.
        mixed_precision: whether layers run in bfloat16.
        start: start of the run, in the seconds of `time.monotonic`.
    """

    job: Experiment
    results: Results
    units: list[Unit]
    out: Path | None
    root: str | None
    device: torch.device
    workers: int | None
    mixed_precision: bool | None
    start: float
    entry: dict[str, Any] = field(init=False)  # of this run in the provenance

    def train(self, time_limit: float | None, progress: bool) -> None:
        """Train until all is done, or the time is up."""
        self.entry = self._entry()
        for seed in sorted({unit["seed"] for unit in self.units}):
            try:
                self._train_seed(seed, time_limit, progress)
            except TrainingTimeout:
                break
            except KeyboardInterrupt:
                outcome = f"{self.results} kept in {self.out}; the same command resumes"
                outcome = "nothing was kept: name a file" if self.out is None else outcome
                raise KeyboardInterrupt(f"interrupted. {outcome}") from None
        if self.out is not None and self.results.complete:  # states of trainings begun in other ways are left
            for dots in (".", ".."):  # a worker that was killed while it wrote leaves two
                for stale in self.out.parent.glob(f"{dots}{glob.escape(self.out.name)}.*.part"):
                    stale.unlink(missing_ok=True)

    def _entry(self) -> dict[str, Any]:
        """Return the entry of this run in the provenance; it replaces those of runs that trained nothing."""
        started = datetime.now(UTC).isoformat(timespec="milliseconds")
        entry = {**environment(self.device), "started": started, "networks": 0, "seconds": 0.0}
        chosen = {"workers": self.workers, "mixed_precision": self.mixed_precision}
        entry |= {name: value for name, value in chosen.items() if value is not None}
        self.results.provenance = [other for other in self.results.provenance if other["networks"]]
        if self.units:
            self.results.provenance.append(entry)
            if self.out is not None:
                self.results.save(self.out)  # the precision must outlive a kill in the first network
        return entry

    def _state(self, unit: Unit) -> TrainingState:
        """Return the file of a unit's training, under a name that identifies all that determines it."""
        job, out = self.job, self.out
        assert out is not None
        identity = [job.name, job.preset, self.results.settings, unit, self.device.type, self.mixed_precision]
        return TrainingState(out.with_name(f".{out.name}.{fingerprint(canonical(identity))}.part"))

    def _train_seed(self, seed: int, time_limit: float | None, progress: bool) -> None:
        """Train the units of one seed together, and keep each network as soon as it is trained."""
        job, units = self.job, [unit for unit in self.units if unit["seed"] == seed]
        states = None if self.out is None else [self._state(unit) for unit in units]

        def keep(b: int, result: TrainingResult) -> None:
            self.results.rows.append({**units[b], **job.row(result)})
            self.entry["networks"] += 1
            self.entry["seconds"] = round(time.monotonic() - self.start, 1)
            if self.out is not None and states is not None:
                self.results.save(self.out)
                states[b].forget()

        train, test = job.datasets(units, seed, self.root, self.results.photos)
        train_networks(
            job.architecture, train, test, recipe=job.recipe, num_classes=job.num_classes, seed=seed,
            network_ids=job.network_ids(units), device=self.device, workers=self.workers, on_result=keep,
            mixed_precision=self.mixed_precision, stop_loss=job.stop_loss, stop_at_full_accuracy=job.stop_perfect,
            timeout=None if time_limit is None else time_limit - (time.monotonic() - self.start), states=states,
            measure=job.measures(units, self.root, self.mixed_precision), progress=progress,
        )  # fmt: skip


def run_distributed(
    run: Callable[..., Results], out: Path, shard: tuple[int, int], device: torch.device
) -> Results | None:
    """Let each process of the group run a part of the shard; process 0 joins the parts and returns them.

    Args:
        run: `run_experiment` of a job, to which ``out``, ``shard``, ``device`` and ``progress`` are passed.
        out: results file; each process writes a file of its own to the same folder meanwhile.
        shard: (i, n), the part of the job that all processes together run.
        device: device of this process.

    Raises:
        FileNotFoundError: if the files of some processes lie on other machines.
        ValueError: if another process is writing ``out``, or files of processes in its folder belong to another job.
    """
    (part, parts), rank, size = shard, distributed.rank(), distributed.size()
    # Gloo, also on GPUs: its connections break when a process dies, so that waiting needs no time limit
    group = torch.distributed.new_group(backend="gloo", timeout=timedelta(days=365))  # torch lacks an infinite timeout
    files = [out.with_suffix(f".process{number}.json") for number in range(size)]
    with nullcontext() if rank else writing(out):
        if not rank:
            gather(out)
        barrier(group)
        if out.exists():
            Results.load(out).save(files[rank])  # rows and precision of earlier runs
        results = run(out=files[rank], shard=(part + parts * rank, parts * size), device=device, progress=rank == 0)
        results.save(files[rank])
        barrier(group)
        if rank:
            return None
        if missing := [file.name for file in files if not file.exists()]:
            absent = f"{', '.join(missing)} are not in {out.parent.absolute()}, but on other machines"
            raise FileNotFoundError(f"{absent}: join all parts with the command merge")
        return gather(out)


def gather(out: Path) -> Results | None:
    """Join into ``out`` the files of all processes in its folder; return None if there are none."""
    files = sorted(out.parent.glob(f"{glob.escape(out.stem)}.process*.json"))
    if not files:
        return None
    try:
        results = merge_results([Results.load(file) for file in (out, *files) if file.exists()])
    except ValueError as error:
        raise ValueError(f"{', '.join(map(str, files))} were left by an earlier run: {error}") from error
    results.save(out)
    for file in files:
        file.unlink()
    return results


def barrier(group: Any) -> None:
    """Wait until every process has called this function, without a time limit.

    Raises:
        ConnectionError: if a process died.
    """
    work = torch.distributed.barrier(group, async_op=True)
    while not work.is_completed():  # polling lets Ctrl-C interrupt the wait
        time.sleep(_POLL_SECONDS)
    try:
        work.wait()
    except RuntimeError as error:
        raise ConnectionError(f"a process died that the others waited for ({error})") from error
