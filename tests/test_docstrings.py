"""A lint of docstrings: every entry of `Args` is a noun phrase that stands alone."""

import ast
import re
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FILES = [
    path
    for folder in ("nads_core", "book/nads_book")
    for path in sorted((ROOT / folder).rglob("*.py"))
]
NAMES = [path.relative_to(ROOT).as_posix() for path in FILES]
# First words of entries that continue the name of the argument instead of describing it ("of the job").
# "whether" is not among them: it introduces a condition that stands alone.
FRAGMENTS = set(
    "about after also among and as at because before below beside between but by during from for how if in inside "
    "instead into it its like of on once only or over per so such than that their then these they this those to under "
    "until what when where which while who whose why with within without "
    "are be called comes decides draw drawn fixes given gives go goes has have is keep keeps leaves look make makes "
    "measure measured multiplies needs put returns run says see seen show shown shows skip "
    "store stop take takes tell tells turns use used uses wanted was were".split()
)


def entries(docstring):
    """Yield (argument, text) of every entry under `Args`."""
    section = re.search(r"^Args:\n((?:[ \t]+.*\n?|\n)+)", docstring, re.MULTILINE)
    if section:
        body = textwrap.dedent(section.group(1))
        for entry in re.split(r"\n(?=\S)", body.strip()):
            name, _, text = entry.partition(":")
            yield name.strip(), " ".join(text.split())


def fragments(source):
    """Yield the entries of a module that do not stand alone, as (object, argument, text)."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            for name, text in entries(ast.get_docstring(node) or ""):
                first = re.match(r"[\w-]*", text).group()
                if first in FRAGMENTS or not text:
                    yield node.name, name, text


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_entries_are_noun_phrases(path):
    dangling = list(fragments(path.read_text("utf8")))
    listing = "\n".join(f"{owner}({argument}): {text}" for owner, argument, text in dangling)
    assert not dangling, f"start these entries with a noun:\n{listing}"


def test_the_lint_can_fail():
    source = '''
def one(job, size, progress, seed, network, shape):
    """Run a job.

    Args:
        job: of the queue.
        size: how many networks to draw,
            of all that there are.
        progress: show a bar.
        seed: seed of all weights.
        network: whether a network is given.
        shape: (B, D).

    Returns:
        Of no importance.
    """
'''
    assert [argument for _, argument, _ in fragments(source)] == ["job", "size", "progress"]
    assert dict(entries(ast.get_docstring(ast.parse(source).body[0])))["size"] == (
        "how many networks to draw, of all that there are."
    )
