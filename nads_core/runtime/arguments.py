"""Checks of arguments, and of the memory that is free, before any work is done."""

from collections.abc import Collection, Sequence
from typing import Any, TypeGuard

import numpy as np
import torch

# Plain values by name, as descriptions, checkpoints and provenance hold them
Facts = dict[str, Any]
Shape = tuple[int, ...]  # of an image (C, H, W), a sequence (C, L) or features (F,)


def is_integer(value: object) -> TypeGuard[int]:
    """Whether a value is an integer of Python or numpy, and not a bool."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def make_plain(options: object) -> None:
    """Replace numpy's numbers in the fields of a frozen dataclass by Python's, whose repr and JSON
    are the number alone.
    """
    numbers = {
        name: value for name, value in vars(options).items() if isinstance(value, np.generic)
    }
    vars(options).update({name: value.item() for name, value in numbers.items()})


def require_integers(least: int = 1, **values: object) -> None:
    """Raise a ValueError unless all values are integers of at least ``least``."""
    kind = {0: "a non-negative integer", 1: "a positive integer"}.get(
        least, f"an integer of at least {least}"
    )
    for name, value in values.items():
        if not (is_integer(value) and value >= least):
            raise ValueError(f"{name} must be {kind}, got {value!r}")


def require_positive(**values: float) -> None:
    """Raise a ValueError unless all values are positive."""
    for name, value in values.items():
        if not value > 0:
            raise ValueError(f"{name} must be positive, got {value!r}")


def require_choice(kind: str, value: object, choices: Collection[object]) -> None:
    """Raise a ValueError unless a value is among the choices."""
    if value not in choices:
        raise ValueError(f"unknown {kind} {value!r}: choose from {tuple(choices)}")


def require_unit_norm(directions: torch.Tensor, tolerance: float = 1e-3) -> None:
    """Raise a ValueError unless all directions (..., D) have norm 1 within a tolerance, which suits
    float32.
    """
    for norm in directions.norm(dim=-1).flatten().tolist():
        if not abs(norm - 1) < tolerance:
            raise ValueError(f"direction has norm {norm:.4g}, expected 1: divide it by its norm")


def require_image_shape(image_shape: Sequence[int]) -> Shape:
    """Return the shape of an image, a sequence or a row of features; raise a ValueError for
    anything else.
    """
    sizes = image_shape if isinstance(image_shape, Sequence) else ()
    if not 1 <= len(sizes) <= 3 or not all(is_integer(n) and n > 0 for n in sizes):
        raise ValueError(
            f"image_shape must be positive integers (C, H, W), (C, L) or (F,), got {image_shape!r}"
        )
    return tuple(map(int, sizes))


def usable_dtype(dtype: torch.dtype | str) -> torch.dtype:
    """Return a floating-point type, given as it is or by its name; raise a ValueError for anything
    else.
    """
    usable = getattr(torch, dtype, None) if isinstance(dtype, str) else dtype
    if not isinstance(usable, torch.dtype) or not usable.is_floating_point:
        raise ValueError(
            "dtype must be a floating-point type, such as torch.float32 or 'float32', "
            f"got {dtype!r}"
        )
    return usable


def usable_device(device: torch.device | str | None = None) -> torch.device:
    """Return a device that works here, by default a GPU if there is one.

    Raises:
        ValueError: if there is no such device, or PyTorch cannot use it.
    """
    if device is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        torch.empty(0, device=device)
    except (
        RuntimeError,
        AssertionError,
        ImportError,
    ) as error:  # each kind of device fails differently
        reason = str(error).splitlines()[0].split(". ")[0]
        raise ValueError(
            f"device {str(device)!r} cannot be used ({reason}): leave it out, or take 'cpu'"
        ) from error
    return torch.device(device)


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
