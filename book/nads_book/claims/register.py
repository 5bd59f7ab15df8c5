"""The register of claims: ``book/claims.toml`` has a table for each, and its evidence gives the
verdict.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from nads_book.checkout import checkout_folder

ROOT = checkout_folder("book/results").parents[1].resolve()  # also where a wheel runs
VERDICTS = {"verified": "✓", "falsified": "✗", "toy": "◐", "inconclusive": "?"}
OUTCOMES = ("met", "failed", "open")  # of a prediction that was registered before the results
FULL = ("paper", "theory")
# `live` and `smoke` decide nothing
REDUCED = ("laptop", "narrow", "demo", "epochs20", "epochs50", "epochs100")
# Results of what the paper did too: its figures, its random directions, and its published numbers.
PAPERS = re.compile(r"results/(fig[1-8]|random)-\w+\.json$|/published/")
# What would change the verdict on a numbered statement of the paper.
CHECKED = (
    "A simulation on the other side of 4 standard errors from the printed form: see Errata for the "
    "check."
)


class ClaimError(Exception):
    """The register contradicts the pages or the results; the message is for the reader of the
    terminal.
    """


def verdict(
    holds: bool | None,
    size: str,
    interval: Sequence[float | None] | None = None,
    null: float | None = None,
) -> str:
    """Return the verdict on a claim.

    Args:
        holds: whether the numbers support the claim; None where they do not decide it.
        size: size of what was measured: a preset, `theory`, or `live`.
        interval: lower and upper end of the interval of the number behind the claim.
        null: value that the interval must exclude.

    Raises:
        ClaimError: for an unknown size, and for `smoke`, at which nothing is decided.

    >>> verdict(True, "paper"), verdict(False, "theory"), verdict(True, "laptop")
    ('verified', 'falsified', 'toy')
    >>> verdict(True, "paper", (-1, 1), 0)
    'inconclusive'
    """
    if size not in (*FULL, *REDUCED, "live"):
        raise ClaimError(
            f"a claim cannot be decided at size {size!r}: use stored results of {(*FULL, *REDUCED)}"
        )
    if interval is not None:
        low, high = (math.nan if end is None else end for end in interval)
        if math.isnan(low + high) or (null is not None and low <= null <= high):
            return "inconclusive"
    if holds is None or size == "live":
        return "inconclusive"
    if size in REDUCED:
        return "toy"
    return "verified" if holds else "falsified"


@dataclass
class Claim:
    """A claim, with what decides it.

    Args:
        id: name in the register.
        registered: verdict in the register.
        registered_holds: whether a claim of verdict `toy` holds at its reduced size, according to
            the register.
        falsified_by: result that would falsify it.
        condition: condition under which it is meant; may be empty.
        follows: verdicts of other claims that decide it: id -> verdict. Empty where a chapter
            records it.
        preregistered: two events in their order, each a commit or a file: {"first": …, "then": …}.
        prediction: outcome of the registered prediction that the claim reports, one of `OUTCOMES`;
            empty where it reports none. A failed prediction can be a verified claim ("against our
            prediction, …"), but has no ✓.
        post_hoc: whether the claim, its limit or its selection was chosen after seeing the results.
        answer: verdict on a statement of the paper in words; what follows a semicolon is on the
            page of errata only.
        judgement: our reading of the verdict, where the registered rule says less or more than the
            numbers.
        sources: files with the stored results that decide it, relative to the repository.
        measure: name of the number behind it.
        statement: the sentence; that of the page, unless the register has one.
        measured: sentence of the evidence, where the statement is a quotation.
        counterexample: smallest counter-example to a numbered statement, in words.
        pages: pages that state it.
        cell: page and anchor of the cell that shows it.
        chapter: chapter whose module decides it, such as ``07_poison``.
        verdict: verdict of this build; None where this build has not decided it.
        history: outcome of the check of the preregistration.
    """

    id: str
    registered: str
    registered_holds: bool = True
    falsified_by: str = ""
    condition: str = ""
    measure: str = "value"
    follows: dict[str, str] = field(default_factory=dict)
    preregistered: dict[str, str] = field(default_factory=dict)
    prediction: str = ""
    post_hoc: bool = False
    judgement: str = ""
    answer: str = ""
    sources: list[str] = field(default_factory=list)
    statement: str = ""
    measured: str = ""
    counterexample: str = ""
    pages: list[str] = field(default_factory=list)
    cell: str | None = None
    chapter: str = ""
    verdict: str | None = None
    holds: bool | None = None
    value: float | None = None
    interval: list[float | None] | None = None
    null: float | None = None
    size: str | None = None
    num_seeds: int | None = None
    num_trainings: int | None = None
    history: str = ""

    @property
    def flipped(self) -> bool:
        """Whether this build has decided it, and otherwise than the register says."""
        if self.verdict is None:
            return False
        same_side = self.verdict != "toy" or self.holds == self.registered_holds
        return self.verdict != self.registered or not same_side

    @property
    def known(self) -> str:
        """The verdict of this build, or the registered one where it has none."""
        return self.verdict or self.registered

    @property
    def at_paper_size(self) -> bool:
        """Whether it is about something that the paper did, at the size at which the paper did
        it.
        """
        return self.size == "paper" and all(map(PAPERS.search, self.sources))

    @property
    def label(self) -> str:
        """The verdict in words: of a statement of the paper those of the page of errata, else
        `kind`.
        """
        if not self.id.startswith("errata-"):
            return self.kind
        words = {"verified": "holds", "falsified": "does not hold"}
        return self.answer.partition(";")[0] or words.get(self.known, self.kind)

    @property
    def kind(self) -> str:
        """The verdict in words, with the size at which it was reached."""
        if self.known == "toy":
            held = self.holds if self.holds is not None else self.registered_holds
            return f"{'holds' if held else 'does not hold'} at reduced size"
        if self.known == "inconclusive":
            return "open"
        if self.size == "theory" or self.size is None:
            return self.known
        return f"{self.known} at {'the paper’s' if self.at_paper_size else 'its own'} size"


def load(root: Path = ROOT) -> dict[str, Claim]:
    """Return the registered claims; none for a book without a register.

    Raises:
        ClaimError: for an unknown verdict, outcome or field, or a claim without what would falsify
            it.
    """
    path = root / "book" / "claims.toml"
    content = tomllib.loads(path.read_text("utf8")) if path.is_file() else {}
    claims = {}
    for key, found in content.pop("errata", {}).items():
        entry = {"verdict": found} if isinstance(found, str) else found
        content[f"errata-{key}"] = {"falsified_by": CHECKED} | entry
    for key, entry in content.items():
        registered, holds = entry.pop("verdict", None), entry.pop("holds", True)
        try:
            claim = claims[key] = Claim(key, registered, holds, **entry)
        except TypeError as error:
            raise ClaimError(f"claim {key!r} of {path.name}: {error}") from None
        if registered not in VERDICTS or not claim.falsified_by:
            raise ClaimError(
                f"claim {key!r} of {path.name} needs a verdict of {(*VERDICTS,)}, and "
                "`falsified_by`"
            )
        if unknown := sorted(claim.follows.keys() - content.keys()):
            raise ClaimError(f"claim {key!r} of {path.name} follows from {unknown}, no claims")
        if claim.prediction not in ("", *OUTCOMES):
            raise ClaimError(
                f"claim {key!r} of {path.name} has the prediction {claim.prediction!r}: use one of "
                f"{OUTCOMES}"
            )
    return claims


def problems(claims: Iterable[Claim], root: Path = ROOT) -> list[str]:
    """Return what is wrong with the claims: verdicts that flip, claims that nothing has decided,
    missing results.
    """
    found = []
    for claim in claims:
        missing = [source for source in claim.sources if not (root / source).is_file()]
        if missing:
            found.append(f"{claim.id}: {', '.join(missing)} is missing, so that nothing decides it")
        elif claim.verdict is None:
            found.append(f"{claim.id}: no chapter records it, so that nothing decides it")
        elif claim.flipped:
            before = _with_side(claim.registered, claim.registered_holds)
            now = _with_side(claim.verdict, claim.holds)
            found.append(
                f"{claim.id}: registered as {before}, now {now}. {claim.statement} "
                f"{claim.history}".rstrip()
            )
    return found


def _with_side(verdict: str, holds: bool | None) -> str:
    """Return a verdict, and of one at reduced size whether the claim holds."""
    return f"{verdict} ({'holds' if holds else 'does not hold'})" if verdict == "toy" else verdict
