"""The book: sources in order, and builds that fail when they should."""

import ast
import contextlib
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
from nads_book.claims.statements import TAKEAWAY
from nads_book.site import build, execution, html_pages, notebooks, sync
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
    given = set(re.findall(r"\b(\w+)=", cells[place + 1].source))
    assert names & {"seed", "architecture", "image_shape", "num_networks"} <= given
    assert sum(len(TAKEAWAY.findall(cell.source)) for cell in notebook.cells) == 1


def test_sync_writes_captions_into_the_notebook_alone(tmp_path):
    options = ":mystnb: {figure: {caption: 'Why so red?', name: fig-red}}"
    path = tmp_path / "chapter.md"
    path.write_text(f"# Title\n\n```{{code-cell}} ipython3\n{options}\nplot()\n```\n")
    _, first, code, caption = sync.notebook_of(path).cells
    assert "Why so red?" in caption.source and code.source == "plot()"
    hidden = ["remove-cell" in cell.metadata.get("tags", []) for cell in (first, code, caption)]
    assert hidden == [True, False, True]


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


def stage_small(target, root):
    """Stage a book without explorers, whose data take `nads_book.site.stage` seconds."""
    shutil.rmtree(target, ignore_errors=True)
    ignore = shutil.ignore_patterns("results")
    shutil.copytree(root / "book", target / "book", ignore=ignore)
    for name in ("_config.yml", "_toc.yml"):
        shutil.copy(root / name, target / name)


@pytest.fixture
def small_book(tmp_path, monkeypatch):
    """Return a function that writes a chapter of a book; it returns the root of that book."""
    monkeypatch.setattr(build, "stage", stage_small)
    monkeypatch.setattr(build, "side_by_side", lambda preset: 2)
    paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    monkeypatch.setenv("PYTHONPATH", paths)  # the library, and not the book's folder of that name
    for folder in ("book", "book/results", "notebooks", "nads_core"):
        (tmp_path / folder).mkdir()
    for name in ("_config.yml", "requirements.txt", "book/references.bib"):
        shutil.copy(ROOT / name, tmp_path / name)
    for name in ("_static", "_templates"):
        shutil.copytree(ROOT / "book" / name, tmp_path / "book" / name)
    for name in ("intro", "paper"):
        (tmp_path / "book" / f"{name}.md").write_text("# Introduction\n")

    def write(*sources, text="# Small", name="small"):
        kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
        cells = [
            nbformat.v4.new_markdown_cell(text),
            *map(nbformat.v4.new_code_cell, ['preset = "demo"', *sources]),
        ]
        cells[1].metadata["tags"] = ["parameters"]
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_page_shows_pictures_that_fit_and_says_what_it_is_about(small_book):
    draw = """
import base64, io
import matplotlib.pyplot as plt
from IPython.display import publish_display_data
def png(colour):
    file = io.BytesIO()
    plt.figure(figsize=(2, 1), facecolor=colour).savefig(file)
    return base64.b64encode(file.getvalue()).decode()
kinds = {"": "white", "dark-": "black", "narrow-": "red", "narrow-dark-": "blue"}
data = {f"application/x-{kind}png": png(colour) for kind, colour in kinds.items()}
publish_display_data({"image/png": data.pop("application/x-png"), **data})
plt.close("all")"""
    text = "# A “chapter”\n\nShort.\n\nWhich waves does it learn, at 5 %? " + 60 * "So. "
    index = build.build((root := small_book(draw, text=text)) / "_build", "smoke", root)
    page = (index.parent / "notebooks" / "small.html").read_text("utf8")
    tags = r'<meta (?:name|property)="([^"]+)" content="([^"]*)">'
    meta = dict(re.findall(tags, page))
    assert meta["og:title"] == meta["citation_title"] == "A “chapter”"
    assert re.fullmatch("Which waves does it learn, at 5 %. .{100,180}…", meta["description"])
    (light,) = re.findall(r'class="enlarge for-light" href="../(_images/\w+).png"', page)
    assert meta["og:image"].endswith(f"{light}.png") and "5\u00a0%" in page
    for name, pixel in (("", 255), (".dark", 0), (".narrow", 255), (".narrow-dark", 0)):
        with Image.open(index.parent / f"{light}{name}.png") as picture:
            assert picture.convert("RGB").getpixel((5, 5))[0] == pixel
            size = 'width="{}" height="{}"'.format(*picture.size)
        assert re.search(rf'(src|srcset)="../{light}{name}.png" {size}', page)
    assert page.count("(max-width: 576px)") == 2
    intro = dict(re.findall(tags, (index.parent / "book" / "intro.html").read_text("utf8")))
    assert intro["og:image"].endswith("/_static/question.png") and "description" not in intro
    assert ("searchindex.js" in page, "search_text.js" in page) == (False, False)
    assert "search_text.js" in (index.parent / "search.html").read_text("utf8")
    icons = (index.parent / "_static" / "scripts" / "fontawesome.js").stat().st_size
    assert 2e4 < icons < 2e5


def test_a_cell_that_stalled_fails_the_build():
    cell = nbformat.v4.new_code_cell("print(0)", metadata={"papermill": {"duration": 96.0}})
    notebook = nbformat.v4.new_notebook(cells=[cell])
    execution.check(notebook, timeout=110)
    with pytest.raises(build.BuildError, match=r"print\(0\)(.|\n)*took 96 s"):
        execution.check(notebook, timeout=100)


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


