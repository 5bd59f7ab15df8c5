"""The book: sources in order, and builds that fail when they should."""

import ast
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import nads_book
import numpy as np
import pytest
from conftest import NEEDS_BOOK
from draw_maps import draw_maps
from filelock import FileLock

import nads_core

build = pytest.importorskip("nads_book.site.build", reason=NEEDS_BOOK)
execution = pytest.importorskip("nads_book.site.execution", reason=NEEDS_BOOK)
pages = build.pages
jupytext = pytest.importorskip("jupytext", reason=NEEDS_BOOK)
nbformat, Image = build.nbformat, pages.Image

ROOT = Path(__file__).resolve().parent.parent
TEXTS = sorted((ROOT / "book" / "chapters").glob("*.md"))
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
CHAPTERS = build.chapters()


def stem(path):
    return Path(path).stem


# The sources


def test_every_chapter_is_a_text_a_notebook_and_a_line_of_the_toc():
    assert (
        [stem(path) for path in TEXTS]
        == [stem(path) for path in NOTEBOOKS]
        == sorted(map(stem, CHAPTERS))
    )
    first_page = (ROOT / "book" / "intro.md").read_text("utf8")
    assert [name for name in map(stem, CHAPTERS) if f"notebooks/{name}`" not in first_page] == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=stem)
def test_text_and_notebook_are_in_sync(path):
    text = ROOT / "book" / "chapters" / f"{path.stem}.md"
    config = jupytext.config.load_jupytext_config(str(text))
    from_text, from_notebook = (
        [
            (cell.cell_type, cell.source, cell.metadata)
            for cell in jupytext.read(source, config=config).cells
        ]
        for source in (text, path)
    )
    assert from_text == from_notebook, "run `make sync`, and commit both"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=stem)
def test_notebook_has_no_outputs(path):
    for cell in nbformat.read(path, as_version=4).cells:
        assert set(cell.metadata) <= {"tags", "mystnb"}
        assert ": null" not in json.dumps(cell.metadata), "a comma in text without quotes ends it"
        assert not cell.get("outputs") and not cell.get("execution_count"), (
            f"clear the outputs of {path.name}"
        )


@pytest.mark.parametrize("path", NOTEBOOKS, ids=stem)
def test_the_first_cell_that_follows_the_parameters_checks_all_of_them(path):
    cells = [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    (place,) = (i for i, cell in enumerate(cells) if "parameters" in cell.metadata.get("tags", []))
    names = {statement.targets[0].id for statement in ast.parse(cells[place].source).body}
    calls = (
        node for node in ast.walk(ast.parse(cells[place + 1].source)) if isinstance(node, ast.Call)
    )
    checks = ("check_parameters", "Trial")  # the poison's run checks them itself
    (check,) = (call for call in calls if getattr(call.func, "attr", "") in checks)
    given = {keyword.arg: keyword.value for keyword in check.keywords}
    assert all(
        isinstance(given[name], ast.Name) and given[name].id == name for name in names - {"preset"}
    )
    assert "dataset" in given and "preset" in given or not names & {"dataset", "data_root"}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=stem)
def test_chapter_takes_a_preset(path):
    cells = nbformat.read(path, as_version=4).cells
    parameters = [cell.source for cell in cells if "parameters" in cell.metadata.get("tags", [])]
    assert len(parameters) == 1 and re.search(r'^preset = "auto"', parameters[0], re.MULTILINE)
    chosen = re.compile(r"preset = nb\.choose_preset\(preset|\.Trial\(\s*preset=preset")
    assert sum(len(chosen.findall(cell.source)) for cell in cells) == 1


@pytest.mark.parametrize("path", NOTEBOOKS, ids=stem)
def test_what_a_chapter_looks_up_in_lazy_packages_is_one_of_their_names(path):
    """A submodule is there only where its package names it, or something has imported it by chance."""
    cells = nbformat.read(path, as_version=4).cells
    code = "\n".join(cell.source for cell in cells if cell.cell_type == "code")
    for alias, package in (("nb", nads_book), ("figures", nads_book.figures)):
        looked_up = set(re.findall(rf"(?<![\w.]){alias}\.(\w+)", code))
        assert looked_up <= set(package.__all__), f"{alias}: {looked_up - set(package.__all__)}"


