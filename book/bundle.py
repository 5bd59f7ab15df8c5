"""Bundle the explorer's JavaScript with esbuild: ``python book/bundle.py``, after an edit in `explorer/sources`.

It needs npx, which fetches esbuild. The bundle is committed, so that nothing else needs either of them.
"""

import subprocess

from nads_book.explorer import bundle

ESBUILD = "esbuild@0.28.2"

if __name__ == "__main__":
    options = (
        "--bundle", "--minify", "--charset=utf8", "--target=es2022", "--format=iife", "--loader:.css=text",
        f"--global-name={bundle.NAME}", f"--banner:js=// sources: {bundle.sources_hash()}",
        f"--outfile={bundle.FOLDER / 'bundle.js'}",
    )  # fmt: skip
    subprocess.run(["npx", "--yes", ESBUILD, str(bundle.SOURCES / "explorer.js"), *options], check=True)
