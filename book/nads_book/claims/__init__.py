"""The register of claims: what the book concludes, what decides it, and what would falsify it.

``book/claims.toml`` has one table per claim. A sentence refers to a claim by a comment behind it,
``<!-- claim: ID -->``. The chapter that measures it calls ``report.claim(..., id="ID")``, which stores the numbers in
the executed notebook. The build collects both into ``claims.json`` and the page *Claims*.

`nads_book.site.verify` (``make verify``) decides every claim again.
"""

from __future__ import annotations

import contextlib
import functools
import html
import json
import math
import re
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import nbformat

from nads_book.report import CLAIM, estimate, readable

ROOT = Path(__file__).resolve().parents[3]
VERDICTS = {"verified": "✓", "falsified": "✗", "toy": "◐", "inconclusive": "?"}
FULL = ("paper", "theory")
REDUCED = ("laptop", "narrow", "demo", "epochs20", "epochs50", "epochs100")  # `live` and `smoke` decide nothing
# Chapters whose takeaways are not registered yet. Delete a name here as soon as its takeaway is.
PENDING: tuple[str, ...] = ()
# Chapters whose figures the tests want with all variants: `verify` and the tests share their executed chapters.
WITH_VARIANTS = ("02_pooling_theory", "08_flip")
# What would change the verdict on a numbered statement of the paper.
CHECKED = "A simulation on the other side of 4 standard errors from the printed form: see Errata for the check."
MARK = re.compile(r"<!-- claim: ([\w-]+) -->")
TAKEAWAY = re.compile(r"^```\{admonition\}.*\n:class: takeaway\n(.*?)^```", re.MULTILINE | re.DOTALL)
SENTENCE_END = re.compile(r"(?<=[.!?])[”\")]*\s+(?=[^a-z\d\s(])")


class ClaimError(Exception):
    """The register contradicts the pages or the results; the message is for the reader of the terminal."""


def verdict(
    holds: bool | None, size: str, interval: Sequence[float | None] | None = None, null: float | None = None
) -> str:
    """Return the verdict on a claim.

    Args:
        holds: whether the numbers support the claim; None where they do not decide it.
        size: size of what was measured: a preset, `theory`, or `live`.
        interval: lower and upper end of the interval of the number behind the claim.
        null: value that the interval must exclude.

    Raises:
        ClaimError: for an unknown size, and for `smoke`, at which nothing is decided.

    >>> verdict(True, "paper"), verdict(False, "theory"), verdict(True, "laptop"), verdict(True, "paper", (-1, 1), 0)
    ('verified', 'falsified', 'toy', 'inconclusive')
    """
    if size not in (*FULL, *REDUCED, "live"):
        raise ClaimError(f"a claim cannot be decided at size {size!r}: use stored results of {(*FULL, *REDUCED)}")
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
        registered_holds: whether a claim of verdict `toy` holds at its reduced size, according to the register.
        falsified_by: what would falsify it.
        condition: condition under which it is meant; may be empty.
        follows: verdicts of other claims that decide it: id -> verdict. Empty where a chapter records it.
        preregistered: what is older than what, each a commit or a file: {"first": …, "then": …}.
        sources: files with the stored results that decide it, relative to the repository.
        measure: name of the number behind it.
        statement: the sentence; that of the page, unless the register has one.
        pages: pages that state it.
        cell: page and anchor of the cell that decides it.
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
    sources: list[str] = field(default_factory=list)
    statement: str = ""
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

    @property
    def flipped(self) -> bool:
        """Whether this build has decided it, and otherwise than the register says."""
        if self.verdict is None:
            return False
        same_side = self.verdict != "toy" or self.holds == self.registered_holds
        return self.verdict != self.registered or not same_side


# The register and the pages


