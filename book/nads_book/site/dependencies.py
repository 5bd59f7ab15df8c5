"""What a chapter depends on, as its kernel and the kernel's child processes were seen to read.

`traced/sitecustomize.py` records every file of the checkout that they open, miss or import, and
every folder that they list. A chapter is due again when one of these has changed: of a module its
code, without docstrings and comments; of another file its bytes; of a folder the names in it.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.util
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

TRACED = Path(__file__).parent / "traced"
PHOTOS = (  # folders in that of the photos, or anywhere
    "cifar-10-batches-py",
    "train",
    "cifar10",
    "fashion-mnist",
    "FashionMNIST",
    "imagenette64",
    "imagenette2-160",
    "/usr/share/datasets/fashion-mnist",
)
DATA_VARIABLES = ("NADS_DATA", "NADS_REFERENCE", "NADS_DOWNLOAD")
NEVER = {"_build", "site-packages", "__pycache__"}  # parts of paths that no result depends on


def results_folder(root: Path) -> Path:
    """Return where the chapters find the results of long runs: ``book/results``, or what
    NADS_RESULTS names.
    """
    return Path(os.environ.get("NADS_RESULTS", root / "book" / "results")).resolve()


def traced(record: Path, folders: Iterable[Path]) -> dict[str, str]:
    """Return the environment variables with which a Python process records what it reads below some
    folders.
    """
    path = os.pathsep.join(filter(None, (str(TRACED), os.environ.get("PYTHONPATH"))))
    return {
        "NADS_TRACE": str(record),
        "NADS_TRACED": os.pathsep.join(map(str, folders)),
        "PYTHONPATH": path,
    }


def read(record: Path, root: Path) -> set[str]:
    """Return what was read, each as its kind and its path relative to the root, such as ``file
    book/claims.toml``.
    """
    keys = set()
    for line in record.read_text("utf8").splitlines():
        kind, _, name = line.partition(" ")
        if kind == "code" and name.endswith(".pyc"):
            name = importlib.util.source_from_cache(name)
        relative = os.path.relpath(name, root)
        parts = [part for part in Path(relative).parts if part != ".."]
        if not any(
            part in NEVER or part.startswith(".") or part.endswith(".egg-info") for part in parts
        ):
            keys.add(f"{kind} {relative}")
    return keys


def digest(key: str, root: Path) -> str:
    """Return a hash of what was read, as it is now; "missing" where there is no such file or
    folder.
    """
    kind, _, name = key.partition(" ")
    path = root / name
    try:
        return _digest(kind, path, path.stat().st_mtime_ns, path.stat().st_size)
    except (FileNotFoundError, NotADirectoryError):
        return "missing"


def digests(keys: Iterable[str], root: Path, began: float = float("inf")) -> dict[str, str]:
    """Return the hash of each; of one that has changed since ``began``, in seconds, "changed",
    which it never is.
    """
    found = {key: digest(key, root) for key in sorted(keys)}
    for key, value in found.items():
        if value != "missing" and (root / key.partition(" ")[2]).stat().st_mtime > began:
            found[key] = "changed"
    return found


def changed(before: Mapping[str, str], root: Path) -> list[str]:
    """Return the keys whose hash is another one now."""
    return [key for key, value in before.items() if digest(key, root) != value]


def surroundings(preset: str) -> list[object]:
    """Return what a chapter depends on outside of the checkout: preset, variables and which photos
    there are.
    """
    photos = Path(os.environ.get("NADS_DATA") or Path.home() / ".cache" / "nads_core")
    return [
        preset,
        *map(os.environ.get, DATA_VARIABLES),
        *[(photos / name).is_dir() for name in PHOTOS],
    ]


@functools.cache
def _digest(kind: str, path: Path, modified: int, size: int) -> str:
    """Return the hash of a file or folder, as of its time of modification and size."""
    if path.is_dir():  # also where a program tried to open it
        names = sorted(
            name for name in os.listdir(path) if not name.startswith((".", "__pycache__"))
        )
        content = "\0".join(names).encode()
    elif kind == "code":
        content = _code(path.read_bytes())
    else:
        content = path.read_bytes()
    return hashlib.sha256(content).hexdigest()


def _code(source: bytes) -> bytes:
    """Return what a module says to Python: its syntax tree without docstrings."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            if ast.get_docstring(node, clean=False) is not None:
                node.body = node.body[1:]
    return ast.dump(tree).encode()
