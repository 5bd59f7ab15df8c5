"""Sphinx's events for what a reader's browser and search engines see: pictures that fit the theme
and the screen, descriptions of pages, and an icon font of the icons that there are.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from docutils import nodes
from PIL import Image

import nads_core

if TYPE_CHECKING:
    from sphinx.application import Sphinx

DESCRIPTION = 200  # characters, at most
PICTURE = re.compile(r'<img [^>]*src="([^"]*_images/)([^"/]+)\.png"[^>]*>')
ICON = re.compile(r'(?:"([\w-]+)"|\b([a-z]\w*)):\[\d+,\d+,\[([^\]]*)\],"[0-9a-f]+","[^"]*"\],?')


def with_variants(image: re.Match[str], picture: Path, variants: Path) -> str:
    """Return a picture as a link to its file, where it can be enlarged, or as two of which the
    theme shows one; telephones get a narrow one.

    Args:
        image: element, as `PICTURE` found it.
        picture: file of the picture.
        variants: folder with ``STEM.VARIANT.png``, where there are any.
    """
    tag, folder, stem = image[0], image[1], image[2]
    kinds = {"enlarge wide": ("", "")}  # class of a link: its picture, and that of telephones
    if (variants / f"{stem}.dark.png").exists():
        kinds = {"enlarge for-light": ("", "narrow"), "enlarge for-dark": ("dark", "narrow-dark")}

    def attributes(kind: str, name: str, path: Path) -> str:
        with Image.open(path) as opened:  # so that a page does not move when it arrives
            width, height = opened.size
        return f'{kind}="{folder}{name}" width="{width}" height="{height}"'

    links = ""
    for kind, (wide, narrow) in kinds.items():
        name = f"{stem}.{wide}.png" if wide else f"{stem}.png"
        source = attributes("src", name, variants / name if wide else picture)
        full = re.sub(r'src="[^"]*"', f'{source} loading="lazy"', tag)
        if narrow:
            small = f"{stem}.{narrow}.png"
            source = attributes("srcset", small, variants / small)
            full = f'<source media="(max-width: 576px)" {source}>{full}'
        links += f'<a class="{kind}" href="{folder}{name}"><picture>{full}</picture></a>'
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
    body, given = context.get("body", ""), app.env.metadata.get(name, {})
    first = PICTURE.search(body)
    own = f"_images/{first[2]}.png" if first else "_static/question.png"
    context |= {
        "description": given.get("description") or (description(doctree) if doctree else ""),
        "picture": f"{app.config.html_baseurl}{given.get('picture') or own}",
        "author": app.config.author,
        "repository": app.config.html_theme_options["repository_url"],
        "version": nads_core.__version__,
        "commit": commit(),
    }
    sources = {image: Path(app.srcdir, path) for path, image in app.builder.images.items()}
    body = PICTURE.sub(
        lambda image: with_variants(
            image, sources[f"{image[2]}.png"], Path(app.srcdir, "variants")
        ),
        body,
    )
    # A number and its sign stay on one line
    context["body"] = re.sub(r"(?<=\d) %(?!\w)", "\u00a0%", body)


def commit() -> str:
    """Return the commit of the checkout that Sphinx was started in; empty without git."""
    command = ["git", "rev-parse", "--short=9", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True).stdout.strip()


def write_pictures(app: Sphinx, problem: Exception | None) -> None:
    """Put the variants of pictures beside them, all of them small, and cut the icon font of 1.5 MB
    to the icons of the pages.
    """
    pages, images = Path(app.outdir), Path(app.outdir, "_images")
    for path in Path(app.srcdir, "variants").glob("*.png"):
        shutil.copy(path, images)
    for path in images.glob("*.png"):
        shrink(path)
    used = {
        name
        for path in pages.rglob("*.html")
        for name in re.findall(r"\bfa-([a-z0-9-]+)", path.read_text("utf8"))
    }

    def kept(icon: re.Match[str]) -> str:
        names = {icon[1] or icon[2], *re.findall(r'"([\w-]+)"', icon[3])}  # and its older ones
        return icon[0] if names & used else ""

    for path in pages.glob("_static/scripts/fontawesome.js"):
        path.write_text(ICON.sub(kept, path.read_text("utf8")), "utf8")


def shrink(path: Path) -> None:
    """Write a picture with a palette of 256 colours, a third of its size, unless it has more, as
    photos do.
    """
    full = Image.open(path).convert("RGB")  # no picture is transparent
    few = full.quantize(256, dither=Image.Dither.NONE)
    lost = np.asarray(full, np.int16) - np.asarray(few.convert("RGB"), np.int16)
    if np.abs(lost).mean() < 0.5:  # of 255 levels
        few.save(path, optimize=True)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the events."""
    app.connect("html-page-context", finish)
    app.connect("build-finished", write_pictures)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
