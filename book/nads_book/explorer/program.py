"""The explorer's program and its style, in the forms in which a page and a notebook take them."""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Iterator
from pathlib import Path

SOURCES = Path(__file__).parent / "sources"  # ES modules, and a style sheet
IMPORT = re.compile(r'^import (?:\{[^}]*\} from )?"(\S+)";\n', re.MULTILINE)
LEFT_OUT = re.compile(  # when sources are joined into one scope
    rf"{IMPORT.pattern}|^export (?:default .*\n)?|^ *(?://.*|/\*\*?[^*]*\*/)\n",  # the last: lines of comment
    re.MULTILINE,
)
FILE = "_static/explorer/explorer.js"  # beside the pages of a book
UNPACK = """(async (packed) => {
  const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).text();
})"""


def module() -> str:
    """Return the program as an ES module, whose default export is what anywidget calls."""
    return f"{_joined()}\nexport default {{ render }};\n"


def script() -> str:
    """Return the program as a classic script, which defines <nad-explorer> and loads from a file as from a server."""
    return f'(() => {{\n"use strict";\n{_joined()}\n}})();\n'


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


def _joined() -> str:
    """Return the style and all sources as one text, without what only separate sources and their readers need."""
    style = json.dumps((SOURCES / "explorer.css").read_text("utf8"))
    texts = (LEFT_OUT.sub("", text).strip() for text in _ordered(SOURCES / "explorer.js", set()))
    return f"const STYLE = {style};\n" + "\n".join(filter(None, texts))


def _ordered(path: Path, seen: set[Path]) -> Iterator[str]:
    """Yield a source behind those that it imports, each of them once."""
    if path in seen:
        return
    seen.add(path)
    text = path.read_text("utf8")
    for name in IMPORT.findall(text):
        yield from _ordered((path.parent / name).resolve(), seen)
    yield text


def _packed(text: str) -> tuple[str, str]:
    """Return text, packed, and a name that no other text has."""
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode(), f"nadExplorer-{zlib.crc32(text.encode()):08x}"