def test_api_page_names_everything_public():
    page = (ROOT / "book" / "api.md").read_text("utf8")
    missing = [name for name in nads_core.__all__ if not re.search(rf"\b{name}\b", page)]
    assert not missing, f"add to book/api.md: {missing}"


# The build itself, on a book of small chapters


# What `nads_book.site.stage` does for a book without explorers, whose data take it seconds.
STAGE = """
import pathlib, shutil, sys
folder, root = map(pathlib.Path, sys.argv[1:])
shutil.copytree(root / "book", folder / "stage" / "book", dirs_exist_ok=True)
for name in ("_config.yml", "_toc.yml"):
    shutil.copy(root / name, folder / "stage" / name)
"""


@pytest.fixture
def small_book(tmp_path, monkeypatch):
    """Return a function that writes a chapter of a book; it returns the root of that book."""
    scripts = tmp_path / "scripts"
    scripts.mkdir()
    (scripts / "stage.py").write_text(STAGE)
    monkeypatch.setattr(build, "STAGE", (scripts / "stage.py",))
    monkeypatch.delenv("NADS_RESULTS", raising=False)
    paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    monkeypatch.setenv("PYTHONPATH", paths)  # the library, and not the book's folder of that name
    for folder in ("book", "book/results", "notebooks", "nads_core"):
        (tmp_path / folder).mkdir()
    for name in ("_config.yml", "requirements.txt", "book/references.bib"):
        shutil.copy(ROOT / name, tmp_path / name)
    for name in ("_static", "_templates"):
        shutil.copytree(ROOT / "book" / name, tmp_path / "book" / name)
    (tmp_path / "book" / "intro.md").write_text("# Introduction\n")

    def write(*sources, text="# Small", name="small", tags=()):
        kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
        cells = [
            nbformat.v4.new_markdown_cell(text),
            *map(nbformat.v4.new_code_cell, ['preset = "demo"', *sources]),
        ]
        cells[1].metadata["tags"] = ["parameters", *tags]
        notebook = nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})
        nbformat.write(notebook, tmp_path / "notebooks" / f"{name}.ipynb")
        names = sorted(path.stem for path in (tmp_path / "notebooks").glob("*.ipynb"))
        toc = "".join(f"- file: notebooks/{name}\n" for name in names)
        (tmp_path / "_toc.yml").write_text(f"format: jb-book\nroot: book/intro\nchapters:\n{toc}")
        return tmp_path

    return write


class Finished:
    """A process that ends after some looks at it, with what papermill would have written."""

    returncode = 0

    def __init__(self, looks=1):
        self.looks, self.signals = looks, []

    def poll(self):
        self.looks -= 1
        return None if self.looks > 0 else self.returncode

    def wait(self, timeout=None):
        return self.returncode

    def send_signal(self, number):
        self.looks = 0
        self.signals.append(number)


@pytest.fixture
def papermill(monkeypatch):
    """Replace papermill by a copy of its notebook; give the names and variables of starts, and the processes.

    The text of its first cell may hold "looks: 3", the number of looks after which it has ended, "fails", and "loads"
    with the name of a results file.
    """
    started, processes = [], {}

    def start(command, root, output, **variables):
        if command[1] != "nads_book.site.execute":
            return Finished()
        target, record, preset = Path(command[2]), Path(command[3]), command[4]
        notebook = nbformat.read(target, as_version=4)
        text = notebook.cells[0].source
        started.append((target.parent.name.split(".")[1], variables))
        notebook.metadata["papermill"] = {"parameters": {"preset": preset}}
        for cell in notebook.cells:
            cell.metadata.setdefault("papermill", {"duration": 0.1})
        nbformat.write(notebook, target)
        output.write_text("")
        loaded = re.findall(r"loads (\S+)", text)
        record.write_text("".join(f"file {root / 'book' / 'results' / name}\n" for name in loaded))
        process = Finished(int((re.search(r"looks: (\d+)", text) or [0, 1])[1]))
        process.returncode = int("fails" in text)
        processes[started[-1][0]] = process
        return process

    for module in (build, execution):
        monkeypatch.setattr(module, "start", start)
    return started, processes


