"""Sphinx's events for what a reader's browser and search engines see: pictures that fit the theme
and the screen, descriptions of pages, and an icon font of the icons that there are.
"""

from __future__ import annotations

import re
import shutil
import textwrap
from functools import cache, partial
from pathlib import Path
from typing import Any

from docutils import nodes
from PIL import Image, ImageChops, ImageStat
from sphinx.application import Sphinx

from nads_core.runtime import __version__
from nads_core.runtime.provenance import own_commit

commit = cache(own_commit)
DESCRIPTION = 200  # characters, at most
PICTURE = re.compile(r'<img [^>]*src="([^"]*_images/)([^"/]+)\.png"[^>]*>')
ICON = re.compile(r'(?:"[\w-]+"|\b[a-z]\w*):\[\d+,\d+,\[[^\]]*\],"[0-9a-f]+","[^"]*"\],?')


def with_variants(images: Path, image: re.Match[str]) -> str:
    """Return a picture as a link to its file, where it can be enlarged, or as two of which the
    theme shows one; telephones get a narrow one.

    Args:
        images: folder with ``STEM.png``, and ``STEM.VARIANT.png`` where there are any.
        image: element, as `PICTURE` found it.
    """
    tag, folder, stem = image[0], image[1], image[2]
    kinds = {"enlarge wide": ("", "")}  # class of a link: its picture, and that of telephones
    if (images / f"{stem}.dark.png").exists():
        kinds = {
            "enlarge for-light": ("", ".narrow"),
            "enlarge for-dark": (".dark", ".narrow-dark"),
        }

    def attributes(kind: str, variant: str) -> str:
        name = f"{stem}{variant}.png"
        with Image.open(images / name) as opened:  # so that a page does not move when it arrives
            width, height = opened.size
        return f'{kind}="{folder}{name}" width="{width}" height="{height}"'

    links = ""
    for kind, (wide, narrow) in kinds.items():
        full = re.sub(r'src="[^"]*"', f'{attributes("src", wide)} loading="lazy"', tag)
        if narrow:
            source = attributes("srcset", narrow)
            full = f'<source media="(max-width: 576px)" {source}>{full}'
        address = f"{folder}{stem}{wide}.png"
        links += f'<a class="{kind}" href="{address}"><picture>{full}</picture></a>'
    return links


def description(doctree: nodes.document) -> str:
    """Return the first paragraph of a page in one line, cut at a word."""
    texts = (
        one.astext()
        for one in doctree.findall(nodes.paragraph)
        if isinstance(one.parent, nodes.section)
        and not one.next_node(lambda part: isinstance(part, nodes.math | nodes.raw))
    )
    text = next((text for text in texts if len(text) > 30), "")
    return textwrap.shorten(text, DESCRIPTION, placeholder="…")


def finish(app: Sphinx, name: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Change what templates get: the body of a page, and what its head and foot say."""
    body, given = context.get("body", ""), context.get("meta") or {}
    first = PICTURE.search(body)
    own = f"_images/{first[2]}.png" if first else "_static/question.png"
    context |= {
        "description": given.get("description") or (description(doctree) if doctree else ""),
        "picture": f"{app.config.html_baseurl}{given.get('picture') or own}",
        "version": __version__,
        "commit": commit(),
        # A number and its sign stay on one line
        "body": re.sub(r"(?<=\d) %(?!\w)", "\u00a0%", body),
    }


def write_pictures(app: Sphinx, problem: Exception | None) -> None:
    """Put the variants of pictures beside them, all of them small, and into the pages, and cut the
    icon font of 1.5 MB to the icons of the pages.
    """
    pages, images = Path(app.outdir), Path(app.outdir, "_images")
    shutil.copytree(Path(app.srcdir, "variants"), images, dirs_exist_ok=True)
    for path in images.glob("*.png"):
        shrink(path)
    used: set[str] = set()
    for path in pages.rglob("*.html"):
        page = PICTURE.sub(partial(with_variants, images), path.read_text("utf8"))
        path.write_text(page, "utf8")
        used.update(re.findall(r"\bfa-([a-z0-9-]+)", page))
    for path in pages.glob("_static/scripts/fontawesome.js"):
        icons = ICON.sub(  # by any of its names
            lambda icon: "" if used.isdisjoint(re.findall(r"[\w-]+", icon[0])) else icon[0],
            path.read_text("utf8"),
        )
        path.write_text(icons, "utf8")


def shrink(path: Path) -> None:
    """Write a picture with a palette of 256 colours, a third of its size, unless it has more, as
    photos do.
    """
    full = Image.open(path).convert("RGB")  # no picture is transparent
    few = full.quantize(256, dither=Image.Dither.NONE)
    lost = ImageStat.Stat(ImageChops.difference(full, few.convert("RGB"))).mean
    if sum(lost) < 1.5:  # of three times 255 levels
        few.save(path, optimize=True)


def setup(app: Sphinx) -> None:
    """Register the events."""
    app.connect("html-page-context", finish)
    app.connect("build-finished", write_pictures)
