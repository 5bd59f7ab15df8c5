"""Free memory of a device."""

import contextlib
from pathlib import Path

import torch

_MACHINE, _PROCESS, _CONTAINER = Path("/proc/meminfo"), Path("/proc/self"), Path("/sys/fs/cgroup")


def available_memory(device: torch.device | str) -> int | None:
    """Return the bytes that are free on a device, or None if the system does not report it."""
    device = torch.device(device)
    if device.type == "cuda":
        cached = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)  # by torch, for its own use
        return torch.cuda.mem_get_info(device)[0] + cached
    free = _free_of_process() + _free_in_groups()
    if "MemAvailable" in (machine := _fields(_MACHINE)):
        free.append(machine["MemAvailable"])
    return min(free, default=None)


def _free_of_process() -> list[int]:
    """Return the bytes of addresses that ``ulimit -v`` leaves to this process, if there is a limit."""
    with contextlib.suppress(ImportError, KeyError):  # on other systems
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit != resource.RLIM_INFINITY:
            return [limit - _fields(_PROCESS / "status")["VmSize"]]
    return []


def _free_in_groups() -> list[int]:
    """Return the bytes that the control group of this process, and each group around it, may still use.

    Cached pages of files count as used there, but the system releases them on demand.
    """
    free, paths = [], {Path("/")}
    with contextlib.suppress(OSError):
        paths |= {Path(line.split(":", 2)[2]) for line in (_PROCESS / "cgroup").read_text().splitlines()}
    for group in {group for path in paths for group in (path, *path.parents)}:
        for root, limit, used, total in (
            (_CONTAINER, "max", "current", ""),
            (_CONTAINER / "memory", "limit_in_bytes", "usage_in_bytes", "total_"),  # version 1
        ):
            folder = root / group.relative_to("/")
            with contextlib.suppress(OSError, ValueError):  # "max": no limit
                limit_bytes, used_bytes = (int((folder / f"memory.{name}").read_text()) for name in (limit, used))
                pages = _fields(folder / "memory.stat")
                cached = sum(pages.get(f"{total}{kind}active_file", 0) for kind in ("in", ""))
                free.append(limit_bytes - used_bytes + cached)
    return free


def _fields(path: Path) -> dict[str, int]:
    """Return the bytes by name of lines such as ``MemAvailable: 12 kB`` or ``active_file 12``; empty without a file."""
    try:
        rows = [line.replace(":", " ").split() for line in path.read_text().splitlines()]
    except OSError:
        return {}
    return {
        row[0]: int(row[1]) * (1024 if row[-1] == "kB" else 1) for row in rows if len(row) > 1 and row[1].isdecimal()
    }


def require_memory(needed: float, device: torch.device | str, what: str, advice: str) -> None:
    """Raise a MemoryError unless ``needed`` bytes are free on a device.

    Args:
        needed: number of bytes.
        device: device of the memory.
        what: subject of the message: the purpose of the memory.
        advice: remedy, for the message.
    """
    free = available_memory(device)
    if free is not None and needed > free:
        raise MemoryError(f"{what} {needed / 1e9:.1f} GB, but {free / 1e9:.1f} GB are free on the {device}: {advice}")