def load(root: Path = ROOT) -> dict[str, Claim]:
    """Return the registered claims; none for a book without a register.

    Raises:
        ClaimError: for an unknown verdict or field, or a claim without what would falsify it.
    """
    path = root / "book" / "claims.toml"
    content = tomllib.loads(path.read_text("utf8")) if path.is_file() else {}
    claims = {}
    for key, found in content.pop("errata", {}).items():
        entry = {"verdict": found} if isinstance(found, str) else found
        content[f"errata-{key}"] = {"falsified_by": CHECKED} | entry
    for key, entry in content.items():
        entry["registered"], entry["registered_holds"] = entry.pop("verdict", None), entry.pop("holds", True)
        try:
            claims[key] = Claim(key, **entry)
        except TypeError as error:
            raise ClaimError(f"claim {key!r} of {path.name}: {error}") from None
        if claims[key].registered not in VERDICTS or not claims[key].falsified_by:
            raise ClaimError(f"claim {key!r} of {path.name} needs a verdict of {(*VERDICTS,)}, and `falsified_by`")
    return claims


def sentences(text: str) -> list[str]:
    """Return the sentences of a paragraph or more, without one-word answers.

    >>> sentences("No. It holds (eq. 4 and Fig. 6). So does $x$.")
    ['It holds (eq. 4 and Fig. 6).', 'So does $x$.']
    """
    parts = [" ".join(part.split()) for part in SENTENCE_END.split(text.strip())]
    return [part for part in parts if " " in part]


def marked(text: str) -> list[tuple[str, str]]:
    """Return the marks of a text, each with the sentence before it."""
    pieces = MARK.split(text)
    last = [re.split(r"\n\s*\n|^(?:```|:\w).*\n", before, flags=re.MULTILINE)[-1] for before in pieces[:-1:2]]
    return [(key, (sentences(before) or [""])[-1]) for before, key in zip(last, pieces[1::2], strict=True)]


def unregistered(text: str) -> list[str]:
    """Return the sentences of the takeaways in a text that have no mark of their own."""
    missing = []
    for body in TAKEAWAY.findall(text):
        *chunks, rest = MARK.split(body)[::2]
        for chunk in chunks:
            missing += sentences(chunk)[:-1]
        missing += sentences(rest)
    return missing


def chapter_text(notebook: Path) -> str:
    """Return the text cells of a notebook."""
    cells = nbformat.read(notebook, as_version=4).cells
    return "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")


def texts(root: Path) -> dict[str, str]:
    """Return the texts in which claims may be stated: page -> text, for chapters, pages of the book, and README."""
    found = {f"notebooks/{path.stem}": chapter_text(path) for path in sorted(root.glob("notebooks/*.ipynb"))}
    found |= {f"book/{path.stem}": path.read_text("utf8") for path in sorted(root.glob("book/*.md"))}
    readme = root / "README.md"
    return found | ({"README": readme.read_text("utf8")} if readme.is_file() else {})


def check_pages(root: Path = ROOT) -> None:
    """Raise a `ClaimError` for a sentence of a takeaway that is no registered claim, and for a mark without a claim."""
    claims, problems = load(root), []
    if not (root / "book" / "claims.toml").is_file():
        return
    for page, text in texts(root).items():
        problems += [f"{page} refers to {key!r}, which is no claim" for key, _ in marked(text) if key not in claims]
        if Path(page).name not in PENDING:
            problems += [f"{page}, takeaway: no claim is registered for “{one}”" for one in unregistered(text)]
    if problems:
        raise ClaimError(
            "\n".join([*problems, "Register it in book/claims.toml, and put <!-- claim: ID --> behind it."])
        )


# What a build has decided