def test_a_failing_cell_fails_the_build_and_is_shown(small_book):
    root = small_book("before = 1", "before / 0  # the culprit", "after = 2")
    with pytest.raises(build.BuildError) as failure:
        build.build(root / "_build", "smoke", root)
    message = str(failure.value)
    for expected in (
        "notebooks/small.ipynb",
        "preset 'smoke'",
        "before / 0  # the culprit",
        "ZeroDivisionError",
    ):
        assert expected in message
    assert "\x1b" not in message
    assert not (root / "_build" / "executed" / "smoke" / "small.ipynb").exists()
    assert not (root / "_build" / "html").exists()


def test_only_what_changed_is_executed_again(small_book, monkeypatch):
    monkeypatch.setenv("NADS_DATA", "somewhere")
    root = small_book("print(preset)")
    assert execution.execute("notebooks/small", root / "_build", "smoke", root) > 0
    assert execution.execute("notebooks/small", root / "_build", "smoke", root) is None
    executed = (root / "_build" / "executed" / "smoke" / "small.ipynb").read_text()
    assert "smoke" in nbformat.reads(executed, as_version=4).cells[-1].outputs[0].text

    small_book("print(preset + '!')")
    assert execution.execute("notebooks/small", root / "_build", "smoke", root) > 0


def test_what_a_page_cannot_show_fails_the_build_and_leaves_the_last_book(small_book):
    root = small_book(
        text="# Small\n\nSee {numref}`fig-missing`.\n\nWith $x^2$, but $\\nosuch{x}$."
    )
    last = root / "_build" / "html" / "index.html"
    last.parent.mkdir(parents=True)
    last.write_text("the last book")
    with pytest.raises(build.BuildError, match="fig-missing") as failed:
        build.build(root / "_build", "smoke", root)
    message = str(failed.value)
    assert re.search(r"notebooks/small.ipynb:\d+: .*nosuch\{x\}", message) and "x^2" not in message
    assert last.read_text() == "the last book"


def test_a_cell_that_stalled_until_the_timeout_is_not_taken_for_a_success():
    cell = nbformat.v4.new_code_cell("wait()", metadata={"papermill": {"duration": 96.0}})
    execution.check(nbformat.v4.new_notebook(cells=[cell]), timeout=110)
    with pytest.raises(build.BuildError, match=r"wait\(\)(.|\n)*took 96 s"):
        execution.check(nbformat.v4.new_notebook(cells=[cell]), timeout=100)


def test_a_chapter_that_prints_too_much_fails_the_build():
    cells = [nbformat.v4.new_code_cell(f"print({number})") for number in range(3)]
    for cell in cells:
        cell.outputs = [nbformat.v4.new_output("stream", text="x" * 2_000_000)]
    execution.check(nbformat.v4.new_notebook(cells=cells[:2]), timeout=100)
    with pytest.raises(build.BuildError, match=r"print\(2\)(.|\n)*6.0 MB"):
        execution.check(nbformat.v4.new_notebook(cells=cells), timeout=100)
    picture = nbformat.v4.new_output("display_data", {"application/x-dark-png": "x" * 6_000_000})
    cells[0].outputs = [picture]  # a variant of a figure
    execution.check(nbformat.v4.new_notebook(cells=cells[:2]), timeout=100)


