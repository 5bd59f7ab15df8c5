"""Chunks of networks evaluated here, in processes of this machine, or by any executor, in order."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, Future
from functools import lru_cache
from typing import Protocol

import cloudpickle
import torch
from torch import Tensor

from nads_core.runtime.processes import executor_of, in_turn, num_cores, turn

_WINDOW = 2  # chunks in work per worker
_WORTH = 20.0  # seconds of work from which on processes, which take some to start, are started
Numbers = range


class Evaluated(Protocol):
    """Something that turns the numbers of networks into their vectors, (n, J, R, D)."""

    def vectors(self, numbers: Numbers) -> Tensor:
        """Return the vectors of these networks."""
        ...


def vectors_of(job: bytes, numbers: Numbers) -> Tensor:
    """Return the vectors of some networks; a worker calls it. Threads of one process take turns, as
    networks may share a list or a dictionary.
    """
    with turn:
        loaded, dtype = _loaded(job)
        vectors: Tensor = in_turn(dtype, loaded.vectors, numbers)
    return vectors


@lru_cache(maxsize=1)
def _loaded(job: bytes) -> tuple[Evaluated, torch.dtype]:
    loaded: tuple[Evaluated, torch.dtype] = cloudpickle.loads(job)
    return loaded


def evaluated(
    job: Evaluated,
    chunks: list[Numbers],
    workers: int | Executor | None,
    device: torch.device,
    interrupts: Sequence[int] = (),
) -> Iterator[Tensor]:
    """Yield the vectors of chunks of networks, in order; they do not depend on the workers.

    Args:
        job: what evaluates them.
        chunks: numbers of the networks of each chunk.
        workers: None for as many processes as cores, if at least 20 seconds of work are left after
            the first chunk; a number of processes; or any executor.
        device: device of the networks; with a GPU None means one process.
        interrupts: once it is not empty, only chunks that are ready are yielded, and the others are
            given up.
    """
    remaining = deque(chunks)
    if workers is None:
        begin = time.perf_counter()
        if remaining:
            yield job.vectors(remaining.popleft())
        left = (time.perf_counter() - begin) * len(remaining)
        cores = num_cores() if device.type == "cpu" else 1
        workers = min(cores, len(remaining)) if left > _WORTH else 1
    if not isinstance(workers, Executor) and workers <= 1:
        while remaining and not interrupts:
            yield job.vectors(remaining.popleft())
        return
    content = _pickled(job)
    waiting: deque[Future[Tensor]] = deque()
    with executor_of(workers) as pool:
        at_once = _WINDOW * (workers if isinstance(workers, int) else _size(pool))
        while remaining or waiting:
            while remaining and len(waiting) < at_once and not interrupts:
                waiting.append(pool.submit(vectors_of, content, remaining.popleft()))
            if not waiting or (interrupts and not waiting[0].done()):
                break
            yield waiting.popleft().result()
        for future in waiting:
            future.cancel()


def _size(pool: Executor) -> int:
    """Return the number of workers of an executor, as far as it tells."""
    return int(getattr(pool, "_max_workers", None) or num_cores())


def _pickled(job: Evaluated) -> bytes:
    try:
        return bytes(cloudpickle.dumps((job, torch.get_default_dtype())))
    except Exception as error:  # whatever a pickler meets in a factory
        raise ValueError(
            f"the factory cannot be sent to other processes ({error}): define it in a module, or "
            "take workers=1"
        ) from error
