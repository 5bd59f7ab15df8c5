"""What pages need to be found, cited and shared: descriptions, previews, a footer, and search
results in plain text.

sphinxext-opengraph would write the same tags from Sphinx's document tree. There, formulas are TeX
and signs of claims are HTML, a page's first figure is not known, and citation tags are missing: it
would replace twenty lines of `tags`.
"""

from __future__ import annotations

import json
import re
import subprocess
import textwrap
from pathlib import Path

import jinja2
import matplotlib
import yaml
from bs4 import BeautifulSoup
from bs4.element import Tag
from PIL import Image, ImageDraw, ImageFont

import nads_core

SIZE = (1200, 630)  # of a preview, as social networks show it
DESCRIPTION = 200  # characters, at most
FIRST = "book/intro"
PLAYGROUND = "book/playground"
# Of pages whose first figure is drawn by the browser; others have an image.
HERO = {FIRST: "_static/question.png", PLAYGROUND: "_static/question.png"}
# What previews ask instead of the page's title.
QUESTIONS = {
    FIRST: "Bet on five waves that ResNet-18 cannot learn",
    PLAYGROUND: "Build a network. Which waves can it not learn?",
}
DESCRIPTIONS = {
    FIRST: "Hide a wave in noise. Bet on five waves that ResNet-18 cannot learn: an executable "
    "book on what networks prefer before they have seen any data.",
    PLAYGROUND: "Build a network in your browser, see which waves its random weights prefer, then "
    "train it.",
}

GREEK = dict(
    zip(
        "alpha beta gamma delta epsilon varepsilon eta theta kappa lambda mu nu xi pi rho sigma "
        "tau phi varphi chi psi omega Gamma Delta Theta Lambda Sigma Phi Psi Omega ell cdot times "
        "le leq ge geq approx sim pm to infty in sum "
        "top dots ldots langle rangle neq propto".split(),
        [*"αβγδεεηθκλμνξπρστφφχψωΓΔΘΛΣΦΨΩℓ·×≤≤≥≥≈∼±→∞∈∑", "ᵀ", "…", "…", "⟨", "⟩", "≠", "∝"],
        strict=True,
    )
)
TEMPLATES = Path(__file__).resolve().parents[2] / "_templates"
FONTS = Path(matplotlib.get_data_path()) / "fonts" / "ttf"


def about(root: Path) -> dict[str, str]:
    """Return version and commit of the book, which the footer shows; the commit is empty without
    git.
    """
    command = ["git", "rev-parse", "--short=9", "HEAD"]
    try:
        commit = subprocess.run(command, cwd=root, capture_output=True, text=True).stdout.strip()
    except FileNotFoundError:
        commit = ""
    return {"book_version": nads_core.__version__, "book_commit": commit}


def configure(path: Path, root: Path) -> None:
    """Add to a staged `_config.yml` what the templates show."""
    config = yaml.safe_load(path.read_text("utf8"))
    sphinx = config.setdefault("sphinx", {}).setdefault("config", {})
    repository = config.get("repository", {}).get("url", "")
    sphinx["html_context"] = (
        sphinx.get("html_context", {}) | about(root) | {"book_repository": repository}
    )
    path.write_text(yaml.safe_dump(config, sort_keys=False, allow_unicode=True), "utf8")


def text_of(element: Tag) -> str:
    """Return the text of an element in one line, with formulas as plain text, and without links of
    headings.
    """
    copy = BeautifulSoup(str(element), "html.parser")
    for clutter in copy.select(".headerlink, .claim-mark"):
        clutter.decompose()
    for formula in copy.select("math"):
        if formula.annotation is not None:
            formula.replace_with(plain(formula.annotation.get_text()))
    return " ".join(copy.get_text().split())


def plain(tex: str) -> str:
    r"""Write a short formula as text.

    >>> plain(r"\varepsilon = \frac{1}{2}")
    'ε = 1/2'
    """
    tex = re.sub(r"\\(mathbf|mathcal|mathrm|mathbb|text|operatorname|left|right)\b", "", tex)
    tex = re.sub(r"\\[td]?frac\{([^{}]*)\}\{([^{}]*)\}", r"\1/\2", tex)
    tex = re.sub(r"\\([a-zA-Z]+)", lambda name: GREEK.get(name[1], " "), tex)
    return " ".join(re.sub(r"\\.|[{}$]", "", tex).split())


