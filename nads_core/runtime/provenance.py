"""Provenance of files: fingerprints of their bytes, the version of their numbers, and the machine
that computed them.

Comparisons use only what is the same on every machine: stored bytes, names, integers and the
numbers version. Device, versions, commit and date differ between machines and are recorded for the
reader.
"""

import contextlib
import hashlib
import json
import platform
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import torch

from nads_core.runtime import __version__
from nads_core.runtime.arguments import Facts
from nads_core.runtime.threads import num_threads

# They increase only when the same arguments give other numbers. RNG_VERSION stands for the weights
# of network i, the size of a block and the order of samples; NADS_VERSION for the second moments,
# and the NADs that are made from them. Files of another version are not resumed. CHANGELOG.md lists
# the changes of each version.
RNG_VERSION = 1
NADS_VERSION = 3


def fingerprint(*parts: np.ndarray | bytes | str) -> str:
    """Return 16 hexadecimal digits that identify these bytes; arrays include their type and shape.

    Pass stored values, not computed ones: products of floats differ between processors.
    """
    digest = hashlib.sha256()
    for part in parts:
        if isinstance(part, np.ndarray):
            little_endian = part.dtype.newbyteorder("<")
            head = f"{little_endian.str}{part.shape}"
            content = part.astype(little_endian, copy=False).tobytes()
        else:
            head, content = "", part.encode("utf8") if isinstance(part, str) else part
        digest.update(f"{head}{len(content)}:".encode() + content)
    return digest.hexdigest()[:16]


def function_identity(function: Callable[..., object]) -> str:
    """Return a name of a function that is the same in every process, such as
    "module:margin#0f3a51c2".

    The digits identify its compiled code and constants: they change with an edit or another version
    of Python, but not with the lines around it. Other callable objects have the name of their
    class. What this misses, such as a value from an enclosing scope, a checkpoint notices by the
    vectors of the first network.

    Example:
        >>> function_identity(json.dumps).partition("#")[0]
        'json:dumps'
    """
    code = getattr(function, "__code__", None)
    if code is None:
        return f"{type(function).__module__}:{type(function).__qualname__}"
    constants = [value for value in code.co_consts if isinstance(value, (int, float, str, tuple))]
    digits = fingerprint(code.co_code, repr(code.co_names), repr(constants))[:8]
    return f"{function.__module__}:{function.__qualname__}#{digits}"


def canonical(content: object) -> str:
    """Return JSON content as one text that does not depend on its layout in a file."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"))


def differences(old: Facts, new: Facts) -> str:
    """List the differences of two nested dictionaries, such as "seed was 0, now 1"; empty if there
    are none.
    """
    old, new = _flat(old), _flat(new)
    changed = [key for key in {**old, **new} if old.get(key) != new.get(key)]
    messages = [f"{key} was {old.get(key)!r}, now {new.get(key)!r}" for key in changed]
    if any(key.rpartition(".")[2] == "numbers" for key in changed):
        messages.append("other numbers versions draw other networks, see CHANGELOG.md")
    return "; ".join(messages)


def _flat(content: Facts, prefix: str = "") -> Facts:
    flat: Facts = {}
    for key, value in content.items():
        flat |= (
            _flat(value, f"{prefix}{key}.")
            if isinstance(value, dict)
            else {f"{prefix}{key}": value}
        )
    return flat


def environment(device: torch.device) -> Facts:
    """Describe where a result was computed: device, processor, versions, commit and date. Recorded,
    never compared.
    """
    threads = num_threads()
    on_gpu, cpu = device.type == "cuda", f"{threads} CPU thread{'s' * (threads > 1)}"
    return {
        "device": torch.cuda.get_device_name(device) if on_gpu else cpu,
        "processor": cpu_name(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "nads_core": __version__,
        "commit": own_commit(),
        "date": datetime.now(UTC).date().isoformat(),
    }


def cpu_name() -> str:
    """Return the name of the processor, as the system reports it."""
    names = set()
    with contextlib.suppress(OSError), open("/proc/cpuinfo") as file:
        names = {line.partition(":")[2].strip() for line in file if line.startswith("model name")}
    return ", ".join(sorted(names)) or platform.processor() or platform.machine()


def own_commit() -> str | None:
    """Return the commit of the repository of this package, with a + if the package, or Python
    files of the repository, were changed since.

    None if the package is not tracked at the top of a repository, as an installed copy is not.
    """
    package = Path(__file__).resolve().parents[1]
    if (
        _git(package, "ls-files", "--full-name", "--", "__init__.py")
        != f"{package.name}/__init__.py"
    ):
        return None
    commit = _git(package, "rev-parse", "--short", "HEAD")
    changed = _git(package, "--no-optional-locks", "status", "--porcelain", "--", ".", ":/*.py")
    return f"{commit}+" if commit and changed else commit


def _git(folder: Path, *arguments: str) -> str | None:
    command = ["git", "-C", str(folder), *arguments]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
