"""The built book: pages that stand on their own and are private and readable in a real browser."""

import json
import re

import bs4
import pytest
import yaml
from axe_playwright_python.sync_playwright import Axe
from conftest import ROOT
from nads_book.site import build

pytestmark = pytest.mark.slow  # they take the whole book, executed and rendered

CHAPTERS = build.chapters()
PAGES = ["book/intro", *CHAPTERS, "book/errata", "book/claims", "book/api", "search"]
WITH_AXE = ("book/intro", "notebooks/07_poison", "book/claims")
HEAVIEST = 3e6  # bytes of a page with all that it has loaded when its reader has come to the end
MOST_CELLS = 20
PHONE = {"viewport": {"width": 375, "height": 800}, "is_mobile": True, "has_touch": True}


# The files


@pytest.fixture(scope="module")
def parsed(html):
    """Return all pages, parsed, by their path; the sources of the library are not among them."""
    paths = [*html.glob("*.html"), *html.glob("book/**/*.html"), *html.glob("notebooks/*.html")]
    paths = [path for path in paths if path.name != "py-modindex.html"]
    assert {f"{name}.html" for name in PAGES} <= {str(path.relative_to(html)) for path in paths}
    return {path: bs4.BeautifulSoup(path.read_text("utf8"), "html.parser") for path in paths}


def test_no_page_asks_another_host_and_all_that_it_loads_is_there(html, parsed):
    for path, page in parsed.items():
        loaded = [tag["src"] for tag in page.select("[src]")]
        loaded += [link["href"] for link in page.select("link[rel~=stylesheet], link[rel~=icon]")]
        for address in loaded:
            assert not re.match(r"(https?:)?//", address), f"{path.name} loads {address}"
            found = address.startswith("data:") or (path.parent / address.split("?")[0]).exists()
            assert found, f"{path.name} loads {address}, which is missing"
        text = str(page)
        assert not re.search(r"jsdelivr|cdnjs|unpkg|googleapis|mathjax", text), path.name
        assert ("searchindex.js" in text) == (path.name == "search.html"), path.name
    for path in html.rglob("*.css"):
        text = path.read_text("utf8")
        assert not re.search(r"(url\(|@import)\s*[\"']?(https?:)?//", text), path.name


def test_links_within_the_book_lead_somewhere(html, parsed):
    """Marks of claims, citations, chapters before and after."""
    names = {path: {tag["id"] for tag in page.select("[id]")} for path, page in parsed.items()}
    broken = set()
    count = 0
    for path, page in parsed.items():
        for link in page.select("article a[href], .prev-next-area a[href]"):
            target, _, anchor = link["href"].partition("#")
            if re.match(r"\w+:|//", target) or "=" in anchor:  # another host, or a view of a figure
                continue
            there = (path.parent / target.partition("?")[0]).resolve() if target else path
            count += 1
            known = there.exists() and (not anchor or there not in names or anchor in names[there])
            if not known:
                broken.add(f"{path.relative_to(html)}: {link['href']}")
    assert not broken and count > 1_000
    assert sum(len(page.select("a.claim-mark")) for page in parsed.values()) > 100


def test_launch_buttons_open_the_right_notebook(html, parsed):
    url = yaml.safe_load((ROOT / "_config.yml").read_text("utf8"))["repository"]["url"]
    repository = url.removeprefix("https://github.com/")
    for name in CHAPTERS:
        links = {link["href"] for link in parsed[html / f"{name}.html"].select("a[href]")}
        colab = f"https://colab.research.google.com/github/{repository}/blob/main/{name}.ipynb"
        binder = f"https://mybinder.org/v2/gh/{repository}/main?urlpath=lab/tree/{name}.ipynb"
        assert {colab, binder} <= links and (ROOT / f"{name}.ipynb").is_file()


def test_every_claim_has_a_verdict_and_one_card(html, parsed):
    index = parsed[html / "book" / "claims.html"]
    for claim in json.loads((html / "claims.json").read_text("utf8")):
        assert claim["verdict"] and claim["statement"]
        (anchor,) = index.select(f'[id="{claim["id"]}"]')
        assert anchor.find_parent(class_="claim-line").select_one("details dl"), claim["id"]
        if claim["cell"]:
            page, _, anchor = claim["cell"].partition("#")
            assert parsed[html / page].find(id=anchor)
    assert not re.search(r"\bnan\b", str(index))


