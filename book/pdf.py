"""Make a PDF of the built book: ``python book/pdf.py [OUT.pdf]`` (``make pdf``).

The articles of all pages become one, which Chromium prints, with bookmarks and links between chapters. Folded parts
are opened. Code is left out where the page folds it, and so are the lists of the library and of all claims. Interactive
figures become links to the page that has them, the bet of the introduction the maps that it is about.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import yaml
from bs4 import BeautifulSoup
from bs4.element import Tag
from sphinx_external_toc.parsing import parse_toc_yaml

ROOT = Path(__file__).resolve().parent.parent
SITE = ROOT / "_build" / "html"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
LEFT_OUT = ("book/api", "book/claims")  # long lists, which are better searched than read
CLUTTER = (
    "script, style, .headerlink, .for-dark, source, button, .claims-filter, .cell.tag_hide-input .cell_input, "
    "details.hide.above-input, noscript"
)
PRINT = """
@page { size: A4; margin: 18mm 17mm; }
html { font-size: 12.5px; }
body { max-width: none; background: #fff; color: #000; }
article { break-before: page; }
article.bd-article { padding: 0; }
article:first-of-type { break-before: auto; }
img { max-width: 100%; height: auto; }
figure, table, .cell_output img, pre, .admonition { break-inside: avoid; }
h1, h2, h3, h4 {
  break-after: avoid;
  padding-top: 3px; /* else the bookmark of a heading on top of a page has its text twice */
  white-space: pre-wrap; /* else the bookmark of two lines lacks the space between them */
}
a { color: inherit; text-decoration: none; }
.cover { text-align: center; padding-top: 35vh; break-after: page; }
"""


class PdfError(Exception):
    """The PDF cannot be made; the message is for the reader of the terminal."""


def slug(name: str) -> str:
    """Return what the ids of a page begin with."""
    return re.sub(r"\W", "-", name)


def article(name: str, names: list[str], site: Path, address: str) -> Tag:
    """Return a page's article, with ids and links that hold in one page of all articles.

    Args:
        name: page, such as ``notebooks/07_poison``.
        names: pages of the PDF.
        site: folder of the built pages.
        address: address of the book in the web, where other links lead.
    """
    found = BeautifulSoup((site / f"{name}.html").read_text("utf8"), "html.parser").select_one("article")
    if found is None:
        raise PdfError(f"{site / name}.html has no article: build the book again with `make book`")
    for still in found.select("nad-guess noscript"):  # what readers without JavaScript see
        still.parent.replace_with(*still.contents)
    for part in found.select(CLUTTER):
        part.decompose()
    for figure in found.find_all(re.compile("^nad-")):  # all interactive figures are elements of such a name
        note = BeautifulSoup(f'<p><em>Interactive figure: <a href="">{address}/{name}.html</a></em></p>', "html.parser")
        figure.replace_with(note)
    for details in found.select("details"):
        details["open"] = ""
    for element in found.select("[id]"):
        element["id"] = f"{slug(name)}--{element['id']}"
    for image in found.select("img[src]"):
        image["src"] = relative(name, str(image["src"]))
        image.attrs.pop("loading", None)
    for link in found.select("a[href]"):
        link["href"] = internal(name, str(link["href"]), names, address)
    found["id"] = slug(name)
    return found


def relative(name: str, address: str) -> str:
    """Return an address of a page as one of the folder of all pages."""
    return os.path.normpath(os.path.join(os.path.dirname(name), address))


def internal(name: str, address: str, names: list[str], book: str) -> str:
    """Return where a link leads in the PDF, or in the web."""
    if re.match(r"[a-z]+:", address):
        return address
    page, _, anchor = address.partition("#")
    target = relative(name, page).removesuffix(".html") if page else name
    if target in names:
        return f"#{slug(target)}--{anchor}" if anchor else f"#{slug(target)}"
    if "_images/" in address:  # a figure leads to its file
        return ""
    return f"{book}/{relative(name, page) if page else name}" + (f"#{anchor}" if anchor else "")


def combine(site: Path, root: Path = ROOT) -> str:
    """Return all articles as one page."""
    config = yaml.safe_load((root / "_config.yml").read_text("utf8"))
    names = [name for name in parse_toc_yaml(root / "_toc.yml") if name not in LEFT_OUT]
    names = [name for name in names if (site / f"{name}.html").is_file()]
    if not names:
        raise PdfError(f"{site} has no pages: run `make book` first")
    address = config["html"]["baseurl"].rstrip("/")
    articles = "\n".join(str(article(name, names, site, address)) for name in names)
    first = (site / f"{names[0]}.html").read_text("utf8")
    styles = "".join(re.findall(r'<link [^>]*rel="stylesheet"[^>]*>', first)).replace("../_static", "_static")
    about = re.search(r'<p class="component-about">.*?</p>', first, re.DOTALL)
    cover = f'<div class="cover"><p style="font-size:3em">{config["title"]}</p><p>{config["author"]}</p>'
    cover += (about[0] if about else "") + f"<p>{address}</p></div>"
    return (
        f'<!doctype html><html lang="en" data-theme="light"><head><meta charset="utf-8">'
        f"<title>{config['title']}</title>{styles}<style>{PRINT}</style></head><body>{cover}{articles}</body></html>"
    )


def print_page(browser: Any, page: Path, target: Path) -> None:
    """Print a page to a PDF once its fonts are loaded.

    Args:
        browser: Playwright's Chromium.
        page: HTML file.
        target: PDF to write.
    """
    tab = browser.new_page()
    tab.set_default_timeout(600_000)
    tab.goto(page.as_uri())
    tab.evaluate("() => document.fonts.ready.then(() => {})")
    foot = '<p style="font-size:8px;width:100%;text-align:center"><span class="pageNumber"></span></p>'
    tab.pdf(
        path=target, prefer_css_page_size=True, print_background=True, outline=True, tagged=True,
        display_header_footer=True, header_template="<p></p>", footer_template=foot,
    )  # fmt: skip
    tab.close()


def make(target: Path, site: Path = SITE, root: Path = ROOT) -> None:
    """Write the PDF.

    Raises:
        PdfError: if there is no built book, or no Chromium.
    """
    from playwright.sync_api import Error, sync_playwright

    if not site.is_dir():
        raise PdfError(f"there is no {site}: run `make book` first")
    chromium = os.environ.get("NADS_CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), None)
    page = site / "print.html"
    page.write_text(combine(site, root), "utf8")
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
            print_page(browser, page, target)
            browser.close()
    except Error as error:
        raise PdfError(f"Chromium did not print the book: {error}. NADS_CHROMIUM names its program.") from error
    finally:
        page.unlink()


def main() -> int:
    """Make the PDF that the command line names, and print its size."""
    parser = argparse.ArgumentParser(description="Make a PDF of the built book.")
    parser.add_argument("target", type=Path, nargs="?", default=ROOT / "_build" / "nads-book.pdf")
    target = parser.parse_args().target
    try:
        make(target)
    except PdfError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"{target}: {target.stat().st_size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