def test_a_notebook_of_another_run_is_not_kept(small_book, papermill, monkeypatch):
    root = small_book(name="a")
    chapter = execution.Chapter("notebooks/a", root / "_build", "smoke", root)
    chapter.start(1)
    notebook = nbformat.read(chapter.run / "notebook.ipynb", as_version=4)
    notebook.metadata["run"] = ".a.other"
    nbformat.write(notebook, chapter.run / "notebook.ipynb")
    with pytest.raises(build.BuildError, match="another run"):
        chapter.finish()
    assert not chapter.target.exists()


def test_a_chapter_without_its_notebook_is_named(small_book):
    root = small_book("1")
    (root / "notebooks" / "small.ipynb").unlink()
    with pytest.raises(build.BuildError, match="notebooks/small"):
        build.build(root / "_build", "smoke", root)


# Chapters side by side


def until(condition, what):
    """Wait for what happens on any machine, be it late."""
    deadline = time.monotonic() + 240
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


WAIT = """
import os, pathlib, time
def wait_for(name):
    while not pathlib.Path(name).exists():
        time.sleep(0.05)
pathlib.Path(f"{me}.pid").write_text(str(os.getpid()))
"""


def test_chapters_share_the_cores_and_one_that_measures_runs_alone(
    small_book, papermill, monkeypatch, capsys
):
    monkeypatch.setattr(execution, "num_cores", lambda: 4)
    for name in "ab":
        small_book(text="# Long, looks: 3", name=name)
    root = small_book(text="# Short, looks: 1", name="0", tags=["alone"])
    monkeypatch.setattr(build, "render", lambda *_: root)
    build.build(root / "_build", "smoke", root, jobs=2)
    names, variables = zip(*papermill[0], strict=True)
    assert set(names[:2]) == {"a", "b"} and names[2] == "0"
    for shared in variables[:2]:
        assert (shared["OMP_NUM_THREADS"], shared["LOKY_MAX_CPU_COUNT"]) == ("2", "2")
    assert "OMP_NUM_THREADS" not in variables[2]
    chapters = {
        name: execution.Chapter(f"notebooks/{name}", root / "_build", "smoke", root)
        for name in "0ab"
    }
    assert chapters["a"].record["machine"].startswith("2 of 4 cores (")
    assert chapters["0"].record["machine"].startswith("4 cores (")
    assert re.findall(r"notebooks/(\w) +executed in", capsys.readouterr().out)[2] == "0"
    build.build(root / "_build", "smoke", root)
    assert capsys.readouterr().out.count("unchanged") == 3 and len(papermill[0]) == 3


def test_the_chapter_that_took_longest_begins(small_book):
    for name, seconds in (("a", 3), ("b", 30), ("c", None), ("d", 20), ("e", None)):
        root = small_book("# long" * 10 * (name == "e"), name=name)
        chapter = execution.Chapter(f"notebooks/{name}", root / "_build", "smoke", root)
        if seconds:
            chapter.target.parent.mkdir(parents=True, exist_ok=True)
            chapter.target.write_text(f'{{"metadata": {{"papermill": {{"duration": {seconds}}}}}}}')
    chapters = [
        execution.Chapter(f"notebooks/{name}", root / "_build", "smoke", root) for name in "abcde"
    ]
    order = sorted(chapters, key=execution.Chapter.effort, reverse=True)
    assert (
        "".join(chapter.name[-1] for chapter in order) == "ecbda"
    )  # those that nothing is known of go first


def test_a_chapter_that_fails_stops_the_others(small_book, papermill):
    small_book(text="# Long, looks: 1000", name="a")
    root = small_book(text="# This one fails, looks: 2", name="b")
    with pytest.raises(build.BuildError, match=r"notebooks/b.ipynb.*status 1"):
        build.build(root / "_build", "smoke", root, jobs=2)
    assert {name: process.signals for name, process in papermill[1].items()} == {
        "a": [signal.SIGINT],
        "b": [],
    }


