"""Execute the chapters and render the book, with ``python book/build.py``.

    notebooks/*.ipynb --papermill--> _build/executed/PRESET/ --+--> _build/stage/ --Sphinx--> _build/html/
    _config.yml, _toc.yml, book/ ------------------------------+

The chapters are the entries of `_toc.yml` under ``notebooks/``. An executed chapter remembers a fingerprint of all that
it depends on, and is executed again only when that changes. Nothing outside the build folder is written.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import numpy as np
from PIL import Image
from sphinx_external_toc.parsing import parse_toc_yaml

from nads_core import explorer

ROOT = Path(__file__).resolve().parent.parent
PRESETS = {"smoke": 300, "demo": 900, "paper": 86_400}  # with the seconds that a single cell may take
DATA_VARIABLES = ("NADS_DATA", "NADS_REFERENCE")


class BuildError(Exception):
    """The book cannot be built; the message is for the reader of the terminal."""


def chapters(root: Path = ROOT) -> list[str]:
    """Return the notebooks that `_toc.yml` names, in order, such as ``notebooks/07_poison``."""
    return [name for name in parse_toc_yaml(root / "_toc.yml") if name.startswith("notebooks/")]


def fingerprint(notebook: Path, preset: str, root: Path = ROOT) -> str:
    """Hash what a chapter's outputs depend on: notebook, library, stored results, pins, preset, data folders."""
    digest = hashlib.sha256(repr([preset, *map(os.environ.get, DATA_VARIABLES)]).encode())
    inputs = [
        path
        for folder in ("nads_core", "book/results", "benchmarks/results")
        for path in sorted((root / folder).rglob("*"))
    ]
    for path in [notebook, root / "requirements.txt", *inputs]:
        if path.is_file() and "__pycache__" not in path.parts:
            content = path.read_bytes()
            digest.update(f"{path.relative_to(root)} {len(content)} ".encode() + content)
    return digest.hexdigest()


def run(command: list[str], root: Path) -> subprocess.CompletedProcess:
    """Run a Python module from the repository root, without standard input; on Ctrl-C let it end in its own time."""
    environment = {
        "OMP_WAIT_POLICY": "PASSIVE",  # on a busy machine, threads that spin while they wait cost a factor of ten
        **os.environ,
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",  # figures belong in the notebook
        "NADS_BOOK": "1",  # explorers are for pages, which share their arrays
    }
    with subprocess.Popen(
        [sys.executable, *command],
        cwd=root,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        try:
            output, _ = process.communicate()
        except KeyboardInterrupt:  # the terminal has told the child as well
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.communicate(timeout=20)
            raise
    return subprocess.CompletedProcess(command, process.returncode, plain(output))


def plain(text: str) -> str:
    """Drop the escape sequences that colour a terminal."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def check(notebook: nbformat.NotebookNode, timeout: float) -> None:
    """Raise a `BuildError` if a cell failed, or took so long that its end may have been missed.

    A client that loses the kernel's last message waits until the timeout and then goes on as if all were well.
    """
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        label = f"In [{cell.execution_count}]:\n\n{cell.source}\n"
        for output in cell.outputs:
            if output.output_type == "error":
                traceback = "\n".join(output.traceback) or f"{output.ename}: {output.evalue}"
                raise BuildError(f"{label}\n{plain(traceback)}")
        duration = cell.metadata.get("papermill", {}).get("duration") or 0.0
        if duration > 0.95 * timeout:
            raise BuildError(f"{label}\nThis cell took {duration:.0f} s; a cell may take at most {timeout:.0f} s.")


def hide_repeated_parameters(notebook: nbformat.NotebookNode) -> None:
    """Hide the cell that papermill adds, where it says no more than the cell above it and the page's byline."""
    for above, cell in zip(notebook.cells, notebook.cells[1:], strict=False):
        if "injected-parameters" in cell.metadata.get("tags", []):
            told = (line in above.source or line.startswith(("#", "preset =")) for line in cell.source.splitlines())
            if all(told):
                cell.metadata["tags"].append("remove-cell")


def machine() -> str:
    """Say what the chapters run on, such as "2 CPU cores"."""
    import torch

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    gpu = f" and a {torch.cuda.get_device_name()}" if torch.cuda.is_available() else ""
    return f"{cores} CPU core{'s' * (cores > 1)}{gpu}"


def byline(notebook: nbformat.NotebookNode) -> str:
    """Say how long an executed chapter took, on what, at which preset and when: papermill and `execute` noted it."""
    record, seconds = notebook.metadata["papermill"], notebook.metadata["papermill"]["duration"]
    duration = f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} minutes"
    preset, day = record["parameters"]["preset"], record["end_time"][:10]
    return f"This page was computed in {duration} on {notebook.metadata['machine']}, at preset `{preset}`, on {day}."