def test_nothing_is_left_of_the_source_and_every_image_has_a_description(html, parsed):
    """No TeX, which no script would show, and no comment that was to be replaced."""
    formulas = 0
    for path, page in parsed.items():
        for article in page.select("article"):
            formulas += len(article.select("math"))
            for image in article.select("img"):
                assert len(image.get("alt", "")) >= 20, f"{path.name}: {image}"
            for text in article.find_all(string=True):
                if isinstance(text, bs4.Comment):
                    assert not re.match(r" (claim|number|gaps|details)\b", text), path.name
                elif not text.find_parent(["pre", "code", "script", "style", "annotation"]):
                    assert not re.search(r"\\[(\[a-zA-Z]|\$\$", text), f"{path.name}: {text}"
    assert formulas > 100


# In a browser


@pytest.fixture
def visit(tab, html, serve):
    """Return a function that opens a page of the book, of which every request succeeds."""
    address = serve(html)

    def open_page(name, **options):
        reader = tab(address, **options)
        reader.page.on("requestfailed", lambda request: reader.troubles.append(request.url))
        return reader.open(name)

    return open_page


def see_all(reader):
    """Come to all figures, one after another, and wait until they are there."""
    for figure in reader.page.locator("nad-explorer, .bd-article img:visible").all():
        figure.scroll_into_view_if_needed()
    reader.settle()
    reader.page.wait_for_load_state("networkidle")


def size_of(page, kind):
    """Return the size of the page and of all that it has loaded."""
    return page.evaluate(
        """(kind) => ['navigation', 'resource']
          .flatMap((type) => performance.getEntriesByType(type))
          .reduce((sum, entry) => sum + entry[kind], 0)""",
        kind,
    )


CUT = """(() => {
  document.querySelectorAll("details").forEach((part) => (part.open = true));
  const wide = ".highlight pre, div.math, div.formula, .pst-scrollable-table-container, "
    + ".text_html, figure";
  return [...document.querySelectorAll(wide)]
    .filter((part) => part.scrollWidth > part.clientWidth + 1 && part.clientWidth)
    .filter((part) => part.tagName !== "PRE" || getComputedStyle(part).overflowX !== "auto")
    .map((part) => `${part.className || part.tagName}: ${part.textContent.trim().slice(0, 80)}`);
})()"""
CELLS = """[...document.querySelectorAll(".bd-article .cell_input")]
    .filter((part) => part.checkVisibility() && !part.closest("details:not([open])")).length"""


def serious(page):
    """Return what axe finds that keeps somebody from reading a page."""
    result = Axe().run(page, options={"resultTypes": ["violations"], "preload": False})
    return [
        f"{rule['id']}: {node['html'][:150]}"
        for rule in result.response["violations"]
        if rule["impact"] in ("serious", "critical")
        for node in rule["nodes"]
    ]


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_private_light_and_whole_also_on_a_telephone(visit, name):
    reader = visit(f"{name}.html", viewport={"width": 1280, "height": 900})
    see_all(reader)
    assert 1e5 < size_of(reader.page, "transferSize") < HEAVIEST
    assert name not in CHAPTERS or reader.page.evaluate(CELLS) <= MOST_CELLS
    for scheme in ("light", "dark") if name in WITH_AXE else ():
        # Without the 150 ms in which buttons change their colours
        reader.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        reader.page.wait_for_function(
            "(s) => document.documentElement.dataset.theme === s", arg=scheme
        )
        assert not serious(reader.page)
    assert not reader.page.evaluate(CUT)
    reader.page.set_viewport_size({"width": 375, "height": 800})
    assert reader.fits()


