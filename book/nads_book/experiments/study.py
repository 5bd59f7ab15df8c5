"""A study: one question, the units that answer it, how one unit is computed, and the registered
rule that decides.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import json
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Self

import torch

from nads_book.experiments.evidence import Estimate
from nads_book.experiments.stored import load_registered, results_path
from nads_core.runtime.arguments import Facts, usable_device
from nads_core.runtime.files import atomic_write

# Description of what is trained or computed, as it is stored: see `Study.unit_fields`.
Unit = Facts
Row = Facts  # a unit with what was measured of it
Rows = Sequence[Row]
Estimates = dict[str, dict[str, Estimate]]  # by group and name
Met = dict[str, bool | None]  # whether each registered criterion holds; None where undecided
Criteria = Mapping[str, Mapping[str, Any]]  # of a registration, by name


class DeadlinePassedError(Exception):
    """The time limit of a run is over; its finished units are kept."""


def kept(path: Path, compute: Callable[[], Any]) -> Any:
    """Return what a function computes, from a file that is made where it is missing."""
    if not path.exists():
        with atomic_write(path, "wb") as file:
            torch.save(compute(), file)
    return torch.load(path)


@dataclass(frozen=True)
class Context:
    """Where and how the engine runs a unit. No number may depend on it, except by rounding.

    Args:
        device: device of the computation.
        mixed_precision: whether layers run in bfloat16.
        root: folder with images, see `nads_book.load_images`.
        source: `ImageSet.source` that the results name; a worker may have been started with another
            environment.
        out: results file, next to which unfinished units are kept; None keeps nothing.
        workers: number of processes; by default one per core of a CPU, and one for a GPU.
        deadline: time at which to stop, in the seconds of `time.time`, which other machines share.
        progress: whether to show a progress bar.
    """

    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    mixed_precision: bool = False
    root: str | None = None
    source: str | None = None
    out: Path | None = None
    workers: int | None = None
    deadline: float | None = None
    progress: bool = False

    def check_deadline(self, left: str) -> None:
        """Raise a `DeadlinePassedError`, which says what is left, once the deadline has passed."""
        if self.deadline is not None and time.time() > self.deadline:
            raise DeadlinePassedError(left)

    def kept(self, name: str, compute: Callable[[], Any]) -> Any:
        """Return what a function computes, from a file next to the results if it is there."""
        if self.out is None:
            return compute()
        return kept(self.out.with_name("trajectories") / f"{name}.pt", compute)

    def kept_parts(self, name: str, parts: Mapping[int, Callable[[], Any]]) -> list[Any]:
        """Return what functions compute, by the number of a part, each as `kept` does.

        Raises:
            DeadlinePassedError: if the deadline passes between two of them.
        """
        found = list[Any]()
        for part, compute in parts.items():
            self.check_deadline(f"{name}: {len(found)} of {len(parts)} parts are kept")
            found.append(self.kept(f"{name}, {part}", compute))
        return found


@dataclass(frozen=True)
class Scored:
    """What a registered rule says about the rows of a study.

    Args:
        estimates: numbers with their 95 % intervals, by group and name.
        met: whether each registered criterion holds; None where that is undecided.
    """

    estimates: Mapping[str, Mapping[str, Estimate]]
    met: Mapping[str, bool | None]


def factorial(**factors: Iterable[Any]) -> list[Unit]:
    """Return all units of a factorial design, in which the last factor varies fastest."""
    return [
        dict(zip(factors, levels, strict=True)) for levels in itertools.product(*factors.values())
    ]


def rounded(value: Any, digits: int = 5, *, significant: bool = False) -> Any:
    """Return a number, or those of a mapping, a sequence or an array, with few digits, as JSON.

    Args:
        value: numbers.
        digits: digits behind the decimal point, or ``significant`` ones.
        significant: whether leading zeros do not count.
    """
    if isinstance(value, Mapping):
        return {name: rounded(x, digits, significant=significant) for name, x in value.items()}
    number = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(number, Sequence):
        return [rounded(x, digits, significant=significant) for x in number]
    return float(f"{number:.{digits}g}") if significant else round(number, digits)


class Study(ABC):
    """One question of the book.

    A subclass lists the units and computes one of them. The engine
    (`run_study`) gives all studies locks, resuming, executors, and a provenance for
    every row.
    """

    known: ClassVar[dict[str, type[Study]]] = {}  # all studies by name

    summary: ClassVar[str]
    design: ClassVar[Mapping[str, Iterable[Any]]]  # factors of all units; the last varies fastest
    constants: ClassVar[Facts] = {}  # what the file states about the design
    preset: str | None = None  # name of the size, where there are several
    size: ClassVar[str] = (
        "laptop"  # of its trainings: see `nads_book.experiments.evidence.Evidence`
    )
    many_rows: ClassVar[bool] = False  # whether a unit may have several rows
    needs: ClassVar[tuple[str, ...]] = ()  # figures whose results a unit reads
    has_presets: ClassVar[bool] = False  # whether there are several sizes, and architectures
    on_photos: ClassVar[bool] = False
    on_gpu: ClassVar[bool] = True  # whether units use a GPU where there is one
    precisions: ClassVar[tuple[bool, ...]] = (False,)  # whether layers may run in bfloat16

    def __init_subclass__(cls) -> None:
        """Register the study, and summarise it by the first paragraph of its docstring."""
        cls.summary = " ".join((inspect.getdoc(cls) or "").partition("\n\n")[0].split())
        name = vars(cls).get("figure", vars(cls).get("name"))
        if isinstance(name, str):
            cls.known[name] = cls

    @classmethod
    def create(cls, model: str, preset: str, nads_version: int | None = None) -> Self:
        """Return the study; one of several sizes for an architecture and at a preset."""
        return cls()

    @property
    def name(self) -> str:
        """Name of the study, as the command ``run`` takes it, and of its file."""
        raise NotImplementedError

    def units(self) -> Sequence[Unit]:
        """Return all units, in the order in which they are computed."""
        return factorial(**self.design)

    @functools.cached_property
    def unit_fields(self) -> tuple[str, ...]:
        """Names of the fields of units."""
        return tuple(dict.fromkeys(name for unit in self.units() for name in unit))

    @abstractmethod
    def run(self, unit: Unit, context: Context) -> Row | list[Row]:
        """Compute one unit: a function of its description alone, whatever else
        runs, and wherever.
        """

    @property
    def path(self) -> Path:
        """The results file."""
        return results_path(self.name, self.preset)

    @property
    def registered(self) -> Facts:
        """What was registered before the study, see `load_registered`."""
        return load_registered(self.name.replace("-", "_"))

    def photo_source(self, root: str | None) -> str | None:
        """Return `ImageSet.source` of the training images, where the facts state it."""
        return None

    def facts(self, photos: str | None = None) -> Facts:
        """Return what the file states about the design: results can be continued and merged if it
        agrees.

        Args:
            photos: `photo_source`.
        """
        return self.constants

    def stated_facts(self, photos: str | None = None) -> Facts:
        """Return `facts` as a file has them, with the number of units."""
        facts = self.facts(photos) | {"num_units": len(self.units())}
        return json.loads(json.dumps(facts))

    def score(self, rows: Rows) -> Scored:
        """Apply the registered rule to the rows of all units.

        Raises:
            ValueError: if a unit has no row: an incomplete design has no score.
        """
        if missing := self.missing(rows):
            raise ValueError(
                f"{len(missing)} of {len(self.units())} units of {self.name} are missing, such as "
                f"{missing[0]}: complete the design first"
            )
        return self.judge(rows)

    def judge(self, rows: Rows) -> Scored:
        """Return what the registered rule says about a complete design."""
        raise ValueError(f"{self.name} has no registered rule")

    def choose_device(self, requested: torch.device | str | None = None) -> torch.device:
        """Return the device of the computation: as requested, or by default a GPU if there is one
        and the study uses it.

        Raises:
            ValueError: if the device cannot be used here, or the study runs on a CPU only.
        """
        device = usable_device("cpu" if requested is None and not self.on_gpu else requested)
        if device.type != "cpu" and not self.on_gpu:
            raise ValueError(
                f"{self.name} runs on a CPU only, not on {device}: leave the device out"
            )
        return device

    def choose_precision(
        self, before: set[bool], device: torch.device, requested: bool | None = None
    ) -> bool:
        """Return whether layers run in bfloat16: as in stored rows, as requested, or by default.

        Args:
            before: precisions of the stored rows, see `Results.precisions`.
            device: device of the computation.
            requested: whether layers shall run in bfloat16.

        Raises:
            ValueError: if the study, or its stored rows, have another precision.
        """
        if strange := before - set(self.precisions):
            raise ValueError(
                f"rows of {self.name} are stored with mixed_precision={strange.pop()}, which the "
                "study does not have: name another file"
            )
        possible = before or set(self.precisions)
        chosen = min(before, default=self.default_precision(device))
        if requested not in {None, *possible}:
            raise ValueError(
                f"{self.name} has mixed_precision={chosen}: leave it out, or name another file"
            )
        return chosen if requested is None else requested

    def default_precision(self, device: torch.device) -> bool:
        """Return whether layers run in bfloat16 where nothing is stored."""
        return self.precisions[0]

    def key(self, row: Mapping[str, Any]) -> str:
        """Return the identity of the unit that a row, or a unit, is about."""
        return json.dumps([row.get(name) for name in self.unit_fields], sort_keys=True)

    def missing(self, rows: Iterable[Row], units: Iterable[Unit] | None = None) -> list[Unit]:
        """Return those of some units, or of all, that have no row."""
        done = set(map(self.key, rows))
        return [
            unit
            for unit in (self.units() if units is None else units)
            if self.key(unit) not in done
        ]
