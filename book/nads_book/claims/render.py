"""How claims are shown: signs behind sentences, conclusions in chapters, the page *Claims*, and
``claims.json``.

Pages that list claims are made from the templates in this folder.
"""

from __future__ import annotations

import html
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import jinja2

from nads_book.claims.register import PREFIX, ROOT, SIGNS, Claim, load_retired
from nads_book.claims.statements import MARK, records, texts
from nads_book.experiments.formatting import (
    CLAIM,
    estimate,
    markdown_table,
    readable,
)

if TYPE_CHECKING:
    import nbformat


def _card(name: str) -> str:
    """Return a link to the card of a claim on the same page, whose anchor Sphinx does not see; no
    link without a name.
    """
    return name and f'<a href="#{name}">{name}</a>'


def words(claim: Claim) -> str:
    """Return the small words behind the sign of a claim."""
    found = ["predicted otherwise"] if claim.prediction == "failed" else []
    return ", ".join([*found, "post hoc"] if claim.post_hoc else found)


def address(claim: Claim) -> str:
    """Return the address of a claim's card, from a page in a folder of the book."""
    return f"../book/claims.html#{claim.id}"


def badge(claim: Claim) -> str:
    """Return the sign of a claim, linked to its card, and the small words behind it."""
    label = html.escape("; ".join(filter(None, [f"Claim: {claim.label}", number(claim)])))
    link = f'href="{address(claim)}" title="{label}" aria-label="{label}"'
    sign = f'<a class="claim-mark" {link}>{claim.sign}</a>'
    return f'{sign}<small class="claim-words">{words(claim)}</small>' if words(claim) else sign


def with_badges(text: str, claims: Mapping[str, Claim]) -> str:
    """Replace the marks of a text by signs."""
    return MARK.sub(lambda mark: badge(claims[mark[1]]), text)


def sentence(claim: Claim) -> str:
    """Return the sentence of a claim; one of the paper with the verdict on it."""
    of_paper = claim.id.startswith(PREFIX)
    return f"{claim.statement} – *{claim.label}*" if of_paper else claim.statement


def conclusion(claim: Claim, mark: str = "") -> str:
    """Return what a chapter shows of a claim: its sign and its sentence, in Markdown.

    Args:
        claim: the claim.
        mark: what stands for the sign; by default the sign with its small words.
    """
    plain = f"{claim.sign} {words(claim)}".rstrip()
    return f"**{mark or plain}** {sentence(claim)}"


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
    """Return the pages that show or state a claim."""
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
            "paper": "the paper’s size" if claim.at_paper_size else "an experiment of our own",
        }
        found.append(sizes.get(claim.size, f"size `{claim.size}`"))
    return "; ".join(filter(None, found))


def classes(claim: Claim) -> str:
    """Return the classes of a claim's line, by which the page *Claims* is filtered."""
    found = ["claim-line", f"verdict-{claim.known}", *map(_page_class, places(claim))]
    found += [f"prediction-{claim.prediction}"] if claim.prediction else []
    return " ".join([*found, "post-hoc"] if claim.post_hoc else found)


def _page_class(page: str) -> str:
    return f"chapter-{Path(page).name}".replace("_", "-").lower()  # as docutils would write it


def rendered(template: str, **content: Any) -> str:
    """Return a page, or a part of it, from a template of this folder."""
    loader = jinja2.FileSystemLoader(Path(__file__).parent)
    environment = jinja2.Environment(loader=loader, trim_blocks=True, lstrip_blocks=True)
    for function in (address, badge, facts, classes, sentence, table_of_retired):
        environment.globals[function.__name__] = function
    return environment.get_template(f"{template}.md.jinja").render(**content)


# Tables of the page *Claims*


def row(claim: Claim) -> list[str]:
    """Return what tables have of a claim: name, sentence, verdict and number."""
    name = claim.id if claim.reason else _card(claim.id)
    return [name, claim.statement, claim.label, number(claim) or "–"]


