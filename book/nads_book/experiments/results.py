"""Stored results of a job, as a file: written as a whole, compared with its job, merged, and loaded.

A results file is also the checkpoint of its job: it is replaced as a whole after every network, so that it is complete
at any moment.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from nads_book.checkout import checkout_folder
from nads_book.experiments.base import Experiment, Unit
from nads_book.experiments.jobs import experiment, experiment_class
from nads_core.runtime.files import atomic_write
from nads_core.runtime.provenance import canonical, differences, fingerprint

loaded: set[str] = set()  # names of the files that this process has loaded for display, which book/build.py reads


@dataclass
class Results:
    """What a job has measured so far.

    Args:
        job: name of the job.
        preset: size of the job.
        settings: all that determines the numbers.
        num_units: number of rows of the complete job.
        rows: one dictionary per trained network: its unit, ``test_accuracy``, ``train_accuracy``, ``final_loss`` (the
            mean over the last epoch), ``seconds``, and what the job's `Experiment` class measures.
        provenance: device, versions, commits and dates of every run that contributed.
    """

    job: str
    preset: str
    settings: dict[str, Any]
    num_units: int
    rows: list[dict[str, Any]]
    provenance: list[dict[str, Any]]

    @property
    def complete(self) -> bool:
        """Whether every unit has a row."""
        return len(self.rows) == self.num_units

    @property
    def photos(self) -> str | None:
        """`ImageSet.source` of the training images; None for D(v)."""
        return self.settings.get("photos")

    @property
    def nads_version(self) -> int | None:
        """Version of the NADs that the job is about; None for other jobs."""
        version: int | None = self.settings.get("nads", {}).get("version")
        return version

    @property
    def precisions(self) -> set[bool]:
        """Set of whether layers ran in bfloat16, of one element; empty if that is unknown.

        Runs of early releases don't record it; on a CPU their layers ran in float32.
        """
        runs = [run for run in self.provenance if "mixed_precision" in run or "CPU thread" in run["device"]]
        return {run.get("mixed_precision", False) for run in runs}

    def missing(self, units: Iterable[Unit]) -> list[Unit]:
        """Return those of the given units that have no row."""
        key = experiment_class(self.job).key
        done = set(map(key, self.rows))
        return [unit for unit in units if key(unit) not in done]

    def experiment(self) -> Experiment:
        """Return the job that these results belong to, about the NADs that they name.

        Raises:
            ValueError: if the job no longer exists, or its settings, NADs or units differ. The photos and the version
                of the random numbers may differ, because only resuming the job depends on them.
        """
        job = experiment(self.job, self.preset, self.nads_version)
        any_source = {"photos": self.photos, "numbers": self.settings.get("numbers")}
        now = job.settings() | {key: value for key, value in any_source.items() if key in self.settings}
        different = differences(self.settings | {"num_units": self.num_units}, now | {"num_units": len(job.units)})
        if different:
            raise ValueError(f"these results of {self.job} belong to another job of that name: {different}")
        _in_order(self.rows, job)
        return job

    def __str__(self) -> str:
        seconds = sum(row["seconds"] for row in self.rows)
        return f"{self.job} at preset {self.preset}: {len(self.rows)} of {self.num_units} networks, {seconds:.0f} s"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a JSON file, replacing the old one as a whole."""
        content = {name: value for name, value in vars(self).items() if name != "rows"}
        head = json.dumps({"fingerprint": fingerprint(canonical(vars(self))), **content}, indent=1)[:-2]
        rows = ",\n  ".join(json.dumps(row) for row in self.rows)
        with atomic_write(path) as file:
            file.write(f'{head},\n "rows": [\n  {rows}\n ]\n}}\n')

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Results:
        """Read a file that `save` wrote.

        Raises:
            ValueError: if the file holds something else, or was damaged or edited.
        """
        try:
            content = json.loads(Path(path).read_text("utf8"))
            stored = content.pop("fingerprint", None)
            results = cls(**content)
        except (json.JSONDecodeError, TypeError, AttributeError, UnicodeDecodeError) as error:
            raise ValueError(f"{path} is not a results file, or of a later release ({error}): name another") from error
        if stored is None:
            raise ValueError(f"{path} was written by nads_core 0.1, without a fingerprint: name another file")
        if stored != fingerprint(canonical(vars(results))):
            raise ValueError(f"{path} is damaged or was edited (its fingerprint is not {stored!r}): restore it")
        return results


