"""The verdict of each claim, from the evidence that functions of `nads_book.pages` give."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path

from nads_book.claims.history import first_in_history
from nads_book.claims.register import REDUCED, ROOT, Claim, ClaimError, load, load_retired, verdict
from nads_book.claims.statements import records, stated
from nads_book.experiments.evidence import Evidence


def places(executed: Iterable[Path]) -> dict[str, str]:
    """Return the cell of executed chapters that shows each claim: the page and its anchor."""
    import nbformat

    return {
        record["id"]: f"notebooks/{path.stem}.html#evidence-{record['id']}"
        for path in executed
        for cell in nbformat.read(path, as_version=4).cells
        for record in records(cell)
    }


def decided(claim: Claim, one: Evidence) -> Claim:
    """Put the evidence for a claim into it, with the verdict that follows, and return it.

    Raises:
        ClaimError: for evidence of an unknown size.
    """
    facts = asdict(one)
    claim.measured, answer = facts.pop("sentence"), facts.pop("answer")
    claim.answer = claim.answer or answer  # the register has the last word
    claim.sources += [source for source in facts.pop("sources") if source not in claim.sources]
    for name, value in facts.items():
        setattr(claim, name, list(value) if name == "interval" and value else value)
    try:
        claim.verdict = verdict(claim.holds, claim.size or "", claim.interval, claim.null)
    except ClaimError as error:
        raise ClaimError(f"claim {claim.id!r}: {error}") from None
    return claim


def decide(
    found: Mapping[str, Evidence], cells: Mapping[str, str] | None = None, root: Path = ROOT
) -> dict[str, Claim]:
    """Return the claims of the register with their verdicts.

    Args:
        found: evidence by id.
        cells: page and anchor of the cell that shows a claim, by id.
        root: folder of the repository.

    Raises:
        ClaimError: for evidence of no claim, or of an unknown size.
    """
    claims, cells = load(root), cells or {}
    if unknown := sorted({*found, *cells} - set(claims)):
        raise ClaimError(f"{', '.join(unknown)} is decided, which is no claim of book/claims.toml")
    for key, one in found.items():
        decided(claims[key], one)
    for key, cell in cells.items():
        claims[key].cell = cell
    retired = {one.id for one in load_retired(root)}  # the page on the paper states some
    for page, key in stated(root):
        if key not in retired:
            claims[key].pages = list(dict.fromkeys([*claims[key].pages, page]))
    in_history = functools.cache(first_in_history)
    for claim in claims.values():
        if claim.follows and all(claims[other].verdict for other in claim.follows):
            _decide_by_others(claim, claims)
        if claim.preregistered:
            first, then = claim.preregistered["first"], claim.preregistered["then"]
            older, claim.history = in_history(first, then, root)
            if older is False:
                claim.verdict, claim.holds = "falsified", False
    return claims


def _decide_by_others(claim: Claim, claims: dict[str, Claim]) -> None:
    """Decide a claim by those that it follows from: it is no better than the weakest of them."""
    others = [claims[key] for key in claim.follows]
    claim.holds = all(claims[key].verdict == wanted for key, wanted in claim.follows.items())
    sizes = [one.size for one in others]
    claim.size = next((size for size in sizes if size in REDUCED), sizes[0])
    claim.verdict = verdict(claim.holds, claim.size or "theory")
    claim.cell = claim.cell or others[0].cell
    sources = [source for one in (claim, *others) for source in one.sources]
    claim.sources = list(dict.fromkeys(sources))
