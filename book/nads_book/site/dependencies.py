"""What a chapter depends on, as its kernel and the kernel's child processes were seen to read.

`traced/sitecustomize.py` records every file of the checkout that they open, miss or import, and
every folder that they list. A chapter is due again when one of these has changed: of a module its
code, without docstrings and comments; of another file its bytes; of a folder the names in it.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import math
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

TRACED = Path(__file__).parent / "traced"
DEBIAN = Path("/usr/share/datasets/fashion-mnist")
DATA_VARIABLES = ("NADS_DATA", "NADS_REFERENCE", "NADS_DOWNLOAD", "NADS_RESULTS")
# Parts of relative paths that no result depends on; a path outside of the checkout begins with ..
NEVER = re.compile(r"(^|/)(_build|site-packages|__pycache__|\.|[^/]*\.egg-info)")
OUTSIDE = "preset, photos or variables"
CACHED = re.compile(r"__pycache__/(\w+)\..*")  # a compiled module


def traced(record: Path) -> dict[str, str]:
    """Return the environment variables with which a Python process records what it reads."""
    paths = [str(TRACED), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {"NADS_TRACE": str(record), "PYTHONPATH": os.pathsep.join(paths)}


def read(record: Path, root: Path) -> set[str]:
    """Return the paths below the root that were read, relative to it, of a compiled module its
    source's.
    """
    paths = CACHED.sub(r"\1.py", record.read_text("utf8", "surrogateescape")).splitlines()
    names = {os.path.relpath(path, root) for path in paths}
    return {name for name in names if not NEVER.search(name)}


def state(names: Iterable[str], preset: str, root: Path, began: float = math.inf) -> dict[str, Any]:
    """Return what a chapter depends on, as it is now: paths with their hashes; and outside of the
    checkout the preset, variables and which photos there are.

    Args:
        names: paths, relative to the root.
        preset: size of the experiments.
        root: root of the repository.
        began: seconds since the epoch; what has changed since then has a hash that none equals.
    """
    photos = Path(os.environ.get("NADS_DATA") or Path.home() / ".cache" / "nads_core")
    there = sorted(path.name for path in photos.glob("[!.]*"))
    outside = [preset, *map(os.environ.get, DATA_VARIABLES), there, DEBIAN.is_dir()]
    return {name: digest(root / name, began) for name in names} | {OUTSIDE: outside}


def digest(path: Path, began: float) -> str:
    """Return a hash of what was read, as it is now; "missing" where there is no such file or
    folder, and "changed", which no later hash equals, for a change since ``began``.
    """
    if not path.exists():
        return "missing"
    now = path.stat()
    return "changed" if now.st_mtime > began else _digest(path, now.st_mtime_ns, now.st_size)


@functools.cache
def _digest(path: Path, modified: int, size: int) -> str:
    """Return the hash of a file or folder, as of its time of modification and size."""
    if path.is_dir():  # also where a program tried to open it
        names = (name for name in os.listdir(path) if not name.startswith((".", "__pycache__")))
        content = "\0".join(sorted(names)).encode()
    elif path.suffix == ".py":  # what a module says to Python, without docstrings
        tree = ast.parse(path.read_bytes())
        for node in ast.walk(tree):
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                node.value.value = None
        content = ast.dump(tree).encode()
    else:
        content = path.read_bytes()
    return hashlib.sha256(content).hexdigest()
