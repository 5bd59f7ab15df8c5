"""What the scripts share: where trees lie, the environment of tests, and the pause that tools/QUIET asks for."""
import json, os, time
from pathlib import Path

MUT = Path("MUTATION")
PYTHON = ".venv/bin/python"
TREES = {"old": MUT / "tree/old", "new": MUT / "tree/new"}
RES = MUT / "results"
PACKAGES = ("directions", "networks", "data", "theory", "training")
# Files that execute chapters, build the book or a release, copy the repository, or drive a browser.
EXCLUDED = {
    "test_chapters.py", "test_chapter_parts.py", "test_pages.py", "test_situations.py", "test_contributing.py", "test_packaging.py",
    "test_publishing.py", "test_colab.py", "test_book.py", "test_explorer.py", "test_explorer_addresses.py",
    "test_explorer_guess_and_atlas.py", "test_explorer_own_files.py", "test_explorer_views.py",
}


def quiet():
    """Wait while something is being timed."""
    while os.path.exists("MUTATION/QUIET"):
        time.sleep(20)


def environment(tree):
    """Give the environment of a test run in a tree."""
    env = {**os.environ}
    env.update(
        PYTHONPATH=f"{tree}:{tree}/book", NADS_DATA="DATA/cifar10", NADS_REFERENCE="SHARED/reference",
        OMP_WAIT_POLICY="PASSIVE", PYTHONDONTWRITEBYTECODE="1", TRITON_INTERPRET="1", NADS_DOWNLOAD="0",
    )
    return env


def test_files(version):
    """List the files and folders that are collected, relative to the tree."""
    tree = TREES[version]
    names = sorted(p.relative_to(tree).as_posix() for p in (tree / "tests").glob("test_*.py") if p.name not in EXCLUDED)
    doctests = ["nads_core"] + (["book/nads_book"] if (tree / "book/nads_book").is_dir() else [])
    return names + doctests


def atomic(path, value):
    tmp = Path(f"{path}.tmp")
    tmp.write_text(json.dumps(value))
    tmp.replace(path)

# Files that test much besides the five packages come last; where time for coverage runs out, they are chosen by module.
LAST = ("how_to", "command_line", "frequency_maps", "published", "doctor", "memory", "distributed", "experiments", "figures", "provenance",
        "prediction", "pending", "queue", "report", "damage", "docstrings", "moved", "notes", "waves", "law", "statistics", "kernels")
