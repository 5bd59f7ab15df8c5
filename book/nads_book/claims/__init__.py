"""The register of claims: what the book concludes, what decides it, and what would falsify it.

``book/claims.toml`` has one table per claim (`register`). A sentence refers to a claim by a comment
behind it, ``<!-- claim: ID -->`` (`statements`). A function of `nads_book.pages` gives the
evidence (`decisions`), from which the verdict follows (`decide`); a preregistration must be older
than what it is about (`history`). The build shows all of them, with what was predicted and what was
cut, on the page *Claims* and in ``claims.json`` (`render`).
"""

from nads_book.claims.decide import decide, decided, places
from nads_book.claims.decisions import DECISIONS, decides
from nads_book.claims.history import first_in_history
from nads_book.claims.paper import place_paper
from nads_book.claims.register import (
    SIGNS,
    Claim,
    ClaimError,
    load,
    load_retired,
    problems,
    verdict,
)
from nads_book.claims.render import conclusion, page, place, with_claims, write
from nads_book.claims.statements import check_pages
