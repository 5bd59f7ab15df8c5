"""Old names, forwarded for one release with a DeprecationWarning, from the tables in ``moved.json``.

"names" has the present path of each public name that moved, "modules" that of each module, the longest names first (the
members of a package follow it), and "members" the present names of renamed members of these modules.
"""

import contextlib
import importlib
import importlib.abc
import importlib.util
import json
import pkgutil
import sys
import warnings
from collections.abc import Callable
from importlib import resources
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

SUBPACKAGES = ("data", "directions", "kernels", "networks", "runtime", "theory", "training")
TABLES: dict[str, dict[str, str]] = json.loads((resources.files("nads_core") / "moved.json").read_text("utf8"))


def forwarding_getattr(package: str, current: Callable[[str], Any] | None = None) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a package (PEP 562), which resolves the old public names of its members.

    Args:
        package: name of the package.
        current: function that resolves present names, for a package that imports its members when they are used.
    """

    def forward(name: str) -> Any:
        home = TABLES["names"].get(f"{package}.{name}")
        if home is None:
            if current is not None:
                return current(name)
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        warnings.warn(f"{package}.{name} moved to {home}", DeprecationWarning, stacklevel=2)
        return pkgutil.resolve_name(home)

    return forward


class _MovedModules(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Import a module by its old name: a module that forwards its members from the new one."""

    def find_spec(self, fullname: str, path: object, target: object = None) -> ModuleSpec | None:
        moved = next((old for old in TABLES["modules"] if f"{fullname}.".startswith(f"{old}.")), None)
        if moved is not None:
            home = TABLES["modules"][moved] + fullname.removeprefix(moved)
            # An import of a member that does not exist looks for a module of that name.
            with contextlib.suppress(ModuleNotFoundError):
                if importlib.util.find_spec(home) is not None:
                    return ModuleSpec(fullname, self, origin=home, is_package=True)
        return None

    def exec_module(self, module: ModuleType) -> None:
        home = str(module.__spec__ and module.__spec__.origin)
        target = importlib.import_module(home)
        warnings.warn(f"{module.__name__} moved to {home}", DeprecationWarning, stacklevel=2)
        vars(module)["__getattr__"] = lambda name: getattr(target, TABLES["members"].get(name) or name)


sys.meta_path.append(_MovedModules())
