"""Whether this session writes the pages of the book, where figures bring variants and explorers share their files."""

import sys

OPTION = "--Book.publishing=True"  # of the kernel: `book/build.py` starts it so


def publishing() -> bool:
    """Return whether the kernel was started with `OPTION`; a notebook that a reader opens was not."""
    ipython = sys.modules.get("IPython")
    shell = ipython and ipython.get_ipython()
    return bool(shell and "publishing" in shell.config.get("Book", {}))
