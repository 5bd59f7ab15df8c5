"""Record which files a kernel and its child processes read; Python imports this module when it
starts.

`nads_book.site.dependencies` puts this folder on the path of a kernel, and names the record and the
recorded folders in two environment variables: what a worker process inherits is its environment,
and nothing else.
"""

from __future__ import annotations

import os
import sys
from typing import Any

WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
LISTINGS = ("os.listdir", "os.scandir")


def record(target: str, folders: list[str]) -> None:
    """Append each file below the folders that this process opens to read, is missing, or lists: a
    kind and a path.

    A line is written at once, since workers may be killed. A file that is imported has the kind
    ``code``. What Python lists to find modules is left out, so that another module beside them
    changes nothing.
    """
    output = os.open(target, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    beginnings = tuple(os.path.join(folder, "") for folder in folders)
    known: set[str] = set()

    def see(event: str, arguments: tuple[Any, ...]) -> None:
        if event != "open" and event not in LISTINGS:
            return
        if event == "open" and arguments[2] & WRITES:
            return
        try:
            path = os.path.abspath(os.fsdecode("." if arguments[0] is None else arguments[0]))
        except TypeError:  # the number of an open file
            return
        if not os.path.join(path, "").startswith(beginnings):
            return
        by_python = "importlib" in sys._getframe(1).f_code.co_filename
        if event in LISTINGS and by_python:
            return
        kind = "folder" if event in LISTINGS else "code" if by_python else "file"
        line = f"{kind} {path}\n"
        if line not in known:
            known.add(line)
            os.write(output, os.fsencode(line))

    sys.addaudithook(see)


if "NADS_TRACE" in os.environ:
    record(os.environ["NADS_TRACE"], os.environ["NADS_TRACED"].split(os.pathsep))
