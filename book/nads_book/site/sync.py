"""Carry edits between book/chapters/*.md and notebooks/*.ipynb, with ``python -m
nads_book.site.sync``.

Two kinds of cells are in notebooks alone, with the tag ``remove-cell``: the first one of code, and
the caption below each figure, which Jupyter and Colab would hide with the other metadata.

Jupytext writes the options of a cell as a YAML block of many short lines. Here each option is one
line, so that code cells stay readable; jupytext reads both forms.
"""

from __future__ import annotations

import hashlib
import math
import re
import sys
from pathlib import Path

import jupytext
import nbformat
import yaml
from nbformat import v4

CHAPTERS = Path(__file__).resolve().parents[2] / "chapters"
NOTEBOOKS = CHAPTERS.parents[1] / "notebooks"
ONLY_IN_NOTEBOOKS = {"tags": ["remove-cell"]}
INSTALL = """\
import importlib.util, os, site, sys, sysconfig  # for Colab: install the book
if not all(map(importlib.util.find_spec, ("nads_core", "nads_book"))):
    address = "https://github.com/nads-book/nads-book"
    checkouts = [f for f in (".", "..") if os.path.isdir(f"{f}/nads_core")]
    folder = [*checkouts, "nads-book"][0]
    !test -d {folder}/book || git clone --quiet --depth 1 {address} {folder}
    !{sys.executable} -m pip install -q --no-deps -e {folder} loky mnist1d pandas
    site.addsitedir(sysconfig.get_path("purelib"))  # no restart is needed
    if not importlib.util.find_spec("nads_book"):
        raise SystemExit(f"{address} could not be installed: upload the book's folder "
                         "here as nads-book, or correct the address, and try again.")"""
OPTIONS = re.compile(
    r"^(```\{code-cell\}.*\n)(?:---\n((?:.+\n)+?)---\n|((?::.+\n)+))\n*", re.MULTILINE
)


def compact(text: str) -> str:
    """Write the options of every code cell of a chapter as one line each, without a blank line
    after them.
    """

    def lines(match: re.Match[str]) -> str:
        fence, block, colons = match.groups()
        options = yaml.safe_load(block or re.sub("^:", "", colons, flags=re.MULTILINE))
        style = {"default_flow_style": True, "allow_unicode": True, "width": math.inf}
        texts = {key: yaml.safe_dump(value, **style).strip() for key, value in options.items()}
        return fence + "".join(f":{key}: {texts[key]}\n" for key in sorted(texts, reverse=True))

    return OPTIONS.sub(lines, text)


def read(path: Path) -> nbformat.NotebookNode:
    """Read a chapter from its text or its notebook, less the cells that are in notebooks alone."""
    notebook = jupytext.read(path, config=jupytext.config.load_jupytext_config(str(path)))
    notebook.cells = [
        cell for cell in notebook.cells if cell.metadata.get("tags") != ONLY_IN_NOTEBOOKS["tags"]
    ]
    return notebook


def notebook_of(text: Path) -> nbformat.NotebookNode:
    """Return the notebook of a chapter, each cell named after what is in it."""
    notebook = read(text)
    cells: list[nbformat.NotebookNode] = []
    for cell in notebook.cells:
        if cell.cell_type == "code" and not any(each.cell_type == "code" for each in cells):
            cells.append(v4.new_code_cell(INSTALL, metadata=ONLY_IN_NOTEBOOKS))
        cells.append(cell)
        if caption := cell.metadata.get("mystnb", {}).get("figure", {}).get("caption"):
            cells.append(v4.new_markdown_cell(f"**Figure.** {caption}", metadata=ONLY_IN_NOTEBOOKS))
    names: set[str] = set()
    for cell in cells:
        cell.id = hashlib.sha256(cell.source.encode()).hexdigest()[:8]
        while cell.id in names:  # a second one like it
            cell.id += "-"
        names.add(cell.id)
    notebook.cells = cells
    return notebook


def main() -> int:
    """Write the older one of text and notebook of each chapter from the newer one, where they
    differ.
    """
    for text in sorted(CHAPTERS.glob("*.md")):
        notebook = NOTEBOOKS / f"{text.stem}.ipynb"
        newer = notebook.exists() and notebook.stat().st_mtime > text.stat().st_mtime
        if newer and nbformat.read(notebook, as_version=4).cells != notebook_of(text).cells:
            config = jupytext.config.load_jupytext_config(str(text))
            written = jupytext.writes(read(notebook), "md:myst", config=config)
            text.write_text(compact(written), "utf8")
        nbformat.write(notebook_of(text), notebook)
    return 0


if __name__ == "__main__":
    sys.exit(main())
