"""Sharing one computation among the processes that torchrun started, with torch.distributed alone.

Without torchrun there is one process, and nothing is exchanged.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

import torch
from torch import Tensor, distributed

T = TypeVar("T")


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
        The device to use: on a machine with GPUs the GPU with the local index of the process,
            otherwise ``device``.

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
            raise ValueError(
                f"{index + 1} or more processes, but {count} GPUs: start one process per GPU"
            )
        device = f"cuda:{index}"
        torch.cuda.set_device(device)
    # Documented, but not listed among the module's names
    store, rank, size = next(distributed.rendezvous("env://"))  # type: ignore[attr-defined]
    if os.environ["GROUP_WORLD_SIZE"] == "1":
        # Restarted workers share the store of the dead ones, and would wait for the addresses that
        # those left there.
        attempt = os.environ["TORCHELASTIC_RESTART_COUNT"]
        store = distributed.PrefixStore(f"attempt-{attempt}", store)  # type: ignore[attr-defined]
    distributed.init_process_group(
        "nccl" if on_gpu else "gloo", store=store, rank=rank, world_size=size
    )
    try:
        yield device
    finally:
        distributed.destroy_process_group()


def all_gather(value: T) -> list[T]:
    """Return the values of all processes, which may be any objects, in the order of their ranks."""
    values = [value] * size()
    if _joined():
        distributed.all_gather_object(values, value)
    return values


def broadcast(value: float) -> float:
    """Return the value of process 0 in all processes."""
    return all_gather(value)[0]


def all_reduce(tensor: Tensor) -> Tensor:
    """Return the sum of the tensors of all processes."""
    if _joined():
        tensor = tensor.clone()
        distributed.all_reduce(tensor)
    return tensor
