"""The book: sources in order, and builds that fail when they should."""

import ast
import contextlib
import inspect
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import nads_book
import nbformat
import numpy as np
import pytest
from conftest import ROOT
from draw_maps import draw_maps
from filelock import FileLock
from nads_book.site import build, execution, pages, sync
from PIL import Image

import nads_core

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
CHAPTERS = build.chapters()


# The sources


def test_every_chapter_is_a_text_a_notebook_and_a_line_of_the_toc():
    texts = [path.stem for path in sorted((ROOT / "book" / "chapters").glob("*.md"))]
    assert (
        texts == [path.stem for path in NOTEBOOKS] == sorted(Path(name).name for name in CHAPTERS)
    )


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_its_text_has_no_outputs_and_checks_its_parameters(path):
    notebook = nbformat.read(path, as_version=4)
    from_text = sync.notebook_of(ROOT / "book" / "chapters" / f"{path.stem}.md")
    assert notebook.cells == from_text.cells, "run `make sync`, and commit both"
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in cells)
    (place,) = (i for i, cell in enumerate(cells) if "parameters" in cell.metadata.get("tags", []))
    assert "remove-cell" not in cells[place].metadata["tags"], "later cells need them"
    assert max(len(line) for cell in cells for line in cell.source.splitlines()) <= 88
    names = {statement.targets[0].id for statement in ast.parse(cells[place].source).body}
    calls = [n for n in ast.walk(ast.parse(cells[place + 1].source)) if isinstance(n, ast.Call)]
    checks = ("check_parameters", "Trial")  # the poison's run checks them itself
    (check,) = (call for call in calls if getattr(call.func, "attr", "") in checks)
    given = {keyword.arg for keyword in check.keywords}
    assert names - {"preset"} <= given
    assert {"dataset", "preset"} <= given or not names & {"dataset", "data_root"}
    page = "\n".join(cell.source for cell in pages.with_takeaway(notebook).cells)
    assert page.count(":::{admonition} Takeaway\n:class: takeaway\n") == 1


def test_sync_takes_the_newer_file_and_writes_captions_into_the_notebook_alone(
    tmp_path, monkeypatch
):
    text, notebook = tmp_path / "chapter.md", tmp_path / "chapter.ipynb"
    monkeypatch.setattr(sync, "CHAPTERS", tmp_path)
    monkeypatch.setattr(sync, "NOTEBOOKS", tmp_path)
    options = ':mystnb: {figure: {caption: "Why so red?", name: fig-red}}'
    written = f"# Title\n\n```{{code-cell}} ipython3\n{options}\nplot()\n```\n"
    text.write_text(written)
    sync.main()
    cells = nbformat.read(notebook, as_version=4).cells
    assert [cell.cell_type for cell in cells] == ["markdown", "code", "code", "markdown"]
    assert "Why so red?" in cells[3].source and written in text.read_text()
    for path, before, after in ((notebook, "plot()", "draw()"), (text, "draw()", "show()")):
        path.write_text(path.read_text().replace(before, after))
        os.utime(path, (time.time() + 60,) * 2)
        sync.main()
        assert written.replace("plot()", after) in text.read_text()
        assert nbformat.read(notebook, as_version=4).cells[2].source == after


