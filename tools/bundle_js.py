"""Bundle the explorer's JavaScript with esbuild: ``python tools/bundle_js.py``, after an edit in
`explorer/sources`.

It needs npx, which fetches esbuild and an assembler for WebAssembly. What they make is committed,
so that nothing else needs either of them.
"""

import base64
import hashlib
import subprocess
import tempfile
from pathlib import Path

from nads_book.explorer import bundle

ESBUILD = "esbuild@0.28.2"
WABT = "wabt@1.0.39"
KERNELS = bundle.SOURCES / "playground" / "kernels.wat"
WORKER = bundle.SOURCES / "playground" / "worker.js"


def sources_hash() -> str:
    """Return a hash of all sources, which the first line of `bundle.js` records."""
    sources = bundle.SOURCES
    paths = sorted(path for path in sources.rglob("*") if path.suffix in (".js", ".css", ".wat"))
    texts = [f"{path.relative_to(sources).as_posix()}\n{path.read_text('utf8')}" for path in paths]
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()


def assemble(folder: Path) -> None:
    """Write the kernels of the playground as a module that exports their code as base64."""
    code = folder / "kernels.wasm"
    command = ["npx", "--yes", "--package", WABT, "wat2wasm", str(KERNELS), "-o", str(code)]
    subprocess.run(command, check=True)
    text = base64.b64encode(code.read_bytes()).decode()
    module = f'// {KERNELS.name}, assembled by tools/bundle_js.py\nexport default "{text}";\n'
    KERNELS.with_name("kernels_code.js").write_text(module, "utf8")


def esbuild(source: Path, target: Path, *options: str) -> None:
    """Bundle a module with all that it imports."""
    common = ("--bundle", "--minify", "--charset=utf8", "--target=es2022", "--format=iife")
    command = ["npx", "--yes", ESBUILD, str(source), *common, *options, f"--outfile={target}"]
    subprocess.run(command, check=True)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        assemble(Path(name))
        # The program of the workers, which the page holds as a text
        worker = Path(name) / "worker.txt"
        esbuild(WORKER, worker)
        esbuild(
            bundle.SOURCES / "explorer.js",
            bundle.FOLDER / "bundle.js",
            "--loader:.css=text",
            f"--alias:worker-program={worker}",
            f"--banner:js=// sources: {sources_hash()}",
        )
