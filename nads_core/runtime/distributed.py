"""Sharing one computation among the processes that torchrun started, with torch.distributed alone.

Without torchrun there is one process, and these functions return their arguments.
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

_NO_LIMIT = timedelta(days=365)  # torch lacks an infinite timeout
_POLL_SECONDS = 0.1


def rank() -> int:
    """Return the index of this process, from 0."""
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
        The device to use: on a machine with GPUs the GPU with the local index of the process, otherwise ``device``.

    Raises:
        ValueError: if a machine has more processes than GPUs.
    """
    if "TORCHELASTIC_RUN_ID" not in os.environ:
        yield device
        return
    on_gpu = torch.cuda.is_available() and (device is None or device.startswith("cuda"))
    if on_gpu:
        index, count = int(os.environ["LOCAL_RANK"]), torch.cuda.device_count()
        if index >= count:
            raise ValueError(f"{index + 1} or more processes, but {count} GPUs: start one process per GPU")
        device = f"cuda:{index}"
        torch.cuda.set_device(device)
    store, rank, size = next(distributed.rendezvous("env://"))  # type: ignore[attr-defined]  # documented, but not listed
    if os.environ["GROUP_WORLD_SIZE"] == "1":
        # Restarted workers share the store of the dead ones, and would wait for the addresses that those left there.
        attempt = os.environ["TORCHELASTIC_RESTART_COUNT"]
        store = distributed.PrefixStore(f"attempt-{attempt}", store)  # type: ignore[attr-defined]  # as above
    distributed.init_process_group("nccl" if on_gpu else "gloo", store=store, rank=rank, world_size=size)
    try:
        yield device
    finally:
        distributed.destroy_process_group()


def new_group() -> distributed.ProcessGroup:
    """Return a group for `barrier`; all processes call this at the same point, before their work diverges.

    The group uses Gloo, also on GPUs: its connections break when a process dies, so it needs no time limit.
    """
    group = distributed.new_group(backend="gloo", timeout=_NO_LIMIT)
    return group  # type: ignore[return-value]  # only processes outside of the group get a number


def barrier(group: distributed.ProcessGroup) -> None:
    """Wait until every process has called this function, without a time limit.

    Raises:
        ConnectionError: if a process died.
    """
    work = distributed.barrier(group, async_op=True)
    while not work.is_completed():  # polling lets Ctrl-C interrupt the wait
        time.sleep(_POLL_SECONDS)
    try:
        work.wait()
    except RuntimeError as error:
        raise ConnectionError(f"a process died that the others waited for ({error})") from error


def all_reduce_sum(value: float) -> float:
    """Return the sum of all processes' values."""
    if not _joined():
        return value
    on_gpu = distributed.get_backend() == "nccl"
    tensor = torch.tensor(float(value), dtype=torch.float64, device="cuda" if on_gpu else "cpu")
    distributed.all_reduce(tensor)
    return tensor.item()


def broadcast(value: float) -> float:
    """Return the value of process 0 in all processes."""
    return all_reduce_sum(value if rank() == 0 else 0.0)


def all_reduce_tensor_(tensor: Tensor) -> None:
    """Replace the tensor of each process by the sum of all of them, in place."""
    if _joined():
        distributed.all_reduce(tensor)


def all_gather(content: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the dictionaries of all processes, in the order of their ranks."""
    if not _joined():
        return [content]
    contents: list[dict[str, Any]] = [{} for _ in range(size())]
    distributed.all_gather_object(contents, content)
    return contents
