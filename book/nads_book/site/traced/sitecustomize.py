"""Record which files a kernel and its child processes read; Python imports this module when it
starts.

`nads_book.site.dependencies` puts this folder on the path of a kernel, and names the record in an
environment variable: what a worker process inherits is its environment, and nothing else.
"""

from __future__ import annotations

import os
import sys
from typing import Any

WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT


def record(target: str) -> None:
    """Append the path of each file that this process opens to read or misses, and of each folder
    that it lists.

    A line is written at once, since workers may be killed. What Python lists to find modules is
    left out, so that another module beside them changes nothing.
    """
    output = os.open(target, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    known: set[str] = set()

    def see(event: str, arguments: tuple[Any, ...]) -> None:
        reads = event == "open" and not arguments[2] & WRITES
        if event in ("os.listdir", "os.scandir"):
            reads = "importlib" not in sys._getframe(1).f_code.co_filename
        if not reads or isinstance(arguments[0], int):  # the number of an open file
            return
        path = os.path.abspath(os.fsdecode(arguments[0] or "."))
        if path not in known:
            known.add(path)
            os.write(output, os.fsencode(f"{path}\n"))

    sys.addaudithook(see)


if target := os.environ.get("NADS_TRACE"):
    record(target)
