"""The explorer's program, in the forms in which a page and a notebook load it.

`bundle.js` is what esbuild makes of the ES modules and the style sheet in `sources`: see
`tools/bundle_js.py`.
"""

from __future__ import annotations

import base64
import html
import json
import zlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent
SOURCES = FOLDER / "sources"
FILE = "_static/explorer/explorer.js"  # in the folder of a book's pages
UNPACK = """(async (packed) => {
  const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).text();
})"""


@cache
def script() -> str:
    """Return the program as a classic script, which defines <nad-explorer> and loads from a file as
    from a server.
    """
    return (FOLDER / "bundle.js").read_text("utf8")


def packed_script() -> str:
    """Return a script that unpacks the program and runs it, unless an output of the same page has
    done so.
    """
    run = (
        'document.head.append(Object.assign(document.createElement("script"), { textContent: '
        "text }))"
    )
    return (
        f'customElements.get("nad-explorer") || {UNPACK}({_packed(script())}).then((text) => '
        f"{run});\n"
    )


def link() -> str:
    """Return a script that loads the program from the book's `FILE`, once per page."""
    address = (
        "${document.documentElement.dataset.content_root ?? "
        f"''}}{FILE}?v={zlib.crc32(script().encode()):08x}"
    )
    run = (
        f'document.head.appendChild(Object.assign(document.createElement("script"), {{ src: '
        f"`{address}` }}))"
    )
    return f"globalThis.nadExplorerProgram ??= {run};\n"


def element(
    tag: str,
    config: object,
    sentence: str,
    book: bool,
    scripts: Iterable[str] = (),
    name: str = "config",
) -> str:
    """Return an interactive figure as HTML, with all that it needs.

    Args:
        tag: tag of the figure's element, which the program defines.
        config: content of the element's attribute, which becomes JSON.
        sentence: first sentence of what readers see where JavaScript is off.
        book: whether the program is in a file of the book rather than in the output.
        scripts: scripts with the figure's data.
        name: name of the attribute.
    """
    needs = (
        ", and the files of this book in the folder of the page"
        if book
        else " and a browser of 2023 or later"
    )
    everything = "".join(
        f"<script>{text}</script>" for text in (*scripts, link() if book else packed_script())
    )
    attribute = html.escape(json.dumps(config))
    keys = (
        "" if book else " data-lm-suppress-shortcuts"
    )  # the arrow keys move sliders, and not JupyterLab's cells
    return (
        f'<{tag} {name}="{attribute}"{keys}>{sentence} It needs '
        f"JavaScript{needs}.</{tag}>\n{everything}"
    )


def _packed(text: str) -> str:
    """Return a JavaScript string that `UNPACK` turns back into the text."""
    return json.dumps(base64.b64encode(zlib.compress(text.encode(), 9)).decode())
