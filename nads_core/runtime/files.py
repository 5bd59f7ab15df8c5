"""Atomic writes, and files of tensors whose damage is noticed."""

import os
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import torch

from nads_core.runtime.arguments import Facts


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


def save_checkpoint(path: Path, content: Facts) -> None:
    """Write tensors and plain values, whole or not at all, with the checksums of a zip archive.

    Raises:
        OSError: if there is no space for them, or the folder is not writable; an earlier file is
            unchanged then.
    """
    with atomic_write(path, "wb") as file:
        torch.save(content, file)


def load_checkpoint(path: Path, origin: str) -> Any:
    """Return what `save_checkpoint` wrote, on the CPU, wherever it was written.

    Args:
        path: path of the file.
        origin: name of the function that writes such files, for the error.

    Raises:
        ValueError: if the file is none, was cut off, or differs by a bit from what was written.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            if damaged := archive.testzip():
                raise ValueError(f"the checksum of {damaged} is wrong")
        return torch.load(path, weights_only=True, map_location="cpu")
    except OSError:
        raise
    except Exception as error:  # an unpickler that reads something else can raise anything
        problem = f"damaged, or no checkpoint of {origin} ({type(error).__name__})"
        raise ValueError(f"{path} is {problem}: name another file, or delete it") from error