def outcomes(claims: Iterable[Claim]) -> str:
    """Return what was predicted and what came, failures first, in Markdown."""
    came = {"failed": "**otherwise**", "open": "open", "met": "as predicted"}
    rows = [
        [text, *row(claim)]
        for outcome, text in came.items()
        for claim in claims
        if claim.prediction == outcome
    ]
    return markdown_table(rows, ["what came", "claim", "sentence", "it", "number"])


def table_of_retired(claims: Iterable[Claim]) -> str:
    """Return the claims that no page states any more, with the reason, in Markdown."""
    rows = [
        [*row(claim), ": ".join(filter(None, [claim.reason, _card(claim.merged_into)]))]
        for claim in claims
    ]
    return markdown_table(rows, ["claim", "sentence", "it", "number", "why it was cut"])


def lost_by_holm(claims: Iterable[Claim]) -> tuple[int, list[str]]:
    """Return how many decisions rest on an interval and a limit, and which of them Holm's
    correction for their number takes back.

    P-values are two-sided and normal, with the standard error of the interval's end that faces the
    limit.
    """
    chances = []
    for claim in claims:
        low, high = claim.interval or (None, None)
        if claim.null is None or claim.value is None or low is None or high is None:
            continue
        half = claim.value - low if claim.null < claim.value else high - claim.value
        deviations = 1.96 * abs(claim.value - claim.null) / half if half else math.inf
        chances.append((2 * NormalDist().cdf(-deviations), claim.id))
    lost, corrected = [], 0.0
    for place, (chance, key) in enumerate(sorted(chances)):
        corrected = max(corrected, chance * (len(chances) - place))
        if chance < 0.05 < corrected:
            lost.append(key)
    return len(chances), lost


def multiplicity(claims: Sequence[Claim]) -> str:
    """Return how many decisions there are, and what a correction for their number changes."""
    total, lost = lost_by_holm(claims)
    named = ", ".join(map(_card, lost)) or "none"
    return (
        f"Of {len(claims)} decisions {total} rest on an interval and a limit. "
        f"The others are formulas, counts, maxima and registered limits, for which no chance of "
        f"error is known. Holm's correction for {total} decisions would leave these open: {named}."
    )


def page(text: str, claims: Mapping[str, Claim], root: Path = ROOT) -> str:
    """Return the page *Claims*: its text, with counts, a search and a card per claim in place of
    ``<!-- claims -->``.

    The claims of the book come first, by chapter; then what the paper states, what was predicted,
    and what was retired.
    """
    names = titles(root)
    order = list(names)
    own = [claim for claim in claims.values() if not claim.id.startswith(PREFIX)]
    of_paper = [claim for claim in claims.values() if claim.id.startswith(PREFIX)]
    used = {name for claim in claims.values() for name in places(claim)}
    retired = load_retired(root)
    both = [*claims.values(), *retired]
    content = rendered(
        "claims",
        own=sorted(own, key=lambda claim: min(map(order.index, places(claim)), default=-1)),
        paper=sorted(of_paper, key=lambda claim: [*SIGNS].index(claim.known)),
        counts=Counter(claim.known for claim in own),
        signs=SIGNS,
        titles=names,
        pages={_page_class(name): names[name] for name in sorted(used, key=order.index)},
        predicted=Counter(claim.prediction for claim in both if claim.prediction),
        multiplicity=multiplicity(list(claims.values())),
        outcomes=outcomes(both),
        retired=retired,
    )
    return text.replace("<!-- claims -->", content)


def place(stage: Path, claims: Mapping[str, Claim], root: Path = ROOT) -> None:
    """Write the page *Claims* into the staging folder, and replace the marks of other pages there.

    Args:
        stage: staging folder.
        claims: the claims by id, decided.
        root: folder of the repository.
    """
    for path in (stage / "book").rglob("*.md"):
        text = with_badges(path.read_text("utf8"), claims)
        path.write_text(page(text, claims, root) if path.stem == "claims" else text, "utf8")


def write(path: Path, claims: Mapping[str, Claim]) -> None:
    """Write ``claims.json``."""
    entries = [asdict(claim) for claim in claims.values()]
    path.write_text(json.dumps(entries, indent=1, ensure_ascii=False) + "\n", "utf8")