def records(notebook: nbformat.NotebookNode) -> list[dict[str, Any]]:
    """Return what the cells of an executed chapter recorded about claims."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return [dict(output["data"][CLAIM]) for output in outputs if CLAIM in output.get("data", {})]


def collect(executed: Iterable[Path], root: Path = ROOT) -> dict[str, Claim]:
    """Return the claims of the register, with what the executed chapters have recorded.

    Raises:
        ClaimError: for a record that is not registered, or one of an unknown size.
    """
    claims = load(root)
    worded = {key for key, claim in claims.items() if claim.statement}  # in the register, which has the last word
    for path in executed:
        for record in records(nbformat.read(path, as_version=4)):
            key, sentence = record.pop("id"), record.pop("sentence")
            if key not in claims:
                raise ClaimError(f"{path.stem} records {key!r}, which is no claim of book/claims.toml")
            if record["size"] == "smoke":  # where its stored results are missing
                continue
            claim, sources = claims[key], record.pop("sources")
            claim.sources += [source for source in sources if source not in claim.sources]
            for name, value in record.items():
                setattr(claim, name, value)
            claim.cell = f"notebooks/{path.stem}.html#evidence-{key}"
            if key not in worded:
                claim.statement = sentence
            try:
                claim.verdict = verdict(claim.holds, claim.size or "", claim.interval, claim.null)
            except ClaimError as error:
                raise ClaimError(f"{path.stem}, claim {key!r}: {error}") from None
    for page, text in texts(root).items():
        for key, sentence in marked(text):
            if key in claims:
                claims[key].pages += [page] if page not in claims[key].pages else []
                if key not in worded:
                    claims[key].statement = sentence
        if page == "book/errata":
            for key, quote in _quotes(text):
                claims[f"errata-{key}"].statement = quote
        for claim in claims.values():
            if page == "book/errata" and claim.id.startswith("errata-"):
                claim.pages.append(page)
    for claim in claims.values():
        if claim.follows and all(claims[other].verdict for other in claim.follows):
            _decide_by_others(claim, claims)
        if claim.preregistered:
            older, claim.history = first_in_history(claim.preregistered["first"], claim.preregistered["then"], root)
            if older is False:
                claim.verdict, claim.holds = "falsified", False
    return claims


def _quotes(errata: str) -> list[tuple[str, str]]:
    """Return the quoted sentences of the errata page, with the key of each."""
    rows = re.findall(r"^  - (“.*) \(\[cell\]\(#claim-([\w-]+)\)\)$", errata, re.MULTILINE)
    return [(key, sentence) for sentence, key in rows]


def _decide_by_others(claim: Claim, claims: dict[str, Claim]) -> None:
    """Decide a claim by those that it follows from: it is no better than the weakest of them."""
    others = [claims[key] for key in claim.follows]
    claim.holds = all(claims[key].verdict == wanted for key, wanted in claim.follows.items())
    claim.size = next((one.size for one in others if one.size in (*REDUCED, "live")), others[0].size)
    claim.verdict = verdict(claim.holds, claim.size or "theory")
    claim.cell = claim.cell or others[0].cell
    claim.sources += [source for one in others for source in one.sources if source not in claim.sources]


def first_in_history(first: str, then: str, root: Path = ROOT) -> tuple[bool | None, str]:
    """Return whether one thing is older than another in the history of git, and how that is known.

    Args:
        first: commit, or file relative to the repository, which counts from the commit that added it.
        then: the same of what must be younger.
        root: folder of the repository.

    Returns:
        True, False, or None where there is no history that decides; and a sentence.
    """

    @functools.cache
    def git(*arguments: str) -> tuple[int, str]:
        done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True)
        return done.returncode, done.stdout.strip()

    try:
        status, shallow = git("rev-parse", "--is-shallow-repository")
    except FileNotFoundError:
        return None, "not checked: git is not installed"
    if status or Path(git("rev-parse", "--show-toplevel")[1]).resolve() != root.resolve():
        return None, "not checked: this folder has no git history"
    if shallow == "true":
        return None, "not checked: the git history of this clone is shallow (`git fetch --unshallow`)"

    def commit(name: str) -> str | None:
        if (root / name).exists() or "/" in name:
            return (git("log", "--follow", "--format=%H", "--", name)[1].splitlines() or [None])[-1]
        status, found = git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
        return None if status else found

    one, other = commit(first), commit(then)
    for name, found in ((first, one), (then, other)):
        if not found:
            return False, f"{name} is not in the git history"
    older = one != other and git("merge-base", "--is-ancestor", one, other)[0] == 0
    day = lambda found: f"{found[:7]}, {git('log', '-1', '--format=%cs', found)[1]}"  # noqa: E731
    how = "is older than" if older else "is **not** older than"
    return older, f"{first} ({day(one)}) {how} {then} ({day(other)})"


def problems(claims: Iterable[Claim], root: Path = ROOT) -> list[str]:
    """Return what is wrong with the claims: verdicts that flip, claims that nothing has decided, missing results."""
    found = []
    for claim in claims:
        missing = [source for source in claim.sources if not (root / source).is_file()]
        if missing:
            found.append(f"{claim.id}: {', '.join(missing)} is missing, so that nothing decides it")
        elif claim.verdict is None:
            found.append(f"{claim.id}: no chapter records it, so that nothing decides it")
        elif claim.flipped:
            sides = {True: " (holds)", False: " (does not hold)", None: ""}
            before = claim.registered + (sides[claim.registered_holds] if claim.registered == "toy" else "")
            now = claim.verdict + (sides[claim.holds] if claim.verdict == "toy" else "")
            found.append(f"{claim.id}: registered as {before}, now {now}. {claim.statement} {claim.history}".rstrip())
    return found


# The page


def badge(claim: Claim) -> str:
    """Return the mark behind a sentence: the sign of its verdict, linked to its row of the page *Claims*."""
    known = claim.verdict or claim.registered
    label = html.escape(f"Claim, {known}" + ("" if claim.holds is not False or known != "toy" else ", does not hold"))
    link = f'href="../book/claims.html#{claim.id}" title="{label}" aria-label="{label}"'
    return f'<a class="claim-mark {known}" {link}>{VERDICTS[known]}</a>'


def with_badges(text: str, claims: dict[str, Claim]) -> str:
    """Replace the marks of a text."""
    return MARK.sub(lambda mark: badge(claims[mark[1]]) if mark[1] in claims else "", text)


def with_claims(notebook: nbformat.NotebookNode, claims: dict[str, Claim]) -> nbformat.NotebookNode:
    """Replace the marks of an executed chapter, and its records by the anchors that the page *Claims* links to."""
    cells = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = with_badges(cell.source, claims)
        keys = [output["data"][CLAIM]["id"] for output in cell.get("outputs", []) if CLAIM in output.get("data", {})]
        if keys:  # an anchor among the outputs of a figure would become another figure
            cell.outputs = [output for output in cell.outputs if CLAIM not in output.get("data", {})]
            anchors = "".join(f'<div class="claim-anchor" id="evidence-{key}"></div>' for key in keys)
            cells.append(nbformat.v4.new_markdown_cell(anchors))
        cells.append(cell)
    notebook.cells = cells
    return notebook


def titles(root: Path) -> dict[str, str]:
    """Return the titles of all pages, in order."""
    found = {name: re.search(r"^# (.*)$", text, re.MULTILINE) for name, text in texts(root).items()}
    return {name: title[1] if title else name for name, title in found.items()} | {"README": "README"}


def places(claim: Claim) -> list[str]:
    """Return the pages that state or decide a claim."""
    cell = [claim.cell.partition(".html")[0]] if claim.cell else []
    return list(dict.fromkeys([*claim.pages, *cell]))


def css_class(page: str) -> str:
    """Return the class that the rows of a page's claims have, as docutils would write it."""
    return f"chapter-{Path(page).name}".replace("_", "-").lower()


