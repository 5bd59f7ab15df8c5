"""Processes that compute on one thread each, and the interrupts (Ctrl-C) of the process that waits
for them.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from loky import ProcessPoolExecutor

# After which idle workers end; loky warns if one ends while tasks are being sent
_IDLE_SECONDS = 120

turn = threading.RLock()  # torch's globals, and what networks share, serve one thread at a time

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
    """Return the number of cores that this process may use."""
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


@contextmanager
def executor_of(workers: int | Executor) -> Iterator[Executor]:
    """Give an executor as it is, or a number of processes, which are killed if the block fails.

    Raises:
        MemoryError: if a process was killed.
    """
    if isinstance(workers, Executor):
        yield workers
        return
    pool = process_pool(workers)
    try:
        yield pool
    except BrokenExecutor as error:
        raise MemoryError(
            "a worker process was killed, probably because memory ran out: use fewer workers"
        ) from error
    except BaseException:
        pool.shutdown(kill_workers=True)  # or they would finish what nobody waits for
        raise


def in_turn(dtype: torch.dtype, function: Callable[..., Any], *arguments: object) -> Any:
    """Call a function under a default type of torch, which processes do not inherit; threads of one
    process take turns.
    """
    with turn:
        before = torch.get_default_dtype()
        torch.set_default_dtype(dtype)
        try:
            return function(*arguments)
        finally:
            torch.set_default_dtype(before)


def _begin_worker(parent: int) -> None:
    """Ignore SIGINT, which the parent handles, and exit when the parent is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(1)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


class Interrupts(list[int]):
    """The signals received; while ``held``, no further one is raised."""

    held = False


@contextmanager
def deferred_interrupt(message: str) -> Iterator[Interrupts]:
    """Defer SIGINT, so that stored files are consistent and the interrupt is not lost; a second one
    is not deferred, unless the signals are held.

    The block gets the signals received. It checks at every safe point whether there is
    one, and raises the KeyboardInterrupt itself. A handler may interrupt itself, so it must not
    take the lock of a `threading.Event`.

    Args:
        message: text to print when the interrupt arrives.
    """
    received = Interrupts()

    def receive(signum: int, *_: object) -> None:
        received.append(signum)
        if len(received) == 1:
            print(f"\n{message}", file=sys.stderr)
        elif not received.held:
            raise KeyboardInterrupt

    with ExitStack() as at_end:
        if threading.current_thread() is threading.main_thread():
            at_end.callback(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, receive))
        yield received
