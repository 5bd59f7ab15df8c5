"""Record which files a kernel and its child processes read; Python imports this module when it
starts.

`nads_book.site.dependencies` puts this folder on the path of a kernel, and names the record and the
recorded folder in two environment variables: what a worker process inherits is its environment,
and nothing else.
"""

from __future__ import annotations

import os
import sys
from typing import Any

WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT


def record(target: str, root: str) -> None:
    """Append the path of each file below a folder that this process opens to read or misses, and of
    each folder that it lists.

    A line is written at once, since workers may be killed. What Python lists to find modules is
    left out, so that another module beside them changes nothing.
    """
    output = os.open(target, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    beginning = os.path.join(root, "")
    known: set[str] = set()

    def see(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            reads = not arguments[2] & WRITES
        elif event in ("os.listdir", "os.scandir"):
            reads = "importlib" not in sys._getframe(1).f_code.co_filename
        else:
            reads = False
        if not reads or not isinstance(arguments[0], str | bytes | os.PathLike | None):
            return  # the number of an open file
        path = os.path.abspath(os.fsdecode(arguments[0] or "."))
        if os.path.join(path, "").startswith(beginning) and path not in known:
            known.add(path)
            os.write(output, os.fsencode(f"{path}\n"))

    sys.addaudithook(see)


if "NADS_TRACE" in os.environ:
    record(os.environ["NADS_TRACE"], os.environ["NADS_TRACED"])
