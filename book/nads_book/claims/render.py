"""How claims are shown: marks behind sentences, conclusions in chapters, the page *Claims*, and
``claims.json``.

Pages that list claims are made from the templates in this folder.
"""

from __future__ import annotations

import html
import json
import math
import re
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2

from nads_book.claims.register import ROOT, VERDICTS, Claim, ClaimError
from nads_book.claims.statements import MARK, records, texts
from nads_book.report import CLAIM, estimate, readable

if TYPE_CHECKING:
    import nbformat

FAILED = "prediction failed"
FAILURES_FIRST = ("falsified", "toy", "inconclusive", "verified")
NUMBER = re.compile(r"<!-- (number|percent): ([\w-]+) -->")


def sign(claim: Claim) -> str:
    """Return the sign of a verdict; a failed prediction has none, whatever was found instead."""
    return FAILED if claim.prediction == "failed" else VERDICTS[claim.known]


def colon(claim: Claim) -> str:
    """Return what separates the sign of a claim from its sentence, if the sign consists of
    words.
    """
    return ":" if claim.prediction == "failed" else ""


def kind(claim: Claim) -> str:
    """Return the class of a claim's sign, which colours it."""
    return "failed-prediction" if claim.prediction == "failed" else claim.known


def chapter(claim: Claim) -> str:
    """Return the chapter whose lab notes have the claim, such as ``07_poison``; empty if no chapter
    has it.
    """
    pages = [Path(page).name for page in places(claim) if page.startswith("notebooks/")]
    return claim.chapter or next(iter(pages), "")


def address(claim: Claim) -> str:
    """Return the address of a claim's entry in the lab notes, or of its line on the page *Claims*,
    from a page in a folder of the book.
    """
    name = chapter(claim)
    page = f"lab_notes/{name}" if name else "claims"
    return f"../book/{page}.html#{claim.id}"


def badge(claim: Claim) -> str:
    """Return the sign of a claim, linked to its entry in the lab notes."""
    label = html.escape(f"Claim: {claim.label}")
    link = f'href="{address(claim)}" title="{label}" aria-label="{label}"'
    return f'<a class="claim-mark {kind(claim)}" {link}>{sign(claim)}</a>'


def with_badges(text: str, claims: dict[str, Claim]) -> str:
    """Replace the marks of a text by signs, and ``<!-- number: ID -->`` by the number behind a
    claim; ``percent`` in place of ``number`` shows a share, rounded down.

    Raises:
        ClaimError: for a number of no claim.
    """

    def value(mark: re.Match[str]) -> str:
        if mark[2] not in claims:
            raise ClaimError(f"{mark[0]} belongs to no claim")
        found = claims[mark[2]]
        if mark[1] == "percent" and found.value is not None:
            return f"{math.floor(round(100 * found.value, 6))} %"
        return number(found).rpartition(": ")[2]

    text = NUMBER.sub(value, text)
    return MARK.sub(lambda mark: badge(claims[mark[1]]) if mark[1] in claims else "", text)


def conclusion(claim: Claim, mark: str = "") -> str:
    """Return what a chapter shows of a claim: its sign, its sentence and its number, in Markdown.

    Args:
        claim: the claim.
        mark: what stands for the sign; the sign itself by default.
    """
    about = "; ".join(filter(None, [number(claim), claim.label]))
    return f"**{mark or sign(claim)}{colon(claim)}** {claim.statement} ({about})"


def with_claims(notebook: nbformat.NotebookNode, claims: dict[str, Claim]) -> nbformat.NotebookNode:
    """Replace the marks of an executed chapter, and add its conclusions below the cells that ask
    for them.
    """
    from nbformat.v4 import new_markdown_cell

    cells = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = with_badges(cell.source, claims)
        if found := records(cell):  # an anchor among outputs of a figure would be another figure
            cell.outputs = [one for one in cell.outputs if CLAIM not in one.get("data", {})]
            anchor = '<div class="claim-anchor" id="evidence-{}"></div>'
            cells.append(new_markdown_cell("".join(anchor.format(one["id"]) for one in found)))
        cells.append(cell)
        for claim in (claims[record["id"]] for record in found if record.get("shown")):
            shown = conclusion(claim, badge(claim))
            cells.append(new_markdown_cell(f":::{{div}} conclusion\n{shown}\n:::"))
    notebook.cells = cells
    return notebook


