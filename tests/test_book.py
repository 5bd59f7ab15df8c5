"""The book: sources in order, and builds that fail when they should."""

import re
import shutil
from pathlib import Path

import build
import jupytext
import nbformat
import numpy as np
import pytest
from jupytext.config import load_jupytext_config
from PIL import Image

import nads_core

ROOT = Path(__file__).resolve().parent.parent
TEXTS = sorted((ROOT / "book" / "chapters").glob("*.md"))
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
CHAPTERS = build.chapters()


def stem(path):
    return Path(path).stem


# The sources


def test_every_chapter_is_a_text_a_notebook_and_a_line_of_the_toc():
    assert [stem(path) for path in TEXTS] == [stem(path) for path in NOTEBOOKS] == sorted(map(stem, CHAPTERS))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=stem)
def test_text_and_notebook_are_in_sync(path):
    text = ROOT / "book" / "chapters" / f"{path.stem}.md"
    config = load_jupytext_config(str(text))
    from_text, from_notebook = (
        [(cell.cell_type, cell.source, cell.metadata) for cell in jupytext.read(source, config=config).cells]
        for source in (text, path)
    )
    assert from_text == from_notebook, "run `make sync`, and commit both"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=stem)
def test_notebook_has_no_outputs(path):
    for cell in nbformat.read(path, as_version=4).cells:
        assert set(cell.metadata) <= {"tags", "mystnb"}
        assert not cell.get("outputs") and not cell.get("execution_count"), f"clear the outputs of {path.name}"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=stem)
def test_chapter_takes_a_preset_and_ends_in_a_takeaway(path):
    cells = nbformat.read(path, as_version=4).cells
    parameters = [cell.source for cell in cells if "parameters" in cell.metadata.get("tags", [])]
    assert len(parameters) == 1 and re.search(r'^preset = "auto"', parameters[0], re.MULTILINE)
    assert sum(cell.source.count("preset = nc.choose_preset(preset") for cell in cells) == 1
    assert any(":class: takeaway" in cell.source for cell in cells)


def test_api_page_names_everything_public():
    page = (ROOT / "book" / "api.md").read_text("utf8")
    missing = [name for name in nads_core.__all__ if not re.search(rf"\b{name}\b", page)]
    assert not missing, f"add to book/api.md: {missing}"


# The build itself, on a book of one small chapter


@pytest.fixture
def small_book(tmp_path):
    """Return a function that writes the only chapter of a book; it returns the root of that book."""
    for folder in ("book", "notebooks", "nads_core"):
        (tmp_path / folder).mkdir()
    for name in ("_config.yml", "requirements.txt", "book/references.bib"):
        shutil.copy(ROOT / name, tmp_path / name)
    for name in ("_static", "_templates"):
        shutil.copytree(ROOT / "book" / name, tmp_path / "book" / name)
    (tmp_path / "_toc.yml").write_text("format: jb-book\nroot: book/intro\nchapters:\n- file: notebooks/small\n")
    (tmp_path / "book" / "intro.md").write_text("# Introduction\n")

    def write(*sources, text="# Small"):
        kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
        cells = [nbformat.v4.new_markdown_cell(text), *map(nbformat.v4.new_code_cell, ['preset = "demo"', *sources])]
        cells[1].metadata["tags"] = ["parameters"]
        nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel}), path)
        return tmp_path

    path = tmp_path / "notebooks" / "small.ipynb"
    return write


def test_a_failing_cell_fails_the_build_and_is_shown(small_book):
    root = small_book("before = 1", "before / 0  # the culprit", "after = 2")
    with pytest.raises(build.BuildError) as failure:
        build.build(root / "_build", "smoke", root)
    message = str(failure.value)
    for expected in ("notebooks/small.ipynb", "preset 'smoke'", "before / 0  # the culprit", "ZeroDivisionError"):
        assert expected in message
    assert "\x1b" not in message
    assert not (root / "_build" / "executed" / "smoke" / "small.ipynb").exists()
    assert not (root / "_build" / "html").exists()


def test_only_what_changed_is_executed_again(small_book, monkeypatch):
    monkeypatch.setenv("NADS_DATA", "somewhere")
    root = small_book("print(preset)")
    assert build.execute("notebooks/small", root / "_build", "smoke", root) > 0
    assert build.execute("notebooks/small", root / "_build", "smoke", root) is None
    executed = (root / "_build" / "executed" / "smoke" / "small.ipynb").read_text()
    assert "smoke" in nbformat.reads(executed, as_version=4).cells[-1].outputs[0].text

    small_book("print(preset + '!')")
    assert build.execute("notebooks/small", root / "_build", "smoke", root) > 0
    before = build.fingerprint(root / "notebooks" / "small.ipynb", "smoke", root)
    (root / "nads_core" / "module.py").write_text("x = 1\n")
    changed_library = build.fingerprint(root / "notebooks" / "small.ipynb", "smoke", root)
    monkeypatch.setenv("NADS_DATA", "elsewhere")
    changed_data = build.fingerprint(root / "notebooks" / "small.ipynb", "smoke", root)
    changed_preset = build.fingerprint(root / "notebooks" / "small.ipynb", "demo", root)
    assert len({before, changed_library, changed_data, changed_preset}) == 4


