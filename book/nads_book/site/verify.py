"""Decide every claim again from stored results: ``python -m nads_book.site.verify`` (``make verify``).

It executes the chapters at `smoke`, unless the tests have done so, and prints the claims that flip.
"""

from __future__ import annotations

import contextlib
import sys
import time
from pathlib import Path

from filelock import FileLock

from nads_book import claims
from nads_book.publishing import NO_VARIANTS
from nads_book.site import build, execution


def verify(root: Path = execution.ROOT) -> int:
    """Decide every claim again, print what flips and what could not be checked, and return the status."""
    began, folder = time.perf_counter(), root / "_build" / "test"  # where the tests execute the chapters
    claims.check_pages(root)
    folder.mkdir(parents=True, exist_ok=True)
    book = [execution.Chapter(name, folder, "smoke", root) for name in build.chapters(root)]
    for chapter in book:
        if Path(chapter.name).name not in claims.WITH_VARIANTS:
            chapter.options.append(NO_VARIANTS)
    changed = sorted((chapter for chapter in book if chapter.changed), key=execution.Chapter.effort, reverse=True)
    print(f"Verifying the claims: {len(changed)} of {len(book)} chapters have to be executed", flush=True)
    with contextlib.ExitStack() as locks:
        for chapter in changed:
            locks.enter_context(FileLock(folder / f"{Path(chapter.name).name}.lock"))
        done = lambda chapter, seconds: print(f"  {chapter.name:<36} executed in {seconds:.1f} s", flush=True)  # noqa: E731
        execution.execute_together([one for one in changed if not one.alone], execution.side_by_side("smoke"), done)
        execution.execute_together([one for one in changed if one.alone], 1, done)
    register = claims.collect((chapter.target for chapter in book), root)
    found = claims.problems(register.values(), root)
    for claim in register.values():
        if claim.history.startswith("not checked"):
            print(f"  {claim.id}: preregistration {claim.history}")
    for problem in found:
        print(f"  {problem}", file=sys.stderr)
    counts = ", ".join(f"{sum(one.verdict == name for one in register.values())} {name}" for name in claims.VERDICTS)
    print(f"{len(register)} claims: {counts}; {len(found)} problems, after {time.perf_counter() - began:.0f} s")
    return 1 if found else 0


if __name__ == "__main__":
    try:
        sys.exit(verify())
    except (claims.ClaimError, execution.BuildError) as error:
        sys.exit(f"error: {error}")