def test_the_first_page_stands_still_on_a_telephone(visit):
    shifts = """window.shifts = []; new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) if (!entry.hadRecentInput) shifts.push(entry.value);
    }).observe({ type: "layout-shift", buffered: true });"""
    page = visit("book/intro.html", **PHONE).page
    page.add_init_script(shifts)
    page.reload()
    page.wait_for_load_state("networkidle")
    # Before scrolling, not compressed; .4 of it are the font
    assert size_of(page, "decodedBodySize") <= 1.5e6
    for y in range(0, page.evaluate("document.documentElement.scrollHeight"), 600):
        page.evaluate("(y) => scrollTo(0, y)", y)
        page.wait_for_timeout(50)
    page.wait_for_load_state("networkidle")
    assert page.evaluate("shifts.reduce((sum, shift) => sum + shift, 0)") <= 0.1


@pytest.mark.parametrize(("query", "about"), [("poison", "07_poison"), ("variance", "")])
def test_search_leads_to_chapters_and_quotes_what_they_say(visit, query, about):
    page = visit(f"search.html?q={query}").page
    page.locator("#search-results .context").nth(2).wait_for()
    page.wait_for_load_state("networkidle")
    links = page.locator("#search-results li > a").all()
    found = [link.get_attribute("href") for link in links]
    assert "notebooks/" in found[0] and any(about in link for link in found), found
    quotes = page.locator("#search-results .context").all_inner_texts()
    assert any(query in quote.lower() for quote in quotes)
    for quote in quotes:
        assert "How to cite Repo" not in quote and not re.search(r"\\[a-z(]", quote), quote


def test_claims_can_be_searched_and_filtered(visit):
    page = visit("book/claims.html", **PHONE).page
    lines = page.locator(".claim-line:visible")
    verdict = page.locator(".claims-filter select")
    everything = lines.count()
    verdict.first.select_option("verdict-inconclusive")
    assert 0 < lines.count() < everything
    assert page.locator(".claim-line.verdict-verified:visible").count() == 0
    verdict.first.select_option("")
    page.locator(".claims-filter input").fill("gain filters")
    assert 0 < lines.count() < everything / 10
    assert all("gain" in text.lower() for text in lines.all_text_contents())
    assert page.locator(".claims-filter output").inner_text().startswith(f"{lines.count()} of")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_figures_and_explorers_follow_the_theme_and_the_screen(visit, scheme):
    """In the dark a figure has no white ground; on a telephone its panels stack, or it scrolls."""
    shown = """(article) => [...article.querySelectorAll("a.enlarge")]
      .filter((link) => link.checkVisibility())
      .map((link) => [link, link.querySelector("img")])
      .map(([link, image]) =>
        [image.currentSrc, image.clientWidth, link.clientWidth, link.className])"""
    for screen in ({"viewport": {"width": 1280, "height": 800}}, PHONE):
        reader = visit("notebooks/08_flip.html", color_scheme=scheme, **screen)
        see_all(reader)
        figures = reader.page.locator(".bd-article").evaluate(shown)
        assert len(figures) >= 3
        for source, width, room, kind in figures:
            assert ("dark" in source) == (scheme == "dark"), source
            narrow = "narrow" in source
            assert narrow == ("wide" not in kind and screen is PHONE)
            assert width <= room or screen is PHONE and not narrow and width > 500
        explorer = reader.page.locator("nad-explorer, nad-note, nad-flip").first
        assert explorer.locator(".explorer.dark").count() == (scheme == "dark")


def test_a_figure_opens_over_the_page_and_escape_closes_it(visit):
    page = visit("notebooks/07_poison.html", **PHONE).page
    link = page.locator("a.enlarge:visible").first
    link.scroll_into_view_if_needed()
    link.tap()
    picture = page.locator("dialog.overlay img")
    assert picture.evaluate("(image) => image.getBoundingClientRect().right <= innerWidth")
    assert picture.get_attribute("alt") == link.locator("img").get_attribute("alt")
    picture.tap()
    overlay = "image.closest('dialog')"
    assert picture.evaluate(f"(image) => {overlay}.scrollWidth > {overlay}.clientWidth")
    page.keyboard.press("Escape")
    picture.wait_for(state="detached")
    assert page.url.endswith("07_poison.html")
    assert link.evaluate("(link) => document.activeElement === link")