def ours(node):
    """Return what a node of a cell's syntax tree names in our packages; None if it names nothing
    there.
    """
    root = node
    while isinstance(root, ast.Attribute):
        root = root.value
    named = isinstance(root, ast.Name) and root.id in ("nb", "nc") and root is not node
    packages = {"nb": nads_book, "nc": nads_core}
    return eval(ast.unparse(node), packages) if named else None  # noqa: S307


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_cells_call_what_there_is_with_arguments_that_it_takes(path):
    """The slow tests execute them."""
    cells = nbformat.read(path, as_version=4).cells
    sources = [cell.source for cell in cells if cell.cell_type == "code"]
    called = 0
    for node in ast.walk(ast.parse("\n".join(sources[1:]))):
        if isinstance(node, ast.Attribute):
            ours(node)
        if isinstance(node, ast.Call) and (function := ours(node.func)) is not None:
            names = {keyword.arg for keyword in node.keywords}
            # The decorator of figures takes a badge.
            keywords = dict.fromkeys(names - {None, "badge"})
            inspect.signature(function).bind_partial(*[None] * len(node.args), **keywords)
            called += 1
    assert called > 3


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_trained_network_predicts_in_eval_mode_and_in_batches(path):
    """And, by `nc.predicted_classes`, on whatever device it is."""
    cells = nbformat.read(path, as_version=4).cells
    tree = ast.parse("\n".join([c.source for c in cells if c.cell_type == "code"][1:]))
    nodes = [node for node in ast.walk(tree) if isinstance(node, (ast.Assign, ast.Call))]
    trained = set()
    for node in sorted(nodes, key=lambda node: node.lineno):
        if isinstance(node, ast.Assign):
            trained.difference_update(map(ast.unparse, node.targets))
            continue
        assert ast.unparse(node.func) not in trained, ast.unparse(node)
        if ours(node.func) is nads_core.train_network:
            trained.add(ast.unparse(node.args[0]))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_calls_in_the_text_run_as_printed(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lenet = nads_core.load_nads("lenet")
    own = {
        "02_nads_in_one_page": {"mine": lenet, "other": lenet},
        "13_explorer": {"mine": {"max": lenet}},
    }
    names = {"nb": nads_book, "nc": nads_core} | own.get(path.stem, {})
    texts = [c.source for c in nbformat.read(path, as_version=4).cells if c.cell_type != "code"]
    for code in re.findall(r"`([^`\n]+\))`", "\n".join(texts)):
        with contextlib.suppress(SyntaxError):
            if isinstance(ast.parse(code, mode="eval").body, ast.Call):
                eval(code, names)  # noqa: S307


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


def test_a_failing_cell_fails_the_build_and_is_shown(small_book):
    root = small_book("before = 1", "before / 0  # the culprit", "after = 2")
    with pytest.raises(build.BuildError) as failure:
        build.build(root / "_build", "smoke", root)
    for expected in ("small.ipynb", "preset 'smoke'", "before / 0  # the culprit", "ZeroDivision"):
        assert expected in str(failure.value)
    assert "\x1b" not in str(failure.value)
    assert not (root / "_build" / "executed" / "smoke" / "small.ipynb").exists()
    assert not (root / "_build" / "html").exists()


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


def test_a_cell_that_stalled_or_printed_too_much_fails_the_build():
    cells = [nbformat.v4.new_code_cell(f"print({number})") for number in range(3)]
    for cell in cells:
        cell.outputs = [nbformat.v4.new_output("stream", text="x" * 2_000_000)]
    execution.check(nbformat.v4.new_notebook(cells=cells[:2]), timeout=100)
    with pytest.raises(build.BuildError, match=r"print\(2\)(.|\n)*6.0 MB"):
        execution.check(nbformat.v4.new_notebook(cells=cells), timeout=100)
    variant = {"application/x-dark-png": "x" * 6_000_000}  # of a figure
    cells[0].outputs = [nbformat.v4.new_output("display_data", variant)]
    cells[0].metadata["papermill"] = {"duration": 96.0}
    execution.check(nbformat.v4.new_notebook(cells=cells[:2]), timeout=110)
    with pytest.raises(build.BuildError, match=r"print\(0\)(.|\n)*took 96 s"):
        execution.check(nbformat.v4.new_notebook(cells=cells[:2]), timeout=100)


def test_a_notebook_of_another_run_or_none_is_not_kept(small_book):
    root = small_book(name="a")
    chapter = execution.Chapter("notebooks/a", root / "_build", "smoke", root)
    chapter.start(1)
    chapter.process.wait()
    notebook = nbformat.read(chapter.run / "notebook.ipynb", as_version=4)
    notebook.metadata["run"] = ".a.other"
    nbformat.write(notebook, chapter.run / "notebook.ipynb")
    for status, message in ((1, "status 1"), (0, "another run")):
        chapter.process.returncode = status
        with pytest.raises(build.BuildError, match=message):
            chapter.finish()
    assert not chapter.target.exists()
    (root / "notebooks" / "a.ipynb").unlink()
    with pytest.raises(build.BuildError, match="notebooks/a"):
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
pathlib.Path("b.pid").write_text(str(os.getpid()))
time.sleep(600)
"""


def test_chapters_share_the_cores_and_one_that_measures_runs_alone(small_book, monkeypatch, capsys):
    monkeypatch.setattr(execution, "num_cores", lambda: 4)
    for name in (names := ("OMP_NUM_THREADS", "LOKY_MAX_CPU_COUNT")):
        monkeypatch.delenv(name, raising=False)
    limits = f"import os; print(*map(os.environ.get, {names}))"
    small_book(limits, name="a")
    small_book(limits, name="b")
    root = small_book(limits, name="0", tags=["alone"])
    monkeypatch.setattr(build, "render", lambda *_: root)
    build.build(root / "_build", "smoke", root, jobs=2)
    assert re.findall(r"notebooks/(\w) +executed in", capsys.readouterr().out)[2] == "0"
    for name, cores in (("a", "2 of 4 cores ("), ("b", "2 of 4 cores ("), ("0", "4 cores (")):
        notebook = nbformat.read(root / f"_build/executed/smoke/{name}.ipynb", as_version=4)
        assert notebook.metadata["machine"].startswith(cores)
        assert notebook.cells[-1].outputs[0].text == ("None None\n" if name == "0" else "2 2\n")
    build.build(root / "_build", "smoke", root)
    assert capsys.readouterr().out.count("unchanged") == 3


def test_a_chapter_that_fails_stops_the_others(small_book):
    small_book(WAIT, name="b")
    late = "import pathlib, time\nwhile not pathlib.Path('b.pid').exists():\n    time.sleep(0.1)"
    root = small_book(f"{late}\n1 / 0", name="a")
    with pytest.raises(build.BuildError, match="(?s)notebooks/a.ipynb.*ZeroDivision"):
        build.build(root / "_build", "smoke", root, jobs=2)
    until(lambda: not alive(int((root / "b.pid").read_text())), "the other one still runs")


def started_build(root):
    """Start a build of two chapters as a program; return it once the second one waits."""
    code = f"""
import signal
from nads_book.site import build
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored after &
build.ROOT = build.Path({str(root)!r})
build.STAGE = (build.ROOT / "scripts" / "stage.py",)
raise SystemExit(build.main())
"""
    options = ["--preset", "smoke", "--jobs", "2", "--folder", str(root / "_build")]
    process = subprocess.Popen(
        [sys.executable, "-c", code, *options],
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    waited_for = root / "_build" / "executed" / "smoke" / "a.ipynb", root / "b.pid"
    until(
        lambda: all(path.exists() for path in waited_for) or process.poll() is not None,
        "never so far",
    )
    return process


@pytest.mark.slow
@pytest.mark.parametrize("way", ["SIGINT", "SIGTERM", "SIGKILL"])
def test_an_interrupt_keeps_finished_chapters_and_leaves_no_kernel(small_book, way):
    """A kernel of a killed build would write into the next one."""
    small_book("1", name="a")
    root = small_book(f"{WAIT}print('old')", name="b")
    process = started_build(root)
    process.send_signal(getattr(signal, way))
    output, _ = process.communicate(timeout=240)
    executed = root / "_build" / "executed" / "smoke"
    assert (executed / "a.ipynb").exists() and "Traceback" not in output
    assert way == "SIGKILL" or process.returncode == 130 and "are kept" in output, output
    kernel = int((root / "b.pid").read_text())
    small_book("print('new')", name="b")
    assert execution.execute("notebooks/b", root / "_build", "smoke", root) > 0
    until(lambda: not alive(kernel), "the kernel of the chapter is still there")
    assert "old" not in (executed / "b.ipynb").read_text()


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
    cases = {
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
    # Somebody's work, as it is
    for work in (".fig6-lenet.json.lock", "fig1-lenet.demo.json", "fig1-lenet.1of2.json"):
        (folder / work).write_text("")
    assert build.stored_results(folder) == {"fig6-lenet.json"}


def test_a_results_file_that_no_chapter_loads_fails_the_build(small_book, monkeypatch):
    root = small_book("open('book/results/fig1-logreg.json').close()")
    for name in ("fig2-lenet.json", "fig1-logreg.json"):
        shutil.copy(STORED / name, root / "book" / "results" / name)
    with pytest.raises(build.BuildError, match=r"loads fig2-lenet\.json of"):
        build.build(root / "_build", "smoke", root)
    (root / "book" / "results" / "fig2-lenet.json").unlink()
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


# Pages


def test_a_page_begins_with_its_byline_and_what_must_be_said_first():
    record = {"duration": 41.4, "end_time": "2026-03-01T10:00:00", "parameters": {"preset": "demo"}}
    note = nbformat.v4.new_code_cell("shown", metadata={"tags": ["remove-input", "under-title"]})
    note.outputs = [nbformat.v4.new_output("display_data", {"text/markdown": "**No photos.**"})]
    cells = [nbformat.v4.new_markdown_cell("# Title\n\nText."), note]
    metadata = {"papermill": record, "machine": execution.machine(1)}
    notebook = nbformat.v4.new_notebook(cells=cells, metadata=metadata)
    (first,) = pages.with_byline(notebook).cells
    assert first.source.startswith("# Title\n")
    assert first.source.endswith("\n\n**No photos.**\n\nText.")
    for fact in ("41 s", execution.provenance.cpu_name(), "`demo`", "2026-03-01"):
        assert fact in first.source


def test_the_picture_of_the_readme_is_what_the_library_draws(tmp_path):
    """If not, `python tools/draw_maps.py` draws it again."""
    draw_maps(tmp_path / "maps.png")
    shown, drawn = (
        np.asarray(Image.open(folder / "maps.png").convert("RGB"), np.int16)
        for folder in (ROOT / "book" / "_static", tmp_path)
    )
    # Of 255 levels: fonts may differ.
    assert shown.shape == drawn.shape and np.abs(shown - drawn).mean() < 2


@pytest.mark.parametrize(
    ("source", "hidden"),
    [
        ('nb.conclude("dark-lines")\nnb.pages.flip.plot_costs()', True),
        ('page.plot_maps("lenet")', True),
        ("carrier = 60\nnb.pages.poison.plot_own_number(carrier, lost)", False),
        ("nads = nc.compute_nads(network)", False),
    ],
)
def test_a_page_hides_calls_that_teach_nothing(source, hidden):
    cells = [nbformat.v4.new_markdown_cell("page.plot()"), nbformat.v4.new_code_cell(source)]
    notebook = nbformat.v4.new_notebook(cells=cells)
    pages.hide_calls(notebook)
    assert ("remove-input" in cells[1].metadata.get("tags", [])) is hidden
    assert "tags" not in cells[0].metadata


def test_details_are_folded_up_to_the_next_heading_or_their_end():
    cells = [
        nbformat.v4.new_markdown_cell(
            "## One\n\nSeen.\n\n<!-- details: How & why -->\n\nFolded.\n\n"
            "```bash\n# no heading\n```"
        ),
        nbformat.v4.new_code_cell("CODE"),
        nbformat.v4.new_markdown_cell(
            "Folded too.\n\n### Two\n\nSeen.\n\n<!-- details: More -->\n\nFolded.\n\n"
            "<!-- end of details -->\nSeen.\n\n<!-- details: Last -->"
        ),
    ]
    notebook = nbformat.v4.new_notebook(cells=cells)
    page = "\n".join(cell.source for cell in pages.with_details(notebook).cells)
    assert page.count("<details") == page.count("</details>") == 3
    for summary in ("How &amp; why", "More", "Last"):
        assert f"\n<summary>{summary}</summary>\n" in page
    folded = "".join(re.findall("<details.*?</details>", page, re.DOTALL))
    assert folded.count("Folded") == 3 and "CODE" in folded
    assert "Seen" not in folded and "## Two" not in folded
    inside = nbformat.v4.new_markdown_cell("<!-- details: a -->\n\n<!-- details: b -->")
    nested = nbformat.v4.new_notebook(cells=[inside])
    with pytest.raises(ValueError, match="within others"):
        pages.with_details(nested)


def test_pictures_of_few_colours_shrink_and_photos_do_not(tmp_path):
    chart = np.full((200, 300, 3), 255, np.uint8)
    chart[50:60, 20:280] = (31, 119, 180)
    photo = np.random.default_rng(0).integers(0, 256, chart.shape, np.uint8)
    for pixels in (chart, photo):
        path = tmp_path / "picture.png"
        Image.fromarray(pixels).convert("RGBA").save(path, compress_level=1)
        before = path.stat().st_size
        pages.shrink(path)
        assert np.array_equal(np.asarray(Image.open(path).convert("RGB")), pixels)
        assert (path.stat().st_size < before) == (pixels is chart)
