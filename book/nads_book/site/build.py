"""Execute the chapters and render the book, with ``python -m nads_book.site`` (``make book``).

    notebooks/*.ipynb --papermill--> _build/executed/PRESET/ --+--> _build/stage/ --Sphinx-->
    _build/html/ _config.yml, _toc.yml, book/ ------------------------------+

The chapters are the entries of `_toc.yml` under ``notebooks/``. An executed chapter remembers what
it read, and is executed again only when something of that has changed. Chapters are executed side
by side, each on one core; one that measures the machine has the tag `alone`. Every stored results
file must be sound, and shown by some chapter. Nothing outside the build folder is written.
"""

from __future__ import annotations

import argparse
import itertools
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import nbformat
from filelock import FileLock, Timeout
from sphinx_external_toc.parsing import parse_toc_yaml

from nads_book import claims
from nads_book.pages import decisions, name_of
from nads_book.site import pages, sharing
from nads_book.site.dependencies import results_folder
from nads_book.site.execution import (
    PRESETS,
    ROOT,
    BuildError,
    Chapter,
    execute_together,
    plain,
    side_by_side,
    start,
    stop,
)
from nads_book.studies import load_results
from nads_book.studies.presets import ON_CPUS

# Command that writes the pages that are no chapters
STAGE: tuple[str | Path, ...] = ("-m", "nads_book.site.stage")


def chapters(root: Path = ROOT) -> list[str]:
    """Return the notebooks that `_toc.yml` names, in order, such as ``notebooks/07_poison``."""
    return [name for name in parse_toc_yaml(root / "_toc.yml") if name.startswith("notebooks/")]


def executed(folder: Path, preset: str, root: Path) -> dict[str, Path]:
    """Return the executed notebook of each chapter, by its name."""
    place = folder / "executed" / preset
    return {name: place / f"{Path(name).name}.ipynb" for name in chapters(root)}


def stored_results(folder: Path) -> set[str]:
    """Return the names of the files of long runs in a folder of results (``JOB.json``,
    ``JOB.laptop.json``), all sound.

    Those of the small presets, of shards and of processes (``JOB.demo.json``, ``JOB.1of2.json``)
    are somebody's work.

    Raises:
        BuildError: naming a file that is damaged, or that belongs to no job or not to what it
            names.
    """
    found = set()
    for path in sorted(folder.glob("[!.]*.*")):
        name, _, size = path.stem.partition(".")
        if size not in ("", *ON_CPUS):
            continue
        try:
            if path.suffix != ".json":
                raise ValueError("it is no results file")
            load_results(name, size or "paper", folder)
        except ValueError as error:
            raise BuildError(f"{path} cannot be shown: {error}") from None
        found.add(path.name)
    return found


def of_the_book(names: set[str], folder: Path) -> set[str]:
    """Return those of the files that git tracks, which every reader has; all of them where there is
    no git.
    """
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=folder, capture_output=True, text=True)
    return names if listing.returncode else names & set(listing.stdout.split("\0"))


def decided(executed: Iterable[Path], root: Path) -> dict[str, claims.Claim]:
    """Return the registered claims, decided by the functions of `pages`.

    Raises:
        BuildError: if a verdict differs from the registered one, unless NADS_RESULTS names
            somebody's own results.
    """
    try:
        functions = decisions() if root == ROOT else {}
        evidence = {key: decide() for key, decide in functions.items()}
        register = claims.decide(evidence, claims.places(executed), root)
        for key, decide in functions.items():
            register[key].function = name_of(decide)
    except (claims.ClaimError, FileNotFoundError) as error:
        raise BuildError(str(error)) from None
    flipped = claims.problems((claim for claim in register.values() if claim.flipped), root)
    if flipped and "NADS_RESULTS" not in os.environ:
        raise BuildError(
            "these claims are no longer as book/claims.toml has them:\n" + "\n".join(flipped)
        )
    return register


def start_watching(folder: Path) -> set[str]:
    """Return a set that fills with the names of the files in a folder that this process opens from
    now on.
    """
    names: set[str] = set()

    def record(event: str, arguments: tuple[object, ...]) -> None:
        if event == "open" and isinstance(arguments[0], str | os.PathLike):
            path = Path(arguments[0])
            if path.parent.resolve() == folder:
                names.add(path.name)

    sys.addaudithook(record)
    return names


def write_claims(folder: Path, preset: str, root: Path) -> dict[str, claims.Claim]:
    """Decide all claims, write them into the staged pages, and return them.

    Raises:
        BuildError: if a verdict flips, or a page cannot be made.
    """
    notebooks = executed(folder, preset, root).values()
    register = decided(notebooks, root)
    try:
        claims.place(folder / "stage", register, root)
        if (root / "book" / "paper.toml").is_file():
            claims.place_paper(folder / "stage", register, notebooks, root)
    except claims.ClaimError as error:
        raise BuildError(str(error)) from None
    return register