def facts(claim: Claim) -> str:
    """Return number, seeds, size and condition of a claim in one line."""
    found = []
    if claim.value is not None and claim.interval and None not in claim.interval:
        number = estimate((claim.value, *claim.interval), digits=2 if abs(claim.value) < 10 else 0)
        found.append(f"{claim.measure}: {number}")
    elif claim.value is not None:
        found.append(f"{claim.measure}: {readable(claim.value)}")
    if claim.num_trainings:
        found.append(f"{claim.num_trainings:,} trainings")
    if claim.num_seeds:
        found.append(f"{claim.num_seeds} seed{'s' * (claim.num_seeds > 1)}")
    if claim.size:
        kinds = {"theory": "formula, simulation or count", "live": "measured live only"}
        found.append(kinds.get(claim.size, f"size `{claim.size}`"))
    if claim.verdict is None:
        found.append("not decided again by this build")
    return "; ".join([*found, claim.condition] if claim.condition else found)


def row(claim: Claim, names: dict[str, str]) -> str:
    """Return a claim as the page *Claims* shows it, in Markdown.

    Args:
        claim: the claim.
        names: titles of the pages.
    """
    known = claim.verdict or claim.registered
    sides = {True: ", holds at this size", False: ", does not hold at this size"}
    side = sides.get(claim.holds, "") if known == "toy" else ""
    links = [f'<a href="../{claim.cell}">cell that decides it</a>'] if claim.cell else []
    links += [f'<a href="../{name}.html">{html.escape(names[name])}</a>' for name in claim.pages if name != "README"]
    links += ["README"] if "README" in claim.pages else []
    follows = ", ".join(f'<a href="#{other}">{other}</a> ({wanted})' for other, wanted in claim.follows.items())
    about = {
        "Measured": facts(claim),
        "Follows from": follows,
        "Would be falsified by": claim.falsified_by,
        "Preregistered": claim.history,
        "Results": ", ".join(f"`{source}`" for source in claim.sources),
        "See": ", ".join(links),
    }
    lines = [f"{label}\n: {text}" for label, text in about.items() if text]
    classes = " ".join(["claim-row", f"verdict-{known}", *map(css_class, places(claim))])
    head = f'<span class="claim-verdict {known}" id="{claim.id}">{VERDICTS[known]} {known}{side}</span> `{claim.id}`'
    return f":::{{div}} {classes}\n" + "\n\n".join([head, claim.statement, *lines]) + "\n:::"


