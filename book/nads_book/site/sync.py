"""Write notebooks/*.ipynb from the texts of the chapters, book/chapters/*.md, with ``python -m
nads_book.site.sync`` (``make sync``).

Each chapter has a second notebook, in book/gaps, for a course.

Two kinds of cells are in notebooks alone, with the tag ``remove-cell``: the first one of code, and
the caption below each figure, which Jupyter and Colab would hide with the other metadata.
"""

from __future__ import annotations

from pathlib import Path

import jupytext
import nbformat
from nbformat import v4

from nads_book.site.gaps import add_gaps

CHAPTERS = Path(__file__).resolve().parents[2] / "chapters"
NOTEBOOKS = CHAPTERS.parents[1] / "notebooks"
GAPS = CHAPTERS.with_name("gaps")
ONLY_IN_NOTEBOOKS = {"tags": ["remove-cell"]}
INSTALL = """\
import importlib.util, os, site, sys, sysconfig  # for Colab: install the book
if not all(map(importlib.util.find_spec, ("nads_core", "nads_book"))):
    address = "https://github.com/nads-book/nads-book"
    checkouts = [f for f in (".", "..", "../..") if os.path.isdir(f"{f}/nads_core")]
    folder = [*checkouts, "nads-book"][0]
    !test -d {folder}/book || git clone --quiet --depth 1 {address} {folder}
    !{sys.executable} -m pip install -q --no-deps -e {folder} loky pandas
    site.addsitedir(sysconfig.get_path("purelib"))  # no restart is needed
    if not importlib.util.find_spec("nads_book"):
        raise SystemExit(f"{address} could not be installed: upload the book's folder "
                         "here as nads-book, or correct the address, and try again.")"""


def notebook_of(text: Path) -> nbformat.NotebookNode:
    """Return the notebook of a chapter."""
    notebook = jupytext.read(text)
    install = v4.new_code_cell(INSTALL, metadata=ONLY_IN_NOTEBOOKS)
    cells = [notebook.cells[0], install]
    for cell in notebook.cells[1:]:
        cells.append(cell)
        if caption := cell.metadata.get("mystnb", {}).get("figure", {}).get("caption"):
            cells.append(v4.new_markdown_cell(f"**Figure.** {caption}", metadata=ONLY_IN_NOTEBOOKS))
    notebook.cells = cells
    return numbered(notebook)


def numbered(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Number the cells of a notebook, whose names would be random, and return the notebook."""
    for number, cell in enumerate(notebook.cells):
        cell.id = str(number)
    return notebook


def main() -> None:
    """Write the notebook of each chapter, and that with gaps."""
    for text in sorted(CHAPTERS.glob("*.md")):
        notebook, name = notebook_of(text), f"{text.stem}.ipynb"
        nbformat.write(notebook, NOTEBOOKS / name)
        add_gaps(notebook)
        nbformat.write(numbered(notebook), GAPS / name)


if __name__ == "__main__":
    main()
