"""How long a call takes, of what it leaves to a GPU too."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

import torch

_Result = TypeVar("_Result")


def timed(call: Callable[[], _Result], device: torch.device) -> tuple[_Result, float]:
    """Return what a call returns, and its seconds."""
    synchronize: Callable[[], None] = torch.cuda.synchronize if device.type == "cuda" else lambda: None
    synchronize()
    start = time.perf_counter()
    result = call()
    synchronize()
    return result, time.perf_counter() - start
