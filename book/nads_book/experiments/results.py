"""Stored results of a study, as a file: written as a whole, compared with its study, and merged.

A results file is also the checkpoint of its study: it is replaced as a whole after every unit, so
that it is complete at any moment. Trainings of the figures have `Results`, with a fingerprint;
other studies have a `StudyFile`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

from nads_book.checkout import checkout_folder
from nads_book.experiments.study import Row, Study
from nads_core.runtime.arguments import Facts
from nads_core.runtime.files import atomic_write
from nads_core.runtime.provenance import canonical, differences, fingerprint

PLACE = (
    "seconds",
    "run",
)  # fields of a row that say how long and where it was computed, and decide nothing


class Stored:
    """What all results have in common: rows, each of which names the run in the provenance that
    computed it.
    """

    rows: list[Row]
    provenance: list[Facts]
    study: Study | None
    counted: ClassVar[str]  # key of the number of units of a run

    @property
    def complete(self) -> bool:
        """Whether every unit has a row."""
        return not self.experiment().missing(self.rows)

    @property
    def photos(self) -> str | None:
        """`ImageSet.source` of the training images, where it is stored."""
        return None

    @property
    def own_runs(self) -> list[Facts]:
        """Runs of this study."""
        return self.provenance

    @property
    def precisions(self) -> set[bool]:
        """Set of whether layers ran in bfloat16, of one element; empty if that is unknown.

        Runs of early releases don't record it, or as None; on a CPU their layers ran in float32.
        Those of ``nads64.json`` name no device.
        """
        runs = [
            run
            for run in self.own_runs
            if run.get("mixed_precision") is not None or "CPU thread" in run.get("device", "")
        ]
        return {bool(run.get("mixed_precision")) for run in runs}

    @property
    def identity(self) -> Facts:
        """What must agree before results are merged."""
        raise NotImplementedError

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a JSON file, replacing the old one as a whole."""
        raise NotImplementedError

    def experiment(self) -> Any:
        """Return the study that these results belong to, about the NADs that they name.

        Raises:
            ValueError: if they were read without it.
        """
        if self.study is None:
            raise ValueError("these results were read without their study: use load_results")
        return self.study

    def in_order(self) -> Self:
        """Return the same results with rows in the order of the study's units."""
        return replace(self, rows=ordered(self.rows, self.experiment()))  # type: ignore[type-var]


