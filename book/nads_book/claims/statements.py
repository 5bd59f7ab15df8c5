"""Where claims are stated: marks behind sentences of pages, and sentences of takeaways that have
none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nads_book.claims.register import ROOT, SIGNS, ClaimError, content, load, load_retired
from nads_book.experiments.formatting import CLAIM

MARK = re.compile(r"<!-- claim: ([\w-]+) -->")
# What a notebook shows as a paragraph, and a page in a box; the comments are seen in neither.
TAKEAWAY = re.compile(
    r"^<!-- takeaway -->\n\*\*Takeaway\*\*\n\n(.*?)\n<!-- end of takeaway -->$",
    re.MULTILINE | re.DOTALL,
)
SENTENCE_END = re.compile(r"(?<=[.!?])[”\")]*\s+(?=[^a-z\d\s(])")


def sentences(text: str) -> list[str]:
    """Return the sentences of a paragraph or more, without one-word answers.

    >>> sentences("No. It holds (eq. 4 and Fig. 6). So does $x$.")
    ['It holds (eq. 4 and Fig. 6).', 'So does $x$.']
    """
    parts = [" ".join(part.split()) for part in SENTENCE_END.split(text.strip())]
    return [part for part in parts if " " in part]


def unregistered(text: str) -> list[str]:
    """Return the sentences of the takeaways in a text that have no mark of their own."""
    missing = []
    for body in TAKEAWAY.findall(text):
        *chunks, rest = MARK.split(body)[::2]
        for chunk in chunks:
            missing += sentences(chunk)[:-1]
        missing += sentences(rest)
    return missing


def records(cell: Any) -> list[dict[str, Any]]:
    """Return the marks of claims among the outputs of a cell, see `formatting.publish`."""
    data = [output.get("data", {}) for output in cell.get("outputs", [])]
    return [content[CLAIM] for content in data if CLAIM in content]


def chapter_text(notebook: Path) -> str:
    """Return the text cells of a notebook."""
    # To import nbformat takes two seconds
    cells = json.loads(notebook.read_text("utf8"))["cells"]
    return "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")


def texts(root: Path) -> dict[str, str]:
    """Return the texts in which claims may be stated: page -> text, for chapters, pages of the
    book, and README.
    """
    notebooks, pages = (sorted(root.glob(kind)) for kind in ("notebooks/*.ipynb", "book/*.md"))
    found = {f"notebooks/{path.stem}": chapter_text(path) for path in notebooks}
    found |= {f"book/{path.stem}": path.read_text("utf8") for path in pages}
    return found | {path.stem: path.read_text("utf8") for path in root.glob("README.md")}


def stated(root: Path) -> Iterator[tuple[str, str]]:
    """Yield each page on which a claim is stated, and the claim."""
    for page, text in texts(root).items():
        for key in MARK.findall(text):
            yield page, key
    for items in content(root, "paper").values():
        for item in items:
            for key in item.get("claims", ()):
                yield "book/paper", key


def check_pages(root: Path = ROOT) -> None:
    """Raise a `ClaimError` for a sentence of a takeaway that is no registered claim, for a mark
    without a claim, for a chapter with marks that does not explain the signs, and for a retired
    claim that was merged into none.
    """
    claims, problems = load(root), []
    load_retired(root)  # raises its errors
    for page, text in texts(root).items():
        unknown = {*MARK.findall(text)} - claims.keys()
        problems += [f"{page} refers to {key!r}, which is no claim" for key in unknown]
        if page.startswith("notebooks/") and MARK.search(text):
            problems += [f"{page} does not explain {sign}" for sign in {*SIGNS.values()} - {*text}]
        missing = unregistered(text)
        problems += [f"{page}, takeaway: no claim is registered for “{one}”" for one in missing]
    if problems:
        advice = "Register it in book/claims.toml, and put <!-- claim: ID --> behind it."
        raise ClaimError("\n".join([*problems, advice]))
