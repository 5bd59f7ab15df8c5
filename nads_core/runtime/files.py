"""Files that are whole at every moment, that one process at a time writes, and whose damage is noticed."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

_END, _SEAL = b"PK\5\6", b"sha256 "  # the record of 22 bytes that ends a zip archive; what its comment begins with
_SEAL_BYTES = len(_SEAL) + 64


@contextmanager
def atomic_write(path: str | os.PathLike[str], mode: str = "w") -> Iterator[IO[Any]]:
    """Open a file that takes the place of ``path`` when the block ends without an error, and vanishes otherwise.

    Args:
        path: the file to write; its folder is made where there is none.
        mode: "w" for UTF-8 text, "wb" for bytes.

    Raises:
        OSError: if the file cannot be written, on a full disk for example. ``path`` is unchanged then.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open(mode.replace("w", "w+"), encoding=None if "b" in mode else "utf8") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except (OSError, RuntimeError) as error:  # torch.save turns the one into the other
        number, reason = getattr(error, "errno", None), getattr(error, "strerror", None) or f"{error}".splitlines()[0]
        kept = ", and is as it was before" if path.exists() else ""
        message = f"{path} could not be written{kept} ({reason}): free space on its disk, or name a file elsewhere"
        raise (OSError(message) if number is None else OSError(number, message)) from error
    finally:
        part.unlink(missing_ok=True)


def seal(file: IO[bytes]) -> None:
    """End a zip archive, as ``torch.save`` and ``numpy.savez`` write them, with a checksum of every byte before it.

    The checksum is the archive's comment, which other readers ignore.

    Args:
        file: the whole archive, open for reading and writing.
    """
    file.seek(-2, os.SEEK_END)
    file.write(_SEAL_BYTES.to_bytes(2, "little"))  # the length of the comment ends the archive
    digest = _digest(file, file.seek(0, os.SEEK_END))  # and back at the end
    file.write(_SEAL + digest)


def require_undamaged(path: str | os.PathLike[str]) -> None:
    """Compare a zip archive with the checksum that `seal` gave it; one that was written without passes if it ends well.

    Raises:
        ValueError: if the file was cut off, changed in any bit, or is no zip archive.
    """
    with open(path, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _SEAL_BYTES))
        end = file.read()
        if end == _SEAL + _digest(file, size - _SEAL_BYTES):
            return
    if not end[-22:].startswith(_END):  # a sealed archive goes on behind that record
        raise ValueError(f"{path} is damaged, or no archive: its checksum does not agree with its content")


def _digest(file: IO[bytes], size: int) -> bytes:
    """Return the SHA-256 of the first ``size`` bytes, as hexadecimal digits."""
    digest, left = hashlib.sha256(), size
    file.seek(0)
    while left > 0 and (chunk := file.read(min(left, 2**20))):
        digest.update(chunk)
        left -= len(chunk)
    return digest.hexdigest().encode()


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
