"""Previews and meta elements of a small book that no build has made."""

import re

import pytest
from conftest import BOOK
from nads_book.site import sharing
from PIL import Image

CONFIG = BOOK.parent.parent / "_config.yml"
LONG = "Which of the many waves does a network learn, and who decides it? " * 4
SCRIPTS = (
    '<script src="../_static/searchtools.js"></script><script src="../searchindex.js"></script>'
)
FORMULA = (
    '<span class="math"><math><semantics><mi>σ</mi>'
    '<annotation encoding="application/x-tex">\\sigma = \\frac{1}{2}</annotation>'
    "</semantics></math></span>"
)
PAGES = {
    "book/intro": '<h1>A book<a class="headerlink" href="#x">#</a></h1><p>Short.</p>'
    '<nad-guess config="{}"><noscript><img src="../_static/maps.png" alt="maps"></noscript>'
    "</nad-guess>",
    "notebooks/01_x": f"<h1>1. A “chapter”</h1><p>{FORMULA} {LONG}</p>"
    '<figure><a class="enlarge" href="../_images/figure.png">'
    '<img src="../_images/figure.png" alt="navy, all over"></a></figure>',
}


@pytest.fixture
def site(tmp_path):
    """A book of an introduction and a chapter with a figure, whose pages are shared."""
    for folder in ("book", "notebooks", "_images", "_static", "root"):
        (tmp_path / folder).mkdir()
    Image.new("RGB", (400, 300), "navy").save(tmp_path / "_images" / "figure.png")
    Image.new("RGB", (800, 300), "white").save(tmp_path / "_static" / "question.png")
    (tmp_path / "index.html").write_text(
        '<meta http-equiv="Refresh" content="0; url=book/intro.html" />\n'
    )
    (tmp_path / "search.html").write_text(SCRIPTS)
    for name, body in PAGES.items():
        article = f'<article class="bd-article"><section id="top">{body}</section></article>'
        main = f'<div role="main"><div class="bd-header-article">How to cite</div>{article}</div>'
        (tmp_path / f"{name}.html").write_text(
            f"<!doctype html><html><head><title>x</title>{SCRIPTS}</head><body>{main}</body></html>"
        )
    (tmp_path / "root" / "_config.yml").write_text(CONFIG.read_text("utf8"), "utf8")
    (tmp_path / "root" / "_toc.yml").write_text(
        "format: jb-book\nroot: book/intro\nchapters:\n- file: notebooks/01_x\n"
    )
    sharing.share(tmp_path, tmp_path / "root", [*PAGES, "book/missing"])
    return tmp_path


def meta(path):
    tags = r'<meta (?:name|property)="([^"]+)" content="([^"]*)">'
    return dict(re.findall(tags, path.read_text("utf8")))


def test_a_page_describes_itself_and_loads_no_index_that_it_does_not_search(site):
    chapter, intro = (meta(site / f"{name}.html") for name in ("notebooks/01_x", "book/intro"))
    assert chapter["og:title"] == chapter["citation_title"] == "1. A “chapter”"
    assert f"σ = 1/2 {LONG}".startswith(chapter["description"].rstrip("…"))
    assert 100 < len(chapter["description"]) <= 200
    assert chapter["og:image"].endswith("/_static/previews/01_x.png")
    assert chapter["og:image:alt"] == "navy, all over" and intro["og:title"] == "A book"
    with Image.open(site / "_static" / "previews" / "01_x.png") as preview:
        assert preview.size == sharing.SIZE
        navy = preview.convert("RGB").getpixel((600, 350))
        assert navy == (0, 0, 128), "the figure, below the title"
        assert preview.convert("L").crop((0, 0, 1200, 100)).getextrema()[0] < 80, "the title"
    assert meta(site / "index.html")["og:url"] == intro["og:url"]
    for name in ("book/intro", "notebooks/01_x", "search"):
        text = (site / f"{name}.html").read_text("utf8")
        assert ("searchindex.js" in text) == (name == "search")


def test_footer_facts_reach_the_templates(site):
    path = site / "root" / "_config.yml"
    sharing.configure(path, CONFIG.parent)
    config = sharing.yaml.safe_load(path.read_text("utf8"))
    context = config["sphinx"]["config"]["html_context"]
    assert context["book_version"] and context["book_repository"] == config["repository"]["url"]
    assert sharing.about(site)["book_commit"] == "", "outside a repository there is no commit"
