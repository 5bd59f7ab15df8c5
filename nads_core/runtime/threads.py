"""How many threads PyTorch uses for one operation: one, unless the operation is large.

Threads of OpenMP wait for each other by spinning, on cores that other programs want: beside a
second program small operations on two threads can take fifty times as long as on one. So cores work
on different networks, and only large products and decompositions are shared.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch

LARGE = 512  # rows of a matrix, from which on several threads work on it

_callers: ContextVar[int] = ContextVar("threads of the caller")


def num_threads() -> int:
    """Return the caller's number of threads, which `one_thread` leaves to large operations."""
    return _callers.get(0) or torch.get_num_threads()


@contextmanager
def one_thread() -> Iterator[None]:
    """Give each operation a single thread; the caller's number is restored at the end."""
    before = torch.get_num_threads()
    token = _callers.set(_callers.get(0) or before)
    torch.set_num_threads(1)
    try:
        yield
    finally:
        _callers.reset(token)
        torch.set_num_threads(before)


@contextmanager
def threads_for(size: int) -> Iterator[None]:
    """Give operations on matrices of ``size`` rows the caller's number of threads if they are
    large.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(num_threads() if size >= LARGE else before)
    try:
        yield
    finally:
        torch.set_num_threads(before)
