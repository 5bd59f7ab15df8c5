"""One job among the processes that torchrun started: each runs a part, and the parts are joined."""

from __future__ import annotations

import glob
import time
from collections.abc import Callable
from contextlib import nullcontext
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch

from nads_book.experiments.results import Results, merge_results, writing
from nads_core.runtime import distributed

_POLL_SECONDS = 0.1


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
            raise FileNotFoundError(
                f"{', '.join(missing)} are not in {out.parent.absolute()}, but on the machines of those processes: "
                "join all parts with the command merge"
            )
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
