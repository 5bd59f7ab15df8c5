"""``nads-book address``: set the address of the repository everywhere (``make address URL=…``).

The address in `_config.yml` is a stand-in until the book has a repository. It is repeated where no
configuration is read: in the first cell of the notebooks, README, CITATION.cff and pyproject.toml.
A workflow on GitHub sets the address of its own repository, so that the pages of a fork link to the
fork.
"""

import argparse
import re
import subprocess

import yaml

from nads_book.experiments.checkout import checkout_folder

FORM = re.compile(r"https://github\.com/([\w-]+)/([\w.-]+?)(?:\.git)?/?")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the options of ``nads-book address``."""
    parser.add_argument("url", help="https://github.com/OWNER/NAME")


def run(url: str) -> int:
    """Replace the repository's address, and that of its pages, in all files that git tracks.

    Raises:
        ValueError: if the address is not one of GitHub.
    """
    match = FORM.fullmatch(url)
    if not match:
        raise ValueError(f"the address is {url!r}, expected https://github.com/OWNER/NAME")
    owner, name = match.groups()
    root = checkout_folder("notebooks").parent
    config = yaml.safe_load((root / "_config.yml").read_text("utf8"))
    before = config["repository"]["url"].removeprefix("https://github.com/")
    replaced = {
        f"github.com/{before}": f"github.com/{owner}/{name}",
        f"github/{before}": f"github/{owner}/{name}",  # of Colab
        config["html"]["baseurl"].rstrip("/"): f"https://{owner.lower()}.github.io/{name}",
    }
    command = ["git", "grep", "-lIF", *(f"-e{old}" for old in replaced)]
    listing = subprocess.run(command, cwd=root, capture_output=True, text=True)
    changed = 0
    for path in map(root.joinpath, listing.stdout.splitlines()):
        new = content = path.read_text("utf8")
        for old, address in replaced.items():
            new = re.sub(rf"{re.escape(old)}(?![\w-])", address, new)
        path.write_text(new, "utf8")
        changed += new != content
    print(f"{changed} files changed")
    return 0
