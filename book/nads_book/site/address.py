"""Set the address of the repository everywhere: ``python -m nads_book.site address URL`` (``make
address URL=…``).

The address in `_config.yml` is a stand-in until the book has a repository. It is repeated where no
configuration is read: in the first cell of the notebooks, README, CITATION.cff and pyproject.toml.
A workflow on GitHub sets the address of its own repository, so that the pages of a fork link to the
fork.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import yaml

FORM = re.compile(r"https://github\.com/([\w-]+)/([\w.-]+?)(?:\.git)?/?")


def pages_of(address: str) -> str:
    """Return where GitHub publishes the pages of a repository.

    Raises:
        ValueError: if the address is not one of GitHub.
    """
    match = FORM.fullmatch(address)
    if not match:
        raise ValueError(f"the address is {address!r}, expected https://github.com/OWNER/NAME")
    owner, name = match.groups()
    return f"https://{owner.lower()}.github.io/{name}"


def set_address(address: str, root: Path) -> list[Path]:
    """Replace the repository's address, and that of its pages, in all files that git tracks.

    Args:
        address: new address, such as ``https://github.com/OWNER/NAME``.
        root: folder of the repository.

    Returns:
        The files that changed.

    Raises:
        ValueError: if the address is not one of GitHub.
    """
    config = yaml.safe_load((root / "_config.yml").read_text("utf8"))
    old = config["repository"]["url"]
    pages = pages_of(address)
    address = address.removesuffix("/").removesuffix(".git")
    replaced = {old: address, config["html"]["baseurl"].rstrip("/"): pages}
    patterns = {
        re.compile(rf"{re.escape(before)}(?![\w-])".encode()): after.encode()
        for before, after in replaced.items()
    }
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, check=True)
    changed = []
    for path in (root / name for name in listing.stdout.decode().split("\0") if name):
        content = path.read_bytes() if path.is_file() else b""
        new = content
        for pattern, after in patterns.items():
            new = pattern.sub(lambda _, after=after: after, new)  # type: ignore[misc]
        if new != content:
            path.write_bytes(new)
            changed.append(path)
    return changed
