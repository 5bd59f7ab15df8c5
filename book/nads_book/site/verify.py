"""Decide every claim again from stored results: ``python -m nads_book.site.verify`` (``make
verify``).

Each claim is a function of `nads_book.pages`; no chapter is executed. A claim that nothing decides,
one that flips, and a results file that is missing are problems, which are printed.
"""

from __future__ import annotations

import sys
import time

from nads_book import claims, pages
from nads_book.experiments.evidence import Evidence
from nads_core.runtime.threads import one_thread


def by_functions() -> tuple[dict[str, Evidence], list[str]]:
    """Return the evidence of all functions, and what went wrong in those that gave none."""
    found, problems = {}, []
    with one_thread():  # the operations are small: beside another program two threads only wait
        for key, decide in pages.decisions().items():
            try:
                found[key] = decide()
            except Exception as error:  # whatever it is, the other claims are decided
                problems.append(f"{key} cannot be decided ({type(error).__name__}): {error}")
    return found, problems


def verify() -> int:
    """Decide every claim, print what is wrong, and return the status."""
    began = time.perf_counter()
    claims.check_pages()
    found, problems = by_functions()
    register = claims.decide(found)
    problems += claims.problems(register.values())
    for claim in register.values():
        if claim.history.startswith("not checked"):
            print(f"  {claim.id}: preregistration {claim.history}")
    for problem in problems:
        print(f"  {problem}", file=sys.stderr)
    verdicts = [claim.verdict for claim in register.values()]
    counts = ", ".join(f"{verdicts.count(name)} {name}" for name in claims.SIGNS)
    seconds = time.perf_counter() - began
    print(f"{len(register)} claims: {counts}; {len(problems)} problems, after {seconds:.0f} s")
    return 1 if problems else 0


if __name__ == "__main__":
    try:
        sys.exit(verify())
    except claims.ClaimError as error:
        sys.exit(f"error: {error}")
