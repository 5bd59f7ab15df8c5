"""How an executed chapter becomes a page, before Sphinx reads it."""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path

import nbformat

from nads_book.claims.statements import TAKEAWAY
from nads_book.figures.variants import MIME, VARIANTS

# Cells that show claims, stored figures or widgets: a page shows the results alone.
SHOWN = re.compile(r"((nb\.conclude|(nb\.pages\.\w+|page)\.\w+)\(.*\)\n?)+")
# What follows `details`, up to its end or the next heading, is folded: a page then reads like an
# article; a notebook has it all.
DETAILS = re.compile(
    r"^<!-- details: ([^\n]+) -->$(.*?)(^<!-- end of details -->$|(?=^#{1,6} )|\Z)",
    re.MULTILINE | re.DOTALL,
)
FOLD = r"<details>\n<summary>\1</summary>\2</details>\n\n"
BOX = r":::{admonition} Takeaway\n:class: takeaway\n\1\n:::"
BETWEEN = "\n<!-- next cell -->\n"


def byline(notebook: nbformat.NotebookNode) -> str:
    """Note how long an executed chapter took, on what, at which preset and when: papermill and
    `execution` noted it.
    """
    record = notebook.metadata.papermill
    seconds, preset, day = record.duration, record.parameters.preset, record.end_time[:10]
    duration = f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} minutes"
    return (
        f"This page was computed in {duration} on {notebook.metadata.machine}, at preset "
        f"`{preset}`, on {day}."
    )


def page_of(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Return the notebook of a page: with a byline, a boxed takeaway and folds, without code in
    which there is nothing to change, and without the parameters that papermill adds: the byline
    names the preset.
    """
    hidden = "injected-parameters"
    cells = [cell for cell in notebook.cells if hidden not in cell.metadata.get("tags", [])]
    notebook.cells = [*cells, nbformat.v4.new_markdown_cell("")]  # where a last fold ends
    for cell in cells:
        if SHOWN.fullmatch(cell.source):
            cell.metadata.setdefault("tags", []).append("remove-input")
    title, _, rest = cells[0].source.partition("\n")
    cells[0].source = f"{title}\n\n:::{{div}} byline\n{byline(notebook)}\n:::\n{rest}"
    texts = [cell for cell in notebook.cells if cell.cell_type == "markdown"]
    page = TAKEAWAY.sub(BOX, BETWEEN.join(cell.source for cell in texts))
    page = DETAILS.sub(FOLD, page)
    for cell, text in zip(texts, page.split(BETWEEN), strict=True):
        cell.source = text
    return notebook


def keep_variants(notebook: nbformat.NotebookNode, folder: Path) -> None:
    """Move the variants of a notebook's pictures, which Sphinx does not know, to a folder.

    Their names are those that Sphinx gives to the pictures, ``HASH.png``, and the variants',
    ``HASH.dark.png``.
    """
    folder.mkdir(exist_ok=True)
    for output in (one for cell in notebook.cells for one in cell.get("outputs", [])):
        data = output.get("data", {})
        for name in VARIANTS:
            if variant := data.pop(MIME.format(name), None):
                picture = hashlib.sha256(base64.b64decode(data["image/png"])).hexdigest()
                (folder / f"{picture}.{name}.png").write_bytes(base64.b64decode(variant))
