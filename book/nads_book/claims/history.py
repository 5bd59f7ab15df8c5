"""Which of two things is older in the history of git: a preregistration, or what it is about."""

from __future__ import annotations

import functools
import subprocess
import tomllib
from pathlib import Path
from typing import Any

from nads_book.claims.register import ROOT

# Tables of a registration by which its results are judged.
RULES = ("criteria", "expected", "predicted", "effects")


def first_in_history(first: str, then: str, root: Path = ROOT) -> tuple[bool | None, str]:
    """Return whether one thing is older than another in the history of git, and how that is known.

    Args:
        first: commit, or file relative to the repository. A file counts from the commit that added
            it, and a registration (.toml) from the last one that changed its `RULES`.
        then: commit, or file, of what must be younger; it counts from the commit that added it.
        root: folder of the repository.

    Returns:
        True, False, or None where there is no history that decides; and a sentence.
    """

    @functools.cache
    def git(*arguments: str) -> str | None:
        """Return what git says, or None where it fails."""
        done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True)
        return None if done.returncode else done.stdout.strip()

    try:
        checkout = git("rev-parse", "--show-toplevel", "--is-shallow-repository")
    except FileNotFoundError:  # git is not installed
        checkout = None
    if checkout != f"{root.resolve()}\nfalse":
        return None, "not checked: this folder has no complete git history"

    def versions(name: str) -> list[list[str]]:
        """Return the commits of a file, the first one first, each with the file's name there."""
        log = git("log", "--follow", "--no-merges", "--format=@%H", "--name-only", "--", name)
        return [one.split() for one in reversed((log or "").split("@")[1:])]

    def commit(name: str) -> str | None:
        if (root / name).exists() or "/" in name:
            return next((commit_hash for commit_hash, _ in versions(name)), None)
        return git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")

    def last_rules(name: str) -> str | None:
        """Return the last commit that changed how results are judged."""
        last = rules = None
        for commit_hash, path in versions(name):
            before, rules = rules, _rules(git("show", f"{commit_hash}:{path}") or "")
            last = last if rules == before else commit_hash
        return last if rules == _rules((root / name).read_text("utf8")) else None

    added, other = commit(first), commit(then)
    one = last_rules(first) if added and first.endswith(".toml") else added
    for name, found in ((first, one), (then, other)):
        if not found:
            return False, f"{name} is not in the git history as it is now"
    assert one and other
    older = one != other and git("merge-base", "--is-ancestor", one, other) is not None

    def day(found: str) -> str:
        return f"{found[:7]}, {git('log', '-1', '--format=%cs', found)}"

    how = "is older than" if older else "is **not** older than"
    changed = "" if one == added else f"; its rules were changed after {day(str(added))}"
    return older, f"{first} ({day(one)}{changed}) {how} {then} ({day(other)})"


def _rules(text: str) -> list[Any]:
    """Return the tables of a registration by which results are judged."""
    content = tomllib.loads(text)
    return [content.get(name) for name in RULES]
