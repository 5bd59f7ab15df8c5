"""Where units run: processes of this machine, or the workers of a Dask scheduler, both through
`concurrent.futures`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, wait
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch

from nads_core.runtime.arguments import Facts
from nads_core.runtime.processes import deferred_interrupt, executor_of, num_cores
from nads_core.runtime.provenance import environment
from nads_core.training.train_one import progress_bar

if TYPE_CHECKING:
    from nads_book.experiments.study import Context, Row, Study, Unit

_POLL_SECONDS = 0.5  # between two checks for an interrupt
Keep = Callable[..., None]  # stores a unit, its rows, and the machine if it is another one
machine = functools.cache(environment)  # of a worker, which computes many units


@contextmanager
def open_executor(name: str, workers: int | None = None) -> Iterator[Executor]:
    """Give an executor: "processes" of this machine, or "dask:ADDRESS".

    Raises:
        ValueError: for another name, or if `distributed` is not installed.
        MemoryError: if a process of this machine was killed.
    """
    kind, _, address = name.partition(":")
    if kind == "processes":
        with executor_of(workers or num_cores()) as pool:
            yield pool
        return
    if kind != "dask" or not address:
        raise ValueError(
            f"unknown executor {name!r}: choose processes, sequential or dask:ADDRESS, such as "
            "dask:tcp://node:8786"
        )
    try:
        from distributed import Client
    except ImportError as error:
        raise ValueError(f"executor {name!r} needs Dask: pip install nads-core[cluster]") from error
    with Client(address) as client:  # type: ignore[no-untyped-call]
        # Dask runs the unit of a lost worker again on another one.
        yield client.get_executor(pure=False)


def run_unit(study: Study, unit: Unit, context: Context) -> tuple[list[Row], Facts]:
    """Compute one unit on one thread, and return its rows, and the machine."""
    torch.set_num_threads(1)
    rows = study.run(unit, context)
    return rows if isinstance(rows, list) else [rows], machine(context.device)


def compute_units(
    pool: Executor, study: Study, units: Sequence[Unit], context: Context, keep: Keep
) -> None:
    """Compute units with an executor, and store the rows of each as soon as it is finished.

    Raises:
        DeadlinePassedError: if the deadline of the context passes first.
        KeyboardInterrupt: on Ctrl-C; who opened the executor then ends what is not finished.
    """
    bar = progress_bar(len(units), study.name, "unit", context.progress)
    with bar, deferred_interrupt("stopping ...") as interrupted:
        pending = {pool.submit(run_unit, study, unit, context): unit for unit in units}
        while pending:
            ready, _ = wait(pending, timeout=_POLL_SECONDS, return_when=FIRST_COMPLETED)
            for future in sorted(
                ready, key=lambda one: one.exception() is not None
            ):  # rows come before errors
                keep(pending[future], *future.result())
                del pending[future]
                bar.update()
            if interrupted:
                raise KeyboardInterrupt
            context.check_deadline(f"{len(pending)} of {len(units)} units are left")
