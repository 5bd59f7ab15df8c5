"""Atomic writes, and checksums that reveal damaged files."""

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import torch

from nads_core.runtime.arguments import Facts

_END = b"PK\5\6"  # beginning of the record of 22 bytes that ends a zip archive
_SEAL = b"sha256 "  # beginning of the comment in it
_SEAL_BYTES = len(_SEAL) + 64


@contextmanager
def atomic_write(path: str | os.PathLike[str], mode: str = "w") -> Iterator[IO[Any]]:
    """Open a temporary file that replaces ``path`` when the block ends without an error, and is
    deleted otherwise.

    Args:
        path: path of the file, or of a link to it; its folder is created if necessary.
        mode: "w" for UTF-8 text, "wb" for bytes.

    Raises:
        OSError: if the file cannot be written, for example on a full disk; ``path`` is then
            unchanged.
    """
    path = Path(path).resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open(mode.replace("w", "w+"), encoding=None if "b" in mode else "utf8") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except (OSError, RuntimeError) as error:  # torch.save turns an OSError into a RuntimeError
        number = getattr(error, "errno", None)
        reason = getattr(error, "strerror", None) or f"{error}".splitlines()[0]
        unchanged = ", and is as it was before" if path.exists() else ""
        message = (
            f"{path} could not be written{unchanged} ({reason}): "
            "free space on its disk, or name a file elsewhere"
        )
        raise (OSError(message) if number is None else OSError(number, message)) from error
    finally:
        part.unlink(missing_ok=True)


def seal(file: IO[bytes]) -> None:
    """End a zip archive, as ``torch.save`` and ``numpy.savez`` write them, with a checksum of every
    byte before it.

    The checksum is the archive's comment, which other readers ignore.

    Args:
        file: complete archive, open for reading and writing.
    """
    file.seek(-2, os.SEEK_END)
    file.write(_SEAL_BYTES.to_bytes(2, "little"))  # the length of the comment ends the archive
    # Reads up to the end, where the comment follows
    digest = _digest(file, file.seek(0, os.SEEK_END))
    file.write(_SEAL + digest)


def require_undamaged(path: str | os.PathLike[str]) -> None:
    """Compare a zip archive with its checksum; archives without one pass if their last record is
    complete.

    Raises:
        ValueError: if the file is truncated, differs in any bit, or is no zip archive.
    """
    with open(path, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _SEAL_BYTES))
        end = file.read()
        if end == _SEAL + _digest(file, size - _SEAL_BYTES):
            return
        file.seek(0)
        start = file.read(40)
    if not end[-22:].startswith(_END):  # in a sealed archive, the comment follows that record
        damaged = "is damaged: its checksum does not agree with its content"
        other = f"is no archive, it begins with {start!r}"
        remedy = "copy or download it again (a pointer of git-lfs needs git lfs pull)"
        raise ValueError(f"{path} {damaged if start.startswith(b'PK') else other}: {remedy}")


def save_checkpoint(path: Path, content: Facts) -> None:
    """Write tensors and plain values, whole or not at all, with a checksum.

    Raises:
        OSError: if there is no space for them, or the folder is not writable; an earlier file is
            unchanged then.
    """
    with atomic_write(path, "wb") as file:
        torch.save(content, file)
        seal(file)


def load_checkpoint(path: Path, origin: str) -> Any:
    """Return what `save_checkpoint` wrote, on the CPU, wherever it was written.

    Args:
        path: path of the file.
        origin: name of the function that writes such files, for the error.

    Raises:
        ValueError: if the file is none, was cut off, or differs by a bit from what was written.
    """
    try:
        require_undamaged(path)
        return torch.load(path, weights_only=True, map_location="cpu")
    except OSError:
        raise
    except Exception as error:  # an unpickler that reads something else can raise anything
        problem = f"damaged, or no checkpoint of {origin} ({type(error).__name__})"
        raise ValueError(f"{path} is {problem}: name another file, or delete it") from error


def _digest(file: IO[bytes], size: int) -> bytes:
    """Return the SHA-256 of the first ``size`` bytes, as hexadecimal digits."""
    digest = hashlib.sha256()
    file.seek(0)
    while size > 0 and (chunk := file.read(min(size, 2**20))):
        digest.update(chunk)
        size -= len(chunk)
    return digest.hexdigest().encode()
