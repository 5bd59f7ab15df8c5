"""Whether this session writes the pages of the book, where figures bring variants and explorers
share their files.
"""

import sys
from typing import Any

# Of the kernel, as `nads_book.site` starts it; a traceback is read in files, which have no colours
OPTIONS = ("--Book.publishing=True", "--InteractiveShell.colors=nocolor")
NO_VARIANTS = "--Book.variants=False"  # a further option, with which figures are drawn once


def publishing() -> bool:
    """Return whether the kernel was started with `OPTIONS`; a notebook that a reader opens was
    not.
    """
    return "publishing" in _options()


def draws_variants() -> bool:
    """Return whether figures are drawn for dark pages and for phones too."""
    return (
        publishing() and str(_options().get("variants")) != "False"
    )  # options of a kernel are strings


def _options() -> dict[str, Any]:
    ipython = sys.modules.get("IPython")
    shell = ipython and ipython.get_ipython()
    return dict(shell.config.get("Book", {})) if shell else {}
