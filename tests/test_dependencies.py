"""Which chapters are due after a change: those that read it, also in a child process."""

import pytest
from nads_book.site import dependencies, execution
from test_book import small_book  # noqa: F401

SCORES = """
import scoring
from loky import get_reusable_executor
import subprocess, sys
assert scoring.score("book/results/a.json") == 1
print(open("book/preregistered/a.toml").read())
with get_reusable_executor(max_workers=1) as workers:
    workers.submit(scoring.score, "book/results/by_worker.json").result()
program = "import other; open('book/results/by_program.json')"
subprocess.run([sys.executable, "-c", program], check=True)
"""
LOOKS = """
import contextlib, os, sys
with contextlib.suppress(FileNotFoundError):
    open("book/results/missing.json")
print(os.listdir("book/results/studies"))
open("book/results/written.json", "w").write("0")
import late
"""
MODULES = {
    "scoring": 'def score(path):\n    """Score."""\n    return len(open(path).read())\n',
    "other": "VALUE = 1\n",
    "late": "VALUE = 1\n",
    "unused": "VALUE = 1\n",
}
RESULTS = (
    "a.json",
    "by_worker.json",
    "by_program.json",
    "unread.json",
    "studies/one.json",
    "studies/two.json",
)
AFTER_A_CHANGE = {  # what is changed, and how: who has to be executed again
    ("book/results/a.json", "2"): {"scores"},
    ("book/results/by_worker.json", "2"): {"scores"},
    ("book/results/by_program.json", "2"): {"scores"},
    ("book/results/missing.json", "now it is there"): {"looks"},
    ("book/results/studies/three.json", "another name in a folder"): {"looks"},
    ("book/results/studies/one.json", "only its name was read"): set(),
    ("book/results/unread.json", "2"): set(),
    ("book/results/written.json", "2"): set(),
    ("book/preregistered/a.toml", "limit = 2"): {"scores"},
    ("scoring.py", MODULES["scoring"].replace("len(", "2 * len(")): {"scores"},
    ("scoring.py", MODULES["scoring"].replace("Score", "A score")): set(),
    ("other.py", "VALUE = 2\n"): {"scores"},
    ("late.py", "VALUE = 2\n"): {"looks"},
    ("late.py", None): {"looks"},
    ("unused.py", "VALUE = 2\n"): set(),
    ("requirements.txt", "torch"): {"scores", "looks"},
    ("notebooks/looks.ipynb", "{}"): {"looks"},
}


@pytest.fixture
def book(small_book):  # noqa: F811
    """Return the root of a book of two executed chapters, and the names of those that are due."""
    root = small_book(SCORES, name="scores")
    for folder in ("preregistered", "results/studies"):
        (root / "book" / folder).mkdir()
    for name in RESULTS:
        (root / "book" / "results" / name).write_text("1")
    for name, source in MODULES.items():
        (root / f"{name}.py").write_text(source)
    (root / "book" / "preregistered" / "a.toml").write_text("limit = 1")
    small_book(LOOKS, name="looks")

    def chapters(preset="smoke"):
        return [
            execution.Chapter(f"notebooks/{name}", root / "_build", preset, root)
            for name in ("scores", "looks")
        ]

    execution.execute_together(chapters(), 2)
    return root, lambda *preset: {one.source.stem for one in chapters(*preset) if one.changed}


@pytest.mark.slow
def test_a_change_makes_due_who_has_read_what_changed(book, monkeypatch):
    root, due = book
    assert due() == set()
    for (name, content), expected in AFTER_A_CHANGE.items():
        path = root / name
        before = path.read_bytes() if path.exists() else None
        path.unlink(missing_ok=True)
        if content is not None:
            path.write_text(content)
        assert due() == expected, name
        path.unlink(missing_ok=True)
        if before is not None:
            path.write_bytes(before)
    assert due() == set() and due("demo") == {"scores", "looks"}
    monkeypatch.setenv("NADS_DATA", "elsewhere")
    assert due() == {"scores", "looks"}


def test_what_changes_while_a_chapter_runs_makes_it_due(tmp_path):
    path = tmp_path / "a.json"
    path.write_text("1")
    began = path.stat().st_mtime
    now = dependencies.state(("a.json", "b.json"), "smoke", tmp_path)
    for seconds, due in ((began + 1, []), (began - 1, ["a.json"])):
        before = dependencies.state(now, "smoke", tmp_path, seconds)
        assert [name for name in before if before[name] != now[name]] == due
