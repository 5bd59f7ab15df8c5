"""Bundle the explorer's JavaScript with esbuild: ``python tools/bundle_js.py``, after an edit in `explorer/sources`.

It needs npx, which fetches esbuild. The bundle is committed, so that nothing else needs either of them.
"""

import hashlib
import subprocess

from nads_book.explorer import bundle

ESBUILD = "esbuild@0.28.2"


def sources_hash() -> str:
    """Return a hash of all sources, which the first line of `bundle.js` records."""
    sources = bundle.SOURCES
    paths = sorted(path for path in sources.rglob("*.*s") if path.suffix in (".js", ".css"))
    texts = [f"{path.relative_to(sources).as_posix()}\n{path.read_text('utf8')}" for path in paths]
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()


if __name__ == "__main__":
    options = (
        "--bundle", "--minify", "--charset=utf8", "--target=es2022", "--format=iife", "--loader:.css=text",
        f"--global-name={bundle.NAME}", f"--banner:js=// sources: {sources_hash()}",
        f"--outfile={bundle.FOLDER / 'bundle.js'}",
    )  # fmt: skip
    subprocess.run(["npx", "--yes", ESBUILD, str(bundle.SOURCES / "explorer.js"), *options], check=True)
