"""Free memory of a device, and peak memory of a function."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import sys
from collections.abc import Callable
from pathlib import Path

import torch

_CONTAINER = Path("/sys/fs/cgroup")


def available_memory(device: torch.device | str) -> int | None:
    """Return the bytes that are free on a device, or None if the system does not report it."""
    device = torch.device(device)
    if device.type == "cuda":
        cached = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)  # by torch, for its own use
        return torch.cuda.mem_get_info(device)[0] + cached
    limits = (_status("/proc/meminfo", "MemAvailable"), _free_in_container())
    return min((free for free in limits if free is not None), default=None)


def _free_in_container() -> int | None:
    """Return what a control group may still take, None outside of one, or without a limit.

    The pages of files that it keeps cached count as used there, but are released on demand.
    """
    for folder, limit, used, cached in (
        (_CONTAINER, "memory.max", "memory.current", ("inactive_file", "active_file")),
        (_CONTAINER / "memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
         ("total_inactive_file", "total_active_file")),  # version 1
    ):  # fmt: skip
        with contextlib.suppress(OSError, ValueError):  # "max": no limit
            taken = int((folder / used).read_text())
            reclaimable = _fields(folder / "memory.stat")
            return int((folder / limit).read_text()) - taken + sum(reclaimable.get(name, 0) for name in cached)
    return None


def _fields(path: Path) -> dict[str, int]:
    """Read a file with a name and a number on each line; empty where there is none."""
    with contextlib.suppress(OSError, ValueError):
        return {name: int(number) for name, number in map(str.split, path.read_text().splitlines())}
    return {}


def require_memory(needed: float, device: torch.device | str, what: str, advice: str) -> None:
    """Raise a MemoryError unless ``needed`` bytes are free on a device.

    Args:
        needed: bytes.
        device: device of the memory.
        what: subject of the message: the purpose of the memory.
        advice: remedy, for the message.
    """
    free = available_memory(device)
    if free is not None and needed > free:
        where = "on this machine" if torch.device(device).type == "cpu" else f"on {device}"
        raise MemoryError(f"{what} {needed / 1e9:.1f} GB, but {free / 1e9:.1f} GB are free {where}: {advice}")


def peak_memory(work: Callable[[], object], device: torch.device | str) -> int | None:
    """Run ``work`` and return the peak memory: of the process on a CPU, of the tensors on a GPU; None if unknown.

    The process on a CPU holds Python and PyTorch as well, a few hundred megabytes.
    """
    device = torch.device(device)
    gc.collect()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
        torch.cuda.reset_peak_memory_stats(device)
        work()
        torch.cuda.synchronize(device)
        return torch.cuda.max_memory_allocated(device)
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)  # give back what earlier work has freed
    try:
        Path("/proc/self/clear_refs").write_text("5")  # the peak from now on
    except OSError:
        work()
        return _largest_ever()
    work()
    return _status("/proc/self/status", "VmHWM")


def _largest_ever() -> int | None:
    try:
        import resource
    except ImportError:
        return None
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _status(path: str, field: str) -> int | None:
    """Return the bytes of a line such as ``MemAvailable: 12 kB``."""
    with contextlib.suppress(OSError):
        for line in Path(path).read_text().splitlines():
            if line.startswith(f"{field}:"):
                return 1024 * int(line.split()[1])
    return None
