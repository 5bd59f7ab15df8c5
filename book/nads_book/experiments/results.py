"""Stored results of a study, as a file: written as a whole, and compared with its study.

A results file is also the checkpoint of its study: it is replaced as a whole after every unit, so
that it is complete at any moment.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nads_book.experiments.study import Row, Study
from nads_core.runtime.arguments import Facts
from nads_core.runtime.files import atomic_write
from nads_core.runtime.provenance import differences

if TYPE_CHECKING:
    import pandas as pd


@dataclass
class Results:
    """What a study has measured so far.

    Args:
        facts: what the file states beside rows and runs, see `Study.facts`.
        rows: one dictionary per row: its unit, what was measured, and as ``run`` the start of the
            run that computed it (not in early files).
        runs: device, versions, commit and dates of every run that contributed.
        study: the study of these results; None if they were read without it.
    """

    facts: Facts
    rows: list[Row]
    runs: list[Facts]
    study: Any = field(default=None, compare=False, repr=False)

    @property
    def job(self) -> str:
        """Name of the study, of which figures state it."""
        return self.facts["job"] if self.study is None else self.study.name

    @property
    def preset(self) -> str:
        """Size of a figure."""
        return self.facts["preset"]

    @property
    def settings(self) -> Facts:
        """All that determines the numbers of a figure."""
        return self.facts["settings"]

    @property
    def num_units(self) -> int:
        """Number of units of the design when the file was written."""
        return self.facts["num_units"]

    @property
    def photos(self) -> str | None:
        """`ImageSet.source` of the training images of a figure; None for D(v)."""
        return self.facts.get("settings", {}).get("photos")

    @property
    def complete(self) -> bool:
        """Whether every unit has a row."""
        return not self.experiment().missing(self.rows)

    @property
    def precisions(self) -> set[bool]:
        """Set of whether layers ran in bfloat16, of one element; empty if that is unknown.

        Early runs don't record it, or as None; on a CPU their layers ran in float32.
        """
        return {
            bool(run.get("mixed_precision"))
            for run in self.runs
            if run.get("mixed_precision") is not None or "CPU thread" in run.get("device", "")
        }

    @property
    def table(self) -> pd.DataFrame:
        """The rows as a table, with the size, the file and the commit of each beside its fields.

        Columns may be named like methods: write ``rows["map"]``, never ``rows.map``.
        """
        import pandas as pd

        commits = {run.get("started"): run.get("commit") for run in self.runs}
        study = self.experiment()
        folder = "book/results" if study.has_presets else "book/results/studies"
        return pd.DataFrame(self.rows).assign(
            preset=study.preset or study.size,
            file=f"{folder}/{study.path.name}",
            commit=[commits.get(row.get("run")) for row in self.rows],
        )

    def experiment(self) -> Any:
        """Return the study that these results belong to, about the NADs that they name.

        Raises:
            ValueError: if they were read without it.
        """
        if self.study is None:
            raise ValueError("these results were read without their study: use load_results")
        return self.study

    def of(self, study: Study, facts: Facts) -> Results:
        """Return the same results as those of a study.

        Raises:
            ValueError: if they state other facts than the study, or have rows of no unit.
        """
        shared = [name for name in self.facts if name in facts and name != "num_units"]
        before, now = ({name: each[name] for name in shared} for each in (self.facts, facts))
        if different := differences(before, now):
            raise ValueError(different)
        ordered(self.rows, study)
        return replace(self, facts=self.facts | facts, study=study)

    def __str__(self) -> str:
        study = self.experiment()
        total = len(study.units())
        return f"{study.name}: {total - len(study.missing(self.rows))} of {total} units"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a JSON file, replacing the old one as a whole; each fact, run and row is a line."""
        lines = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in self.facts.items()]
        for name, values in (("runs", self.runs), ("rows", self.rows)):
            lines.append(f'"{name}": [\n  ' + ",\n  ".join(map(json.dumps, values)) + "\n ]")
        with atomic_write(path) as file:
            file.write("{\n " + ",\n ".join(lines) + "\n}\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Results:
        """Read a file that `save` wrote.

        Raises:
            ValueError: if the file holds something else.
        """
        try:
            facts = json.loads(Path(path).read_text("utf8"))
            return cls(facts, facts.pop("rows"), facts.pop("runs", []))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            problem = f"{type(error).__name__}: {error!s:.300}"
            raise ValueError(f"{path} is not a results file ({problem}): name another") from error


def ordered(rows: Iterable[Row], study: Study) -> list[Row]:
    """Return rows in the order of a study's units. Rows of units that the study no longer has come
    last: they are evidence and stay in its file.

    Raises:
        ValueError: if no row belongs to a unit, or a unit has two rows, where one is expected.
    """
    grouped: dict[str, list[Row]] = {study.key(unit): [] for unit in study.units()}
    retired: list[Row] = []
    for row in rows:
        found = grouped.get(study.key(row), retired)
        if found and found is not retired and not study.many_rows:
            raise ValueError(f"there are two rows of a unit of {study.name}: {study.key(row)}")
        found.append(row)
    if retired and not any(grouped.values()):
        raise ValueError(f"these are rows of another study than {study.name}")
    return [row for found in (*grouped.values(), retired) for row in found]


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
            f"another process is writing {path}: wait, or name another file"
        ) from error