def _in_order(rows: Iterable[dict[str, Any]], job: Experiment) -> list[dict[str, Any]]:
    """Return rows in the order of a job's units, a unit that occurs twice once.

    Raises:
        ValueError: if a row belongs to no unit.
    """
    by_key = {job.key(row): row for row in rows}
    keys = list(map(job.key, job.units))
    if foreign := [row for key, row in by_key.items() if key not in set(keys)]:
        names = (*job.unit_fields, "seed")
        units = [{name: row[name] for name in names if name in row} for row in foreign[:5]]
        raise ValueError(f"{len(foreign)} rows do not belong to {job.name} at preset {job.preset}, such as {units}")
    return [by_key[key] for key in keys if key in by_key]


def merge_results(parts: Iterable[Results]) -> Results:
    """Join the results of shards of one job; a unit that several hold counts once.

    Raises:
        ValueError: if the parts belong to different jobs, presets, settings or precisions, hold rows of no unit, or
            there is none.
    """
    parts = list(parts)
    if not parts:
        raise ValueError("there are no results to merge")
    first = parts[0]
    for part in parts[1:]:
        identities = ({"job": p.job, "preset": p.preset, "settings": p.settings} for p in (part, first))
        if different := differences(*identities):
            raise ValueError(f"these results are not of one job ({different}): merge only shards of one job")
    if len(set().union(*(part.precisions for part in parts))) > 1:
        raise ValueError("some of these results were trained in bfloat16 and some in float32: keep them apart")
    rows = [row for part in reversed(parts) for row in part.rows]
    ordered = _in_order(rows, experiment(first.job, first.preset, first.nads_version))
    provenance = []
    for part in parts:
        provenance += [entry for entry in part.provenance if entry not in provenance]
    return replace(first, rows=ordered, provenance=provenance)


def results_path(name: str, preset: str = "paper") -> Path:
    """Return where the results of a job are kept: ``book/results/`` of the checkout around the working folder.

    The environment variable ``NADS_RESULTS`` names another folder.
    """
    folder = Path(os.environ.get("NADS_RESULTS", checkout_folder("book/results")))
    return folder / f"{name}{'' if preset == 'paper' else '.' + preset}.json"


def load_results(name: str, preset: str = "paper", folder: Path | None = None) -> Results | None:
    """Return the stored results of a job, which may be incomplete, or None if there are none.

    They can be shown without the photos that they were made from: `Results.photos` names these.

    Args:
        name: name of the job.
        preset: size of the job.
        folder: folder of the file; by default that of `results_path`.

    Raises:
        ValueError: for an unknown job, or a file that is damaged or does not belong to it.
    """
    experiment(name, preset)
    path = results_path(name, preset)
    path = path if folder is None else folder / path.name
    if not path.exists():
        return None
    results = Results.load(path)
    try:
        if (results.job, results.preset) != (name, preset):
            raise ValueError(f"it holds {results.job} at preset {results.preset}")
        results.experiment()
    except ValueError as error:
        raise ValueError(f"{path} does not belong to {name} at preset {preset}: {error}") from error
    loaded.add(path.name)
    return results


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Hold a lock, so that two processes cannot write one results file.

    The empty lock file ``.NAME.lock`` stays: if it were deleted, two processes could hold locks of the same name.

    Raises:
        ValueError: if another process holds the lock.
    """
    from filelock import FileLock, Timeout

    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(path.with_name(f".{path.name}.lock"), timeout=0):
            yield
    except Timeout as error:
        raise ValueError(f"another process is writing {path}: split the job with --shard instead") from error