def started_build(root):
    """Start a build of two chapters as a program of its own, and return it once the second one waits."""
    code = (
        f"from nads_book.site import build; build.ROOT = build.Path({str(root)!r}); "
        "build.STAGE = (build.ROOT / 'scripts' / 'stage.py',); "
        "raise SystemExit(build.main())"
    )
    command = [
        sys.executable,
        "-c",
        code,
        "--preset",
        "smoke",
        "--jobs",
        "2",
        "--folder",
        str(root / "_build"),
    ]
    paths = os.pathsep.join([str(ROOT / "book"), str(ROOT), os.environ.get("PYTHONPATH", "")])
    process = subprocess.Popen(
        command, env=os.environ | {"PYTHONPATH": paths}, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # what a shell starts with & ignores Ctrl-C
    )  # fmt: skip
    finished = root / "_build" / "executed" / "smoke" / "a.ipynb"
    until(
        lambda: (finished.exists() and (root / "b.pid").exists()) or process.poll() is not None,
        "never so far",
    )
    return process


@pytest.mark.slow
@pytest.mark.parametrize("way", [signal.SIGINT, signal.SIGTERM], ids=lambda way: way.name)
def test_an_interrupt_keeps_finished_chapters_and_leaves_nothing_running(small_book, way):
    small_book("1", name="a")
    root = small_book(f"me = 'b'{WAIT}wait_for('never')", name="b")
    process = started_build(root)
    process.send_signal(way)
    output, _ = process.communicate(timeout=240)
    assert process.returncode == 130 and "are kept" in output, output
    assert (
        root / "_build" / "executed" / "smoke" / "a.ipynb"
    ).exists() and "Traceback" not in output
    kernel = int((root / "b.pid").read_text())
    until(lambda: not alive(kernel), "the kernel of the chapter is still there")


@pytest.mark.slow
def test_a_killed_build_leaves_no_kernel_that_writes_into_the_next_one(small_book):
    small_book("1", name="a")
    root = small_book(f"me = 'b'{WAIT}wait_for('never')\nprint('old')", name="b")
    process = started_build(root)
    process.kill()
    process.communicate(timeout=240)
    kernel = int((root / "b.pid").read_text())
    small_book("print('new')", name="b")
    assert execution.execute("notebooks/b", root / "_build", "smoke", root) > 0
    until(lambda: not alive(kernel), "the kernel of the killed build is still there")
    text = (root / "_build" / "executed" / "smoke" / "b.ipynb").read_text()
    assert "new" in text and "old" not in text


# Stored results


STORED = ROOT / "book" / "results"


@pytest.mark.stored
def test_two_builds_in_one_folder_do_not_mix(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["build.py", "--folder", str(tmp_path)])
    monkeypatch.setattr(build, "build", lambda *args, **options: pytest.fail("it began"))
    with FileLock(tmp_path / "build.lock"):
        assert build.main() == 1
    assert str(tmp_path) in capsys.readouterr().err


def test_a_results_file_that_cannot_be_shown_fails_the_build_at_once(small_book):
    root = small_book("raise SystemExit('a chapter was executed')")
    folder = root / "book" / "results"
    whole = (STORED / "fig6-lenet.json").read_text()
    known = json.loads(whole)["settings"]["nads"]["fingerprint"]
    altered = ("0" if known[5] != "0" else "1").join((known[:5], known[6:]))
    cases = {
        "fig1-lenet.json": "{",
        "fig6-lenet.json": whole.replace(known, altered),  # one character of the fingerprint
        "fig9-lenet.json": whole,  # no job has this name
        "fig6-vgg11.json": whole,  # the name of another
        "fig6-lenet.laptop.json": whole,  # another size
        "notes.txt": "remember",
    }
    for name, content in cases.items():
        (folder / name).write_text(content)
        with pytest.raises(build.BuildError, match=re.escape(name)):
            build.build(root / "_build", "smoke", root)
        (folder / name).unlink()
    (folder / "fig6-lenet.json").write_text(whole)
    for work in (
        ".fig6-lenet.json.lock",
        "fig1-lenet.demo.json",
        "fig1-lenet.1of2.json",
    ):  # somebody's, as they are
        (folder / work).write_text("")
    assert build.stored_results(folder) == {"fig6-lenet.json"}


