"""The lab notes: a generated page for each chapter, with its claims, its predictions and its
tables.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from nads_book.claims import paper
from nads_book.claims.register import ROOT, Claim, ClaimError
from nads_book.claims.render import chapter, colon, facts, kind, page, sign, titles, with_badges
from nads_book.experiments.results import Results
from nads_book.report import markdown_table, place_of_run, without_html

PLACE = "<!-- lab notes -->"
SIZES = {"toy": "at reduced size"}  # words for verdicts of the register
Tables = Mapping[str, Callable[[], str]]


def entry(claim: Claim, names: Mapping[str, str], own: Mapping[str, str]) -> str:
    """Return a claim with all that decides it, in Markdown.

    Args:
        claim: the claim.
        names: titles of the pages, by page.
        own: address of each claim's entry, by id, relative to this page.
    """
    links = [f'<a href="../../{claim.cell}">cell</a>'] if claim.cell else []
    links += [
        f'<a href="../../{name}.html">{html.escape(names[name])}</a>'
        for name in claim.pages
        if name != "README"
    ]
    links += ["README"] if "README" in claim.pages else []
    follows = ", ".join(
        f'<a href="{own[other]}">{other}</a> ({SIZES.get(wanted, wanted)})'
        for other, wanted in claim.follows.items()
    )
    about = {
        "Measured": facts(claim),
        "Condition": claim.condition,
        "Follows from": follows,
        "Would be falsified by": claim.falsified_by,
        "Registered prediction": claim.prediction,
        "Preregistered": claim.history,
        "Post hoc": "chosen after seeing the results" if claim.post_hoc else "",
        "Judgement": claim.judgement,
        "Results": ", ".join(f"`{source}`" for source in claim.sources),
        "Stated on": ", ".join(links),
    }
    lines = [f"{label}\n: {text}" for label, text in about.items() if text]
    verdict = (
        f'<span class="claim-verdict {kind(claim)}">{sign(claim)}{colon(claim)} '
        f"{claim.label}</span>"
    )
    body = "\n\n".join([verdict, claim.statement, *lines])
    return f"### {claim.id}\n\n:::{{div}} claim-row\n{body}\n:::"


def trainings(paths: Iterable[Path]) -> str:
    """Return what was trained for some results files, and where."""
    rows = []
    for path in paths:
        found = Results.load(path)
        number = f"{len(found.rows)} of {found.num_units}"
        seeds = len({row["seed"] for row in found.rows})
        images = f"{found.settings['num_train']:,} × {found.settings['recipe']['epochs']}"
        rows.append([f"`{path.name}`", number, seeds, images, without_html(place_of_run(found))])
    return markdown_table(rows, ["results", "networks", "seeds", "images × epochs", "where"])


def notes(
    text: str,
    name: str,
    claims: Iterable[Claim],
    tables: Tables,
    predictions: Mapping[str, str] | None = None,
    root: Path = ROOT,
) -> str:
    """Return the lab notes of a chapter, in place of `PLACE` in their text.

    Args:
        text: the page as it is committed.
        name: chapter, such as ``07_poison``.
        claims: all claims.
        tables: title -> function that returns a table in Markdown or HTML.
        predictions: path of a registration -> its predictions and their outcomes, in Markdown.
        root: folder of the repository.

    Raises:
        ClaimError: if a table cannot be made.
    """
    claims = list(claims)
    own = {claim.id: f"{chapter(claim)}.html#{claim.id}" for claim in claims}
    names = titles(root)
    mine = [claim for claim in claims if chapter(claim) == name]
    there = f"notebooks/{name}"
    parts = []
    if there in names:
        parts.append(f"Chapter: [{names[there]}](../../{there}.ipynb).")
    parts.append("## Claims")
    parts += [entry(claim, names, own) for claim in mine] or [
        "The chapter's claims are decided in other chapters."
    ]
    registered = {claim.preregistered.get("first", "") for claim in mine}
    shown = {path: text for path, text in (predictions or {}).items() if path in registered}
    if shown:
        parts.append("## Predictions")
    parts += [f"### {path}\n\n{text}" for path, text in shown.items()]
    jobs = {root / source for claim in mine for source in claim.sources}
    jobs = {path for path in jobs if path.parent == root / "book/results" and path.is_file()}
    if jobs:
        tables = {**tables, "What was trained, and where": lambda: trainings(sorted(jobs))}
    if tables:
        parts.append("## Tables")
    for title, make in tables.items():
        try:
            table = make()
        except Exception as error:
            raise ClaimError(f"the table {title!r} of the lab notes of {name}: {error}") from error
        parts.append(f"### {title}\n\n{_block(table)}")
    return text.replace(PLACE, "\n\n".join(parts))


def place(
    stage: Path,
    claims: dict[str, Claim],
    tables: Mapping[str, Tables],
    predictions: Mapping[str, str] | None = None,
    root: Path = ROOT,
) -> None:
    """Write the page *Claims* and the lab notes into the staging folder, and replace the marks of
    other pages there.

    Args:
        stage: staging folder.
        claims: the claims by id, decided.
        tables: tables of the lab notes, by chapter.
        predictions: table of predictions by the path of their registration, see `notes`.
        root: folder of the repository.
    """
    for path in (stage / "book").rglob("*.md"):
        text = path.read_text("utf8")
        if path.parent.name == "lab_notes":
            mine = tables.get(path.stem, {})
            changed = notes(text, path.stem, claims.values(), mine, predictions, root)
        elif path.stem == "claims":
            changed = page(text, claims, root)
        elif path.stem == "errata":
            changed = paper.page(with_badges(text, claims), claims)
        else:
            changed = with_badges(text, claims)
        if changed != text:
            path.write_text(changed, "utf8")


def _block(table: str) -> str:
    """Return a table so that Markdown reads it as one: HTML goes through as it is."""
    return f"```{{raw}} html\n{table}\n```" if table.lstrip().startswith("<") else table
