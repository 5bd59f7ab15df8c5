"""Which of two things is older in the history of git: a preregistration, or what it is about."""

from __future__ import annotations

import functools
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


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
        return (
            None,
            "not checked: the git history of this clone is shallow (`git fetch --unshallow`)",
        )

    def commit(name: str) -> str | None:
        if (root / name).exists() or "/" in name:
            commits = git("log", "--follow", "--format=%H", "--", name)[1].splitlines()
            return commits[-1] if commits else None
        status, found = git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
        return None if status else found

    one, other = commit(first), commit(then)
    for name, found in ((first, one), (then, other)):
        if not found:
            return False, f"{name} is not in the git history"
    older = one != other and git("merge-base", "--is-ancestor", one, other)[0] == 0

    def day(found: str) -> str:
        return f"{found[:7]}, {git('log', '-1', '--format=%cs', found)[1]}"

    how = "is older than" if older else "is **not** older than"
    return older, f"{first} ({day(str(one))}) {how} {then} ({day(str(other))})"
