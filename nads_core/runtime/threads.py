"""How many threads PyTorch uses for one operation: one, unless the operation is large.

Threads of OpenMP wait for each other by spinning, on cores that other programs want: beside a
second program small operations on two threads can take fifty times as long as on one. So cores work
on different networks, and only large products and decompositions are shared.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch

LARGE = 512  # rows of a matrix, from which on several threads work on it

_lock = threading.Lock()
_running = 0  # contexts of all threads of Python in which operations have one thread
_callers = 1  # threads per operation outside of them
_nesting = threading.local()


def num_threads() -> int:
    """Return the caller's number of threads, which `one_thread` leaves to networks and to large
    operations.
    """
    return _callers if _running else torch.get_num_threads()


@contextmanager
def one_thread() -> Iterator[None]:
    """Give each operation of this thread of Python a single thread; the caller's number is restored
    at the end.
    """
    global _running, _callers
    depth = getattr(_nesting, "depth", 0)
    with _lock:
        # The first look of a thread takes over the number of the process, which another thread may
        # set back: later it would undo what is set below.
        threads = torch.get_num_threads()
        if not _running:
            _callers = threads
        before = 1 if depth else _callers
        _running += 1
    _nesting.depth = depth + 1
    torch.set_num_threads(1)
    try:
        yield
    finally:
        with _lock:
            _running -= 1
        _nesting.depth = depth
        torch.set_num_threads(before)


@contextmanager
def threads_for(size: int) -> Iterator[None]:
    """Give operations on matrices of ``size`` rows the caller's number of threads if they are
    large.
    """
    within = getattr(_nesting, "depth", 0) > 0 and size >= LARGE
    if within:
        torch.set_num_threads(num_threads())
    try:
        yield
    finally:
        if within:
            torch.set_num_threads(1)
