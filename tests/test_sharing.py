"""Previews, meta elements, search results and the PDF, of a small book that no build has made."""

import re

import pytest
from conftest import BOOK, NEEDS_BOOK

Image = pytest.importorskip("PIL.Image", reason=NEEDS_BOOK)
sharing = pytest.importorskip("nads_book.site.sharing", reason=NEEDS_BOOK)

ROOT = BOOK.parent.parent
LONG = (
    "Which of the many waves does a network learn, and does training decide it, or does the architecture? "
    * 4
)
HEAD = """<!doctype html><html><head><title>x</title><link rel="stylesheet" href="../_static/book.css">
<script src="../_static/searchtools.js"></script><script src="../searchindex.js"></script></head>"""

FORMULA = (
    '<span class="math"><math><semantics><mrow><mi>σ</mi><mo>=</mo><mfrac><mn>1</mn><mn>2</mn></mfrac></mrow>'
    '<annotation encoding="application/x-tex">\\sigma = \\frac{1}{2}</annotation></semantics></math></span>'
)


@pytest.fixture
def site(tmp_path):
    """A book of an introduction and a chapter with a figure."""
    for folder in ("book", "notebooks", "_images", "_static"):
        (tmp_path / folder).mkdir()
    Image.new("RGB", (400, 300), "navy").save(tmp_path / "_images" / "figure.png")
    Image.new("RGB", (800, 300), "white").save(tmp_path / "_static" / "question.png")
    (tmp_path / "_static" / "searchtools.js").write_text("const Search = {};\n")
    (tmp_path / "index.html").write_text(
        '<meta http-equiv="Refresh" content="0; url=book/intro.html" />\n'
    )
    intro = (
        '<h1>A book<a class="headerlink" href="#x">#</a></h1><p>Short.</p><p class="byline">computed</p>'
        '<nad-guess config="{}"><noscript><p><img src="../_static/maps.png" alt="maps"></p></noscript>text</nad-guess>'
        '<p>See <a href="../notebooks/01_x.html#part">the chapter</a>, <a href="api.html">the library</a> and '
        '<a href="https://example.org">others</a>.</p>'
    )
    chapter = (
        f"<h1>1. A “chapter”</h1><p>{LONG}{FORMULA}</p>"
        '<figure><a class="enlarge" href="../_images/figure.png"><img src="../_images/figure.png" alt="navy, all over">'
        '</a></figure><section id="part"><h2 id="two">Part</h2><details><summary>More</summary><p>Folded.</p></details>'
        '<div class="cell tag_hide-input"><div class="cell_input">code</div><div class="cell_output">4</div></div>'
        '<nad-note data="{}">A figure that a browser draws.</nad-note>'
        "</section>"
    )
    for name, body in (("book/intro", intro), ("notebooks/01_x", chapter)):
        article = f'<article class="bd-article"><section id="top">{body}</section></article>'
        footer = '<p class="component-about">Version 1</p>'
        main = f'<div role="main"><div class="bd-header-article">How to cite</div>{article}</div>'
        (tmp_path / f"{name}.html").write_text(f"{HEAD}<body>{main}{footer}</body></html>", "utf8")
    return tmp_path


@pytest.fixture
def root(tmp_path_factory):
    """A repository with the two files that describe the book."""
    folder = tmp_path_factory.mktemp("root")
    (folder / "_config.yml").write_text((ROOT / "_config.yml").read_text("utf8"), "utf8")
    (folder / "_toc.yml").write_text(
        "format: jb-book\nroot: book/intro\nchapters:\n- file: notebooks/01_x\n- file: book/api\n"
    )
    return folder


def meta(path):
    found = re.findall(
        r'<meta (?:name|property)="([^"]+)" content="([^"]*)">', path.read_text("utf8")
    )
    assert len(found) == len(dict(found)), "a name that is there twice"
    return dict(found)


def test_a_page_describes_itself(site, root):
    sharing.share(site, root, ["book/intro", "notebooks/01_x", "book/missing"])
    chapter, intro = meta(site / "notebooks" / "01_x.html"), meta(site / "book" / "intro.html")
    assert chapter["og:title"] == chapter["citation_title"] == "1. A “chapter”"
    assert (
        LONG.startswith(chapter["description"].rstrip("…"))
        and 100 < len(chapter["description"]) <= 200
    )
    assert (
        chapter["og:image"].endswith("/_static/previews/01_x.png")
        and chapter["og:image:alt"] == "navy, all over"
    )
    assert intro["og:image"].endswith("/_static/previews/intro.png")
    assert intro["og:title"] == "A book" and "citation_inbook_title" in chapter
    with Image.open(site / "_static" / "previews" / "01_x.png") as preview:
        assert preview.size == sharing.SIZE
        assert preview.convert("RGB").getpixel((600, 350)) == (0, 0, 128), (
            "the figure, below the title"
        )
        assert preview.convert("L").crop((0, 0, 1200, 100)).getextrema()[0] < 80, "the title"
    assert meta(site / "index.html")["og:url"] == intro["og:url"]


def test_a_page_loads_what_it_needs(site, root):
    (site / "search.html").write_text(
        '<script src="_static/searchtools.js"></script><script src="searchindex.js"></script>'
    )
    sharing.share(site, root, ["book/intro"])
    intro, chapter = (
        (site / f"{name}.html").read_text("utf8") for name in ("book/intro", "notebooks/01_x")
    )
    assert "searchindex" not in intro + chapter and "book.css" in intro
    assert "searchindex.js" in (site / "search.html").read_text("utf8")


def test_footer_facts_reach_the_templates(tmp_path):
    path = tmp_path / "_config.yml"
    path.write_text((ROOT / "_config.yml").read_text("utf8"), "utf8")
    before = sharing.yaml.safe_load(path.read_text("utf8"))
    sharing.configure(path, ROOT)
    after = sharing.yaml.safe_load(path.read_text("utf8"))
    context = after["sphinx"]["config"].pop("html_context")
    assert (
        before["sphinx"]["config"].pop("html_context").items() <= context.items()
        and before == after
    )
    assert context["book_version"] and context["book_repository"] == before["repository"]["url"]
    assert sharing.about(tmp_path)["book_commit"] == "", "outside a repository there is no commit"


def test_search_quotes_what_a_reader_sees(browser, site, root):
    sharing.share(site, root, ["book/intro", "notebooks/01_x"])
    with browser.new_context() as context:
        page = context.new_page()
        page.add_script_tag(path=site / "_static" / "searchtools.js")
        text = (site / "notebooks" / "01_x.html").read_text("utf8")
        quote = page.evaluate("(text) => Search.htmlToText(text, '')", text)
        part = page.evaluate("(text) => Search.htmlToText(text, '#part')", text)
    assert quote.startswith("1. A “chapter”") and "σ = 1/2" in quote and "\\" not in quote
    assert (
        "How to cite" not in quote
        and "code" not in quote
        and part.startswith("Part")
        and "σ" not in part
    )
