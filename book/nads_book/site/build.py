"""Execute the chapters and render the book, with ``python -m nads_book.site`` (``make book``).

    notebooks/*.ipynb --papermill--> _build/executed/PRESET/ --+--> _build/stage/ --Sphinx-->
    _build/html/ _config.yml, _toc.yml, book/ ------------------------------+

The chapters are the entries of `_toc.yml` under ``notebooks/``. An executed chapter remembers what
it read, and is executed again only when something of that has changed. Chapters are executed side
by side, each on one core. Nothing outside the build folder is written.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import nbformat
from filelock import FileLock, Timeout
from sphinx_external_toc.parsing import parse_toc_yaml

from nads_book import claims
from nads_book.site import notebooks
from nads_book.site.execution import (
    PRESETS,
    ROOT,
    BuildError,
    Chapter,
    execute_together,
    side_by_side,
)
from nads_book.site.stage import stage
from nads_book.site.verify import decided
from nads_core.runtime.threads import one_thread


def chapters(root: Path = ROOT) -> list[str]:
    """Return the notebooks that `_toc.yml` names, in order, such as ``notebooks/07_poison``."""
    return [name for name in parse_toc_yaml(root / "_toc.yml") if name.startswith("notebooks/")]


def render(
    folder: Path, book: list[Chapter], register: dict[str, claims.Claim], root: Path
) -> Path:
    """Render the executed chapters and what `stage` has staged; any warning is an error.

    Args:
        folder: folder of the build.
        book: executed chapters.
        register: claims, decided.
        root: root of the repository.

    Returns:
        The first page. It is replaced only by a build that succeeded.
    """
    staged, site, html = folder / "stage", folder / "sphinx", folder / "html"
    # A page that is not read again would not be checked again
    shutil.rmtree(site, ignore_errors=True)
    (staged / "notebooks").mkdir(exist_ok=True)
    for one in book:
        page = notebooks.page_of(nbformat.read(one.target, as_version=4))
        notebooks.keep_variants(page, staged / "variants")
        nbformat.write(claims.with_claims(page, register), staged / f"{one.name}.ipynb")
    claims.place(staged, register, root)
    claims.place_paper(staged, register, [one.target for one in book], root)
    program = Path(sys.executable).with_name("jupyter-book")
    sphinx = subprocess.run(
        [program, "build", staged, "--path-output", site, "-W", "-n", "--keep-going", "-q"],
        cwd=root,
        capture_output=True,
        text=True,
    )
    if sphinx.returncode:
        text = (sphinx.stdout + sphinx.stderr).replace(f"{staged}{os.sep}", "").strip()
        raise BuildError(f"the pages could not be rendered without warnings:\n\n{text}")
    made = site / "_build" / "html"
    claims.write(made / "claims.json", register)
    shutil.rmtree(html, ignore_errors=True)
    shutil.move(made, html)
    return html / "index.html"


def build(folder: Path, preset: str, root: Path) -> Path:
    """Execute the chapters that changed, render the book, print how long it took, and return the
    first page.

    Args:
        folder: folder of all that is written.
        preset: size of the experiments.
        root: root of the repository.

    Raises:
        BuildError: if a chapter or the rendering fails, or the verdict on a claim is no longer the
            registered one.
        ClaimError: if a sentence of a takeaway is no registered claim.
    """
    began = time.perf_counter()
    claims.check_pages(root)
    print(f"Building the book in {folder} at preset {preset!r}", flush=True)
    book = [Chapter(name, folder, preset, root) for name in chapters(root)]
    due = {one: change for one in book if (change := one.changed)}
    for one in book:
        state = f"to execute ({due[one]})" if one in due else "unchanged"
        print(f"  {one.name:<36} {state}", flush=True)
    with one_thread():  # the chapters want the cores
        execute_together([*due], side_by_side(preset), partial(stage, folder / "stage", root))
    register, problems = decided(cells=claims.places([one.target for one in book]), root=root)
    if problems:
        raise BuildError("claims are not as book/claims.toml has them:\n" + "\n".join(problems))
    print("All chapters are executed; the pages are being rendered", flush=True)
    index = render(folder, book, register, root)
    print(f"Done after {time.perf_counter() - began:.0f} s. Open {index}", flush=True)
    return index


def main() -> None:
    """Build the book with the options of the command line."""
    parser = argparse.ArgumentParser(description="Execute the chapters and render the book.")
    add = parser.add_argument
    add("--preset", choices=PRESETS, default="demo", help="size of the experiments (default: demo)")
    add("--folder", type=Path, default=ROOT / "_build", help="where everything is written")
    arguments = parser.parse_args()
    for ending in (signal.SIGTERM, signal.SIGHUP):  # as Ctrl-C, which ends the chapters that run
        signal.signal(ending, signal.default_int_handler)
    folder = arguments.folder.resolve()
    try:
        with FileLock(folder / "build.lock", timeout=0):
            build(folder, arguments.preset, ROOT)
    except Timeout:
        sys.exit(f"error: another build writes to {folder}: wait, or name another --folder")
    except (BuildError, claims.ClaimError) as error:
        sys.exit(f"\n\nerror: {error}")
    except KeyboardInterrupt:
        kept = "Chapters that are executed are kept: the same command resumes."
        print(f"\n\nInterrupted. {kept}", file=sys.stderr)
        sys.exit(130)
