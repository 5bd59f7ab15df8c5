"""How an executed chapter becomes a page, before Sphinx reads it."""

from __future__ import annotations

import base64
import hashlib
import html
import re
from pathlib import Path

import nbformat

from nads_book.claims.statements import TAKEAWAY
from nads_book.figures.variants import MIME, VARIANTS

# A line that shows a claim, a stored figure or a widget: a page shows the result alone.
SHOWN = re.compile(r"(nb\.conclude|(nb\.pages\.\w+|page)\.\w+)\(.*\)")
DETAILS = re.compile("<!-- details: (.+) -->")
END = "<!-- end of details -->"
HEADING = re.compile("#{1,6} ")


def byline(notebook: nbformat.NotebookNode) -> str:
    """Note how long an executed chapter took, on what, at which preset and when: papermill and
    `execution` noted it.
    """
    record, seconds = notebook.metadata["papermill"], notebook.metadata["papermill"]["duration"]
    duration = f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} minutes"
    preset, day = record["parameters"]["preset"], record["end_time"][:10]
    return (
        f"This page was computed in {duration} on {notebook.metadata['machine']}, at preset "
        f"`{preset}`, on {day}."
    )


def with_details(cells: list[nbformat.NotebookNode]) -> None:
    """Fold what follows a line ``<!-- details: LABEL -->``, up to the next heading or ``<!-- end of
    details -->``.

    A page then reads like an article; a notebook has it all.
    """
    inside = False
    for cell in cells:
        if cell.cell_type != "markdown":
            continue
        lines = []
        for line in cell.source.splitlines():
            if inside and (line == END or HEADING.match(line)):
                inside = False
                lines.append("</details>\n")
            if opened := DETAILS.fullmatch(line):
                inside = True
                line = f"<details>\n<summary>{html.escape(opened[1])}</summary>"
            if line != END:
                lines.append(line)
        cell.source = "\n".join(lines)
    if inside:
        cells.append(nbformat.v4.new_markdown_cell("</details>"))


def page_of(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Return the notebook of a page: with a byline, a boxed takeaway and folds, without code in
    which there is nothing to change, and without the parameters that papermill adds: the byline
    names the preset.
    """
    hidden = "injected-parameters"
    cells = [cell for cell in notebook.cells if hidden not in cell.metadata.get("tags", [])]
    title, _, rest = cells[0].source.partition("\n")
    cells[0].source = f"{title}\n\n:::{{div}} byline\n{byline(notebook)}\n:::\n{rest}"
    for cell in cells:
        lines = cell.source.splitlines()
        if cell.cell_type == "markdown":
            box = r":::{admonition} Takeaway\n:class: takeaway\n\1\n:::"
            cell.source = TAKEAWAY.sub(box, cell.source)
        elif lines and all(map(SHOWN.fullmatch, lines)):
            cell.metadata.setdefault("tags", []).append("remove-input")
    with_details(cells)
    notebook.cells = cells
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
                path = folder / f"{picture}.{name}.png"
                path.write_bytes(base64.b64decode(variant))