def render(folder: Path, preset: str, register: dict[str, claims.Claim], root: Path = ROOT) -> Path:
    """Render the executed chapters and what `stage.py` has staged; any warning is an error.

    Args:
        folder: folder of the build.
        preset: size of the experiments.
        register: claims, decided.
        root: root of the repository.

    Returns:
        The first page. It is replaced only by a build that succeeded.
    """
    stage, site, html = folder / "stage", folder / "sphinx", folder / "html"
    # A page that is not read again would not be checked again
    shutil.rmtree(site, ignore_errors=True)
    for name, path in executed(folder, preset, root).items():
        (stage / name).parent.mkdir(exist_ok=True)
        notebook = nbformat.read(path, as_version=4)
        pages.hide_repeated_parameters(notebook)
        pages.name_folds(notebook)
        pages.hide_calls(notebook)
        page = pages.with_takeaway(pages.with_details(pages.with_byline(notebook)))
        shown = pages.without_variants(claims.with_claims(page, register))
        nbformat.write(shown, stage / f"{name}.ipynb")
    program = Path(sys.executable).with_name("jupyter-book")
    options = ["--path-output", site, "-W", "-n", "--keep-going", "-q"]
    messages = folder / "sphinx.output"
    process = start([program, "build", stage, *map(str, options)], root, messages)
    try:
        process.wait()
    finally:
        stop([process])
    if process.returncode:
        text = plain(messages.read_text(errors="replace")).replace(f"{stage}{os.sep}", "").strip()
        raise BuildError(f"the pages could not be rendered without warnings:\n\n{text}")
    messages.unlink()
    made = site / "_build" / "html"
    variants = pages.figure_variants(folder / "executed" / preset)
    pages.place_variants(made, variants | pages.static_variants(stage / "book" / "_static"))
    pages.polish(made)
    sharing.share(made, root, list(parse_toc_yaml(root / "_toc.yml")))
    claims.write(made / "claims.json", register)
    shutil.rmtree(html, ignore_errors=True)
    shutil.move(made, html)
    return html / "index.html"


def build(
    folder: Path = ROOT / "_build", preset: str = "demo", root: Path = ROOT, jobs: int | None = None
) -> Path:
    """Execute the chapters that changed, render the book, print how long it took, and return the
    first page.

    Args:
        folder: folder of all that is written.
        preset: size of the experiments.
        root: root of the repository.
        jobs: chapters at once; see `side_by_side`.

    Raises:
        BuildError: if a chapter or the rendering fails, stored results are not sound or shown
            nowhere, a sentence of a takeaway is no registered claim, or the verdict on a claim is
            no longer the registered one.
    """

    def print_line(what: str, how: str) -> None:
        print(f"  {what:<36} {how}", flush=True)

    began, done = time.perf_counter(), itertools.count(1)
    try:
        claims.check_pages(root)
    except claims.ClaimError as error:
        raise BuildError(str(error)) from None
    print(f"Building the book in {folder} at preset {preset!r}", flush=True)
    stored = stored_results(results_folder(root))
    book = [Chapter(name, folder, preset, root) for name in chapters(root)]
    reasons = {chapter.name: chapter.changed for chapter in book}
    for name, changes in reasons.items():
        more = f" and {len(changes) - 1} more" if len(changes) > 1 else ""
        print_line(name, f"to execute ({changes[0]}{more})" if changes else "unchanged")
    changed = sorted(
        (chapter for chapter in book if reasons[chapter.name]), key=Chapter.effort, reverse=True
    )

    def report(chapter: Chapter, seconds: float) -> None:
        print_line(chapter.name, f"executed in {seconds:.0f} s ({next(done)} of {len(changed)})")

    folder.mkdir(parents=True, exist_ok=True)
    messages = folder / "stage.output"
    staging = start([*STAGE, folder, root], root, messages, MPLBACKEND="agg", OMP_NUM_THREADS="1")
    try:
        execute_together(
            [chapter for chapter in changed if not chapter.alone],
            jobs or side_by_side(preset),
            report,
        )
        if staging.wait():
            text = plain(messages.read_text())
            raise BuildError(f"the pages that are no chapters could not be made:\n\n{text}")
        execute_together([chapter for chapter in changed if chapter.alone], 1, report)
    finally:
        stop([staging])
    read = start_watching(results_folder(root))
    register = write_claims(folder, preset, root)
    left_out = stored.difference(read, *(chapter.read_results() for chapter in book))
    if missing := of_the_book(left_out, results_folder(root)):
        names = ", ".join(sorted(missing))
        raise BuildError(
            f"no page loads {names} of {results_folder(root)}: show these results, or keep them "
            "elsewhere"
        )
    rendering = time.perf_counter()
    print_line("all pages", "being rendered")
    index = render(folder, preset, register, root)
    print_line("all pages", f"rendered in {time.perf_counter() - rendering:.0f} s")
    print(f"Done after {time.perf_counter() - began:.0f} s. Open {index}", flush=True)
    return index


def main() -> int:
    """Build the book with the options of the command line."""
    parser = argparse.ArgumentParser(description="Execute the chapters and render the book.")
    parser.add_argument(
        "--preset", choices=PRESETS, default="demo", help="size of the experiments (default: demo)"
    )
    parser.add_argument(
        "--folder", type=Path, default=ROOT / "_build", help="where everything is written"
    )
    parser.add_argument(
        "--jobs",
        type=int,
        metavar="N",
        help="chapters at once (default: one per core, or fewer if memory is short; one with a "
        "GPU)",
    )
    arguments = parser.parse_args()
    if arguments.jobs is not None and arguments.jobs < 1:
        parser.error(f"--jobs must be at least 1, got {arguments.jobs}")
    for ending in (signal.SIGTERM, signal.SIGHUP):  # as Ctrl-C, which ends the chapters that run
        signal.signal(ending, signal.default_int_handler)
    folder = arguments.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(folder / "build.lock", timeout=0):
            build(folder, arguments.preset, ROOT, jobs=arguments.jobs)
    except Timeout:
        print(
            f"error: another build writes to {folder}: wait for it, or name another --folder",
            file=sys.stderr,
        )
        return 1
    except BuildError as error:
        print(f"\n\nerror: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(
            "\n\nInterrupted. Chapters that are executed are kept: the same command resumes.",
            file=sys.stderr,
        )
        return 130
    return 0
