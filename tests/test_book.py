"""The book: sources in order, chapters that run, pages that stand on their own, builds that fail when they should."""

import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import build
import jupytext
import nbformat
import pytest
import yaml
from conftest import BOOK
from jupytext.config import load_jupytext_config
from sphinx_external_toc.parsing import parse_toc_yaml

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


# The chapters and the pages


@pytest.mark.parametrize("name", CHAPTERS)
def test_chapter_runs_at_smoke_without_warnings(name):
    build.execute(name, BOOK, "smoke")
    executed = nbformat.read(BOOK / "executed" / "smoke" / f"{stem(name)}.ipynb", as_version=4)
    outputs = [output for cell in executed.cells for output in cell.get("outputs", [])]
    errors = "".join(output.text for output in outputs if output.output_type == "stream" and output.name == "stderr")
    assert "Warning" not in errors, errors
    widgets = "application/vnd.jupyter.widget-view+json"
    assert not any(widgets in output.get("data", {}) for output in outputs), "a static page cannot show widgets"


class _Loaded(HTMLParser):
    """What a browser fetches by itself to show a page."""

    def __init__(self, page):
        super().__init__()
        self.addresses = []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if tag in ("script", "img", "iframe", "source", "video", "audio", "embed"):
            self.addresses.append(attributes.get("src") or "")
        elif tag == "link" and attributes.get("rel") not in ("canonical", "next", "prev", "search", "index"):
            self.addresses.append(attributes.get("href") or "")


class _Links(HTMLParser):
    """Where the links of a page lead, and those to the page before and after it."""

    def __init__(self, page):
        super().__init__()
        self.addresses, self.neighbours = [], []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if tag == "a":
            self.addresses.append(attributes.get("href") or "")
            if (attributes.get("class") or "") in ("left-prev", "right-next"):
                self.neighbours.append(self.addresses[-1])


def test_no_page_asks_another_host(html):
    pages = [path for path in html.rglob("*.html") if "_static" not in path.relative_to(html).parts]
    assert {"index.html", "book/intro.html", "book/api.html", *(f"{name}.html" for name in CHAPTERS)} <= {
        path.relative_to(html).as_posix() for path in pages
    }
    for path in pages:
        page = path.read_text("utf8")
        for address in _Loaded(page).addresses:
            assert not re.match(r"(https?:)?//", address), f"{path.name} loads {address}"
            if address and not address.startswith("data:"):
                assert (path.parent / address.split("?")[0]).exists(), f"{path.name} loads {address}, which is missing"
        assert not re.search(r"jsdelivr|cdnjs|unpkg|googleapis", page), f"{path.name} names a content network"
    for path in html.rglob("*.css"):
        assert not re.search(r"(url\(|@import)\s*[\"']?(https?:)?//", path.read_text("utf8")), f"{path.name} loads"


def test_pages_are_rendered(html):
    for name in CHAPTERS:
        page = (html / f"{name}.html").read_text("utf8")
        assert "takeaway admonition" in page and "cell_output" in page
    assert 'id="nads_core.compute_nads"' in (html / "book" / "api.html").read_text("utf8")
    assert "mathjax/tex-chtml.js" in (html / CHAPTERS[0]).with_suffix(".html").read_text("utf8")


def test_launch_buttons_open_the_right_notebook(html):
    config = yaml.safe_load((ROOT / "_config.yml").read_text("utf8"))
    repository = config["repository"]["url"].removeprefix("https://github.com/")
    for name in CHAPTERS:
        links = _Links((html / f"{name}.html").read_text("utf8")).addresses
        assert f"https://colab.research.google.com/github/{repository}/blob/main/{name}.ipynb" in links
        assert f"https://mybinder.org/v2/gh/{repository}/main?urlpath=lab/tree/{name}.ipynb" in links
        assert (ROOT / f"{name}.ipynb").is_file()


def test_every_chapter_says_how_long_it_took_and_leads_on(html):
    pages = [html / f"{name}.html" for name in parse_toc_yaml(ROOT / "_toc.yml")]
    for before, path, after in zip([None, *pages], pages, [*pages[1:], None], strict=False):
        page = path.read_text("utf8")
        links = _Links(page)
        assert [(path.parent / link).resolve() for link in links.neighbours] == [
            p.resolve() for p in (before, after) if p
        ]
        assert "../book/citing.html" in links.addresses or "citing.html" in links.addresses or path == pages[-1]
        assert ("This page was computed in" in page) == (path.parent.name == "notebooks")
    executed = nbformat.read(BOOK / "executed" / "smoke" / f"{stem(CHAPTERS[0])}.ipynb", as_version=4)
    seconds = executed.metadata["papermill"]["duration"]
    assert 1 < seconds < 100
    assert f"This page was computed in {seconds:.0f} s on" in (html / f"{CHAPTERS[0]}.html").read_text("utf8")


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


def test_every_image_has_a_description_and_every_figure_a_number(html):
    for name in ("book/intro", *CHAPTERS):
        page = (html / f"{name}.html").read_text("utf8")
        article = page[page.index("<article") : page.index("</article>")]
        images = re.findall(r"<img [^>]*>", article)
        assert images or "<nad-explorer" in article
        for image in images:
            assert re.search(r'alt="(?!\.\./)[^"]{20,}"', image), f"{name}: {image[:200]}"
        assert article.count('<span class="caption-number">') == article.count("<figcaption>") == len(images)


def test_search_knows_the_chapters_and_needs_no_server(html):
    index = (html / "searchindex.js").read_text("utf8")
    assert all(json.dumps(name) in index for name in CHAPTERS) and '"fourier direction"' in index
    assert 'src="searchindex.js"' in (html / "search.html").read_text("utf8")


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
