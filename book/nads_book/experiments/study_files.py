"""Studies whose results are a file of facts, rows and runs in ``book/results/studies/``."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from nads_book.experiments.results import Stored
from nads_book.experiments.stored import load_registered, study_path
from nads_book.experiments.study import Row, Study, Unit, factorial
from nads_core.runtime.arguments import Facts
from nads_core.runtime.files import atomic_write
from nads_core.runtime.provenance import differences


@dataclass
class StudyFile(Stored):
    """The results file of another study: facts, rows, and the runs that computed them.

    Args:
        facts: content of the file but its rows and runs.
        rows: rows of all finished units.
        provenance: runs, each with device, versions, commit and start.
        study: the study of these results.
    """

    facts: Facts
    rows: list[Row]
    provenance: list[Facts]
    study: Study | None = None

    counted = "units"

    @property
    def own_runs(self) -> list[Facts]:
        """Runs that rows of this study name; the others are of studies that share the file, or
        computed nothing. Rows of early releases name none: runs without a start in a precision of
        the study.
        """
        named = {row.get("run") for row in self.rows}
        known = {None, *self.experiment().precisions}
        return [
            run
            for run in self.provenance
            if (start := run.get("started")) in named
            and (start or run.get("mixed_precision") in known)
        ]

    @property
    def identity(self) -> Facts:
        """What must agree before results are merged."""
        study = self.experiment()
        return {"study": study.name, **{name: self.facts[name] for name in study.facts()}}

    def __str__(self) -> str:
        study = self.experiment()
        total = len(study.units())
        return f"{study.name}: {total - len(study.missing(self.rows))} of {total} units"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a JSON file, replacing the old one as a whole; each row is one line or a few."""
        study = self.experiment()
        write_compact(Path(path), study.content(self), study.depth)


class FileStudy(Study):
    """A study with a results file of its own, whose layout its class defines."""

    file: ClassVar[str]
    rows_at: ClassVar[tuple[str, ...]] = ("rows",)  # keys that lead to the rows in the file
    empty: ClassVar[Facts] = {}  # content of a new file, such as rows of other studies
    design: ClassVar[Mapping[str, Iterable[Any]]]  # factors of all units; the last varies fastest
    constants: ClassVar[Facts] = {}  # what the file states about the design
    runs_key: ClassVar[str] = "runs"  # of the provenance in the file
    depth: ClassVar[int] = 1  # levels below which JSON is written on one line

    def __init_subclass__(cls) -> None:
        """Name the file after the study."""
        super().__init_subclass__()
        if "name" in vars(cls) and "file" not in vars(cls):
            cls.file = f"{cls.name}.json"

    def units(self) -> list[Unit]:
        """Return all units of the design, in the order in which they are computed."""
        return factorial(**self.design)

    @property
    def path(self) -> Path:
        """The results file."""
        return study_path(self.file)

    @property
    def registered(self) -> Facts:
        """What was registered before the study, see `load_registered`."""
        return load_registered(self.name.replace("-", "_"))

    def facts(self) -> Facts:
        """Return what the file states about the design; `constants`, where those are all."""
        return self.constants

    def rows_of(self, content: Mapping[str, Any]) -> list[Row]:
        """Return the rows that a file holds."""
        return list(_at(content, self.rows_at))

    def with_rows(self, content: Facts, rows: list[Row]) -> Facts:
        """Return the content of a file with these rows."""
        count = {"num_units": len(self.units())} if self.rows_at == ("rows",) else {}
        return _inserted(self.empty | content, self.rows_at, rows) | count

    def content(self, results: StudyFile) -> Facts:
        """Return the content of the file of these results."""
        return self.with_rows(results.facts, results.rows) | {self.runs_key: results.provenance}

    def stored(self, out: Path | None, root: str | None = None) -> StudyFile:
        """Return the content of a results file, or results without rows if there is none.

        Raises:
            ValueError: if the file states another design.
        """
        content: Facts = {}
        if out is not None and out.exists():
            content = json.loads(out.read_text("utf8"))
        facts = json.loads(json.dumps(self.facts()))
        before = {name: value for name, value in content.items() if name in facts}
        if different := differences(before, {name: facts[name] for name in before}):
            raise ValueError(f"{out} cannot be continued: {different}")
        rows, runs = self.rows_of(content), content.pop(self.runs_key, [])
        return StudyFile(content | facts, rows, runs, self)


class KeyedStudy(FileStudy):
    """A study whose rows are a mapping in its file, from the only field of a unit to what was
    measured; it is the file itself unless `rows_at` names a place.
    """

    rows_at: ClassVar[tuple[str, ...]] = ()

    def rows_of(self, content: Mapping[str, Any]) -> list[Row]:
        """Return the rows that a file holds."""
        (field,) = self.unit_fields
        found = _at(content, self.rows_at)
        names = [unit[field] for unit in self.units()]
        return [{field: name, **found[name]} for name in names if name in found]

    def with_rows(self, content: Facts, rows: list[Row]) -> Facts:
        """Return the content of a file with these rows."""
        (field,) = self.unit_fields
        found = {row[field]: less(row, field) for row in rows}
        return _inserted(self.empty | content, self.rows_at, found)


def _at(content: Mapping[str, Any], place: Sequence[str]) -> Any:
    """Return what nested content has at a place; an empty mapping if nothing."""
    for name in place:
        content = content.get(name, {})
    return content


def _inserted(content: Mapping[str, Any], place: Sequence[str], value: Any) -> Facts:
    """Return nested content with a value at a place; without a place, joined with the value."""
    if not place:
        return {**content, **value}
    name, *rest = place
    return {**content, name: _inserted(content.get(name, {}), rest, value) if rest else value}


def less(row: Mapping[str, Any], *names: str) -> Row:
    """Return a row without some of its fields."""
    return {name: value for name, value in row.items() if name not in names}


def write_compact(path: Path, content: Facts, depth: int = 1) -> None:
    """Write JSON in which whatever has fewer than ``depth`` levels below it is one line."""
    text = json.dumps(content, indent=1)
    for _ in range(depth):
        text = re.sub(r"[\[{][^\[\]{}]*[\]}]", lambda part: " ".join(part.group().split()), text)
    with atomic_write(path) as file:
        file.write(text + "\n")
