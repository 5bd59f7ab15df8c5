"""The page *The paper, figure by figure*: what the paper shows, in its order, and ours beside it.

``book/paper.toml`` lists what the paper shows, by section, and what its reviewers asked. What was
found is taken from the register, and what was trained from the stored results.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from nads_book import published
from nads_book.claims.register import PREFIX, ROOT, Claim, ClaimError, content, load_retired
from nads_book.claims.render import badge, conclusion, facts
from nads_book.experiments import Results
from nads_book.experiments.formatting import LABELS, fixed
from nads_book.published.waves import published_accuracies
from nads_book.statistics import rank_correlation
from nads_book.studies import load_results, stored_figures
from nads_book.theory.first_step import accuracies_by

MARK = "<!-- paper -->"
SHARED = {  # what accuracies of a figure have in common with the published ones
    "fig1": "waves",
    "fig6": "NAD indices",
    "fig7": "NAD indices",
    "fig8": "kinds of photos",
}
FOLD = '<details class="claim-card"><summary>numbers, files and functions</summary>'


@dataclass(frozen=True)
class Item:
    """Something that the paper shows or states, or that a reviewer asked.

    Args:
        where: place in the paper.
        says: what it shows there, with its size, in a line.
        claims: claims that say what was found, by name; retired ones, too.
        figure: label of our figure in a chapter.
        trained: figures whose trainings are counted, such as "fig1" or "fig1-lenet".
        page: page that has more, from the folder of the pages.
        supplement: part of the supplement that would decide it, and what it would decide.
        note: what was found, where no claim says it.
    """

    where: str
    says: str
    claims: list[str] = field(default_factory=list)
    figure: str = ""
    trained: list[str] = field(default_factory=list)
    page: str = ""
    supplement: str = ""
    note: str = ""


class Thumbnail(NamedTuple):
    """A figure of an executed chapter: its picture as PNG, and what it shows."""

    picture: bytes
    alt: str


def load_items(claims: Mapping[str, Claim], root: Path = ROOT) -> dict[str, list[Item]]:
    """Return what the paper shows, by section, in its order.

    Raises:
        ClaimError: for an unknown field or claim, an item of which nothing says what was found, or
            a statement of the paper in the register that no item has.
    """
    listed = content(root, "paper")
    try:
        sections = {name: [Item(**entry) for entry in items] for name, items in listed.items()}
    except TypeError as error:
        raise ClaimError(f"paper.toml: {error}") from None
    items = [item for items in sections.values() for item in items]
    named = {name for item in items for name in item.claims}
    problems = [f"no claim {name!r}" for name in sorted(named - claims.keys())]
    problems += [f"nothing was found about {i.says!r}" for i in items if not (i.claims or i.note)]
    stated = {name for name in claims if name.startswith(PREFIX)}
    problems += [f"no item has {name!r}" for name in sorted(stated - named)]
    if problems:
        raise ClaimError(f"paper.toml: {'; '.join(problems)}")
    return sections


def thumbnails(executed: Iterable[Path]) -> dict[str, Thumbnail]:
    """Return the figures of executed chapters by label."""
    import nbformat

    found = {}
    for path in executed:
        for cell in nbformat.read(path, as_version=4).cells:
            options: Any = cell.metadata.get("mystnb", {})
            label = options.get("figure", {}).get("name")
            data = (output.get("data", {}) for output in cell.get("outputs", []))
            pictures = [one["image/png"] for one in data if "image/png" in one]
            if label and pictures:
                alt = options.get("image", {}).get("alt", "")
                found[label] = Thumbnail(base64.b64decode(pictures[0]), alt)
    return found


def trained(figures: Iterable[str]) -> Iterator[str]:
    """Yield what was trained for figures of the paper, one network and size after another, and how
    close it is to what was published.
    """
    for name, preset in stored_figures():
        figure, _, model = name.partition("-")
        if not {figure, name} & set(figures):
            continue
        results = load_results(name, preset)
        assert results is not None  # it is stored
        size = "" if preset == "paper" else f" at `{preset}`"
        count = f"{LABELS[model]}{size}: {len(results.rows)} of {results.num_units} networks"
        pairs = compared(results, figure, model)
        yield f"{count}; {closeness(pairs, SHARED[figure])}" if len(pairs) else count


def compared(results: Results, figure: str, model: str) -> np.ndarray:
    """Return the accuracies that we and the authors found along the same waves, at the same NAD
    indices, or on the same kinds of photos, (n, 2), where theirs are known.
    """
    ours: Mapping[Any, Any] = {}
    theirs: Mapping[Any, float] = {}
    if figure == "fig1":
        ours, theirs = accuracies_by("frequency", results), published_accuracies(model)
    elif figure == "fig6" and model != "logreg":
        ours, theirs = accuracies_by("index", results), published.nad_accuracies(model)
    elif figure == "fig7" and model == "resnet18":
        ours, theirs = accuracies_by("index", results), published.POISON_RESNET18
    elif figure == "fig8":
        ours = accuracies_by("flipped", results)
        theirs = dict(zip((False, True), published.FLIP[model], strict=True))
    common = [key for key in ours if key in theirs]
    return np.array([[np.mean(ours[key]), theirs[key]] for key in common])


def closeness(pairs: np.ndarray, shared: str) -> str:
    """Return how close accuracies (n, 2) are: the largest difference, and their rank correlation
    where there are more than two.

    Args:
        pairs: accuracies of ours and of the authors.
        shared: what the two of a pair have in common, such as "waves".
    """
    largest = 100 * np.abs(pairs[:, 0] - pairs[:, 1]).max()
    text = f"at most {largest:.0f} points from the authors’ ({len(pairs)} {shared})"
    correlation = rank_correlation(*pairs.T) if len(pairs) > 2 else np.nan
    return text if np.isnan(correlation) else f"{text}, rank correlation {fixed(correlation, 2)}"


def verdict(claim: Claim) -> str:
    """Return what was found, in Markdown: the verdict on a statement of the paper and what was
    measured, or the claim itself.
    """
    if claim.reason:
        return f"{conclusion(claim)} *No chapter states this any more, see {{doc}}`claims`.*"
    if not claim.id.startswith(PREFIX):
        return f"{badge(claim)} {claim.statement}"
    label, _, more = claim.answer.partition(";")
    measured = claim.measured or f"{claim.condition[:1].upper()}{claim.condition[1:]}."
    found = f"{badge(claim)} **{label or claim.label}**{more and f';{more}'}. {measured}"
    if claim.counterexample in ("", "none"):
        return found
    return f"{found} *Smallest counter-example:* {claim.counterexample}."


def decided_by(claim: Claim) -> str:
    """Return the number behind a claim, and the claims, files and function that decide it."""
    names = [Path(source).name for source in claim.sources] + [claim.function]
    others = [f'follows from <a href="claims.html#{name}">{name}</a>' for name in claim.follows]
    texts = [facts(claim), *others, *(f"`{name}`" for name in names if name)]
    return f"- {claim.sign if claim.reason else badge(claim)} {'; '.join(filter(None, texts))}"


def card(item: Item, claims: Mapping[str, Claim], pictures: Mapping[str, Thumbnail]) -> str:
    """Return an item with what was found, in Markdown.

    Raises:
        ClaimError: if no chapter has its figure.
    """
    parts, head = [":::{div} paper-card"], f"**{item.where}.** {item.says}"
    if item.figure:
        if item.figure not in pictures:
            raise ClaimError(f"paper.toml: no chapter has the figure {item.figure!r}")
        alt = pictures[item.figure].alt
        parts.append(f"```{{image}} thumbnails/{item.figure}.png\n:alt: {alt}\n```")
    if item.supplement:
        head += f" *The supplement would help: {item.supplement}.*"
    parts.append(head)
    links = [f"{{numref}}`{item.figure}`"] if item.figure else []
    links += [f"{{doc}}`{item.page}`"] if item.page else []
    if links:
        parts.append(f"Ours: {', '.join(links)}.")
    if amounts := [f"- {line}" for line in trained(item.trained)]:
        parts.append("\n".join(amounts))
    found = [claims[name] for name in item.claims]
    parts += [*map(verdict, found), *filter(None, [item.note])]
    if found:
        parts += [FOLD, "\n".join(map(decided_by, found)), "</details>"]
    return "\n\n".join([*parts, ":::"])


def place_paper(
    stage: Path, claims: Mapping[str, Claim], executed: Iterable[Path], root: Path = ROOT
) -> None:
    """Write the page, and the thumbnails of our figures, into the staging folder.

    Raises:
        ClaimError: as `load_items` and `card`.
    """
    path, pictures = stage / "book" / "paper.md", thumbnails(executed)
    folder = stage / "book" / "thumbnails"
    folder.mkdir(exist_ok=True)
    for label, thumbnail in pictures.items():
        (folder / f"{label}.png").write_bytes(thumbnail.picture)
    known = {one.id: one for one in load_retired(root)} | dict(claims)
    parts = []
    for section, items in load_items(known, root).items():
        parts += [f"## {section}", *(card(item, known, pictures) for item in items)]
    path.write_text(path.read_text("utf8").replace(MARK, "\n\n".join(parts)), "utf8")
