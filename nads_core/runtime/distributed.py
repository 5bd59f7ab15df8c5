"""Sharing one computation among the processes that torchrun started, on torch.distributed alone.

Without torchrun there is one process, and nothing here does anything.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import torch
from torch import Tensor, distributed

_NO_LIMIT = timedelta(days=365)  # torch has no word for it
_POLL_SECONDS = 0.1


def rank() -> int:
    """Return the number of this process among all, from 0."""
    return distributed.get_rank() if _joined() else 0


def size() -> int:
    """Return the number of processes."""
    return distributed.get_world_size() if _joined() else 1


def _joined() -> bool:
    return distributed.is_available() and distributed.is_initialized()


@contextmanager
def process_group(device: str | None = None) -> Iterator[str | None]:
    """Join the other processes under torchrun; do nothing without it.

    Yields:
        The device to use: that of the same number as the process on a machine with GPUs, else ``device`` as given.

    Raises:
        ValueError: if a machine has more processes than GPUs.
    """
    if "TORCHELASTIC_RUN_ID" not in os.environ:
        yield device
        return
    on_gpu = torch.cuda.is_available() and (device is None or device.startswith("cuda"))
    if on_gpu:
        number, count = int(os.environ["LOCAL_RANK"]), torch.cuda.device_count()
        if number >= count:
            raise ValueError(f"{number + 1} or more processes, but {count} GPUs: start one process a GPU")
        device = f"cuda:{number}"
        torch.cuda.set_device(device)
    store, rank, size = next(distributed.rendezvous("env://"))  # type: ignore[attr-defined]  # documented, but not listed
    if os.environ["GROUP_WORLD_SIZE"] == "1":
        # Restarted workers meet in the store of the dead ones, and would wait for the addresses that those left there.
        attempt = os.environ["TORCHELASTIC_RESTART_COUNT"]
        store = distributed.PrefixStore(f"attempt-{attempt}", store)  # type: ignore[attr-defined]  # the same
    distributed.init_process_group("nccl" if on_gpu else "gloo", store=store, rank=rank, world_size=size)
    try:
        yield device
    finally:
        distributed.destroy_process_group()


def new_group() -> distributed.ProcessGroup:
    """Return a group for `barrier`; all processes ask for it at the same point, and that early.

    It is Gloo's, on GPUs too: its processes hold connections, which break when one dies, so it needs no time limit.
    """
    group = distributed.new_group(backend="gloo", timeout=_NO_LIMIT)
    return group  # type: ignore[return-value]  # a number for those left out of it: none is


def barrier(group: distributed.ProcessGroup) -> None:
    """Wait until every process has come here, however long the slowest works.

    Raises:
        ConnectionError: if a process died.
    """
    work = distributed.barrier(group, async_op=True)
    while not work.is_completed():  # so that Ctrl-C is heard meanwhile
        time.sleep(_POLL_SECONDS)
    try:
        work.wait()
    except RuntimeError as error:
        raise ConnectionError(f"a process died that the others waited for ({error})") from error


def all_reduce_sum(value: float) -> float:
    """Return the sum of all processes' values."""
    return _reduced(value, distributed.ReduceOp.SUM) if _joined() else value


def broadcast(value: float) -> float:
    """Return process 0's value on all of them."""
    return all_reduce_sum(value if rank() == 0 else 0.0)


def all_reduce_max(value: float) -> float:
    """Return the largest value of all processes."""
    return _reduced(value, distributed.ReduceOp.MAX) if _joined() else value


def _reduced(value: float, operation: distributed.ReduceOp.RedOpType) -> float:
    on_gpu = distributed.get_backend() == "nccl"
    tensor = torch.tensor(float(value), dtype=torch.float64, device="cuda" if on_gpu else "cpu")
    distributed.all_reduce(tensor, operation)
    return tensor.item()


def all_reduce_tensor_(tensor: Tensor) -> None:
    """Replace each process's tensor by the sum of all of them, in place."""
    if _joined():
        distributed.all_reduce(tensor)


def all_gather(content: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what every process gave, in the order of their ranks."""
    if not _joined():
        return [content]
    every: list[dict[str, Any]] = [{} for _ in range(size())]
    distributed.all_gather_object(every, content)
    return every