def test_a_broken_reference_fails_the_build_and_leaves_the_last_book(small_book):
    root = small_book(text="# Small\n\nSee {numref}`fig-missing`.")
    last = root / "_build" / "html" / "index.html"
    last.parent.mkdir(parents=True)
    last.write_text("the last book")
    with pytest.raises(build.BuildError, match="fig-missing"):
        build.build(root / "_build", "smoke", root)
    assert last.read_text() == "the last book"


def test_a_cell_that_stalled_until_the_timeout_is_not_taken_for_a_success():
    cell = nbformat.v4.new_code_cell("wait()", metadata={"papermill": {"duration": 96.0}})
    build.check(nbformat.v4.new_notebook(cells=[cell]), timeout=110)
    with pytest.raises(build.BuildError, match=r"wait\(\)(.|\n)*took 96 s"):
        build.check(nbformat.v4.new_notebook(cells=[cell]), timeout=100)


def test_a_chapter_without_its_notebook_is_named(small_book):
    root = small_book("1")
    (root / "notebooks" / "small.ipynb").unlink()
    with pytest.raises(build.BuildError, match="notebooks/small"):
        build.build(root / "_build", "smoke", root)


def test_parameters_that_the_page_tells_anyway_are_hidden():
    parameters = nbformat.v4.new_code_cell('preset = "auto"  # or smoke\nseed = 0')
    for source, hidden in (('preset = "demo"\nseed = 0', True), ('preset = "demo"\nseed = 1', False)):
        injected = nbformat.v4.new_code_cell(f"# Parameters\n{source}\n", metadata={"tags": ["injected-parameters"]})
        build.hide_repeated_parameters(nbformat.v4.new_notebook(cells=[parameters, injected]))
        assert ("remove-cell" in injected.metadata["tags"]) == hidden


def test_byline_says_what_was_recorded():
    record = {"duration": 41.4, "end_time": "2026-03-01T10:00:00", "parameters": {"preset": "demo"}}
    notebook = nbformat.v4.new_notebook(metadata={"papermill": record, "machine": "2 CPU cores"})
    expected = "This page was computed in {} on 2 CPU cores, at preset `demo`, on 2026-03-01."
    assert build.byline(notebook) == expected.format("41 s")
    record["duration"] = 200
    notebook.metadata["papermill"] = record
    assert build.byline(notebook) == expected.format("3 minutes")
    notebook.cells = [nbformat.v4.new_markdown_cell("# Title\n\nText.")]
    source = build.with_byline(notebook).cells[0].source
    assert source.startswith("# Title\n\n:::{div} byline\nThis page") and source.endswith(":::\n\nText.")


def test_what_a_chapter_must_say_first_is_lifted_under_its_title():
    record = {"duration": 41.4, "end_time": "2026-03-01T10:00:00", "parameters": {"preset": "demo"}}
    note = nbformat.v4.new_code_cell("display(Markdown(note))", metadata={"tags": ["remove-input", "under-title"]})
    note.outputs = [nbformat.v4.new_output("display_data", {"text/markdown": "**No photos.**"})]
    cells = [nbformat.v4.new_markdown_cell("# Title\n\nText."), nbformat.v4.new_code_cell("x = 1"), note]
    notebook = nbformat.v4.new_notebook(cells=cells, metadata={"papermill": record, "machine": "2 CPU cores"})
    shown = build.with_byline(notebook).cells
    assert shown[0].source.endswith(":::\n\n**No photos.**\n\nText.")
    assert [cell.source for cell in shown[1:]] == ["x = 1"]


def test_pictures_of_few_colours_shrink_and_photos_do_not(tmp_path):
    rng = np.random.default_rng(0)
    chart, photo = np.full((200, 300, 3), 255, np.uint8), rng.integers(0, 256, (200, 300, 3), np.uint8)
    chart[50:60, 20:280] = (31, 119, 180)
    for name, pixels in (("chart", chart), ("photo", photo)):
        Image.fromarray(pixels).convert("RGBA").save(tmp_path / f"{name}.png", compress_level=1)
        before = (tmp_path / f"{name}.png").stat().st_size
        build.shrink(tmp_path / f"{name}.png")
        assert np.array_equal(np.asarray(Image.open(tmp_path / f"{name}.png").convert("RGB")), pixels)
        assert ((tmp_path / f"{name}.png").stat().st_size < before) == (name == "chart")
