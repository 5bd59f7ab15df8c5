"""What made a file: the fingerprint of its bytes, the version of its numbers, and the machine that computed them.

Compared are only things that are the same on every machine: stored bytes, names, integers and the numbers version.
What differs between machines (device, versions, commit, date) is recorded for the reader.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch

__version__ = "0.2.0"

# Raised only when the same arguments give other numbers: which weights network i has, the size of a block, the order
# of samples. Files of another version are not resumed. CHANGELOG.md lists the changes of each version.
RNG_VERSION = 1


def fingerprint(*parts: np.ndarray | bytes | str) -> str:
    """Return 16 hexadecimal digits that name these bytes; arrays count with their type and shape.

    Pass stored values, not computed ones: products of floats differ between processors.
    """
    digest = hashlib.sha256()
    for part in parts:
        if isinstance(part, np.ndarray):
            little_endian = part.dtype.newbyteorder("<")
            head, content = f"{little_endian.str}{part.shape}", part.astype(little_endian, copy=False).tobytes()
        else:
            head, content = "", part.encode("utf8") if isinstance(part, str) else part
        digest.update(f"{head}{len(content)}:".encode() + content)
    return digest.hexdigest()[:16]


def canonical(content: Any) -> str:
    """Return JSON content as one text that does not depend on its layout in a file."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"))


def differences(old: dict[str, Any], new: dict[str, Any]) -> str:
    """Say what differs between two nested dictionaries, such as "seed was 0, now 1"; empty if nothing does."""
    old, new = _flat(old), _flat(new)
    changed = [key for key in {**old, **new} if old.get(key) != new.get(key)]
    told = [f"{key} was {old.get(key)!r}, now {new.get(key)!r}" for key in changed]
    if any(key.rpartition(".")[2] == "numbers" for key in changed):
        told.append("other numbers versions draw other networks, see CHANGELOG.md")
    return "; ".join(told)


def _flat(content: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in content.items():
        flat |= _flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value}
    return flat


def environment(device: torch.device) -> dict[str, Any]:
    """Describe where a result was computed: device, processor, versions, commit and date. Recorded, never compared."""
    threads = torch.get_num_threads()
    on_gpu, cpu = device.type == "cuda", f"{threads} CPU thread{'s' * (threads > 1)}"
    return {
        "device": torch.cuda.get_device_name(device) if on_gpu else cpu,
        "processor": cpu_name(), "torch": torch.__version__, "numpy": np.__version__, "nads_core": __version__,
        "commit": own_commit(), "date": datetime.now(UTC).date().isoformat(),
    }  # fmt: skip


def cpu_name() -> str:
    """Return what the system calls its processor."""
    try:
        with open("/proc/cpuinfo") as file:
            names = {line.partition(":")[2].strip() for line in file if line.startswith("model name")}
    except OSError:
        names = set()
    return ", ".join(sorted(names)) or platform.processor() or platform.machine()


def own_commit() -> str | None:
    """Return the commit of the repository of this package, with a + where the package was changed since.

    None if it does not lie in a repository of its own.
    """
    package = Path(__file__).resolve().parents[1]
    root = package.parent
    commands = (["rev-parse", "--show-toplevel"], ["ls-files", "--", str(package / "__init__.py")])
    top, tracked = (_git(root, *command) for command in commands)
    try:
        project = (root / "pyproject.toml").read_text("utf8")
    except OSError:
        return None
    ours = tracked and top and os.path.realpath(top) == str(root) and 'name = "nads-core"' in project
    if not ours:
        return None
    commit = _git(root, "rev-parse", "--short", "HEAD")
    changed = _git(root, "--no-optional-locks", "status", "--porcelain", "--", str(package))
    return f"{commit}+" if commit and changed else commit


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        result = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return result.stdout.strip()
