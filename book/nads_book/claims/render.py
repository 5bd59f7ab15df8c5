"""The page *Claims*, the marks behind sentences, and ``claims.json``."""

from __future__ import annotations

import html
import json
import re
from dataclasses import asdict
from pathlib import Path

import nbformat

from nads_book.claims.register import ROOT, VERDICTS, Claim
from nads_book.claims.statements import MARK, texts
from nads_book.report import CLAIM, estimate, readable


def badge(claim: Claim) -> str:
    """Return the mark behind a sentence: the sign of its verdict, linked to its row of the page *Claims*."""
    known = claim.verdict or claim.registered
    label = html.escape(
        f"Claim, {known}"
        + ("" if claim.holds is not False or known != "toy" else ", does not hold")
    )
    link = f'href="../book/claims.html#{claim.id}" title="{label}" aria-label="{label}"'
    return f'<a class="claim-mark {known}" {link}>{VERDICTS[known]}</a>'


def with_badges(text: str, claims: dict[str, Claim]) -> str:
    """Replace the marks of a text."""
    return MARK.sub(lambda mark: badge(claims[mark[1]]) if mark[1] in claims else "", text)


def with_claims(notebook: nbformat.NotebookNode, claims: dict[str, Claim]) -> nbformat.NotebookNode:
    """Replace the marks of an executed chapter, and its records by the anchors that the page *Claims* links to."""
    cells = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = with_badges(cell.source, claims)
        keys = [
            output["data"][CLAIM]["id"]
            for output in cell.get("outputs", [])
            if CLAIM in output.get("data", {})
        ]
        if keys:  # an anchor among the outputs of a figure would become another figure
            cell.outputs = [
                output for output in cell.outputs if CLAIM not in output.get("data", {})
            ]
            anchors = "".join(
                f'<div class="claim-anchor" id="evidence-{key}"></div>' for key in keys
            )
            cells.append(nbformat.v4.new_markdown_cell(anchors))
        cells.append(cell)
    notebook.cells = cells
    return notebook


def titles(root: Path) -> dict[str, str]:
    """Return the titles of all pages, in order."""
    found = {name: re.search(r"^# (.*)$", text, re.MULTILINE) for name, text in texts(root).items()}
    return {name: title[1] if title else name for name, title in found.items()} | {
        "README": "README"
    }


def places(claim: Claim) -> list[str]:
    """Return the pages that state or decide a claim."""
    cell = [claim.cell.partition(".html")[0]] if claim.cell else []
    return list(dict.fromkeys([*claim.pages, *cell]))


def css_class(page: str) -> str:
    """Return the class that the rows of a page's claims have, as docutils would write it."""
    return f"chapter-{Path(page).name}".replace("_", "-").lower()


def facts(claim: Claim) -> str:
    """Return number, seeds, size and condition of a claim in one line."""
    found = []
    ends = [end for end in claim.interval or () if end is not None]
    if claim.value is not None and len(ends) == 2:
        number = estimate((claim.value, *ends), digits=2 if abs(claim.value) < 10 else 0)
        found.append(f"{claim.measure}: {number}")
    elif claim.value is not None:
        found.append(f"{claim.measure}: {readable(claim.value)}")
    if claim.num_trainings:
        found.append(f"{claim.num_trainings:,} trainings")
    if claim.num_seeds:
        found.append(f"{claim.num_seeds} seed{'s' * (claim.num_seeds > 1)}")
    if claim.size:
        kinds = {"theory": "formula, simulation or count", "live": "measured live only"}
        found.append(kinds.get(claim.size, f"size `{claim.size}`"))
    if claim.verdict is None:
        found.append("not decided again by this build")
    return "; ".join([*found, claim.condition] if claim.condition else found)


def row(claim: Claim, names: dict[str, str]) -> str:
    """Return a claim as the page *Claims* shows it, in Markdown.

    Args:
        claim: the claim.
        names: titles of the pages.
    """
    known = claim.verdict or claim.registered
    sides = {True: ", holds at this size", False: ", does not hold at this size", None: ""}
    side = sides[claim.holds] if known == "toy" else ""
    links = [f'<a href="../{claim.cell}">cell that decides it</a>'] if claim.cell else []
    links += [
        f'<a href="../{name}.html">{html.escape(names[name])}</a>'
        for name in claim.pages
        if name != "README"
    ]
    links += ["README"] if "README" in claim.pages else []
    follows = ", ".join(
        f'<a href="#{other}">{other}</a> ({wanted})' for other, wanted in claim.follows.items()
    )
    about = {
        "Measured": facts(claim),
        "Follows from": follows,
        "Would be falsified by": claim.falsified_by,
        "Preregistered": claim.history,
        "Results": ", ".join(f"`{source}`" for source in claim.sources),
        "See": ", ".join(links),
    }
    lines = [f"{label}\n: {text}" for label, text in about.items() if text]
    classes = " ".join(["claim-row", f"verdict-{known}", *map(css_class, places(claim))])
    head = f'<span class="claim-verdict {known}" id="{claim.id}">{VERDICTS[known]} {known}{side}</span> `{claim.id}`'
    return f":::{{div}} {classes}\n" + "\n\n".join([head, claim.statement, *lines]) + "\n:::"


SCRIPT = """<script>
const form = document.querySelector('.claims-filter'), selects = [...form.querySelectorAll('select')];
form.hidden = false;
form.addEventListener('change', () => {
  for (const row of document.querySelectorAll('.claim-row'))
    row.hidden = !selects.every(({ value }) => !value || row.classList.contains(value));
});
</script>"""


def page(text: str, claims: dict[str, Claim], root: Path = ROOT) -> str:
    """Return the page *Claims*: its text, with the filter and the rows in place of ``<!-- claims -->``."""
    names = titles(root)
    order = {name: place for place, name in enumerate(names)}
    ordered = sorted(
        claims.values(), key=lambda claim: min(map(order.__getitem__, places(claim)), default=-1)
    )
    counts = {
        name: sum((claim.verdict or claim.registered) == name for claim in ordered)
        for name in VERDICTS
    }
    used = sorted({name for claim in ordered for name in places(claim)}, key=order.__getitem__)
    options = {
        "Verdict": {f"verdict-{name}": f"{name} ({count})" for name, count in counts.items()},
        "Page": {css_class(name): names[name] for name in used},
    }
    selects = ""
    for label, choices in options.items():
        items = "".join(
            f'<option value="{value}">{html.escape(one)}</option>' for value, one in choices.items()
        )
        selects += f'<label>{label} <select><option value="">all</option>{items}</select></label> '
    filters = f'```{{raw}} html\n<form class="claims-filter" hidden>{selects}</form>\n```'
    rows = [row(claim, names) for claim in ordered]
    return text.replace(
        "<!-- claims -->", "\n\n".join([filters, *rows, f"```{{raw}} html\n{SCRIPT}\n```"])
    )


def place(stage: Path, claims: dict[str, Claim], root: Path = ROOT) -> None:
    """Write the page *Claims* into the staging folder, and replace the marks of the other pages there."""
    for path in (stage / "book").glob("*.md"):
        text = path.read_text("utf8")
        changed = page(text, claims, root) if path.stem == "claims" else with_badges(text, claims)
        if changed != text:
            path.write_text(changed, "utf8")


def write(path: Path, claims: dict[str, Claim]) -> None:
    """Write ``claims.json``."""
    path.write_text(
        json.dumps([asdict(claim) for claim in claims.values()], indent=1, ensure_ascii=False)
        + "\n",
        "utf8",
    )
