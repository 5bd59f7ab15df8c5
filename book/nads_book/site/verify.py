"""Decide every claim again from stored results: ``python -m nads_book.site.verify`` (``make verify``).

Each claim is a function of `nads_book.pages`. The chapters of `pages.UNPORTED` still record theirs while they run: they
are executed at `smoke`, unless the tests have done so. A claim that nothing decides, one that flips, and a results file
that is missing are problems, which are printed.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from filelock import FileLock

from nads_book import claims, pages
from nads_book.evidence import Evidence
from nads_book.publishing import NO_VARIANTS
from nads_book.site import execution

# Chapters whose figures the tests want with all variants: `verify` and the tests share their executed chapters.
WITH_VARIANTS = ("04_pooling_theory", "08_flip")


def by_functions() -> tuple[dict[str, Evidence], list[str]]:
    """Return the evidence of all functions, and what went wrong in those that gave none."""
    found, problems = {}, []
    for key, decide in pages.decisions().items():
        try:
            found[key] = decide()
        except Exception as error:  # whatever it is, the other claims are decided
            problems.append(f"{key} cannot be decided ({type(error).__name__}): {error}")
    return found, problems


def by_chapters(names: Iterable[str], root: Path) -> dict[str, Evidence]:
    """Execute chapters at `smoke`, where they are due, and return what they recorded."""
    folder = root / "_build" / "test"  # where the tests execute the chapters
    folder.mkdir(parents=True, exist_ok=True)
    book = [execution.Chapter(f"notebooks/{name}", folder, "smoke", root) for name in names]
    for chapter in book:
        if chapter.source.stem not in WITH_VARIANTS:
            chapter.options.append(NO_VARIANTS)
    due = sorted((one for one in book if one.changed), key=execution.Chapter.effort, reverse=True)
    with contextlib.ExitStack() as locks:
        for chapter in due:
            locks.enter_context(FileLock(folder / f"{chapter.source.stem}.lock"))
        parallel = [one for one in due if not one.alone]
        execution.execute_together(parallel, execution.side_by_side("smoke"), _print_line)
        execution.execute_together([one for one in due if one.alone], 1, _print_line)
    return claims.recorded(chapter.target for chapter in book)[0]


def verify(root: Path = execution.ROOT) -> int:
    """Decide every claim, print what is wrong, and return the status."""
    began = time.perf_counter()
    claims.check_pages(root)
    found, problems = by_functions()
    functions = time.perf_counter() - began
    print(f"{len(found)} claims were decided by functions in {functions:.0f} s", flush=True)
    register = claims.decide(by_chapters(pages.UNPORTED, root) | found, root=root)
    problems += claims.problems(register.values(), root)
    for claim in register.values():
        if claim.history.startswith("not checked"):
            print(f"  {claim.id}: preregistration {claim.history}")
    for problem in problems:
        print(f"  {problem}", file=sys.stderr)
    verdicts = [claim.verdict for claim in register.values()]
    counts = ", ".join(f"{verdicts.count(name)} {name}" for name in claims.VERDICTS)
    seconds = time.perf_counter() - began
    print(f"{len(register)} claims: {counts}; {len(problems)} problems, after {seconds:.0f} s")
    return 1 if problems else 0


def _print_line(chapter: execution.Chapter, seconds: float) -> None:
    print(f"  {chapter.name:<36} executed in {seconds:.1f} s", flush=True)


if __name__ == "__main__":
    try:
        sys.exit(verify())
    except (claims.ClaimError, execution.BuildError) as error:
        sys.exit(f"error: {error}")
