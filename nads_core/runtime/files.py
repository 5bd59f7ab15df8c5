"""Files that are whole at every moment, and that one process at a time writes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any


@contextmanager
def atomic_write(path: str | os.PathLike[str], mode: str = "w") -> Iterator[IO[Any]]:
    """Open a file that takes the place of ``path`` when the block ends without an error, and vanishes otherwise.

    Args:
        path: the file to write; its folder is made where there is none.
        mode: "w" for UTF-8 text, "wb" for bytes.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open(mode, encoding=None if "b" in mode else "utf8") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def checkout_folder(name: str) -> Path:
    """Return a folder, such as ``book/results``, of the checkout around the working folder, or around this package.

    Where neither has it, it is that of the working folder, which somebody may want to make.
    """
    here = Path.cwd()
    candidates = [parent / name for parent in (here, *here.parents, Path(__file__).parents[2])]
    return next((folder for folder in candidates if folder.is_dir()), candidates[0])


@contextmanager
def locked(path: str | os.PathLike[str], advice: str) -> Iterator[None]:
    """Hold a lock for a file, so that two processes cannot overwrite each other's work.

    The empty lock file ``.NAME.lock`` stays: were it deleted, two processes could hold locks of the same name.

    Args:
        path: the file.
        advice: remedy, for the message.

    Raises:
        ValueError: if another process holds the lock.
    """
    from filelock import FileLock, Timeout

    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path.with_name(f".{path.name}.lock"))
    try:
        lock.acquire(blocking=False)
    except Timeout as error:
        raise ValueError(f"another process is writing {path}: {advice}") from error
    try:
        yield
    finally:
        lock.release()
