"""The register of claims: ``book/claims.toml`` has a table for each, and its evidence gives the
verdict. ``book/retired.toml`` has the claims that no page states any more.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nads_book.experiments.checkout import checkout_folder

ROOT = checkout_folder("book/results").parents[1].resolve()  # also where a wheel runs
# A claim of the book states what was found, so that it holds or is open. A statement of the paper
# may be falsified: what the book says about it then holds.
SIGNS = {"verified": "✓", "falsified": "✓", "toy": "◐", "inconclusive": "?"}
IN_WORDS = {
    "verified": "holds",
    "falsified": "does not hold",
    "toy": "holds in a smaller experiment",
    "inconclusive": "open",
}
PREFIX = "errata-"  # of claims about statements of the paper
OUTCOMES = ("met", "failed", "open")  # of a prediction that was registered before the results
FULL = ("paper", "theory")
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
        size: size of what was measured: a preset, or `theory`.
        interval: lower and upper end of the interval of the number behind the claim.
        null: value that the interval must exclude.

    Raises:
        ClaimError: for an unknown size, and for `smoke`, at which nothing is decided.

    >>> verdict(True, "paper"), verdict(False, "theory"), verdict(True, "laptop")
    ('verified', 'falsified', 'toy')
    >>> verdict(True, "paper", (-1, 1), 0)
    'inconclusive'
    """
    if size not in (*FULL, *REDUCED):
        raise ClaimError(
            f"a claim cannot be decided at size {size!r}: use stored results of {(*FULL, *REDUCED)}"
        )
    if interval is not None:
        low, high = interval
        if low is None or high is None or (null is not None and low <= null <= high):
            return "inconclusive"
    if holds is None:
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
        falsified_by: result that would falsify it.
        condition: condition under which it is meant; may be empty.
        follows: verdicts of other claims that decide it: id -> verdict. Empty where a chapter
            records it.
        preregistered: two events in their order, each a commit or a file: {"first": …, "then": …}.
        prediction: outcome of the registered prediction that the claim reports, one of `OUTCOMES`;
            empty where it reports none. The claim states what came, also if it was predicted
            otherwise.
        post_hoc: whether the claim, its limit or its selection was chosen after seeing the results.
        answer: verdict on a statement of the paper in words; what follows a semicolon is on the
            page of the paper only.
        sources: files with the stored results that decide it, relative to the repository.
        measure: name of the number behind it.
        statement: the sentence.
        measured: sentence of the evidence, where the statement is a quotation.
        function: function that decides it.
        counterexample: smallest counter-example to a numbered statement, in words.
        pages: pages that state it.
        cell: page and anchor of the cell that shows it.
        verdict: verdict of this build; None where this build has not decided it.
        history: outcome of the check of the preregistration; of a retired claim its registration.
        reason: why it was retired; empty for claims of the register.
        merged_into: claim that says the same as a retired one, or more; empty if none does.
    """

    id: str
    registered: str
    falsified_by: str = ""
    condition: str = ""
    measure: str = "value"
    follows: dict[str, str] = field(default_factory=dict)
    preregistered: dict[str, str] = field(default_factory=dict)
    prediction: str = ""
    post_hoc: bool = False
    answer: str = ""
    sources: list[str] = field(default_factory=list)
    statement: str = ""
    measured: str = ""
    function: str = ""
    counterexample: str = ""
    pages: list[str] = field(default_factory=list)
    cell: str | None = None
    verdict: str | None = None
    holds: bool | None = None
    value: float | None = None
    interval: list[float | None] | None = None
    null: float | None = None
    size: str | None = None
    num_seeds: int | None = None
    num_trainings: int | None = None
    history: str = ""
    reason: str = ""
    merged_into: str = ""

    @property
    def flipped(self) -> bool:
        """Whether this build has decided it, and otherwise than the register says."""
        return self.verdict is not None and (self.verdict != self.registered or self.untrue)

    @property
    def untrue(self) -> bool:
        """Whether it was decided that a claim of reduced size does not hold."""
        return self.verdict == "toy" and not self.holds

    @property
    def known(self) -> str:
        """The verdict of this build, or the registered one where it has none."""
        return self.verdict or self.registered

    @property
    def sign(self) -> str:
        """The sign of its verdict."""
        return SIGNS[self.known]

    @property
    def at_paper_size(self) -> bool:
        """Whether it is about something that the paper did, at the size at which the paper did
        it.
        """
        return self.size == "paper" and all(map(PAPERS.search, self.sources))

    @property
    def label(self) -> str:
        """The verdict in words: of a statement of the paper those of its page."""
        if answer := self.answer.partition(";")[0]:
            return answer
        return IN_WORDS["falsified" if self.untrue else self.known]


def load(root: Path = ROOT) -> dict[str, Claim]:
    """Return the registered claims; none for a book without a register.

    Raises:
        ClaimError: for an unknown verdict, outcome or field, a claim without what would falsify it,
            or one of the book that is registered as falsified.
    """
    claims = _claims(root, "claims")
    for key, claim in claims.items():
        where = f"claim {key!r} of claims.toml"
        if not claim.falsified_by:
            raise ClaimError(f"{where} needs `falsified_by`")
        if claim.registered == "falsified" and not key.startswith(PREFIX):
            raise ClaimError(f"{where} is false: state what was found instead")
        if unknown := sorted(claim.follows.keys() - claims.keys()):
            raise ClaimError(f"{where} follows from {unknown}, no claims")
    return claims


def load_retired(root: Path = ROOT) -> list[Claim]:
    """Return the claims that no page states any more, as they stood; none for a book without such a
    file. Their sentence could be what was predicted and not what was found.

    Raises:
        ClaimError: for an unknown field, verdict or outcome, or one that was merged into no claim.
    """
    known, retired = load(root), [*_claims(root, "retired").values()]
    for claim in retired:
        claim.verdict, claim.holds = claim.registered, claim.holds is not False
        if claim.merged_into and claim.merged_into not in known:
            into = claim.merged_into
            raise ClaimError(
                f"claim {claim.id!r} of retired.toml is merged into {into!r}, no claim"
            )
    return retired


def content(root: Path, name: str) -> dict[str, Any]:
    """Return what is in a file of the book, such as "claims"; {} if there is none."""
    path = root / "book" / f"{name}.toml"
    return tomllib.loads(path.read_text("utf8")) if path.is_file() else {}


def _claims(root: Path, name: str) -> dict[str, Claim]:
    """Return the claims of a file as it has them."""
    entries = content(root, name)
    for key, entry in entries.pop("errata", {}).items():
        entries[f"{PREFIX}{key}"] = {"falsified_by": CHECKED} | entry
    claims = {}
    for key, entry in entries.items():
        where, registered = f"claim {key!r} of {name}.toml", entry.pop("verdict", None)
        history = entry.pop("registered", "")  # of a retired claim
        try:
            claim = claims[key] = Claim(key, registered, history=history, **entry)
        except TypeError as error:
            raise ClaimError(f"{where}: {error}") from None
        if registered not in SIGNS:
            raise ClaimError(f"{where} has the verdict {registered!r}: use one of {(*SIGNS,)}")
        if claim.preregistered and set(claim.preregistered) != {"first", "then"}:
            raise ClaimError(
                f"{where} is preregistered by {claim.preregistered!r}: name two events in their "
                'order, { first = "…", then = "…" }'
            )
        if claim.prediction not in ("", *OUTCOMES):
            raise ClaimError(
                f"{where} has the prediction {claim.prediction!r}: use one of {OUTCOMES}"
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
            found.append(f"{claim.id}: no page decides it")
        elif claim.flipped:
            now = "does not hold" if claim.untrue else f"is now {claim.verdict}"
            found.append(
                f"{claim.id}: registered as {claim.registered}, {now}. {claim.statement} "
                f"{claim.history}".rstrip()
            )
    return found
