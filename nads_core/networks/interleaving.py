"""Two networks evaluated in turns, line by line, to see whether their code shares what it should
not.

Threads switch rarely between two given lines, so that a dictionary of a module, a list of a class
or the argument of a hook mixes two networks in one of a thousand evaluations. Here the switch is
forced: each thread runs one instruction of the user's Python code, then the other one does.
"""

from __future__ import annotations

import gc
import sys
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Generic, NamedTuple, TypeVar

import torch

# Folders of code that shares nothing between networks
_TRUSTED = (str(Path(torch.__file__).parent), str(Path(__file__).parents[1]))
_Result = TypeVar("_Result")
_PYTHON = (str(Path(threading.__file__).parent), "<frozen")
# Visits of a function by each thread that are interleaved: layers of one kind run the same code
_VISITS = 8


class _Turns:
    """Whose turn it is among two threads; all may run as soon as one has ended, or has waited too
    long.

    Args:
        timeout: seconds for which a thread may wait for its turn, for example because both need one
            lock.
    """

    def __init__(self, timeout: float):
        self._changed = threading.Condition(threading.RLock())
        self._turn, self._timeout = 0, timeout
        self.free = self.timed_out = False

    def wait(self, index: int) -> None:
        """Wait for the turn of a thread."""
        with self._changed:
            if not self._changed.wait_for(lambda: self.free or self._turn == index, self._timeout):
                self.timed_out = True
                self.release()

    def hand_over(self, index: int) -> None:
        """Let the other thread run, and wait until it hands over."""
        with self._changed:
            self._turn = 1 - index
            self._changed.notify_all()
            self.wait(index)

    def release(self) -> None:
        """Let both threads run."""
        with self._changed:
            self.free = True
            self._changed.notify_all()


class Interleaved(NamedTuple, Generic[_Result]):
    """Results of two functions, None if one raised an exception or waited for too long, and the
    first one's steps.
    """

    results: list[_Result] | None
    steps: int


def _is_trusted(file: str) -> bool:
    """Whether a file is torch's, ours, or Python's own; installed packages lie in a folder of the
    latter.
    """
    return file.startswith(_TRUSTED) or (file.startswith(_PYTHON) and "-packages" not in file)


def interleaved(
    first: Callable[[], _Result],
    second: Callable[[], _Result],
    timeout: float,
    pause: int | None = None,
) -> Interleaved[_Result]:
    """Call two functions in two threads that take turns after instructions of Python code outside
    of torch.

    Args:
        first: one function.
        second: the other.
        timeout: seconds for which a thread may wait for its turn.
        pause: step of the first function at which the second one runs from its beginning to its
            end; by default each runs one step at a time.
    """
    turns, results, steps = _Turns(timeout), dict[int, _Result](), [0, 0]

    def run(index: int, function: Callable[[], _Result]) -> None:
        visits = Counter[CodeType]()

        def trace(frame: FrameType, event: str, _: object) -> Any:  # itself, or None
            if event == "call":
                visits[frame.f_code] += 1
                if _is_trusted(frame.f_code.co_filename) or visits[frame.f_code] > _VISITS:
                    return None
                frame.f_trace_opcodes = True
            steps[index] += 1
            if not turns.free and (pause is None or (index == 0 and steps[0] == pause)):
                turns.hand_over(index)
            return trace

        torch.set_num_threads(1)  # of this thread of Python alone
        turns.wait(index)
        sys.settrace(trace)
        try:
            results[index] = function()
        except Exception:  # of whatever kind: these networks cannot be evaluated at once
            return
        finally:
            sys.settrace(None)
            turns.release()

    threads = [
        threading.Thread(target=run, args=pair, daemon=True) for pair in enumerate((first, second))
    ]
    collects = gc.isenabled()
    gc.disable()  # else a callback of the collector would be steps of one thread alone
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(10 * timeout)
    finally:
        if collects:
            gc.enable()
    whole = len(results) == 2 and not turns.timed_out
    return Interleaved([results[0], results[1]] if whole else None, steps[0])