def with_byline(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Put the byline under the title of an executed chapter, and below it what cells tagged ``under-title`` display."""
    title, _, rest = notebook.cells[0].source.partition("\n")
    lifted = [cell for cell in notebook.cells if "under-title" in cell.metadata.get("tags", [])]
    notes = "".join(f"\n{output['data']['text/markdown']}\n" for cell in lifted for output in cell.outputs)
    notebook.cells[0].source = f"{title}\n\n:::{{div}} byline\n{byline(notebook)}\n:::\n{notes}{rest}"
    notebook.cells = [cell for cell in notebook.cells if cell not in lifted]
    return notebook


def execute(name: str, folder: Path, preset: str, root: Path = ROOT, timeout: float | None = None) -> float | None:
    """Execute one chapter into ``folder`` unless it is there already, made from the same inputs.

    Returns:
        The seconds that it took, or None where nothing had to be executed.

    Raises:
        BuildError: naming the chapter, the cell and what went wrong.
    """
    source, target = root / f"{name}.ipynb", folder / "executed" / preset / f"{Path(name).name}.ipynb"
    if not source.is_file():
        raise BuildError(f"_toc.yml names {name}, but there is no {source}: run `make sync`")
    inputs = fingerprint(source, preset, root)
    if target.is_file() and json.loads(target.read_text("utf8"))["metadata"].get("inputs") == inputs:
        return None
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_suffix(".partial.ipynb")  # becomes the target only when everything is well
    partial.unlink(missing_ok=True)
    timeout = timeout or PRESETS[preset]
    options = ["-p", "preset", preset, "--execution-timeout", f"{timeout:.0f}", "--no-progress-bar"]
    start = time.perf_counter()
    result = run(["-m", "papermill", str(source), str(partial), *options], root)
    seconds = time.perf_counter() - start
    try:
        if partial.is_file():
            notebook = nbformat.read(partial, as_version=4)
            check(notebook, timeout)
        if result.returncode:
            raise BuildError(f"papermill ended with status {result.returncode}:\n\n{result.stdout.strip()}")
    except BuildError as error:
        raise BuildError(f"{name}.ipynb failed at preset {preset!r}, {error}\n\nAs far as it came: {partial}") from None
    hide_repeated_parameters(notebook)
    notebook.metadata |= {"inputs": inputs, "machine": machine()}
    nbformat.write(notebook, partial)
    partial.replace(target)
    return seconds


def draw_intro(path: Path) -> None:
    """Draw the introduction's figure from the directions that ship with the library."""
    from nads_core import figures, load_nads

    names = {"LeNet": "lenet", "VGG-11": "vgg11", "ResNet-18": "resnet18", "DenseNet-121": "densenet121"}
    figures.plot_directions({label: load_nads(name) for label, name in names.items()}).savefig(path, dpi=200)


ICON = re.compile(r'(?:"([\w-]+)"|\b([a-z]\w*)):\[\d+,\d+,\[([^\]]*)\],"[0-9a-f]+","[^"]*"\],?')


def polish(html: Path) -> None:
    """Mend what the theme and Sphinx leave.

    An icon font of 1.5 MB, pictures in colours that they don't need, lists that are none to a screen reader.
    """
    used = set()
    for path in html.rglob("*.html"):
        page = text = path.read_text("utf8")
        text = text.replace('role="doc-biblioentry"', 'role="listitem"')
        text = re.sub(r'<dl>\s*(<dd><em class="sig-param".*?)</dl>', _signature, text, flags=re.DOTALL)
        if text != page:
            path.write_text(text, "utf8")
        used.update(re.findall(r"\bfa-([a-z0-9-]+)", page))

    def kept(icon: re.Match) -> str:
        names = {icon[1] or icon[2], *re.findall(r'"([\w-]+)"', icon[3])}  # its name, and older ones
        return icon[0] if names & used else ""

    for path in html.glob("_images/*.png"):
        shrink(path)
    for path in html.glob("_static/scripts/fontawesome.js"):
        path.write_text(ICON.sub(kept, path.read_text("utf8")), "utf8")


def shrink(path: Path) -> None:
    """Write a picture with a palette of 256 colours, a third of its size, unless it has more, as photos do."""
    picture = Image.open(path).convert("RGBA")
    if picture.getextrema()[3] != (255, 255):  # it is transparent somewhere
        return
    full = picture.convert("RGB")
    few = full.quantize(256, dither=Image.Dither.NONE)
    if np.abs(np.asarray(full, np.int16) - np.asarray(few.convert("RGB"), np.int16)).mean() < 0.5:  # of 255 levels
        few.save(path, optimize=True)


def _signature(parameters: re.Match) -> str:
    """Make the parameters of a long signature lines, where Sphinx makes them a list of definitions without terms."""
    lines = parameters[1].replace("<dd>", '<span class="sig-line">').replace("</dd>", "</span>")
    return f'<span class="sig-lines">{lines}</span>'


def render(folder: Path, preset: str, root: Path = ROOT) -> Path:
    """Render the executed chapters and the text around them; any warning is an error.

    Returns:
        The first page. It is replaced only by a build that succeeded.
    """
    stage, site, html = folder / "stage", folder / "sphinx", folder / "html"
    for stale in (stage, site):  # a page that is not read again would not be checked again
        shutil.rmtree(stale, ignore_errors=True)
    shutil.copytree(root / "book", stage / "book", ignore=shutil.ignore_patterns("chapters", "__pycache__", "*.py"))
    for name in ("_config.yml", "_toc.yml"):
        shutil.copy(root / name, stage / name)
    for name in chapters(root):
        (stage / name).parent.mkdir(exist_ok=True)
        executed = nbformat.read(folder / "executed" / preset / f"{Path(name).name}.ipynb", as_version=4)
        nbformat.write(with_byline(executed), stage / f"{name}.ipynb")
    draw_intro(stage / "book" / "_static" / "nads.png")
    explorer.write_pages_data(stage / "book" / "_static" / "explorer")
    options = ["--path-output", str(site), "-W", "-n", "--keep-going", "-q"]
    result = run(["-c", "from jupyter_book.cli.main import main; main()", "build", str(stage), *options], root)
    if result.returncode:
        messages = result.stdout.replace(f"{stage}{os.sep}", "").strip()
        raise BuildError(f"the pages could not be rendered without warnings:\n\n{messages}")
    polish(site / "_build" / "html")
    shutil.rmtree(html, ignore_errors=True)
    shutil.move(site / "_build" / "html", html)
    return html / "index.html"


def build(folder: Path = ROOT / "_build", preset: str = "demo", root: Path = ROOT) -> Path:
    """Execute the chapters that changed, render the book, say how long it took, and return the first page."""
    print(f"Building the book in {folder} at preset {preset!r}", flush=True)
    for name in chapters(root):
        print(f"  {name:<36}", end="", flush=True)
        seconds = execute(name, folder, preset, root)
        print("unchanged" if seconds is None else f"executed in {seconds:.1f} s", flush=True)
    start = time.perf_counter()
    print(f"  {'pages':<32}", end="", flush=True)
    index = render(folder, preset, root)
    print(f"rendered in {time.perf_counter() - start:.1f} s\nThe book: {index}", flush=True)
    return index


def main() -> int:
    """Build the book as the command line says."""
    parser = argparse.ArgumentParser(description="Execute the chapters and render the book.")
    parser.add_argument("--preset", choices=PRESETS, default="demo", help="size of the experiments (default: demo)")
    parser.add_argument("--folder", type=Path, default=ROOT / "_build", help="where everything is written")
    arguments = parser.parse_args()
    try:
        build(arguments.folder.resolve(), arguments.preset)
    except BuildError as error:
        print(f"\n\nerror: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\n\nInterrupted. The chapters that were executed to their end are kept.", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