@dataclass
class Results(Stored):
    """What the trainings of a figure have measured so far.

    Args:
        job: name of the job.
        preset: size of the job.
        settings: all that determines the numbers.
        num_units: number of rows of the complete job.
        rows: one dictionary per trained network: its unit, ``test_accuracy``, ``train_accuracy``,
            ``final_loss`` (the mean over the last epoch), ``seconds``, ``run`` (`started` of the
            run in the provenance that trained it; not in early files), and what the job's class
            measures.
        provenance: device, versions, commits and dates of every run that contributed.
        study: the study of these results; None if they were read without it.
    """

    job: str
    preset: str
    settings: Facts
    num_units: int
    rows: list[Row]
    provenance: list[Facts]
    study: Study | None = field(default=None, compare=False, repr=False)

    counted = "networks"

    @property
    def content(self) -> Facts:
        """All fields that are stored, without the study."""
        return {name: value for name, value in vars(self).items() if name != "study"}

    @property
    def identity(self) -> Facts:
        """What must agree before results are merged."""
        return {"job": self.job, "preset": self.preset, "settings": self.settings}

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

    def attach(self, study: Any) -> None:
        """Name the study that these results belong to.

        Raises:
            ValueError: if its settings, NADs or units differ. The photos and the version of the
                random numbers may differ, because only resuming the study depends on them.
        """
        any_source = {"photos": self.photos, "numbers": self.settings.get("numbers")}
        now = study.settings() | {
            key: value for key, value in any_source.items() if key in self.settings
        }
        before = self.settings | {"num_units": self.num_units}
        if different := differences(before, now | {"num_units": len(study.units())}):
            raise ValueError(
                f"these results of {self.job} belong to another job of that name: {different}"
            )
        ordered(self.rows, study)
        self.study = study

    def __str__(self) -> str:
        seconds = sum(row["seconds"] for row in self.rows)
        return (
            f"{self.job} at preset {self.preset}: {len(self.rows)} of {self.num_units} networks, "
            f"{seconds:.0f} s"
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a JSON file, replacing the old one as a whole."""
        content = {name: value for name, value in self.content.items() if name != "rows"}
        head = json.dumps(
            {"fingerprint": fingerprint(canonical(self.content)), **content}, indent=1
        )[:-2]
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
            expected = fingerprint(canonical(content))
        except (
            ValueError,
            TypeError,
            AttributeError,
            RecursionError,
        ) as error:  # a JSON file of anything else
            problem = f"{type(error).__name__}: {error!s:.300}"
            raise ValueError(f"{path} is not a results file ({problem}): name another") from error
        if stored != expected:
            raise ValueError(
                f"{path} is damaged or was edited (its fingerprint is not {stored!r}): restore it"
            )
        return results


Kind = TypeVar("Kind", bound=Stored)


def by_unit(rows: Iterable[Row], study: Study) -> dict[str, list[Row]]:
    """Return the rows of each unit, by its key.

    Raises:
        ValueError: if a unit has two rows, where one is expected.
    """
    grouped: dict[str, list[Row]] = {}
    for row in rows:
        grouped.setdefault(study.key(row), []).append(row)
    repeated = sum(len(found) - 1 for found in grouped.values())
    if repeated and not study.many_rows:
        raise ValueError(
            f"there are {repeated} rows of units of {study.name} that have a row already"
        )
    return grouped


def ordered(rows: Iterable[Row], study: Study) -> list[Row]:
    """Return rows in the order of a study's units.

    Raises:
        ValueError: if a row belongs to no unit, or a unit has two rows, where one is expected.
    """
    grouped = by_unit(rows, study)
    keys = list(map(study.key, study.units()))
    if foreign := [found[0] for key, found in grouped.items() if key not in set(keys)]:
        units = [
            {name: row[name] for name in study.unit_fields if name in row} for row in foreign[:5]
        ]
        raise ValueError(f"{len(foreign)} rows do not belong to {study.name} here, such as {units}")
    return [row for key in keys for row in grouped.get(key, [])]


def merge(parts: Sequence[Kind], study: Study) -> Kind:
    """Join the results of shards of one study; a unit that several hold counts once.

    Raises:
        ValueError: if the parts belong to different studies, settings or precisions, hold rows of
            no unit or different rows of one unit.
    """
    first = parts[0]
    for part in parts[1:]:
        if different := differences(part.identity, first.identity):
            raise ValueError(
                f"these results are not of one job ({different}): merge only shards of one job"
            )
    if len(set().union(*(part.precisions for part in parts))) > 1:
        raise ValueError(
            "some of these results were trained in bfloat16 and some in float32: keep them apart"
        )
    merged: dict[str, list[Row]] = {}
    for part in parts:
        for key, rows in by_unit(part.rows, study).items():
            before, now = _values(merged.setdefault(key, rows)), _values(rows)
            if canonical(before) != canonical(now):  # as text: NaN differs from itself
                unit = {name: rows[0][name] for name in study.unit_fields if name in rows[0]}
                different = "; ".join(differences(*pair) for pair in zip(before, now, strict=False))
                raise ValueError(
                    f"two rows of {unit} differ ({different}): leave out one of their files"
                )
    provenance: list[Facts] = []
    for part in parts:
        provenance += [entry for entry in part.provenance if entry not in provenance]
    rows = ordered([row for found in merged.values() for row in found], study)
    return replace(first, rows=rows, provenance=provenance, study=study)  # type: ignore[type-var]


def _values(content: Any) -> Any:
    """Return what must agree where two files hold one unit: all but where and how long it was
    computed.
    """
    if isinstance(content, list):
        return [_values(item) for item in content]
    if isinstance(content, dict):
        return {name: _values(value) for name, value in content.items() if name not in PLACE}
    return content


def results_path(name: str, preset: str = "paper") -> Path:
    """Return where the results of a job are kept: ``book/results/`` of the checkout around the
    working folder.

    The environment variable ``NADS_RESULTS`` names another folder.
    """
    folder = Path(os.environ.get("NADS_RESULTS", checkout_folder("book/results")))
    return folder / f"{name}{'' if preset == 'paper' else '.' + preset}.json"


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Hold a lock, so that two processes cannot write one results file.

    The empty lock file ``.NAME.lock`` stays: if it were deleted, two processes could hold locks of
    the same name.

    Raises:
        ValueError: if another process holds the lock.
    """
    from filelock import FileLock, Timeout

    file = path.expanduser().resolve()  # the lock of a link is that of its target
    try:
        with FileLock(file.with_name(f".{file.name}.lock"), timeout=0):
            yield
    except Timeout as error:
        raise ValueError(
            f"another process is writing {path}: split the job with --shard instead"
        ) from error
