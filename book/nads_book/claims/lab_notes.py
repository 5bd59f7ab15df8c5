"""The lab notes: a generated page for each chapter, with its claims, its predictions and its
tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from nads_book.claims import paper
from nads_book.claims.register import ROOT, Claim, ClaimError
from nads_book.claims.render import chapter, page, rendered, titles, with_badges
from nads_book.experiments import Results
from nads_book.report import markdown_table, place_of_run, without_html

PLACE = "<!-- lab notes -->"
Tables = Mapping[str, Callable[[], str]]


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
    mine = [claim for claim in claims if chapter(claim) == name]
    registered = {claim.preregistered.get("first", "") for claim in mine}
    jobs = {root / source for claim in mine for source in claim.sources}
    jobs = {path for path in jobs if path.parent == root / "book/results" and path.is_file()}
    if jobs:
        tables = {**tables, "What was trained, and where": lambda: trainings(sorted(jobs))}
    made = {}
    for title, make in tables.items():
        try:
            made[title] = make()
        except Exception as error:
            raise ClaimError(f"the table {title!r} of the lab notes of {name}: {error}") from error
    content = rendered(
        "lab_notes",
        chapter=f"notebooks/{name}",
        titles=titles(root),
        claims=mine,
        addresses={claim.id: f"{chapter(claim)}.html#{claim.id}" for claim in claims},
        predictions={path: one for path, one in (predictions or {}).items() if path in registered},
        tables=made,
    )
    return text.replace(PLACE, content)


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