def description(article: Tag) -> str:
    """Return the first paragraph of a page, cut at a word."""
    for paragraph in article.select("section > p"):
        text = text_of(paragraph)
        if len(text) > 30:
            return textwrap.shorten(text, DESCRIPTION, placeholder="…")
    return ""


def hero(article: Tag, name: str, site: Path) -> Path | None:
    """Return the first picture of a page, if it has one."""
    if name in HERO:
        return site / HERO[name]
    for image in article.select("img"):
        path = (site / name).parent / str(image.get("src", ""))
        if path.suffix == ".png" and path.is_file():
            return path.resolve()
    return None


def preview(title: str, picture: Path, target: Path) -> None:
    """Draw a page's title above its picture."""
    card = Image.new("RGB", SIZE, "white")

    def font(size: int, weight: str = "") -> ImageFont.FreeTypeFont:
        return ImageFont.truetype(FONTS / f"DejaVuSans{weight}.ttf", size)

    draw = ImageDraw.Draw(card)
    size = 46
    while draw.textlength(title, font(size, "-Bold")) > SIZE[0] - 100 and size > 24:
        size -= 2
    draw.text((50, 36), title, "#222", font(size, "-Bold"))
    draw.text(
        (50, SIZE[1] - 46), "Neural Anisotropy Directions, an executable book", "#555", font(24)
    )
    with Image.open(picture) as original:
        white = Image.new("RGBA", original.size, "white")
        drawn = Image.alpha_composite(white, original.convert("RGBA")).convert("RGB")
    room = (SIZE[0] - 100, SIZE[1] - 176)
    scale = min(room[0] / drawn.width, room[1] / drawn.height)
    drawn = drawn.resize(
        (round(drawn.width * scale), round(drawn.height * scale)), Image.Resampling.LANCZOS
    )
    card.paste(drawn, ((SIZE[0] - drawn.width) // 2, 112 + (room[1] - drawn.height) // 2))
    card.quantize(256, dither=Image.Dither.NONE).save(target, optimize=True)


def share(site: Path, root: Path, names: list[str]) -> None:
    """Add to the rendered pages what other programs read, and take out what they need not load.

    Args:
        site: folder of the pages.
        root: root of the repository.
        names: pages of the table of contents, such as ``notebooks/07_poison``.
    """
    config = yaml.safe_load((root / "_config.yml").read_text("utf8"))
    text = (TEMPLATES / "meta.html").read_text("utf8")
    meta = jinja2.Template(text, autoescape=True, trim_blocks=True, lstrip_blocks=True)
    base, first = config["html"]["baseurl"].rstrip("/"), ""
    folder = site / "_static" / "previews"
    folder.mkdir(parents=True, exist_ok=True)
    for name in dict.fromkeys([FIRST, *names]):
        path = site / f"{name}.html"
        text = path.read_text("utf8") if path.is_file() else ""
        article = BeautifulSoup(text, "html.parser").select_one("article")
        heading = article and article.select_one("h1")
        if not article or not heading:
            continue
        title, card = text_of(heading), FIRST
        if (picture := hero(article, name, site)) and picture.is_file():
            card = name
            preview(QUESTIONS.get(name, title), picture, folder / f"{Path(name).name}.png")
        image = article.select_one("img[alt]")
        found = meta.render(
            config=config,
            title=title,
            description=DESCRIPTIONS.get(name) or description(article),
            address=f"{base}/{name}.html",
            card=f"{base}/_static/previews/{Path(card).name}.png",
            size=SIZE,
            alt=image["alt"] if image else "",
        )
        path.write_text(text.replace("</head>", f"{found}</head>", 1), "utf8")
        first = first or found
    index = site / "index.html"  # which only leads to the first page
    if index.is_file() and "</head>" not in (text := index.read_text("utf8")):
        index.write_text(f"{text}\n{first}", "utf8")
    for path in site.rglob("*.html"):
        lighten(path)
    tools, words = site / "_static" / "searchtools.js", json.dumps(GREEK, ensure_ascii=False)
    if tools.is_file():
        added = (TEMPLATES / "search_text.js").read_text("utf8").replace("= WORDS", f"= {words}")
        tools.write_text(tools.read_text("utf8") + added, "utf8")


def lighten(path: Path) -> None:
    """Let a page not load what only the page of search results needs."""
    text = path.read_text("utf8")
    script = r'\s*<script src="[^"]*(?:searchtools|language_data|searchindex)\.js[^"]*"></script>'
    changed = re.sub(script, "", text) if path.name != "search.html" else text
    if changed != text:
        path.write_text(changed, "utf8")
