"""The page *Errata*: the statements of the paper with their verdicts, those that fail first."""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Mapping, Sequence

from nads_book.checks.errata import STATEMENTS
from nads_book.claims.register import Claim, ClaimError
from nads_book.claims.render import address, number

PREFIX = "errata-"
NUMBERED, OTHERS = "<!-- errata: numbered -->", "<!-- errata: sentences -->"
# Words that a verdict may contain, in the order of the page; what has none of them comes last but
# what holds.
ORDER = ("fails", "changed constant", "not exact", "not settled", "not printed", "", "as printed")
KINDS = ("falsified", "toy", "inconclusive", "verified")


def measured(claim: Claim, claims: Mapping[str, Claim]) -> str:
    """Return what was measured about a statement: the sentence of its evidence, or the claims that
    it follows from.
    """
    others = [claims[key] for key in claim.follows]
    shown = [f"{other.statement} ({number(other)}; {other.label})" for other in others]
    return claim.measured or " ".join(shown)


def place_of(claim: Claim) -> int:
    """Return where a numbered statement stands on the page."""
    known = (place for place, word in enumerate(ORDER) if word and word in claim.label)
    return next(known, ORDER.index(""))


def cell(text: str) -> str:
    """Return text as HTML in MyST, with *emphasis*."""
    shown = re.sub(r"\*([^*]+)\*", r"<em>\1</em>", html.escape(text))
    return f"```{{raw}} html\n    <span>{shown}</span>\n    ```"


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table of statements in MyST."""
    widths = "20 24 30 26" if len(heads) == 4 else "22 34 44"
    lines = [
        "````{list-table}",
        ":header-rows: 1",
        f":widths: {widths}",
        ":class: errata-cards",
        "",
    ]
    for first, *others in [heads, *rows]:
        lines += [f"* - {first}", *(f"  - {each}" for each in others)]
    return "\n".join([*lines, "````"])


def page(text: str, claims: Mapping[str, Claim]) -> str:
    """Return the page *Errata* with its tables.

    Args:
        text: the page as it is committed.
        claims: all claims by id.

    Raises:
        ClaimError: if nothing says what was measured about a statement.
    """
    mine = [claim for key, claim in claims.items() if key.startswith(PREFIX)]
    if missing := [claim.id for claim in mine if not measured(claim, claims)]:
        raise ClaimError(f"nothing says what was measured about {', '.join(missing)}")

    def row(claim: Claim) -> list[str]:
        links = [f'<a href="{address(claim)}">lab notes</a>']
        links += [f'<a href="../{claim.cell}">cell</a>'] if claim.cell else []
        anchor = f'<span class="claim-anchor" id="{claim.id}"></span>'
        rest = claim.answer.partition(";")[2]
        verdict = f"**{claim.label}**" + (f";{rest}" if rest else "")
        statement = f"{anchor}{claim.statement} ({', '.join(links)})"
        return [verdict, statement, cell(measured(claim, claims))]

    numbered = [claim for claim in mine if claim.id.removeprefix(PREFIX) in STATEMENTS]
    numbered.sort(key=place_of)
    others = [claim for claim in mine if claim not in numbered]
    others.sort(key=lambda claim: KINDS.index(claim.known))
    counted = Counter(claim.label for claim in numbered)
    lead = "; ".join(f"{word} (**{count}**)" for word, count in counted.items())
    first = table(
        ("Verdict", "Statement", "Evidence", "Smallest counter-example found"),
        [[*row(claim), cell(claim.counterexample)] for claim in numbered],
    )
    second = table(("Verdict", "Sentence", "What was measured"), [row(claim) for claim in others])
    text = text.replace(
        NUMBERED,
        f"The {len(numbered)} numbered statements, in one reading each: {lead}.\n\n{first}",
    )
    return text.replace(OTHERS, second)
