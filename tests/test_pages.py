"""The built book in a real browser: private, light, accessible, readable in both themes and on a telephone."""

from pathlib import Path

import build
import pytest
from conftest import BOOK

SCREENSHOTS = BOOK.parent / "screenshots"
PAGES = ["book/intro", *build.chapters(), "book/errata", "book/api", "book/references", "search", "genindex"]
HEAVIER = {"notebooks/09_explorer": 6e6}  # bytes; any other page may have 3 MB
READY = """() => [...document.querySelectorAll('nad-explorer')].every(
    (e) => e.shadowRoot?.querySelector('.explorer')?.getAttribute('aria-busy') === 'false')"""


@pytest.fixture(scope="session")
def address(html, serve):
    return serve(html)


class Visit:
    """A page, what it has loaded, and what went wrong."""

    def __init__(self, browser, url, **options):
        self.context = browser.new_context(**options)
        self.page, self.troubles = self.context.new_page(), []
        self.home = url[: url.index("/", 7 if url.startswith("file:") else 8)]
        self.page.set_default_timeout(20_000)
        self.page.on("pageerror", lambda error: self.troubles.append(f"error: {error}"))
        self.page.on("console", lambda message: message.type == "error" and self._complain(message))
        self.page.on("request", lambda request: self._check(request.url))
        self.page.on("requestfailed", lambda request: self.troubles.append(f"failed: {request.url}"))
        self.page.goto(url)
        self.page.wait_for_function(READY)

    def _check(self, url):
        if not url.startswith((self.home, "data:", "blob:")):
            self.troubles.append(f"asks another host: {url}")

    def _complain(self, message):
        self.troubles.append(f"{message.text} {message.location}")

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


@pytest.mark.parametrize("name", PAGES)
def test_page_is_private_light_and_accessible(browser, address, name):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python").Axe()
    with Visit(browser, f"{address}/{name}.html", viewport={"width": 1200, "height": 900}) as visit:
        visit.page.wait_for_load_state("networkidle")
        weight = visit.weight()
        print(f"{name}: {weight / 1e6:.2f} MB")
        assert 3e5 < weight < HEAVIER.get(name, 3e6)
        # Contrast is the slow rule; the long page of the library has the colours of the others.
        rules = {"color-contrast": {"enabled": name != "book/api"}}
        found = axe.run(visit.page, options={"resultTypes": ["violations"], "preload": False, "rules": rules}).response[
            "violations"
        ]
        serious = [
            f"{rule['id']}: {node['html'][:150]}"
            for rule in found
            if rule["impact"] in ("serious", "critical")
            for node in rule["nodes"]
        ]
        assert not serious, "\n".join(serious)


@pytest.mark.parametrize("name", ["notebooks/05_nad_computation", "notebooks/07_poison", "notebooks/09_explorer"])
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
            explorer = page.locator("nad-explorer").first
            assert dark == (view == "dark") == explorer.locator(".explorer.dark").count()
            page.add_style_tag(content=".bd-header-article, .skip-link, #pst-skip-link { display: none !important }")
            explorer.screenshot(path=SCREENSHOTS / f"{stem}-{view}-explorer.png")


def test_pages_open_as_files(browser, html):
    for name in ("book/intro", "notebooks/07_poison", "notebooks/09_explorer"):
        with Visit(browser, f"file://{html}/{name}.html") as visit:
            canvases = visit.page.locator("nad-explorer canvas[role=img]")
            assert name == "book/intro" or canvases.count()
            if visit.page.locator(".math").count():
                visit.page.locator("mjx-container").first.wait_for()
