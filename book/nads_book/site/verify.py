"""Decide claims again from stored results: ``python -m nads_book.site.verify`` (``make verify``)
decides all of them, ``python -m nads_book.site.verify NAME...`` those that it names.

Each claim is a function of `nads_book.pages`; no chapter is executed. A claim that nothing decides,
one that flips, and a results file that is missing are problems, which are printed.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path

from nads_book import claims, pages
from nads_book.claims.register import ROOT
from nads_core.runtime.threads import one_thread


def decided(
    names: Sequence[str] = (), cells: Mapping[str, str] | None = None, root: Path = ROOT
) -> tuple[dict[str, claims.Claim], list[str]]:
    """Return registered claims, decided, and what is wrong with them.

    Args:
        names: which claims; all by default.
        cells: page and anchor of the cell that shows a claim, by id.
        root: root of the repository.

    Raises:
        ClaimError: for a name that the register lacks.
    """
    known, found, problems = claims.load(root), {}, []
    names = names or [*known]
    for name in names:
        if name not in known:
            raise claims.ClaimError(
                f"{name!r} is no claim; close: {get_close_matches(name, known)}"
            )
    wanted = {*names, *(other for name in names for other in known[name].follows)}
    with one_thread():  # the operations are small: beside another program two threads only wait
        for key, decide in pages.decisions().items():
            if key not in wanted:
                continue
            try:
                found[key] = decide()
            except Exception as error:  # whatever it is, the other claims are decided
                problems.append(f"{key} cannot be decided ({type(error).__name__}): {error}")
    register = claims.decide(found, cells, root)
    for key in found:
        register[key].function = pages.name_of(key)
    chosen = {name: register[name] for name in names}
    return chosen, problems + claims.problems(chosen.values(), root)


def verify(names: Sequence[str] = ()) -> int:
    """Decide claims, print what is wrong, and return the status."""
    began = time.perf_counter()
    claims.check_pages()
    chosen, problems = decided(names)
    for claim in chosen.values():
        if claim.history.startswith("not checked"):
            print(f"  {claim.id}: preregistration {claim.history}")
    for problem in problems:
        print(f"  {problem}", file=sys.stderr)
    verdicts = [claim.verdict for claim in chosen.values()]
    counts = ", ".join(f"{verdicts.count(name)} {name}" for name in claims.SIGNS)
    seconds = time.perf_counter() - began
    print(f"claims: {len(chosen)} ({counts}); problems: {len(problems)}; after {seconds:.0f} s")
    return bool(problems)


if __name__ == "__main__":
    try:
        sys.exit(verify(sys.argv[1:]))
    except claims.ClaimError as error:
        sys.exit(f"error: {error}")
