"""How claims are shown: marks behind sentences, conclusions in chapters, the page *Claims*, and
``claims.json``.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from nads_book.claims.register import ROOT, VERDICTS, Claim, ClaimError
from nads_book.claims.statements import MARK, texts
from nads_book.report import CLAIM, estimate, readable

if TYPE_CHECKING:
    import nbformat

FAILED = "prediction failed"
NUMBER = re.compile(r"<!-- number: ([\w-]+) -->")


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
    if claim.chapter:
        return claim.chapter
    for page in places(claim):
        if page.startswith("notebooks/"):
            return Path(page).name
    return ""


def address(claim: Claim, up: str = "../") -> str:
    """Return the address of a claim's entry in the lab notes, or of its line on the page *Claims*.

    Args:
        claim: the claim.
        up: way from the page that links to the first folder of the book.
    """
    name = chapter(claim)
    page = f"book/lab_notes/{name}" if name else "book/claims"
    return f"{up}{page}.html#{claim.id}"


def badge(claim: Claim) -> str:
    """Return the mark behind a sentence: the sign of its verdict, linked to its entry in the lab
    notes.
    """
    label = html.escape(f"Claim: {claim.label}")
    link = f'href="{address(claim)}" title="{label}" aria-label="{label}"'
    return f'<a class="claim-mark {kind(claim)}" {link}>{sign(claim)}</a>'


def with_badges(text: str, claims: dict[str, Claim]) -> str:
    """Replace the marks of a text by signs, and ``<!-- number: ID -->`` by the number behind a
    claim.

    Raises:
        ClaimError: for a number of no claim.
    """

    def value(mark: re.Match[str]) -> str:
        if mark[1] not in claims:
            raise ClaimError(f"<!-- number: {mark[1]} --> belongs to no claim")
        return number(claims[mark[1]]).rpartition(": ")[2]

    text = NUMBER.sub(value, text)
    return MARK.sub(lambda mark: badge(claims[mark[1]]) if mark[1] in claims else "", text)


def conclusion(claim: Claim) -> str:
    """Return what a chapter shows of a claim: its sign, its sentence and its number, in
    Markdown.
    """
    about = "; ".join(filter(None, [number(claim), claim.label]))
    return f"**{sign(claim)}{colon(claim)}** {claim.statement} ({about})"


def with_claims(notebook: nbformat.NotebookNode, claims: dict[str, Claim]) -> nbformat.NotebookNode:
    """Replace the marks of an executed chapter, and add its conclusions below the cells that ask
    for them.
    """
    import nbformat

    cells = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = with_badges(cell.source, claims)
        records = [
            output["data"][CLAIM]
            for output in cell.get("outputs", [])
            if CLAIM in output.get("data", {})
        ]
        if records:  # an anchor among the outputs of a figure would become another figure
            cell.outputs = [
                output for output in cell.outputs if CLAIM not in output.get("data", {})
            ]
            anchors = "".join(
                f'<div class="claim-anchor" id="evidence-{record["id"]}"></div>'
                for record in records
            )
            cells.append(nbformat.v4.new_markdown_cell(anchors))
        cells.append(cell)
        for record in records:
            if record.get("shown"):
                claim = claims[record["id"]]
                text = f"**{badge(claim)}{colon(claim)}** {conclusion(claim).split('** ', 1)[1]}"
                cells.append(nbformat.v4.new_markdown_cell(f":::{{div}} conclusion\n{text}\n:::"))
    notebook.cells = cells
    return notebook


def titles(root: Path) -> dict[str, str]:
    """Return the titles of all pages, in order."""
    found = {name: re.search(r"^# (.*)$", text, re.MULTILINE) for name, text in texts(root).items()}
    return {name: title[1] if title else name for name, title in found.items()} | {
        "README": "README"
    }


def places(claim: Claim) -> list[str]:
    """Return the pages that decide or state a claim."""
    cell = [claim.cell.partition(".html")[0]] if claim.cell else []
    return list(dict.fromkeys([*cell, *claim.pages]))


def css_class(page: str) -> str:
    """Return the class that the lines of a page's claims have, as docutils would write it."""
    return f"chapter-{Path(page).name}".replace("_", "-").lower()


def number(claim: Claim) -> str:
    """Return the number behind a claim with its interval; empty where it has none."""
    ends = [end for end in claim.interval or () if end is not None]
    if claim.value is None:
        return ""
    if len(ends) == 2:
        value = estimate((claim.value, *ends), digits=2 if abs(claim.value) < 10 else 0)
        return f"{claim.measure}: {value}"
    return f"{claim.measure}: {readable(claim.value)}"


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


