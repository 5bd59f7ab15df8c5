"""The page *Errata*: the statements of the paper with their verdicts, those that fail first.

A chapter hands texts to the page by `nads_book.checks.errata.paste`: the verdict in words, what was measured, and the
smallest counter-example. The register has the statement, and decides.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from nads_book.checks.errata import STATEMENTS
from nads_book.claims.register import Claim, ClaimError
from nads_book.claims.render import address, number

PREFIX = "errata-"
NUMBERED, OTHERS = "<!-- errata: numbered -->", "<!-- errata: sentences -->"
# Words that a verdict may contain, in the order of the page; what has none of them comes last but what holds.
ORDER = ("fails", "changed constant", "not exact", "not settled", "not printed", "", "as printed")
KINDS = ("falsified", "toy", "inconclusive", "verified")
Texts = Mapping[str, Mapping[str, str]]  # key -> part -> HTML


def pasted(executed: Iterable[Path]) -> dict[str, dict[str, str]]:
    """Return what executed chapters handed to the page: key of a statement -> part -> HTML."""
    import nbformat

    found: dict[str, dict[str, str]] = {}
    for path in executed:
        for cell in nbformat.read(path, as_version=4).cells:
            for output in cell.get("outputs", []):
                name = output.get("metadata", {}).get("scrapbook", {}).get("name", "")
                key, _, part = name.rpartition("-")
                if key:
                    (text,) = output["data"].values()
                    found.setdefault(key, {})[part] = text
    return found


def plain(text: str) -> str:
    """Return HTML as text."""
    return " ".join(re.sub(r"<[^>]+>", "", text).split())


def of_register(claim: Claim, claims: Mapping[str, Claim]) -> dict[str, str]:
    """Return the texts that register and evidence give for a sentence; none if they give no numbers."""
    others = [claims[key] for key in claim.follows]
    shown = [f"{other.statement} ({number(other)}; {other.label})" for other in others]
    measured = claim.measured or " ".join(shown)
    if not measured:
        return {}
    words = {
        "verified": "holds",
        "falsified": "does not hold",
        "toy": "holds at reduced size" if claim.holds else "does not hold at reduced size",
        "inconclusive": "open",
    }
    verdict = html.escape(claim.answer or words[claim.known])
    return {"verdict": f"<strong>{verdict}</strong>", "evidence": html.escape(measured)}


def answer(texts: Mapping[str, str]) -> str:
    """Return the verdict in words, without what follows a semicolon."""
    return plain(texts["verdict"]).partition(";")[0]


def place_of(texts: Mapping[str, str]) -> int:
    """Return where a numbered statement stands on the page."""
    words = answer(texts)
    known = (place for place, word in enumerate(ORDER) if word and word in words)
    return next(known, ORDER.index(""))


def table(claims: list[Claim], texts: Texts, heads: tuple[str, ...]) -> str:
    """Return a table of statements in MyST: verdict, statement, what was measured, and a counter-example if it has one.

    Args:
        claims: statements in their order.
        texts: texts of `pasted`.
        heads: titles of the columns.
    """
    parts = ("verdict", "", "evidence", "counterexample")[: len(heads)]
    widths = "20 24 30 26" if len(heads) == 4 else "22 34 44"
    lines = [
        "````{list-table}",
        ":header-rows: 1",
        f":widths: {widths}",
        ":class: errata-cards",
        "",
    ]
    lines += [f"{'* -' if place == 0 else '  -'} {head}" for place, head in enumerate(heads)]
    for claim in claims:
        own = texts[claim.id.removeprefix(PREFIX)]
        links = [f'<a href="{address(claim)}">lab notes</a>']
        links += [f'<a href="../{claim.cell}">cell</a>'] if claim.cell else []
        for place, part in enumerate(parts):
            dash = "* -" if place == 0 else "  -"
            if part:
                shown = own.get(part, "none")
                lines.append(f"{dash} ```{{raw}} html\n    <span>{shown}</span>\n    ```")
            else:
                anchor = f'<span class="claim-anchor" id="{claim.id}"></span>'
                lines.append(f"{dash} {anchor}{claim.statement} ({', '.join(links)})")
    return "\n".join([*lines, "````"])


def lead(claims: list[Claim], texts: Texts) -> str:
    """Return how many numbered statements have each verdict, in a sentence."""
    words = [answer(texts[claim.id.removeprefix(PREFIX)]) for claim in claims]
    counted = [f"{word} (**{count}**)" for word, count in Counter(words).items()]
    return f"The {len(words)} numbered statements, in one reading each: {'; '.join(counted)}."


def page(text: str, claims: Mapping[str, Claim], texts: Texts) -> str:
    """Return the page *Errata* with its tables.

    Args:
        text: the page as it is committed.
        claims: all claims by id.
        texts: texts of `pasted`.

    Raises:
        ClaimError: if no chapter says what was measured about a statement.
    """
    mine = [claim for key, claim in claims.items() if key.startswith(PREFIX)]
    texts = {claim.id.removeprefix(PREFIX): of_register(claim, claims) for claim in mine} | dict(
        texts
    )
    if missing := [claim.id for claim in mine if not texts[claim.id.removeprefix(PREFIX)]]:
        raise ClaimError(f"no chapter hands {', '.join(missing)} to the page of errata")
    for claim in mine:
        claim.answer = answer(texts[claim.id.removeprefix(PREFIX)])
    numbered = [claim for claim in mine if claim.id.removeprefix(PREFIX) in STATEMENTS]
    numbered.sort(key=lambda claim: place_of(texts[claim.id.removeprefix(PREFIX)]))
    others = [claim for claim in mine if claim not in numbered]
    others.sort(key=lambda claim: KINDS.index(claim.known))
    heads = ("Verdict", "Statement", "Evidence", "Smallest counter-example found")
    return text.replace(
        NUMBERED, f"{lead(numbered, texts)}\n\n{table(numbered, texts, heads)}"
    ).replace(OTHERS, table(others, texts, ("Verdict", "Sentence", "What was measured")))