def test_a_results_file_that_no_chapter_loads_fails_the_build(small_book, papermill, monkeypatch):
    small_book(text="# It loads fig1-logreg.json", name="a")
    root = small_book(name="b")
    for name in ("fig2-lenet.json", "fig1-logreg.json"):
        shutil.copy(STORED / name, root / "book" / "results" / name)
    with pytest.raises(build.BuildError, match=r"fig2-lenet\.json"):
        build.build(root / "_build", "smoke", root)
    small_book(text="# It loads fig2-lenet.json", name="b")
    monkeypatch.setattr(build, "render", lambda *_: "rendered")
    assert build.build(root / "_build", "smoke", root) == "rendered"


def test_results_of_the_book_are_those_that_every_reader_has(tmp_path):
    names = {"a.json", "b.json"}
    for name in names:
        (tmp_path / name).write_text("")
    assert build.of_the_book(names, tmp_path) == names  # without git this is unknown
    for command in (["init"], ["add", "a.json"]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True, capture_output=True)
    assert build.of_the_book(names, tmp_path) == {"a.json"}


# Statements of a page about itself


def test_parameters_that_the_page_tells_anyway_are_hidden():
    parameters = nbformat.v4.new_code_cell('preset = "auto"  # or smoke\nseed = 0')
    for source, hidden in (
        ('preset = "demo"\nseed = 0', True),
        ('preset = "demo"\nseed = 1', False),
    ):
        injected = nbformat.v4.new_code_cell(
            f"# Parameters\n{source}\n", metadata={"tags": ["injected-parameters"]}
        )
        pages.hide_repeated_parameters(nbformat.v4.new_notebook(cells=[parameters, injected]))
        assert ("remove-cell" in injected.metadata["tags"]) == hidden


@pytest.mark.parametrize("source, caption, label", [
    ("x = 1", "Accuracy by NAD. One dot per network.", "In Python: Accuracy by NAD"),
    ("# Train twice\nx = 1", "", "In Python: Train twice"), ("x = 1", "", "Set-up in Python"),
    ("x = 1", "word " * 30, "In Python: " + " ".join(["word"] * 14)),
])  # fmt: skip
def test_folds_are_named_after_what_is_in_them(source, caption, label):
    cell = nbformat.v4.new_code_cell(source, metadata={"tags": ["hide-input"]})
    if caption:
        cell.metadata["mystnb"] = {"figure": {"caption": caption}}
    shown = nbformat.v4.new_code_cell("y = 1")
    pages.name_folds(nbformat.v4.new_notebook(cells=[cell, shown]))
    assert cell.metadata["mystnb"]["code_prompt_show"] == label
    assert "mystnb" not in shown.metadata


def test_byline_says_what_was_recorded():
    record = {"duration": 41.4, "end_time": "2026-03-01T10:00:00", "parameters": {"preset": "demo"}}
    notebook = nbformat.v4.new_notebook(
        metadata={"papermill": record, "machine": execution.machine(1)}
    )
    assert execution.provenance.cpu_name() in execution.machine(1)
    for fact in ("41 s", execution.machine(1), "`demo`", "2026-03-01"):
        assert fact in pages.byline(notebook)
    record["duration"] = 200
    notebook.metadata["papermill"] = record
    assert "3 minutes" in pages.byline(notebook)
    notebook.cells = [nbformat.v4.new_markdown_cell("# Title\n\nText.")]
    source = pages.with_byline(notebook).cells[0].source
    assert source.startswith("# Title\n\n:::{div} byline\n") and source.endswith(":::\n\nText.")


