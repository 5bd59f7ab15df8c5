"""Memory: what is free on a device, and what a piece of work takes at its peak."""

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
    """Return the bytes that are free on a device, or None where the system doesn't say."""
    device = torch.device(device)
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    free = _status("/proc/meminfo", "MemAvailable")
    with contextlib.suppress(OSError, ValueError):  # a container may have less than its machine ("max": no limit)
        limit, used = (int((_CONTAINER / name).read_text()) for name in ("memory.max", "memory.current"))
        free = limit - used if free is None else min(free, limit - used)
    return free


def require_memory(needed: float, device: torch.device | str, what: str, advice: str) -> None:
    """Raise a MemoryError unless ``needed`` bytes are free on a device.

    Args:
        needed: bytes.
        device: where.
        what: they are for, the subject of the message.
        advice: what to do about it.
    """
    free = available_memory(device)
    if free is not None and needed > free:
        where = "on this machine" if torch.device(device).type == "cpu" else f"on {device}"
        raise MemoryError(f"{what} {needed / 1e9:.1f} GB, but {free / 1e9:.1f} GB are free {where}: {advice}")


def peak_memory(work: Callable[[], object], device: torch.device | str) -> int | None:
    """Run ``work`` and return its peak: of the process on a CPU, of the tensors on a GPU; None where nobody says.

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
    """Return the bytes that a line such as ``MemAvailable: 12 kB`` tells."""
    with contextlib.suppress(OSError):
        for line in Path(path).read_text().splitlines():
            if line.startswith(f"{field}:"):
                return 1024 * int(line.split()[1])
    return None
