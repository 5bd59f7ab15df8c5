"""Training many networks on a CPU: each core trains one, on one thread, in a process of its own."""

from __future__ import annotations

import importlib.util
import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from functools import partial

import torch

from nads_core.runtime.interrupts import DeferredInterrupt
from nads_core.training.call import Call, Measure, Settings
from nads_core.training.datasets import Dataset
from nads_core.training.interrupted import TrainingState
from nads_core.training.result import TrainingDiverged, TrainingResult, TrainingTimeout
from nads_core.training.single import progress_bar

_IDLE_SECONDS = 120  # that workers wait for more; loky warns when one ends while tasks are being sent
_PATIENCE = 0.5  # seconds between two looks at Ctrl-C

# Idle threads sleep, and freed memory stays with the process: a step's tensors are mapped once, not at every step.
_WORKER_ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OMP_WAIT_POLICY": "PASSIVE",
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=33554432:"
    "glibc.malloc.trim_threshold=2147483647:glibc.malloc.top_pad=67108864",
}


def num_cores() -> int:
    """Return how many cores this process may use: so many networks are trained at once on a CPU."""
    if importlib.util.find_spec("loky"):
        from loky import cpu_count  # minds the limits of a container, such as Binder's, too

        return cpu_count()
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def train_in_processes(call: Call, workers: int) -> None:
    """Train the networks of a call, as many at a time as there are workers; none is begun that would not be ready."""
    pool = _workers(workers)
    waiting, typical = list(range(call.count))[::-1], 0.0  # the next network last; seconds that one takes
    running: dict[Future[TrainingResult], int] = {}
    try:
        interrupt = DeferredInterrupt("stopping ...")
        with progress_bar(call.count, call.label, "network", call.progress) as shown, interrupt:
            while waiting or running:
                late = call.seconds_left < typical
                while waiting and len(running) < workers and not late:
                    b = waiting.pop()
                    running[_send(pool, call, b)] = b
                if not running:
                    break
                patience = max(0, min(_PATIENCE, call.seconds_left))
                ready, _ = wait(running, timeout=patience, return_when=FIRST_COMPLETED)
                if interrupt.received:
                    raise KeyboardInterrupt
                if not ready and call.seconds_left <= 0:
                    break
                for future in sorted(ready, key=lambda one: one.exception() is not None):  # what is finished is kept
                    b = running.pop(future)
                    result = _result(call, b, future)
                    typical = float(result.seconds or 0)
                    call.on_result(b, result)
                    shown.update()
    except BrokenExecutor as error:
        for future, b in running.items():
            if future.done() and not future.exception():
                call.on_result(b, future.result())
        raise MemoryError(
            "a process that trains was ended from outside, probably for want of memory: take fewer workers; what was "
            "finished has been handed on"
        ) from error
    finally:
        if running:
            pool.shutdown(kill_workers=True)  # type: ignore[call-arg]  # as loky's can
    if waiting or running:
        finished = call.count - len(waiting) - len(running)
        raise TrainingTimeout(f"{finished} of {call.count} networks were trained in time")


def _workers(count: int) -> Executor:
    """Return processes that wait for networks to train; those of an earlier call, if they still do."""
    try:
        from loky import get_reusable_executor
    except ImportError as error:
        raise ImportError('method "processes" needs the package loky: install it, or take method="loop"') from error

    return get_reusable_executor(
        count, timeout=_IDLE_SECONDS, env=_WORKER_ENVIRONMENT,
        initializer=_begin_worker, initargs=(os.getpid(),), reuse=True,
    )  # fmt: skip


def _begin_worker(parent: int) -> None:
    """Leave Ctrl-C to the parent, which ends its workers, and end when the parent was killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(1)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


def _send(pool: Executor, call: Call, b: int) -> Future[TrainingResult]:
    """Let a worker train network b."""
    test = None if call.test_datasets is None else _item(call.test_datasets, b)
    train, measure = _item(call.datasets, b), call.measure(b)
    return pool.submit(_train_item, call.settings, call.numbers[b], train, test, measure, call.state(b))


def _result(call: Call, b: int, future: Future[TrainingResult]) -> TrainingResult:
    """Return what a worker found, or raise its error, with the network's name on it if it diverged."""
    try:
        return future.result()
    except TrainingDiverged as error:
        raise call.diverged(b, error) from error


def _item(datasets: Sequence[Dataset], b: int) -> Callable[[], Dataset]:
    """Return what a worker calls to get dataset b: made there, unless a list holds it already."""
    if isinstance(datasets, (list, tuple)):
        return partial(lambda data: data, datasets[b])
    return partial(datasets.__getitem__, b)


def _train_item(
    settings: Settings,
    number: int,
    train: Callable[[], Dataset],
    test: Callable[[], Dataset] | None,
    measure: Measure | None,
    state: TrainingState | None,
) -> TrainingResult:
    return settings.train(number, train(), test and test(), measure, state=state)