SCRIPT = """<script>
const form = document.querySelector('.claims-filter'), selects = [...form.querySelectorAll('select')];
form.hidden = false;
form.addEventListener('change', () => {
  for (const row of document.querySelectorAll('.claim-row'))
    row.hidden = !selects.every(({ value }) => !value || row.classList.contains(value));
});
</script>"""


def page(text: str, claims: dict[str, Claim], root: Path = ROOT) -> str:
    """Return the page *Claims*: its text, with the filter and the rows in place of ``<!-- claims -->``."""
    names = titles(root)
    order = {name: place for place, name in enumerate(names)}
    ordered = sorted(claims.values(), key=lambda claim: min(map(order.__getitem__, places(claim)), default=-1))
    counts = {name: sum((claim.verdict or claim.registered) == name for claim in ordered) for name in VERDICTS}
    used = sorted({name for claim in ordered for name in places(claim)}, key=order.__getitem__)
    options = {
        "Verdict": {f"verdict-{name}": f"{name} ({count})" for name, count in counts.items()},
        "Page": {css_class(name): names[name] for name in used},
    }
    selects = ""
    for label, choices in options.items():
        items = "".join(f'<option value="{value}">{html.escape(one)}</option>' for value, one in choices.items())
        selects += f'<label>{label} <select><option value="">all</option>{items}</select></label> '
    filters = f'```{{raw}} html\n<form class="claims-filter" hidden>{selects}</form>\n```'
    waiting = ", ".join(f"{{doc}}`../notebooks/{name}`" for name in PENDING)
    pending = [f"The takeaways of these chapters are not registered yet: {waiting}."] if PENDING else []
    rows = [row(claim, names) for claim in ordered]
    return text.replace("<!-- claims -->", "\n\n".join([*pending, filters, *rows, f"```{{raw}} html\n{SCRIPT}\n```"]))


def place(stage: Path, claims: dict[str, Claim], root: Path = ROOT) -> None:
    """Write the page *Claims* into the staging folder, and replace the marks of the other pages there."""
    for path in (stage / "book").glob("*.md"):
        text = path.read_text("utf8")
        changed = page(text, claims, root) if path.stem == "claims" else with_badges(text, claims)
        if changed != text:
            path.write_text(changed, "utf8")


def write(path: Path, claims: dict[str, Claim]) -> None:
    """Write ``claims.json``."""
    path.write_text(
        json.dumps([asdict(claim) for claim in claims.values()], indent=1, ensure_ascii=False) + "\n", "utf8"
    )
