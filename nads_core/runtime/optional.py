"""Libraries that only some functions need."""

from __future__ import annotations

import importlib
from types import ModuleType


def optional_module(name: str, purpose: str) -> ModuleType:
    """Import a module that is not among the requirements.

    Args:
        name: name of the module, such as "matplotlib.pyplot".
        purpose: subject of the error message: what needs the module.

    Raises:
        ImportError: if it is not installed; the message says how to install it.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        raise ImportError(f"{purpose} needs {package}, which cannot be imported: pip install {package}") from error