@pytest.mark.slow
def test_chapters_share_the_cores_and_are_not_executed_again(small_book, monkeypatch, capsys):
    for name in (names := ("OMP_NUM_THREADS", "LOKY_MAX_CPU_COUNT")):
        monkeypatch.delenv(name, raising=False)
    limits = f"import os; print(*map(os.environ.get, {names}))"
    small_book(limits, name="a")
    root = small_book(limits, name="b")
    monkeypatch.setattr(build, "render", lambda *_: root)
    build.build(root / "_build", "smoke", root)
    cores = execution.num_cores()
    share = max(1, cores // 2)
    limit = share if share < cores else None
    for name in "ab":
        notebook = nbformat.read(root / f"_build/executed/smoke/{name}.ipynb", as_version=4)
        assert notebook.cells[-1].outputs[0].text == f"{limit} {limit}\n"
    assert capsys.readouterr().out.count("executed in") == 2
    build.build(root / "_build", "smoke", root)
    assert capsys.readouterr().out.count("unchanged") == 2


PROGRAM = f"""
import signal, sys
sys.path[:0] = {[str(ROOT / name) for name in ("tests", "tools")]!r}
from pathlib import Path
from nads_book.site import build
from test_book import stage_small
if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored after &
    build.ROOT, build.stage = Path(__file__).parent, stage_small
    build.side_by_side = lambda preset: 2
    build.main()
"""


@pytest.mark.slow
@pytest.mark.parametrize("way", ["SIGINT", "SIGTERM"])
def test_an_interrupt_keeps_finished_chapters_and_leaves_no_kernel(small_book, way):
    small_book("1", name="a")
    root = small_book(f"{WAIT}print('old')", name="b")
    (root / "program.py").write_text(PROGRAM)
    options = ["--preset", "smoke", "--folder", str(root / "_build")]
    process = subprocess.Popen(
        [sys.executable, str(root / "program.py"), *options],
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    executed = root / "_build" / "executed" / "smoke"
    begun = executed / "a.ipynb", root / "b.pid"
    until(
        lambda: all(path.exists() for path in begun) or process.poll() is not None, "never so far"
    )
    process.send_signal(getattr(signal, way))
    output, _ = process.communicate(timeout=240)
    assert (executed / "a.ipynb").exists() and "Traceback" not in output
    assert process.returncode == 130 and "are kept" in output, output
    kernel = int((root / "b.pid").read_text())
    until(lambda: not alive(kernel), "the kernel of the chapter is still there")
    assert not (executed / "b.ipynb").exists()


def test_two_builds_in_one_folder_do_not_mix(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.argv", ["build.py", "--folder", str(tmp_path)])
    monkeypatch.setattr(build, "build", lambda *args, **options: pytest.fail("it began"))
    with FileLock(tmp_path / "build.lock"), pytest.raises(SystemExit, match=str(tmp_path)):
        build.main()


# Pages


def test_a_page_of_a_chapter():
    """It begins with its byline, hides calls that teach nothing and folds details."""
    record = {"duration": 41.4, "end_time": "2026-03-01T10:00:00", "parameters": {"preset": "demo"}}
    code, text = nbformat.v4.new_code_cell, nbformat.v4.new_markdown_cell
    takeaway = "<!-- takeaway -->\n**Takeaway**\n\nIt holds.\n<!-- end of takeaway -->"
    cells = [
        text(f"# Title\n\nText.\n\n{takeaway}"),
        code('preset = "demo"', metadata={"tags": ["injected-parameters"]}),
        code('nb.conclude("dark-lines")\nnb.pages.flip.plot_costs()'),
        code('page.plot_maps("lenet")'),
        code("carrier = 60\nnb.pages.poison.plot_number({carrier: lost}, train)"),
        text("## One\n\nSeen.\n\n<!-- details: How and why -->\n\nFolded."),
        text("Folded.\n\n### Two\n\nSeen.\n<!-- details: More -->\nFolded.\n"),
        text("<!-- end of details -->\nSeen.\n\n<!-- details: Last -->"),
    ]
    metadata = {"papermill": record, "machine": execution.machine()}
    cells = notebooks.page_of(nbformat.v4.new_notebook(cells=cells, metadata=metadata)).cells
    first = cells[0].source
    assert first.startswith("# Title\n\n:::{div} byline\n") and "\n:::\n\nText." in first
    for fact in ("41 s", execution.provenance.cpu_name(), "`demo`", "2026-03-01"):
        assert fact in first
    assert first.endswith(":::{admonition} Takeaway\n:class: takeaway\nIt holds.\n:::")
    hidden = ["remove-input" in cell.metadata.get("tags", []) for cell in cells]
    assert hidden == [False, True, True, False, False, False, False, False]
    page = "\n".join(cell.source for cell in cells)
    folded = re.findall("<details>\n<summary>(.*?)</summary>(.*?)</details>", page, re.DOTALL)
    assert [label for label, _ in folded] == ["How and why", "More", "Last"]
    assert "".join(content for _, content in folded).split() == ["Folded."] * 3


def test_the_picture_of_the_readme_is_what_the_library_draws(tmp_path):
    """If not, `python tools/draw_maps.py` draws it again."""
    draw_maps(tmp_path / "maps.png")
    shown, drawn = (
        np.asarray(Image.open(folder / "maps.png").convert("RGB"), np.int16)
        for folder in (ROOT / "book" / "_static", tmp_path)
    )
    # Of 255 levels: fonts may differ.
    assert shown.shape == drawn.shape and np.abs(shown - drawn).mean() < 2


def test_pictures_of_few_colours_shrink_and_photos_do_not(tmp_path):
    path = tmp_path / "picture.png"
    for colours in (2, 256):
        pixels = np.random.default_rng(0).integers(0, colours, (100, 100, 3), np.uint8)
        Image.fromarray(pixels).save(path, compress_level=1)
        before = path.stat().st_size
        html_pages.shrink(path)
        assert np.array_equal(Image.open(path).convert("RGB"), pixels)
        assert (path.stat().st_size < before) == (colours == 2)
