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
            ValueError: if the file holds something else, or was damaged or edited, or a unit has two rows.
        """
        try:
            content = json.loads(Path(path).read_text("utf8"))
            stored = content.pop("fingerprint", None)
            results = cls(**content)
            results._require_types()
            expected = fingerprint(canonical(content))
            key = experiment_class(results.job).key
            repeated = len(results.rows) - len(set(map(key, results.rows)))
        except (ValueError, TypeError, AttributeError, RecursionError) as error:  # a JSON file of anything else
            problem = f"{type(error).__name__}: {error!s:.300}"
            raise ValueError(f"{path} is not a results file ({problem}): name another") from error
        if stored != expected:
            raise ValueError(f"{path} is damaged or was edited (its fingerprint is not {stored!r}): restore it")
        if repeated:
            raise ValueError(f"{path} has {repeated} rows of units that have a row already: restore it")
        return results

    def _require_types(self) -> None:
        """Raise a TypeError unless every field has the type of its annotation."""
        for name, kind in {"job": str, "preset": str, "settings": dict, "num_units": int}.items():
            if not isinstance(value := getattr(self, name), kind):
                raise TypeError(f"{name} is {value!r}, expected {kind.__name__}")
        for name in ("rows", "provenance"):
            entries = getattr(self, name)
            if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
                raise TypeError(f"{name} is no list of dictionaries")


def _in_order(rows: Iterable[dict[str, Any]], job: Experiment) -> list[dict[str, Any]]:
    """Return rows in the order of a job's units; equal rows of one unit, which differ at most in seconds, count once.

    Raises:
        ValueError: if a row belongs to no unit, or two rows of one unit differ.
    """
    by_key: dict[str, dict[str, Any]] = {}
    for row in rows:
        first = by_key.setdefault(job.key(row), row)
        before, now = ({**each, "seconds": None} for each in (first, row))
        if canonical(before) != canonical(now):  # as text: NaN differs from itself
            unit = {name: row[name] for name in (*job.unit_fields, "seed") if name in row}
            raise ValueError(f"two rows of {unit} differ ({differences(before, now)}): leave out one of their files")
    keys = list(map(job.key, job.units))
    if foreign := [row for key, row in by_key.items() if key not in set(keys)]:
        names = (*job.unit_fields, "seed")
        units = [{name: row[name] for name in names if name in row} for row in foreign[:5]]
        raise ValueError(f"{len(foreign)} rows do not belong to {job.name} at preset {job.preset}, such as {units}")
    return [by_key[key] for key in keys if key in by_key]


def merge_results(parts: Iterable[Results]) -> Results:
    """Join the results of shards of one job; a row that several hold counts once.

    Raises:
        ValueError: if the parts belong to different jobs, presets, settings or precisions, hold rows of no unit or
            different rows of one unit, or there is none.
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
    rows = [row for part in parts for row in part.rows]
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
    try:
        results = Results.load(path)  # opened in any case: the build sees that it was looked for
    except FileNotFoundError:
        return None
    try:
        if (results.job, results.preset) != (name, preset):
            raise ValueError(f"it holds {results.job} at preset {results.preset}")
        results.experiment()
    except ValueError as error:
        raise ValueError(f"{path} does not belong to {name} at preset {preset}: {error}") from error
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
    file = path.expanduser().resolve()  # the lock of a link is that of its target
    try:
        with FileLock(file.with_name(f".{file.name}.lock"), timeout=0):
            yield
    except Timeout as error:
        raise ValueError(f"another process is writing {path}: split the job with --shard instead") from error
