"""How a study runs: it can be interrupted, resumed, and split over processes and machines, and
loses little.

The rows of a unit are written as soon as it is computed. Trainings also keep the state of their
last epoch next to the results, so that a killed training loses one epoch at most.
"""

import glob
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import torch

from nads_book.experiments.executors import compute_units, open_executor
from nads_book.experiments.results import Results, ordered, writing
from nads_book.experiments.study import Context, DeadlinePassedError, Rows, Study, Unit
from nads_core.runtime.arguments import Facts, require_integers
from nads_core.runtime.provenance import environment


def run_study(
    study: Study,
    *,
    out: str | os.PathLike[str] | None = None,
    count: int | None = None,
    time_limit: float | None = None,
    executor: str = "processes",
    workers: int | None = None,
    device: torch.device | str | None = None,
    mixed_precision: bool | None = None,
    root: str | os.PathLike[str] | None = None,
    progress: bool = True,
) -> Results:
    """Run a study, or resume it.

    Args:
        study: the study.
        out: results file, replaced after every unit; an existing one is resumed.
        count: number of units, from the beginning of the study; all by default.
        time_limit: seconds from this call after which to stop; finished units are kept, and the
            result is not ``complete``.
        executor: "processes" of this machine, "sequential" for this process alone, or
            "dask:ADDRESS" for the workers of a Dask scheduler.
        workers: number of processes; by default one per core of a CPU, and one for a GPU.
        device: device of the computation; by default a GPU if there is one and the study uses it.
        mixed_precision: whether layers run in bfloat16; see `Study.choose_precision` for the
            default.
        root: folder with images; see `load_images`.
        progress: whether to show a progress bar with the remaining time.

    Returns:
        The rows of all finished units, those of earlier runs in ``out`` included.

    Raises:
        ValueError: for a device that the study does not use, or a file of another study or other
            settings.
        DatasetNotFoundError: if images are missing that the study needs.
        KeyboardInterrupt: on Ctrl-C; ``out`` has all finished units, and the next run resumes.
    """
    start = time.monotonic()
    deadline = None if time_limit is None else time.time() + time_limit
    out = Path(out) if out else None
    if count is not None:
        require_integers(count=count)
    with writing(out) if out else nullcontext():
        context = Context(
            study.choose_device(device),
            root=None if root is None else str(root),
            out=out,
            workers=workers,
            deadline=deadline,
        )
        results = open_results(study, out, context.root)
        units = study.missing(results.rows, study.units()[:count])
        if units:
            chosen = study.choose_precision(results.precisions, context.device, mixed_precision)
            context = replace(
                context, mixed_precision=chosen, source=results.photos, progress=progress
            )
        with _provenance(results, bool(units), context, start) as keep:
            try:
                if executor == "sequential":
                    for done, unit in enumerate(units):
                        context.check_deadline(f"{len(units) - done} of {len(units)} units left")
                        rows = study.run(unit, context)
                        keep(unit, rows if isinstance(rows, list) else [rows])
                else:
                    if executor != "processes":  # other machines have other files
                        context = replace(context, out=None)
                    at_once = workers or (None if context.device.type == "cpu" else 1)
                    with open_executor(executor, at_once) as pool:
                        compute_units(pool, study, units, context, keep)
            except DeadlinePassedError:
                pass
        if out is not None and results.complete:
            _forget_states(out)
    return replace(results, rows=ordered(results.rows, study))


def open_results(
    study: Study, out: Path | None = None, root: str | os.PathLike[str] | None = None
) -> Results:
    """Return the content of a results file, or results without rows if there is none.

    Raises:
        ValueError: if the file holds something else, or states another design.
    """
    photos = study.photo_source(None if root is None else str(root))
    results = Results(study.stated_facts(photos), [], [], study)
    if out is None or not out.exists():
        return results
    known = Results.load(out)
    try:
        known = known.of(study, results.facts)
    except ValueError as error:
        raise ValueError(f"{out} cannot be continued: {error}") from error
    return replace(known, rows=ordered(known.rows, study))


@contextmanager
def _provenance(results: Results, needed: bool, context: Context, start: float) -> Iterator[Any]:
    """Add an entry for each machine to the provenance, and give the function that stores rows and
    names their entry.

    Entries replace those of runs that computed nothing. The ``seconds`` of an entry are those from
    the start of the run to the last unit of its machine: they overlap, so do not add them.
    """
    here, entries = environment(context.device), list[Facts]()
    began = datetime.now(UTC)

    def entry_of(machine: Facts) -> Facts:
        for entry in entries:
            if all(entry.get(name) == machine[name] for name in machine if name != "date"):
                return entry  # also where its workers began on two days
        started = began + timedelta(microseconds=len(entries))  # rows name their entry by it
        entry = machine | {"started": started.isoformat(), "units": 0}
        entry |= {"seconds": 0.0, "mixed_precision": context.mixed_precision}
        if context.workers is not None:
            entry["workers"] = context.workers
        entries.append(entry)
        return entry

    before = [run for run in results.runs if run.get("units") != 0]
    if needed:
        results.runs = [*before, entry_of(here)]
        if context.out is not None:
            results.save(context.out)  # the precision must outlive a kill in the first unit

    def keep(unit: Unit, rows: Rows, machine: Facts = here) -> None:
        entry = entry_of(machine)
        results.rows += [{**unit, **row, "run": entry["started"]} for row in rows]
        entry["units"] += 1
        entry["seconds"] = round(time.monotonic() - start, 1)
        results.runs = before + [run for run in entries if run["units"]]
        if context.out is not None:
            results.save(context.out)

    try:
        yield keep
    except KeyboardInterrupt:
        outcome = f"{results} kept in {context.out}; the same command resumes"
        outcome = "nothing was kept: name a file" if context.out is None else outcome
        raise KeyboardInterrupt(f"interrupted. {outcome}") from None


def _forget_states(out: Path) -> None:
    """Delete the states of unfinished trainings next to a complete results file."""
    for dots in (".", ".."):  # a worker that was killed while it wrote leaves two
        for stale in out.parent.glob(f"{dots}{glob.escape(out.name)}.*.part"):
            stale.unlink(missing_ok=True)
