"""The page *Errata*: the statements of the paper with their verdicts, those that fail first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from nads_book.checks.errata import STATEMENTS
from nads_book.claims.register import Claim, ClaimError

PREFIX = "errata-"
NUMBERED, OTHERS = "<!-- errata: numbered -->", "<!-- errata: sentences -->"
FAILURES_FIRST = ("falsified", "toy", "inconclusive", "verified")
# Words that a verdict may contain, in the order of the page; what has none of them comes last but
# what holds.
ORDER = ("fails", "changed constant", "not exact", "not settled", "not printed", "", "as printed")


class Tables(NamedTuple):
    """What the page *Errata* lists.

    Args:
        lead: how many numbered statements have which verdict.
        numbered: the numbered statements.
        others: the other sentences.
        measured: id of a statement -> what was measured about it.
    """

    lead: str
    numbered: list[Claim]
    others: list[Claim]
    measured: dict[str, str]


def measured(claim: Claim, claims: Mapping[str, Claim]) -> str:
    """Return what was measured about a statement: the sentence of its evidence, or the claims that
    it follows from.

    Raises:
        ClaimError: if there is neither.
    """
    found = claim.measured or " ".join(claims[key].statement for key in claim.follows)
    if not (found or claim.condition):
        raise ClaimError(f"nothing says what was measured about {claim.id}")
    return found or claim.condition


def place_of(claim: Claim) -> int:
    """Return where a numbered statement stands on the page."""
    known = (place for place, word in enumerate(ORDER) if word and word in claim.label)
    return next(known, ORDER.index(""))


def tables(claims: Mapping[str, Claim]) -> Tables:
    """Return the statements of the paper, in the order of the page.

    Raises:
        ClaimError: if nothing says what was measured about a statement.
    """
    mine = [claim for key, claim in claims.items() if key.startswith(PREFIX)]
    numbered = [claim for claim in mine if claim.id.removeprefix(PREFIX) in STATEMENTS]
    numbered.sort(key=place_of)
    others = [claim for claim in mine if claim not in numbered]
    others.sort(key=lambda claim: FAILURES_FIRST.index(claim.known))
    counted = Counter(claim.label for claim in numbered)
    lead = "; ".join(f"{word} (**{count}**)" for word, count in counted.items())
    lead = f"The {len(numbered)} numbered statements, in one reading each: {lead}."
    return Tables(lead, numbered, others, {claim.id: measured(claim, claims) for claim in mine})
