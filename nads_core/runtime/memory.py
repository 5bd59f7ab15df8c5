"""Free memory of a device."""

import torch


def available_memory(device: torch.device | str) -> int | None:
    """Return the bytes that are free on a device, or None if the system does not report it.

    On a CPU this is the memory that the system can give without swapping.
    """
    device = torch.device(device)
    if device.type == "cuda":
        # By torch, for its own use
        cached = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return torch.cuda.mem_get_info(device)[0] + cached
    if device.type != "cpu":
        return None
    import psutil

    return int(psutil.virtual_memory().available)


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
        raise MemoryError(
            f"{what} {needed / 1e9:.1f} GB, but {free / 1e9:.1f} GB are free on the {device}: "
            f"{advice}"
        )