def titles(root: Path) -> dict[str, str]:
    """Return the titles of all pages, in order."""
    found = {name: re.search(r"^# (.*)$", text, re.MULTILINE) for name, text in texts(root).items()}
    titles = {name: title[1] if title else name for name, title in found.items()}
    return titles | {"README": "README"}


def places(claim: Claim) -> list[str]:
    """Return the pages that decide or state a claim."""
    cell = [claim.cell.partition(".html")[0]] if claim.cell else []
    return list(dict.fromkeys([*cell, *claim.pages]))


def number(claim: Claim) -> str:
    """Return the number behind a claim with its interval; empty where it has none."""
    if claim.value is None:
        return ""
    ends = [end for end in claim.interval or () if end is not None]
    if len(ends) < 2:
        return f"{claim.measure}: {readable(claim.value)}"
    digits = 2 if abs(claim.value) < 10 else 0
    return f"{claim.measure}: {estimate((claim.value, *ends), digits)}"


def facts(claim: Claim) -> str:
    """Return number, trainings, seeds and size of a claim in one line."""
    found = [number(claim)]
    if claim.num_trainings:
        found.append(f"{claim.num_trainings:,} trainings")
    if claim.num_seeds:
        found.append(f"{claim.num_seeds} seed{'s' * (claim.num_seeds > 1)}")
    if claim.size:
        sizes = {
            "theory": "formula, simulation or count",
            "live": "measured live only",
            "paper": "the paper’s size" if claim.at_paper_size else "an experiment of our own",
        }
        found.append(sizes.get(claim.size, f"size `{claim.size}`"))
    if claim.verdict is None:
        found.append("not decided again by this build")
    return "; ".join(filter(None, found))


def classes(claim: Claim) -> str:
    """Return the classes of a claim's line, by which the page *Claims* is filtered."""
    found = ["claim-line", _verdict_class(claim), *map(_page_class, places(claim))]
    found += [f"prediction-{claim.prediction}"] if claim.prediction else []
    return " ".join([*found, "post-hoc"] if claim.post_hoc else found)


def _verdict_class(claim: Claim) -> str:
    return f"verdict-{re.sub(r'[^a-z]+', '-', claim.kind)}"


def _page_class(page: str) -> str:
    return f"chapter-{Path(page).name}".replace("_", "-").lower()  # as docutils would write it


def rendered(template: str, **content: Any) -> str:
    """Return a page, or a part of it, from a template of this folder."""
    loader = jinja2.FileSystemLoader(Path(__file__).parent)
    environment = jinja2.Environment(loader=loader, trim_blocks=True, lstrip_blocks=True)
    environment.filters["emphasised"] = lambda text: re.sub(r"\*([^*]+)\*", r"<em>\1</em>", text)
    for function in (sign, colon, kind, address, badge, facts, classes):
        environment.globals[function.__name__] = function
    return environment.get_template(f"{template}.md.jinja").render(**content)


def page(text: str, claims: dict[str, Claim], root: Path = ROOT) -> str:
    """Return the page *Claims*: its text, with counts, a search and a line per claim in place of
    ``<!-- claims -->``.

    What the paper states comes first, with what fails before what holds; then the claims of the
    book, by chapter.
    """
    names = titles(root)
    order = list(names)
    paper = [claim for claim in claims.values() if claim.id.startswith("errata-")]
    own = [claim for claim in claims.values() if claim not in paper]
    used = {name for claim in claims.values() for name in places(claim)}
    by_verdict = sorted(claims.values(), key=lambda claim: [*VERDICTS].index(claim.known))
    labels = [(_verdict_class(one), f"{VERDICTS[one.known]} {one.kind}") for one in by_verdict]
    content = rendered(
        "claims",
        counts=Counter(labels),
        pages={_page_class(name): names[name] for name in sorted(used, key=order.index)},
        paper=sorted(paper, key=lambda claim: FAILURES_FIRST.index(claim.known)),
        own=sorted(own, key=lambda claim: min(map(order.index, places(claim)), default=-1)),
    )
    return text.replace("<!-- claims -->", content)


def write(path: Path, claims: dict[str, Claim]) -> None:
    """Write ``claims.json``."""
    entries = [asdict(claim) for claim in claims.values()]
    path.write_text(json.dumps(entries, indent=1, ensure_ascii=False) + "\n", "utf8")
