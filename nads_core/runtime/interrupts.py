"""Deferred handling of SIGINT (Ctrl-C)."""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager


@contextmanager
def deferred_interrupt(message: str) -> Iterator[list[int]]:
    """Defer SIGINT, so that stored files are consistent and the interrupt is not lost; a second one
    is not deferred.

    The block gets a list of the signals received. It checks at every safe point whether there is
    one, and raises the KeyboardInterrupt itself. A handler may interrupt itself, so it must not
    take the lock of a `threading.Event`.

    Args:
        message: text to print when the interrupt arrives.
    """
    received: list[int] = []

    def receive(signum: int, *_: object) -> None:
        if received:
            raise KeyboardInterrupt
        received.append(signum)
        print(f"\n{message}", file=sys.stderr)

    with ExitStack() as at_end:
        if threading.current_thread() is threading.main_thread():
            at_end.callback(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, receive))
        yield received