def test_what_a_chapter_must_say_first_is_lifted_under_its_title():
    record = {"duration": 41.4, "end_time": "2026-03-01T10:00:00", "parameters": {"preset": "demo"}}
    note = nbformat.v4.new_code_cell(
        "display(Markdown(note))", metadata={"tags": ["remove-input", "under-title"]}
    )
    note.outputs = [nbformat.v4.new_output("display_data", {"text/markdown": "**No photos.**"})]
    cells = [
        nbformat.v4.new_markdown_cell("# Title\n\nText."),
        nbformat.v4.new_code_cell("x = 1"),
        note,
    ]
    notebook = nbformat.v4.new_notebook(
        cells=cells, metadata={"papermill": record, "machine": "2 CPU cores"}
    )
    shown = pages.with_byline(notebook).cells
    assert shown[0].source.endswith(":::\n\n**No photos.**\n\nText.")
    assert [cell.source for cell in shown[1:]] == ["x = 1"]


def test_the_picture_of_the_readme_is_what_the_library_draws(tmp_path):
    """If not: ``python tools/draw_maps.py`` draws it again."""
    draw_maps(tmp_path / "maps.png")
    pictures = (
        Image.open(path).convert("RGB")
        for path in (ROOT / "book" / "_static" / "maps.png", tmp_path / "maps.png")
    )
    shown, drawn = (np.asarray(picture, np.int16) for picture in pictures)
    assert (
        shown.shape == drawn.shape and np.abs(shown - drawn).mean() < 2
    )  # of 255 levels: fonts may differ
    assert "](book/_static/maps.png)" in (ROOT / "README.md").read_text("utf8")


def test_details_are_folded_up_to_the_next_heading_or_their_end():
    texts = [
        "## One\n\nSeen.\n\n<!-- details: How & why -->\n\nFolded.\n\n```bash\n# no heading\n```",
        "CODE",
        "Folded too.\n\n### Two\n\nSeen.",
        "<!-- details: More -->\n\nFolded.\n\n<!-- end of details -->\nSeen.",
        "<!-- details: Last -->",
    ]
    make = {True: nbformat.v4.new_code_cell, False: nbformat.v4.new_markdown_cell}
    notebook = nbformat.v4.new_notebook(cells=[make[text == "CODE"](text) for text in texts])
    page = "\n".join(cell.source for cell in pages.with_details(notebook).cells)
    assert page.count("<details") == page.count("</details>") == 3
    for summary in ("How &amp; why", "More", "Last"):
        assert f"\n<summary>{summary}</summary>\n" in page
    folded = "".join(re.findall("<details.*?</details>", page, re.DOTALL))
    assert (
        folded.count("Folded") == 3
        and "CODE" in folded
        and "Seen" not in folded
        and "## Two" not in folded
    )
    inside = nbformat.v4.new_markdown_cell("<!-- details: a -->\n\n<!-- details: b -->")
    nested = nbformat.v4.new_notebook(cells=[inside])
    with pytest.raises(ValueError, match="within others"):
        pages.with_details(nested)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=stem)
def test_the_takeaway_stands_in_a_box_of_the_page_alone(path):
    notebook = nbformat.read(path, as_version=4)
    assert not any(":::{admonition}" in cell.source for cell in notebook.cells)
    page = "\n".join(cell.source for cell in pages.with_takeaway(notebook).cells)
    assert page.count(":::{admonition} Takeaway\n:class: takeaway\n") == 1
    assert "<!-- takeaway -->" not in page


def test_pictures_of_few_colours_shrink_and_photos_do_not(tmp_path):
    rng = np.random.default_rng(0)
    chart, photo = (
        np.full((200, 300, 3), 255, np.uint8),
        rng.integers(0, 256, (200, 300, 3), np.uint8),
    )
    chart[50:60, 20:280] = (31, 119, 180)
    for name, pixels in (("chart", chart), ("photo", photo)):
        Image.fromarray(pixels).convert("RGBA").save(tmp_path / f"{name}.png", compress_level=1)
        before = (tmp_path / f"{name}.png").stat().st_size
        pages.shrink(tmp_path / f"{name}.png")
        assert np.array_equal(
            np.asarray(Image.open(tmp_path / f"{name}.png").convert("RGB")), pixels
        )
        assert ((tmp_path / f"{name}.png").stat().st_size < before) == (name == "chart")
