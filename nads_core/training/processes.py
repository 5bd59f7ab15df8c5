"""Training many networks on a CPU: one network per core, each on one thread of its own process."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from typing import TYPE_CHECKING

import torch

from nads_core.runtime.interrupts import deferred_interrupt
from nads_core.training.family import Member, NetworkFamily
from nads_core.training.result import TrainingResult, TrainingTimeout
from nads_core.training.train_one import progress_bar

if TYPE_CHECKING:
    from loky import ProcessPoolExecutor

# After which idle workers end; loky warns if one ends while tasks are being sent
_IDLE_SECONDS = 120
_POLL_SECONDS = 0.5  # between two checks for an interrupt

# Idle threads sleep, and the process keeps freed memory: the tensors of a step are mapped once, not
# at every step.
_WORKER_ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OMP_WAIT_POLICY": "PASSIVE",
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=33554432:"
    "glibc.malloc.trim_threshold=2147483647:glibc.malloc.top_pad=67108864",
}


def num_cores() -> int:
    """Return the number of cores that this process may use, which is the number of networks trained
    at once.
    """
    from loky import cpu_count  # respects the limits of a container, such as Binder's

    return cpu_count()


def process_pool(workers: int) -> ProcessPoolExecutor:
    """Return processes of one thread each, those of an earlier call if they are still alive."""
    from loky import get_reusable_executor

    return get_reusable_executor(
        workers,
        timeout=_IDLE_SECONDS,
        env=_WORKER_ENVIRONMENT,
        initializer=_begin_worker,
        initargs=(os.getpid(),),
        reuse=True,
    )


def train_in_processes(
    family: NetworkFamily,
    members: Sequence[Member],
    workers: int,
    deadline: float,
    progress: bool,
    collect: Callable[[int, TrainingResult], None],
) -> None:
    """Train networks, one per worker at a time, and collect the result of each; start none after
    the deadline of time.monotonic.
    """
    pool = process_pool(workers)
    count = len(members)
    running = dict[Future[list[TrainingResult]], int]()
    waiting = deque(range(count))
    try:
        bar = progress_bar(count, f"training {count} networks", "network", progress)
        with bar, deferred_interrupt("stopping ...") as interrupted:
            while waiting or running:
                while waiting and len(running) < workers and time.monotonic() < deadline:
                    b = waiting.popleft()
                    running[pool.submit(family.train, [members[b]])] = b
                patience = max(0, min(_POLL_SECONDS, deadline - time.monotonic()))
                ready, _ = wait(running, timeout=patience, return_when=FIRST_COMPLETED)
                if interrupted:
                    raise KeyboardInterrupt
                if not ready and time.monotonic() > deadline:
                    done = count - len(waiting) - len(running)
                    raise TrainingTimeout(f"the time is up: {done} of {count} networks are trained")
                # Results come before errors
                for future in sorted(ready, key=lambda one: one.exception() is not None):
                    b = running.pop(future)
                    collect(b, *future.result())
                    bar.update()
    except BrokenExecutor as error:
        for future, b in running.items():  # what others have finished is kept
            if future.done() and not future.exception():
                collect(b, *future.result())
        raise MemoryError(
            "a worker process was killed, probably because memory ran out: use fewer workers"
        ) from error
    finally:
        if running:
            pool.shutdown(kill_workers=True)


def _begin_worker(parent: int) -> None:
    """Ignore SIGINT, which the parent handles, and exit when the parent is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(1)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)
