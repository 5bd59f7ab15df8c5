"""Notebooks with gaps, for a course: ``python -m nads_book.site.gaps FOLDER``.

In each live cell of a chapter that a reader sees, the last assignment that calls the library loses
its right side. The name of the function stays as a hint; the chapter has the answer.
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import nbformat

from nads_book.checkout import checkout_folder

HIDDEN = {"remove-cell", "remove-input", "hide-input", "hide-cell", "parameters"}
CALL = re.compile(r"\bnc(?:\.(?!load_)\w+)+(?=\()")
MARK = re.compile(r"<!-- gaps: (\w+) -->")
NOTE = "*A notebook with gaps: replace each `...` by a call that fits. The chapter has one answer.*"


def with_gap(source: str) -> str | None:
    """Return a cell whose last assignment from a call of the library is a gap, or None if it has no
    such line.

    >>> with_gap("hole = nc.poison(images, labels, nads, 0, 0)")
    'hole = ...  # nc.poison'
    """
    if any(line.startswith(("%", "!")) for line in source.splitlines()):
        return None
    found = None
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and (names := CALL.findall(ast.unparse(node.value))):
            found = node.value, names[-1]
    if found is None:
        return None
    value, function = found
    lines = source.splitlines()
    first, last = value.lineno - 1, (value.end_lineno or value.lineno) - 1
    before, after = lines[first][: value.col_offset], lines[last][value.end_col_offset :]
    comment = after.strip().removeprefix("#").strip()
    hint = f"  # {function}" + (f": {comment}" if comment else "")
    return "\n".join([*lines[:first], f"{before}...{hint}", *lines[last + 1 :]])


def notebook_with_gaps(notebook: nbformat.NotebookNode) -> int:
    """Put gaps into the live cells of a notebook, and a note below its title;
    return their number.
    """
    count = 0
    for cell in notebook.cells:
        shown = not HIDDEN & set(cell.metadata.get("tags", []))
        if cell.cell_type == "code" and shown and (changed := with_gap(cell.source)):
            cell.source, count = changed, count + 1
    if count:
        notebook.cells.insert(1, nbformat.v4.new_markdown_cell(NOTE))
    return count


def write(folder: Path, root: Path) -> dict[str, int]:
    """Write the notebooks with gaps of all chapters that have live cells.

    Args:
        folder: folder that is made.
        root: folder of the repository.

    Returns:
        Number of gaps by chapter.
    """
    folder.mkdir(parents=True, exist_ok=True)
    counts = {}
    for path in sorted(root.glob("notebooks/*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        if count := notebook_with_gaps(notebook):
            counts[path.stem] = count
            nbformat.write(notebook, folder / path.name)
    return counts


def with_links(text: str, counts: dict[str, int]) -> str:
    """Replace ``<!-- gaps: NAME -->`` in the page *Course* by a link to the notebook, if it has
    gaps.
    """

    def link(mark: re.Match[str]) -> str:
        count = counts.get(mark[1], 0)
        address = f"../_static/gaps/{mark[1]}.ipynb"
        words = f"{count} gap{'s' * (count > 1)}"
        return f'<a href="{address}" download>{words}</a>' if count else ""

    return MARK.sub(link, text)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m nads_book.site.gaps FOLDER")
    for name, number in write(Path(sys.argv[1]), checkout_folder("notebooks").parent).items():
        print(f"{name}: {number} gaps")
