"""Deferred handling of SIGINT (Ctrl-C)."""

from __future__ import annotations

import signal
import sys
import threading
from types import FrameType


class DeferredInterrupt:
    """Defer SIGINT, so that stored files are consistent and the interrupt is not lost; a second one is not deferred.

    The block checks ``received`` at every safe point and raises the KeyboardInterrupt itself.

    Args:
        message: text to print when the interrupt arrives.
    """

    def __init__(self, message: str):
        self.message, self.received = message, False

    def __enter__(self) -> DeferredInterrupt:
        self._deferring = threading.current_thread() is threading.main_thread()
        if self._deferring:
            self._previous = signal.signal(signal.SIGINT, self._receive)
        return self

    def _receive(self, signum: int, frame: FrameType | None) -> None:
        if self.received:
            raise KeyboardInterrupt
        self.received = True
        print(f"\n{self.message}", file=sys.stderr)

    def __exit__(self, *exception: object) -> None:
        if self._deferring:
            signal.signal(signal.SIGINT, self._previous)
