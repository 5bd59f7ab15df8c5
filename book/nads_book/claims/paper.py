"""The page *Errata*: the statements of the paper with their verdicts, those that fail first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from nads_book.checks.errata import STATEMENTS
from nads_book.claims.register import Claim, ClaimError
from nads_book.claims.render import FAILURES_FIRST, number, rendered

PREFIX = "errata-"
NUMBERED, OTHERS = "<!-- errata: numbered -->", "<!-- errata: sentences -->"
# Words that a verdict may contain, in the order of the page; what has none of them comes last but
# what holds.
ORDER = ("fails", "changed constant", "not exact", "not settled", "not printed", "", "as printed")


def measured(claim: Claim, claims: Mapping[str, Claim]) -> str:
    """Return what was measured about a statement: the sentence of its evidence, or the claims that
    it follows from.

    Raises:
        ClaimError: if there is neither.
    """
    others = [claims[key] for key in claim.follows]
    shown = [f"{other.statement} ({number(other)}; {other.label})" for other in others]
    if not (claim.measured or shown):
        raise ClaimError(f"nothing says what was measured about {claim.id}")
    return claim.measured or " ".join(shown)


def place_of(claim: Claim) -> int:
    """Return where a numbered statement stands on the page."""
    known = (place for place, word in enumerate(ORDER) if word and word in claim.label)
    return next(known, ORDER.index(""))


def page(text: str, claims: Mapping[str, Claim]) -> str:
    """Return the page *Errata* with its tables.

    Args:
        text: the page as it is committed.
        claims: all claims by id.

    Raises:
        ClaimError: if nothing says what was measured about a statement.
    """
    mine = [claim for key, claim in claims.items() if key.startswith(PREFIX)]
    evidence = {claim.id: measured(claim, claims) for claim in mine}
    numbered = [claim for claim in mine if claim.id.removeprefix(PREFIX) in STATEMENTS]
    numbered.sort(key=place_of)
    others = [claim for claim in mine if claim not in numbered]
    others.sort(key=lambda claim: FAILURES_FIRST.index(claim.known))
    counted = Counter(claim.label for claim in numbered)
    lead = "; ".join(f"{word} (**{count}**)" for word, count in counted.items())
    lead = f"The {len(numbered)} numbered statements, in one reading each: {lead}."
    first = rendered("errata", claims=numbered, measured=evidence, numbered=True)
    second = rendered("errata", claims=others, measured=evidence, numbered=False)
    return text.replace(NUMBERED, f"{lead}\n\n{first}").replace(OTHERS, second)
