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
import math
import os
import re
from collections.abc import Mapping
from pathlib import Path

TRACED = Path(__file__).parent / "traced"
DEBIAN = Path("/usr/share/datasets/fashion-mnist")
DATA_VARIABLES = ("NADS_DATA", "NADS_REFERENCE", "NADS_DOWNLOAD", "NADS_RESULTS")
# Parts of relative paths that no result depends on
NEVER = re.compile(r"(^|/)(_build|site-packages|__pycache__|\.(?!\.?/)|[^/]*\.egg-info)")


def traced(record: Path, root: Path) -> dict[str, str]:
    """Return the environment variables with which a Python process records what it reads below a
    folder.
    """
    paths = [str(TRACED), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        "NADS_TRACE": str(record),
        "NADS_TRACED": str(root),
        "PYTHONPATH": os.pathsep.join(paths),
    }


def read(record: Path, root: Path) -> set[str]:
    """Return the paths that were read, relative to the root, of a compiled module its source's."""
    names = set()
    for name in record.read_text("utf8").splitlines():
        if name.endswith(".pyc"):
            name = importlib.util.source_from_cache(name)
        relative = os.path.relpath(name, root)
        if not NEVER.search(relative):
            names.add(relative)
    return names


def digest(path: Path, began: float = math.inf) -> str:
    """Return a hash of what was read, as it is now; "missing" where there is no such file or
    folder, and "changed", which no later hash equals, for a change since ``began``, in seconds.
    """
    try:
        state = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return "missing"
    return "changed" if state.st_mtime > began else _digest(path, state.st_mtime_ns, state.st_size)


def changed(before: Mapping[str, str], root: Path) -> list[str]:
    """Return the paths whose hash is another one now."""
    return [name for name, value in before.items() if digest(root / name) != value]


def surroundings(preset: str) -> list[object]:
    """Return what a chapter depends on outside of the checkout: preset, variables and which photos
    there are.
    """
    photos = Path(os.environ.get("NADS_DATA") or Path.home() / ".cache" / "nads_core")
    names = sorted(path.name for path in photos.glob("[!.]*"))
    return [preset, *map(os.environ.get, DATA_VARIABLES), names, DEBIAN.is_dir()]


@functools.cache
def _digest(path: Path, modified: int, size: int) -> str:
    """Return the hash of a file or folder, as of its time of modification and size."""
    if path.is_dir():  # also where a program tried to open it
        names = (name for name in os.listdir(path) if not name.startswith((".", "__pycache__")))
        content = "\0".join(sorted(names)).encode()
    elif path.suffix == ".py":  # what a module says to Python, without docstrings
        tree = ast.parse(path.read_bytes())
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                node.body = node.body[ast.get_docstring(node, clean=False) is not None :]
        content = ast.dump(tree).encode()
    else:
        content = path.read_bytes()
    return hashlib.sha256(content).hexdigest()
