"""The built book: pages that stand on their own and are, in a real browser, private, light, accessible and readable."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
import yaml
from conftest import BOOK, NEEDS_BOOK, WITH_VARIANTS

import nads_core

build = pytest.importorskip("nads_book.site.build", reason=NEEDS_BOOK)
BeautifulSoup, Image = (
    pytest.importorskip("bs4", reason=NEEDS_BOOK).BeautifulSoup,
    build.pages.Image,
)
nbformat, parse_toc_yaml = build.nbformat, build.parse_toc_yaml

ROOT = BOOK.parent.parent
CHAPTERS = build.chapters()
SCREENSHOTS = BOOK.parent / "screenshots"
PAGES = [
    "book/intro",
    *CHAPTERS,
    "book/errata",
    "book/claims",
    "book/api",
    "book/api_book",
    "book/references",
    "search",
    "genindex",
]
HEAVIEST = 3e6  # bytes of a page with all that it has loaded when its reader has come to the end
READY = """() => [...document.querySelectorAll('nad-explorer')].every(
    (e) => e.app && (!e.app.begun || e.app.root.getAttribute('aria-busy') === 'false'))"""


# The files


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
        elif tag == "link" and attributes.get("rel") not in (
            "canonical",
            "next",
            "prev",
            "search",
            "index",
        ):
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
    assert {
        "index.html",
        "book/intro.html",
        "book/api.html",
        *(f"{name}.html" for name in CHAPTERS),
    } <= {path.relative_to(html).as_posix() for path in pages}
    for path in pages:
        page = path.read_text("utf8")
        for address in _Loaded(page).addresses:
            assert not re.match(r"(https?:)?//", address), f"{path.name} loads {address}"
            if address and not address.startswith("data:"):
                assert (path.parent / address.split("?")[0]).exists(), (
                    f"{path.name} loads {address}, which is missing"
                )
        assert not re.search(r"jsdelivr|cdnjs|unpkg|googleapis", page), (
            f"{path.name} names a content network"
        )
    for path in html.rglob("*.css"):
        assert not re.search(r"(url\(|@import)\s*[\"']?(https?:)?//", path.read_text("utf8")), (
            f"{path.name} loads"
        )


def test_pages_are_rendered(html):
    for name in CHAPTERS:
        page = (html / f"{name}.html").read_text("utf8")
        assert "takeaway admonition" in page and "cell_output" in page
    assert 'id="nads_core.compute_nads"' in (html / "book" / "api.html").read_text("utf8")


def test_launch_buttons_open_the_right_notebook(html):
    config = yaml.safe_load((ROOT / "_config.yml").read_text("utf8"))
    repository = config["repository"]["url"].removeprefix("https://github.com/")
    for name in CHAPTERS:
        links = _Links((html / f"{name}.html").read_text("utf8")).addresses
        assert (
            f"https://colab.research.google.com/github/{repository}/blob/main/{name}.ipynb" in links
        )
        assert (
            f"https://mybinder.org/v2/gh/{repository}/main?urlpath=lab/tree/{name}.ipynb" in links
        )
        assert (ROOT / f"{name}.ipynb").is_file()


def test_every_chapter_says_how_long_it_took_and_leads_on(html):
    pages = [html / f"{name}.html" for name in parse_toc_yaml(ROOT / "_toc.yml")]
    for before, path, after in zip([None, *pages], pages, [*pages[1:], None], strict=False):
        page = path.read_text("utf8")
        links = _Links(page)
        assert [(path.parent / link).resolve() for link in links.neighbours] == [
            p.resolve() for p in (before, after) if p
        ]
        cites = any(link.endswith("citing.html") for link in links.addresses)
        assert cites or path.stem == "citing"
        assert ('class="byline' in page) == (path.parent.name == "notebooks")
    executed = nbformat.read(
        BOOK / "executed" / "smoke" / f"{Path(CHAPTERS[0]).name}.ipynb", as_version=4
    )
    byline = build.pages.byline(executed).split("`")  # the preset is printed as code
    assert all(part in (html / f"{CHAPTERS[0]}.html").read_text("utf8") for part in byline)


def test_every_image_has_a_description_and_every_figure_a_number(html):
    for name in ("book/intro", *CHAPTERS):
        page = (html / f"{name}.html").read_text("utf8")
        article = page[page.index("<article") : page.index("</article>")]
        article = re.sub(r"<noscript>.*?</noscript>", "", article, flags=re.DOTALL)
        dark = re.findall(r'<a class="[^"]*for-dark".*?</a>', article, re.DOTALL)
        for twin in dark:
            article = article.replace(twin, "")
        images = re.findall(r"<img [^>]*>", article)
        assert images or "<nad-explorer" in article
        for image in images:
            assert re.search(r'alt="(?!\.\./)[^"]{20,}"', image), f"{name}: {image[:200]}"
        assert (
            article.count('<span class="caption-number">')
            == article.count("<figcaption>")
            == len(images)
        )
        if Path(name).name in ("intro", *WITH_VARIANTS):
            assert len(dark) == len(images), f"{name}: figures without a variant for dark pages"


def test_every_claim_has_a_line_an_entry_in_lab_notes_and_a_cell_if_one_shows_it(html):
    stored = json.loads((html / "claims.json").read_text("utf8"))
    index = (html / "book" / "claims.html").read_text("utf8")
    texts = {path.name: path.read_text("utf8") for path in html.glob("book/lab_notes/*.html")}
    for claim in stored:
        assert index.count(f'id="{claim["id"]}"') == 1 and claim["verdict"] and claim["statement"]
        assert any(f'<section id="{claim["id"]}"' in text for text in texts.values()), claim["id"]
        if claim["cell"]:
            page, _, anchor = claim["cell"].partition("#")
            assert f'id="{anchor}"' in (html / page).read_text("utf8")
    marks = 0
    for name in ("book/intro", *CHAPTERS):
        page = (html / f"{name}.html").read_text("utf8")
        marks += page.count('class="claim-mark')
        assert "<!-- claim" not in page and "<!-- number" not in page
        for address in _Links(page).addresses:
            if address.startswith("../book/lab_notes/"):
                notes, _, anchor = address.rpartition("/")[2].partition("#")
                assert not anchor or f'id="{anchor}"' in texts[notes]
    assert marks > 100


def test_lab_notes_predictions_and_errata_are_generated(html):
    for name in (
        "predictions",
        "errata",
        "course",
        *(f"lab_notes/{Path(c).name}" for c in CHAPTERS),
    ):
        page = (html / "book" / f"{name}.html").read_text("utf8")
        assert "<!-- " not in page[page.index("<article") : page.index("</article>")], name
    errata = (html / "book" / "errata.html").read_text("utf8")
    assert "numbered statements" in errata
    assert errata.index("<strong>fails</strong>") < errata.index(
        "<strong>holds as printed</strong>"
    )


def test_pages_say_what_they_are(html):
    """For search engines, social networks and reference managers; and the footer for a person."""
    config = yaml.safe_load((ROOT / "_config.yml").read_text("utf8"))
    base, version, commit = (
        config["html"]["baseurl"],
        nads_core.__version__,
        build.sharing.about(ROOT)["book_commit"],
    )
    for name in ("book/intro", *CHAPTERS, "book/errata", "book/how_to"):
        page = BeautifulSoup((html / f"{name}.html").read_text("utf8"), "html.parser")
        found = {
            tag.get("name") or tag.get("property"): tag["content"]
            for tag in page.select("head meta[content]")
        }
        assert 30 < len(found["description"]) <= 200 and "\\" not in found["description"]
        assert found["description"] == found["og:description"]
        assert (
            found["citation_title"]
            == found["og:title"]
            == build.sharing.text_of(page.select_one("article h1"))
        )
        assert found["og:url"] == found["citation_fulltext_html_url"] == f"{base}{name}.html"
        card = html / found["og:image"].removeprefix(base)
        with Image.open(card) as picture:
            assert picture.size == (1200, 630) and card.stat().st_size < 3e5
        footer = page.select_one(".component-about").get_text()
        assert version in footer and commit in footer and "MIT" in footer
    assert 'property="og:image"' in (html / "index.html").read_text("utf8")


def test_pages_load_only_what_they_need(html):
    for path in html.rglob("*.html"):
        page = path.read_text("utf8")
        assert ("searchindex.js" in page) == (path.name == "search.html"), path.name
        assert "mathjax" not in page.lower(), path.name
    assert not [path for path in html.rglob("*") if "mathjax" in path.name.lower()]
    script = (html / "_static" / "scripts" / "pydata-sphinx-theme.js").read_text("utf8")
    assert "checkVisibility())e.tabIndex" in script, (
        "the theme measures folded cells again: see pages.polish"
    )


def test_formulas_are_mathml(html):
    """No script looks for TeX, so none may be left on a page, also in what cells display."""
    count = 0
    for path in (*html.glob("book/*.html"), *html.glob("notebooks/*.html")):
        article = BeautifulSoup(path.read_text("utf8"), "html.parser").select_one("article")
        formulas = article.select(".math")
        for formula in formulas:
            assert formula.math.annotation.extract().get_text(), path.name
        numbered = article.select("div.math[id]")
        assert all(
            formula.select_one(".eqno a.headerlink")["href"] == f"#{formula['id']}"
            for formula in numbered
        )
        count += len(formulas)
        for part in article.select("pre, code, script, style"):
            part.decompose()
        assert not re.search(r"\\[(\[a-zA-Z]|\$\$", article.get_text()), path.name
    assert count > 100


def test_citations_have_the_numbers_of_the_list(html):
    listed = BeautifulSoup((html / "book" / "references.html").read_text("utf8"), "html.parser")
    numbers = {
        entry["id"]: entry.select_one(".label").get_text(" ", strip=True)
        for entry in listed.select(".citation")
    }
    cited = 0
    for name in ("book/intro", "book/related_work", *CHAPTERS):
        page = BeautifulSoup((html / f"{name}.html").read_text("utf8"), "html.parser")
        for link in page.select("article a[href*='references.html#']"):
            cited += 1
            label = numbers[link["href"].partition("#")[2]]
            assert re.sub(r"\W", "", link.get_text()) == re.sub(r"\W", "", label)
    assert cited > 5


def test_search_knows_the_chapters_and_needs_no_server(html):
    index = (html / "searchindex.js").read_text("utf8")
    assert all(json.dumps(name) in index for name in CHAPTERS) and '"fourier direction"' in index
    assert 'src="searchindex.js"' in (html / "search.html").read_text("utf8")


# In a browser


@pytest.fixture(scope="session")
def address(html, serve):
    return serve(html)


class Visit:
    """A page, what it has loaded, and what went wrong."""

    def __init__(self, browser, url, **options):
        self.context = browser.new_context(**options)
        self.page, self.troubles = self.context.new_page(), []
        self.home = url[: url.index("/", 7 if url.startswith("file:") else 8)]
        self.page.set_default_timeout(240_000)
        self.page.on("pageerror", lambda error: self.troubles.append(f"error: {error}"))
        self.page.on("console", lambda message: message.type == "error" and self._complain(message))
        self.page.on("request", lambda request: self._check(request.url))
        self.page.on(
            "requestfailed", lambda request: self.troubles.append(f"failed: {request.url}")
        )
        self.page.goto(url)
        self.page.wait_for_function(READY)

    def _check(self, url):
        if not url.startswith((self.home, "data:", "blob:")):
            self.troubles.append(f"asks another host: {url}")

    def _complain(self, message):
        self.troubles.append(f"{message.text} {message.location}")

    def read(self):
        """Come to all figures, one after another, and wait until they are there."""
        for figure in self.page.locator("nad-explorer, .bd-article img:visible").all():
            figure.scroll_into_view_if_needed()
        self.page.wait_for_function(READY)
        self.page.wait_for_load_state("networkidle")

    def weight(self):
        """Return the bytes of the page and of all that it has loaded."""
        return self.page.evaluate(
            """() => ['navigation', 'resource'].flatMap((kind) => performance.getEntriesByType(kind))
                     .reduce((sum, entry) => sum + entry.transferSize, 0)"""
        )

    def __enter__(self):
        return self

    def __exit__(self, kind, *rest):
        self.context.close()
        if kind is None:
            assert not self.troubles


CUT = """(() => {
  document.querySelectorAll("details").forEach((part) => (part.open = true));
  const wide = ".highlight pre, div.math, div.formula, .pst-scrollable-table-container, .text_html, figure";
  return [...document.querySelectorAll(wide)]
    .filter((part) => part.scrollWidth > part.clientWidth + 1 && part.clientWidth)
    .filter((part) => part.tagName !== "PRE" || getComputedStyle(part).overflowX !== "auto")  // code scrolls
    .map((part) => `${part.className || part.tagName}: ${part.textContent.trim().slice(0, 80)}`);
})()"""
CELLS = """[...document.querySelectorAll(".bd-article .cell_input")]
    .filter((part) => part.checkVisibility() && !part.closest("details:not([open])")).length"""
MOST_CELLS = 20


@pytest.mark.parametrize("name", PAGES)
def test_page_is_private_light_accessible_and_whole(browser, address, name):
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="needs axe-playwright-python"
    ).Axe()
    with Visit(browser, f"{address}/{name}.html", viewport={"width": 1280, "height": 900}) as visit:
        visit.read()
        weight = visit.weight()
        print(f"{name}: {weight / 1e6:.2f} MB")
        assert 1e5 < weight < HEAVIEST
        assert name not in CHAPTERS or visit.page.evaluate(CELLS) <= MOST_CELLS
        # Contrast is the slow rule; the long page of the library has the colours of the others.
        rules = {"color-contrast": {"enabled": not name.startswith("book/api")}}
        result = axe.run(
            visit.page, options={"resultTypes": ["violations"], "preload": False, "rules": rules}
        )
        serious = [
            f"{rule['id']}: {node['html'][:150]}"
            for rule in result.response["violations"]
            if rule["impact"] in ("serious", "critical")
            for node in rule["nodes"]
        ]
        assert not serious, "\n".join(serious)
        assert not visit.page.evaluate(CUT)


@pytest.mark.parametrize(
    "name", ["notebooks/09_nad_computation", "notebooks/07_poison", "notebooks/15_explorer"]
)
def test_page_in_dark_and_on_a_telephone(browser, address, name):
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    stem = Path(name).name
    views = {
        "light": {"viewport": {"width": 1200, "height": 900}},
        "dark": {"viewport": {"width": 1200, "height": 900}, "color_scheme": "dark"},
        "narrow": {"viewport": {"width": 375, "height": 800}, "is_mobile": True, "has_touch": True},
    }
    for view, options in views.items():
        with Visit(browser, f"{address}/{name}.html", **options) as visit:
            page = visit.page
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
            dark = page.evaluate("document.documentElement.dataset.theme") == "dark"
            page.screenshot(path=SCREENSHOTS / f"{stem}-{view}.png")
            explorer = page.locator("nad-explorer, nad-note").first
            assert dark == (view == "dark") == explorer.locator(".explorer.dark").count()
            page.add_style_tag(
                content=".bd-header-article, .skip-link, #pst-skip-link { display: none !important }"
            )
            explorer.screenshot(path=SCREENSHOTS / f"{stem}-{view}-explorer.png")


SHIFT = """window.shifts = []; new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) if (!entry.hadRecentInput) shifts.push(entry.value);
}).observe({ type: "layout-shift", buffered: true });"""
SIZE = """() => ['navigation', 'resource'].flatMap((kind) => performance.getEntriesByType(kind))
  .reduce((sum, entry) => sum + entry.decodedBodySize, 0)"""


@pytest.mark.parametrize("name", ["book/intro", "notebooks/10_atlas"])
def test_a_page_stands_still_on_a_telephone(browser, address, name):
    options = {"viewport": {"width": 375, "height": 800}, "is_mobile": True, "has_touch": True}
    with browser.new_context(**options) as context:
        page = context.new_page()
        page.add_init_script(SHIFT)
        page.goto(f"{address}/{name}.html")
        page.wait_for_load_state("networkidle")
        if name == "book/intro":
            assert page.evaluate(SIZE) <= 1.5e6, (
                "before scrolling, not compressed"
            )  # 0.4 are the font
        for y in range(0, page.evaluate("document.documentElement.scrollHeight"), 600):
            page.evaluate("(y) => scrollTo(0, y)", y)
            page.wait_for_timeout(50)
        page.wait_for_load_state("networkidle")
        assert page.evaluate("shifts.reduce((sum, shift) => sum + shift, 0)") <= 0.1


def test_a_wide_formula_scrolls_in_its_own_box(browser, address):
    options = {"viewport": {"width": 320, "height": 800}, "is_mobile": True, "has_touch": True}
    with Visit(browser, f"{address}/notebooks/06_lemma1_hessian.html", **options) as visit:
        page = visit.page
        page.evaluate("document.querySelectorAll('details').forEach((part) => (part.open = true))")
        page.locator("div.formula[tabindex='0']").first.wait_for()
        wide = """() => [...document.querySelectorAll("div.formula")].map((box) => [box, box.querySelector("math")])
          .map(([box, math]) => [math.offsetLeft < box.offsetLeft || math.scrollWidth > box.scrollWidth,
            box.scrollWidth > box.clientWidth, box.tabIndex === 0])"""
        formulas = page.evaluate(wide)
        assert any(scrolls for _, scrolls, _ in formulas)
        assert all(not cut and scrolls == focusable for cut, scrolls, focusable in formulas)


@pytest.mark.parametrize(
    "query, about", [("poison", "07_poison"), ("pooling", "04_pooling_theory")]
)
def test_search_puts_chapters_before_the_library(browser, address, query, about):
    with Visit(browser, f"{address}/search.html?q={query}") as visit:
        visit.page.locator("#search-results li a").nth(4).wait_for()
        visit.page.wait_for_load_state("networkidle")
        found = [
            link.get_attribute("href")
            for link in visit.page.locator("#search-results li > a").all()
        ]
        assert "notebooks/" in found[0] and any(about in link for link in found), found
        places = [place for place, link in enumerate(found) if "book/api" in link]
        chapters = [place for place, link in enumerate(found) if "notebooks/" in link]
        assert not places or max(chapters) < min(places)


def test_search_quotes_text_without_tex_or_buttons(browser, address):
    with Visit(browser, f"{address}/search.html?q=anisotropy") as visit:
        visit.page.locator("#search-results .context").first.wait_for()
        visit.page.wait_for_load_state("networkidle")
        for query in ("anisotropy", "variance"):
            visit.page.goto(f"{address}/search.html?q={query}")
            visit.page.locator("#search-results .context").nth(2).wait_for()
            visit.page.wait_for_load_state("networkidle")
            quotes = visit.page.locator("#search-results .context").all_inner_texts()
            assert any(query in quote.lower() for quote in quotes)
            for quote in quotes:
                assert "How to cite Repo" not in quote and not re.search(r"\\[a-z(]", quote), quote


def test_claims_can_be_searched_and_filtered_and_fit_a_telephone(browser, address):
    with Visit(
        browser, f"{address}/book/claims.html", viewport={"width": 375, "height": 800}
    ) as visit:
        page = visit.page
        lines = page.locator(".claim-line:visible")
        everything = lines.count()
        page.locator(".claims-filter select").nth(0).select_option("verdict-open")
        assert 0 < lines.count() < everything
        assert page.locator(".claim-line.verdict-verified:visible").count() == 0
        page.locator(".claims-filter select").nth(0).select_option("")
        page.locator(".claims-filter input").fill("Adam photos")
        assert 0 < lines.count() < everything / 10
        assert all("adam" in text.lower() for text in lines.all_inner_texts())
        assert page.locator(".claims-filter output").inner_text().startswith(f"{lines.count()} of")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_figures_follow_the_theme_and_the_screen(browser, address):
    """In the dark a figure has no white ground; on a telephone its panels stack, or it scrolls in its own box."""
    shown = """(article) => [...article.querySelectorAll("a.enlarge")].filter((link) => link.checkVisibility())
      .map((link) => [link, link.querySelector("img")])
      .map(([link, image]) => [image.currentSrc, image.clientWidth, link.clientWidth, link.className])"""
    for scheme, mobile in (("light", False), ("dark", False), ("light", True), ("dark", True)):
        screen = {
            "viewport": {"width": 375 if mobile else 1280, "height": 800},
            "is_mobile": mobile,
        }
        with Visit(
            browser, f"{address}/notebooks/08_flip.html", color_scheme=scheme, **screen
        ) as visit:
            visit.read()
            figures = visit.page.locator(".bd-article").evaluate(shown)
            assert len(figures) >= 3
            for source, width, room, kind in figures:
                assert ("dark" in source) == (scheme == "dark"), source
                narrow = "narrow" in source
                assert (narrow == ("wide" not in kind)) if mobile else not narrow
                assert width <= room or mobile and not narrow and width > 500
            assert visit.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_figure_opens_over_the_page_and_escape_closes_it(browser, address):
    options = {"viewport": {"width": 375, "height": 800}, "is_mobile": True, "has_touch": True}
    with Visit(browser, f"{address}/notebooks/07_poison.html", **options) as visit:
        page, link = visit.page, visit.page.locator("a.enlarge:visible").first
        link.scroll_into_view_if_needed()
        link.tap()
        picture = page.locator("dialog.overlay img")
        assert picture.evaluate("(image) => image.getBoundingClientRect().right <= innerWidth")
        assert picture.get_attribute("alt") == link.locator("img").get_attribute("alt")
        picture.tap()
        assert page.evaluate(
            "(() => { const d = document.querySelector('dialog.overlay'); return d.scrollWidth > d.clientWidth })()"
        )
        page.keyboard.press("Escape")
        picture.wait_for(state="detached")
        assert page.url.endswith("07_poison.html") and link.evaluate(
            "(link) => document.activeElement === link"
        )


LOADED = "() => [...document.fonts].some((font) => /NADs Math/.test(font.family) && font.status === 'loaded')"


def test_pages_open_as_files(browser, html):
    for name in ("book/intro", "notebooks/07_poison", "notebooks/15_explorer"):
        with Visit(browser, f"file://{html}/{name}.html") as visit:
            visit.read()
            assert visit.page.locator(":is(nad-explorer, nad-note) canvas[role=img]").count()
            if visit.page.locator("math").count():
                visit.page.wait_for_function(LOADED)
