"""The explorer's program and its style, in the forms in which a page and a notebook take them."""

from __future__ import annotations

import base64
import json
import zlib
from pathlib import Path

FOLDER = Path(__file__).parent
FILE = "_static/explorer/explorer.js"  # beside the pages of a book
UNPACK = """(async (packed) => {
  const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).text();
})"""


def module() -> str:
    """Return the program as an ES module."""
    return f"{_source()}\nexport {{ COLOURS }};\nexport default {{ render }};\n"


def script() -> str:
    """Return the program as a classic script, which defines <nad-explorer> and loads from a file as from a server."""
    return f'(() => {{\n"use strict";\n{_source()}\n}})();\n'


def packed_module() -> str:
    """Return the module packed, as small as an output of a live notebook can carry it."""
    source, name = _packed(module())
    blob = 'new Blob([text], { type: "text/javascript" })'
    return (
        f"const program = (globalThis[{json.dumps(name)}] ??=\n"
        f"{UNPACK}({json.dumps(source)}).then((text) => import(URL.createObjectURL({blob}))));\n"
        "export default { render: async (context) => (await program).default.render(context) };\n"
    )


def packed_script() -> str:
    """Return a script that unpacks the program and runs it, unless an output of the same page has done so."""
    source, _ = _packed(script())
    run = 'document.head.append(Object.assign(document.createElement("script"), { textContent: text }))'
    return f'customElements.get("nad-explorer") || {UNPACK}({json.dumps(source)}).then((text) => {run});\n'


def link() -> str:
    """Return a script that loads the program from the book's `FILE`, once a page."""
    address = f"${{document.documentElement.dataset.content_root ?? ''}}{FILE}?v={zlib.crc32(script().encode()):08x}"
    run = f'document.head.appendChild(Object.assign(document.createElement("script"), {{ src: `{address}` }}))'
    return f"globalThis.nadExplorerProgram ??= {run};\n"


def _source() -> str:
    style = json.dumps((FOLDER / "explorer.css").read_text("utf8"))
    return f"const STYLE = {style};\n{(FOLDER / 'explorer.js').read_text('utf8')}"


def _packed(text: str) -> tuple[str, str]:
    """Return text, packed, and a name that no other text has."""
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode(), f"nadExplorer-{zlib.crc32(text.encode()):08x}"
