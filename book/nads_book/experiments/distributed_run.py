"""One job among the processes that torchrun started: each runs a part, and the parts are joined."""

from __future__ import annotations

import glob
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import torch

from nads_book.experiments.results import Results, merge_results, writing
from nads_core.runtime import distributed


def run_together(
    run: Callable[..., Results],
    choose: Callable[..., bool],
    out: Path,
    shard: tuple[int, int],
    device: torch.device,
) -> Results | None:
    """Let each process of the group run a part of the shard; process 0 joins the parts and returns them.

    Args:
        run: `run_experiment` of a job, which is given ``out``, ``shard``, ``device``, ``mixed_precision`` and
            ``progress``.
        choose: `choose_precision` of that job, which is given ``out`` and ``device``: a trial may say one thing to one
            process and another to the next, whose results could not be joined.
        out: the results file; each process has one of its own beside it meanwhile.
        shard: (i, n), the part of the job that all processes together run.
        device: of this process.

    Raises:
        FileNotFoundError: if the files of some processes lie on other machines.
        ValueError: if another process is writing ``out``, or files left beside it belong to another job.
    """
    (part, parts), rank, size = shard, distributed.rank(), distributed.size()
    meeting, files = distributed.new_group(), [out.with_suffix(f".process{number}.json") for number in range(size)]
    with nullcontext() if rank else writing(out):
        rounded = False
        if not rank:
            gather(out)
            rounded = choose(out=out, device=device)
        distributed.barrier(meeting)
        rounded = bool(distributed.broadcast(rounded))
        if out.exists():
            Results.load(out).save(files[rank])  # what earlier runs have done
        mine = run(
            out=files[rank], shard=(part + parts * rank, parts * size), device=device, mixed_precision=rounded,
            progress=rank == 0,
        )  # fmt: skip
        mine.save(files[rank])
        distributed.barrier(meeting)
        if rank:
            return None
        missing = [file.name for file in files if not file.exists()]
        if missing:
            raise FileNotFoundError(
                f"{', '.join(missing)} are not in {out.parent.absolute()}, but on the machines of those processes: "
                "join all parts with the command merge"
            )
        return gather(out)


def gather(out: Path) -> Results | None:
    """Join into ``out`` what the processes of a run have left beside it, however many they were; None if nothing."""
    left = sorted(out.parent.glob(f"{glob.escape(out.stem)}.process*.json"))
    if not left:
        return None
    try:
        results = merge_results([Results.load(file) for file in (out, *left) if file.exists()])
    except ValueError as error:
        raise ValueError(f"{', '.join(map(str, left))} were left by an earlier run: {error}") from error
    results.save(out)
    for file in left:
        file.unlink()
    return results