def counts(claims: Iterable[Claim]) -> list[tuple[str, str, int]]:
    """Return the number of claims by verdict and size: class of their lines, label, number."""
    found: dict[str, tuple[str, int]] = {}
    for claim in sorted(claims, key=lambda claim: list(VERDICTS).index(claim.known)):
        key = re.sub(r"[^a-z]+", "-", claim.kind)
        label, count = found.get(key, (f"{VERDICTS[claim.known]} {claim.kind}", 0))
        found[key] = (label, count + 1)
    return [(f"verdict-{key}", label, count) for key, (label, count) in found.items()]


def line(claim: Claim) -> str:
    """Return a claim as the page *Claims* lists it, in Markdown: sign, sentence, and a link to its
    entry.
    """
    label = re.sub(r"[^a-z]+", "-", claim.kind)
    classes = ["claim-line", f"verdict-{label}", *map(css_class, places(claim))]
    marks = [f"prediction-{claim.prediction}"] if claim.prediction else []
    marks += ["post-hoc"] if claim.post_hoc else []
    link = (
        f'<a class="claim-mark {kind(claim)}" href="{address(claim)}" '
        f'title="{claim.label}">{sign(claim)}</a>'
    )
    anchor = f'<span class="claim-anchor" id="{claim.id}"></span>'
    return (
        f":::{{div}} {' '.join(classes + marks)}\n{anchor}{link}{colon(claim)} "
        f"{claim.statement}\n:::"
    )


SCRIPT = """<script>
const form = document.querySelector('.claims-filter'), number = form.querySelector('output');
const lines = [...document.querySelectorAll('.claim-line')];
const texts = lines.map(line => line.textContent.toLowerCase());
const choose = () => {
  const words = form.querySelector('input').value.toLowerCase().split(/\\s+/);
  const chosen = [...form.querySelectorAll('select')].map(({ value }) => value).filter(Boolean);
  lines.forEach((line, index) => {
    const fits = chosen.every(name => line.classList.contains(name));
    line.hidden = !fits || !words.every(word => texts[index].includes(word));
  });
  number.textContent = `${lines.filter(line => !line.hidden).length} of ${lines.length} claims`;
};
form.hidden = false;
form.addEventListener('input', choose);
form.addEventListener('submit', event => event.preventDefault());
choose();
</script>"""


def page(text: str, claims: dict[str, Claim], root: Path = ROOT) -> str:
    """Return the page *Claims*: its text, with counts, a search and a line per claim in place of
    ``<!-- claims -->``.

    What the paper states comes first, with what fails before what holds; then the claims of the
    book, by chapter.
    """
    names = titles(root)
    order = {name: place for place, name in enumerate(names)}
    paper = [claim for claim in claims.values() if claim.id.startswith("errata-")]
    paper.sort(
        key=lambda claim: ["falsified", "toy", "inconclusive", "verified"].index(claim.known)
    )
    own = [claim for claim in claims.values() if claim not in paper]
    own.sort(key=lambda claim: min(map(order.__getitem__, places(claim)), default=-1))
    used = sorted(
        {name for claim in claims.values() for name in places(claim)}, key=order.__getitem__
    )
    found = counts(claims.values())
    options = {
        "Verdict": {name: f"{label} ({count})" for name, label, count in found},
        "Page": {css_class(name): names[name] for name in used},
        "Prediction": {
            "prediction-met": "met",
            "prediction-failed": "failed",
            "prediction-open": "open",
            "post-hoc": "none: chosen after seeing the results",
        },
    }
    selects = '<label>Search <input type="search"></label> '
    for label, choices in options.items():
        items = "".join(
            f'<option value="{value}">{html.escape(one)}</option>' for value, one in choices.items()
        )
        selects += f'<label>{label} <select><option value="">all</option>{items}</select></label> '
    filters = f'<form class="claims-filter" hidden>{selects}<output></output></form>'
    table = ["| verdict | claims |", "|---|--:|"]
    table += [f"| {label} | {count} |" for _, label, count in found]
    parts = [
        "\n".join(table),
        f"```{{raw}} html\n{filters}\n```",
        "## What the paper states",
        *map(line, paper),
        "## What this book states",
        *map(line, own),
        f"```{{raw}} html\n{SCRIPT}\n```",
    ]
    return text.replace("<!-- claims -->", "\n\n".join(parts))


def write(path: Path, claims: dict[str, Claim]) -> None:
    """Write ``claims.json``."""
    path.write_text(
        json.dumps([asdict(claim) for claim in claims.values()], indent=1, ensure_ascii=False)
        + "\n",
        "utf8",
    )
