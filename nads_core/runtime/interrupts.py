"""Deferred handling of SIGINT (Ctrl-C)."""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager


@contextmanager
def deferred_interrupt(message: str) -> Iterator[threading.Event]:
    """Defer SIGINT, so that stored files are consistent and the interrupt is not lost; a second one is not deferred.

    The block checks the event, which an interrupt sets, at every safe point and raises the KeyboardInterrupt itself.

    Args:
        message: text to print when the interrupt arrives.
    """
    received = threading.Event()

    def receive(*_: object) -> None:
        if received.is_set():
            raise KeyboardInterrupt
        received.set()
        print(f"\n{message}", file=sys.stderr)

    with ExitStack() as at_end:
        if threading.current_thread() is threading.main_thread():
            at_end.callback(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, receive))
        yield received
