"""Carry edits between book/chapters/*.md and notebooks/*.ipynb, with ``python -m
nads_book.site.sync``.

Jupytext writes the options of a cell as a YAML block of many short lines. Here each option is one
line, so that code cells stay readable; jupytext reads both forms.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

CHAPTERS = Path(__file__).resolve().parents[2] / "chapters"
OPTIONS = re.compile(
    r"^(```\{code-cell\}.*\n)(?:---\n((?:.+\n)+?)---\n|((?::.+\n)+))\n*", re.MULTILINE
)


def flow(value: Any) -> str:
    """Write a value as YAML on a single line, with quotes only around text that needs them."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(flow, value)) + "]"
    plain = isinstance(value, str) and re.fullmatch(r"[A-Za-z][\w .–-]*", value)
    return value if plain else json.dumps(value, ensure_ascii=False)


def compact(text: str) -> str:
    """Write the options of every code cell of a chapter as one line each, without a blank line
    after them.
    """

    def lines(match: re.Match[str]) -> str:
        fence, block, colons = match.groups()
        options = yaml.safe_load(block or re.sub("^:", "", colons, flags=re.MULTILINE))
        return fence + "".join(
            f":{key}: {flow(options[key])}\n" for key in sorted(options, reverse=True)
        )

    return OPTIONS.sub(lines, text)


def main() -> int:
    """Synchronise each pair, the newer file first, and compact the texts."""
    paths = sorted(CHAPTERS.glob("*.md"))
    status = subprocess.run(
        [sys.executable, "-m", "jupytext", "--sync", *map(str, paths)]
    ).returncode
    for path in paths:
        text = path.read_text("utf8")
        if (compacted := compact(text)) != text:
            path.write_text(compacted, "utf8")
    return status


if __name__ == "__main__":
    sys.exit(main())
