"""Execute the chapters and render the book, with ``python -m nads_book.site`` (``make book``).

    notebooks/*.ipynb --papermill--> _build/executed/PRESET/ --+--> _build/stage/ --Sphinx--> _build/html/
    _config.yml, _toc.yml, book/ ------------------------------+

The chapters are the entries of `_toc.yml` under ``notebooks/``. An executed chapter remembers a fingerprint of all that
it depends on, and is executed again only when that changes. Chapters are executed side by side, each on one core; one
that measures the machine has the tag `alone`. Every stored results file must be sound, and shown by some chapter.
Nothing outside the build folder is written.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import nbformat
import torch
from filelock import FileLock, Timeout
from sphinx_external_toc.parsing import parse_toc_yaml

from nads_book import claims
from nads_book.experiments import load_results
from nads_book.experiments.presets import ON_CPUS
from nads_book.publishing import OPTIONS
from nads_book.site import pages, sharing
from nads_book.site.dependencies import DATA_VARIABLES, fingerprint  # noqa: F401
from nads_core.runtime import provenance
from nads_core.runtime.memory import available_memory

BOOK = Path(__file__).resolve().parents[2]
ROOT = BOOK.parent
STAGE: tuple[str | Path, ...] = ("-m", "nads_book.site.stage")  # what writes the pages that are no chapters
PRESETS = {"smoke": 300, "demo": 900, "paper": 86_400}  # with the seconds that a single cell may take
MEMORY = 3 * 2**30  # bytes to count on for a chapter; most take one, one of them four


# The last cell of a chapter that is executed, and which does not stay: it prints which stored results were loaded.
LOADED = "from nads_book.experiments.results import loaded\nprint(*sorted(loaded))"


class BuildError(Exception):
    """The book cannot be built; the message is for the reader of the terminal."""


def chapters(root: Path = ROOT) -> list[str]:
    """Return the notebooks that `_toc.yml` names, in order, such as ``notebooks/07_poison``."""
    return [name for name in parse_toc_yaml(root / "_toc.yml") if name.startswith("notebooks/")]


def results_folder(root: Path = ROOT) -> Path:
    """Return where the chapters find the results of long runs: ``book/results``, or what NADS_RESULTS names."""
    return Path(os.environ.get("NADS_RESULTS", root / "book" / "results")).resolve()


def stored_results(folder: Path) -> set[str]:
    """Return the names of the files of long runs in a folder of results (``JOB.json``, ``JOB.laptop.json``), all sound.

    Those of the small presets, of shards and of processes (``JOB.demo.json``, ``JOB.1of2.json``) are somebody's work.

    Raises:
        BuildError: naming a file that is damaged, or that belongs to no job or not to what it names.
    """
    paths = [path for path in sorted(folder.glob("[!.]*.*")) if path.stem.partition(".")[2] in ("", *ON_CPUS)]
    for path in paths:
        try:
            if path.suffix != ".json":
                raise ValueError("it is no results file")
            name, _, size = path.stem.partition(".")
            load_results(name, size or "paper", folder)
        except ValueError as error:
            raise BuildError(f"{path} cannot be shown: {error}") from None
    return {path.name for path in paths}


def of_the_book(names: set[str], folder: Path) -> set[str]:
    """Return those of the files that git tracks, which every reader has; all of them where there is no git."""
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=folder, capture_output=True, text=True)
    return names if listing.returncode else names & set(listing.stdout.split("\0"))


def start(command: list[str | Path], root: Path, output: Path, **variables: str) -> subprocess.Popen:
    """Start a Python script or module from the repository root, without standard input; its messages go to a file.

    It has a session of its own, so that Ctrl-C reaches only this process, which forwards it: see `stop`.
    """
    environment = {
        "OMP_WAIT_POLICY": "PASSIVE",  # on a busy machine, threads that spin while they wait cost a factor of ten
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, (str(BOOK), os.environ.get("PYTHONPATH")))),
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",  # figures belong in the notebook
    }
    if "NADS_RESULTS" in os.environ:  # the user's, relative to the folder of this process
        environment["NADS_RESULTS"] = str(results_folder(root))
    with output.open("w") as file:
        return subprocess.Popen(
            [sys.executable, *map(str, command)],
            cwd=root,
            env=environment | variables,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def stop(processes: list[subprocess.Popen]) -> None:
    """Interrupt processes, let each end in its own time, papermill with its kernel, and kill what does not."""
    try:
        for process in processes:
            process.send_signal(signal.SIGINT)
        for process in processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(20)
    finally:
        for process in processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def plain(text: str) -> str:
    """Drop the escape sequences that colour a terminal."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def check(notebook: nbformat.NotebookNode, timeout: float) -> None:
    """Raise a `BuildError` if a cell failed, or took so long that its end may have been missed.

    A client that loses the kernel's last message waits until the timeout and then continues as if all were well.
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


def num_cores() -> int:
    """Count the cores that this process may use; a container may have less than its machine."""
    from loky import cpu_count

    return cpu_count()


def machine(cores: int) -> str:
    """Describe what a chapter runs on, such as "1 of 2 cores (AMD EPYC)"."""
    all_cores, gpu = num_cores(), f" and a {torch.cuda.get_device_name()}" if torch.cuda.is_available() else ""
    share = f"{cores} of {all_cores} cores" if cores < all_cores else f"{cores} core{'s' * (cores > 1)}"
    return f"{share} ({provenance.cpu_name()}){gpu}"


class Chapter:
    """A chapter of the book, and its execution by papermill in a process of its own.

    Args:
        name: such as ``notebooks/07_poison``.
        folder: of the build; the executed notebook is kept below it.
        preset: size of the experiments.
        root: of the repository.
        timeout: seconds that a single cell may take.

    Raises:
        BuildError: if there is no such notebook.
    """

    def __init__(self, name: str, folder: Path, preset: str, root: Path = ROOT, timeout: float | None = None):
        self.name, self.preset, self.root, self.timeout = name, preset, root, timeout or PRESETS[preset]
        self.source, self.target = root / f"{name}.ipynb", folder / "executed" / preset / f"{Path(name).name}.ipynb"
        if not self.source.is_file():
            raise BuildError(f"_toc.yml names {name}, but there is no {self.source}: run `make sync`")
        self.partial = self.target.with_suffix(".partial.ipynb")  # becomes the target only when everything is well
        self.output = self.target.with_suffix(".output")  # messages of papermill
        self.options = list(OPTIONS)  # of the kernel
        self.inputs = fingerprint(self.source, preset, root, results_folder(root))
        # Metadata of the executed notebook, from today's inputs or from older ones.
        self.record = json.loads(self.target.read_text("utf8"))["metadata"] if self.target.is_file() else {}

    @property
    def unchanged(self) -> bool:
        """Whether it was executed already, with the same inputs."""
        return self.record.get("inputs") == self.inputs

    def effort(self) -> tuple[float, int]:
        """Return what sorts chapters by what they may take: the seconds of last time, or without them the length."""
        return self.record.get("papermill", {}).get("duration") or math.inf, self.source.stat().st_size

    @property
    def alone(self) -> bool:
        """Whether it measures the machine, so that nothing else may run: its parameters have the tag `alone`."""
        cells = nbformat.read(self.source, as_version=4).cells
        return any("alone" in cell.metadata.get("tags", []) for cell in cells)

    def start(self, cores: int) -> None:
        """Begin to execute it on some of the cores."""
        self.target.parent.mkdir(parents=True, exist_ok=True)
        for stale in (self.partial, self.output):
            stale.unlink(missing_ok=True)
        notebook = nbformat.read(self.source, as_version=4)
        notebook.cells.append(nbformat.v4.new_code_cell(LOADED))
        nbformat.write(notebook, self.partial)
        self.cores, self.began = cores, time.perf_counter()
        limits = {"OMP_NUM_THREADS": str(cores), "LOKY_MAX_CPU_COUNT": str(cores)} if cores < num_cores() else {}
        command = [
            "-m",
            "nads_book.site.execute",
            self.partial,
            self.partial,
            self.preset,
            f"{self.timeout:.0f}",
            *self.options,
        ]
        self.process = start(command, self.root, self.output, **limits)

    def finish(self) -> float:
        """Check and keep what came out, once the process has ended; return the seconds that it took.

        Raises:
            BuildError: naming the chapter, the cell and what went wrong.
        """
        seconds = time.perf_counter() - self.began
        try:
            if self.partial.is_file():
                notebook = nbformat.read(self.partial, as_version=4)
                check(notebook, self.timeout)
            if self.process.returncode:
                text = plain(self.output.read_text(errors="replace")).strip()
                raise BuildError(f"papermill ended with status {self.process.returncode}:\n\n{text}")
        except BuildError as error:
            place = f"{self.name}.ipynb failed at preset {self.preset!r}"
            raise BuildError(f"{place}, {error}\n\nAs far as it came: {self.partial}") from None
        pages.hide_repeated_parameters(notebook)
        loaded = "".join(output.text for output in notebook.cells.pop().outputs).split()
        notebook.metadata |= {"inputs": self.inputs, "machine": machine(self.cores), "results": loaded}
        self.record = notebook.metadata
        self.output.unlink(missing_ok=True)
        nbformat.write(notebook, self.partial)
        self.partial.replace(self.target)
        return seconds


def side_by_side(preset: str) -> int:
    """Return how many chapters to execute at once: one per core, as far as there is memory.

    One after another on a GPU, whose memory they would share, and at `paper`, where each keeps every core busy.
    """
    if torch.cuda.is_available() or preset == "paper":
        return 1
    free = available_memory("cpu")
    return num_cores() if free is None else max(1, min(num_cores(), free // MEMORY))


def execute_together(waiting: list[Chapter], jobs: int, report: Callable[[Chapter, float], None]) -> None:
    """Execute chapters, ``jobs`` at once, each on its share of the cores, and report each as it is ready.

    Whatever ends this early, Ctrl-C or a chapter that fails, ends the chapters that still run.
    """
    waiting, running = list(waiting), []
    cores = max(1, num_cores() // max(1, min(jobs, len(waiting))))
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                running.append(waiting.pop(0))
                running[-1].start(cores)
            for chapter in [chapter for chapter in running if chapter.process.poll() is not None]:
                running.remove(chapter)
                report(chapter, chapter.finish())
            time.sleep(0.05)
    finally:
        stop([chapter.process for chapter in running])


def execute(name: str, folder: Path, preset: str, root: Path = ROOT, timeout: float | None = None) -> float | None:
    """Execute one chapter into ``folder`` unless it is there already, made from the same inputs.

    Returns:
        The seconds that it took, or None where nothing had to be executed.

    Raises:
        BuildError: naming the chapter, the cell and what went wrong.
    """
    chapter, took = Chapter(name, folder, preset, root, timeout), []
    if chapter.unchanged:
        return None
    execute_together([chapter], 1, lambda _, seconds: took.append(seconds))
    return took[0]


def decided(executed: Iterable[Path], root: Path) -> dict[str, claims.Claim]:
    """Return the registered claims with the verdicts of executed chapters.

    Raises:
        BuildError: if a verdict differs from the registered one, unless NADS_RESULTS names somebody's own results.
    """
    try:
        register = claims.collect(executed, root)
    except claims.ClaimError as error:
        raise BuildError(str(error)) from None
    flipped = claims.problems((claim for claim in register.values() if claim.flipped), root)
    if flipped and "NADS_RESULTS" not in os.environ:
        raise BuildError("these claims are no longer as book/claims.toml has them:\n" + "\n".join(flipped))
    return register


def render(folder: Path, preset: str, root: Path = ROOT) -> Path:
    """Render the executed chapters and what `stage.py` has staged; any warning is an error.

    Returns:
        The first page. It is replaced only by a build that succeeded.
    """
    stage, site, html = folder / "stage", folder / "sphinx", folder / "html"
    shutil.rmtree(site, ignore_errors=True)  # a page that is not read again would not be checked again
    executed = {name: folder / "executed" / preset / f"{Path(name).name}.ipynb" for name in chapters(root)}
    register = decided(executed.values(), root)
    claims.place(stage, register, root)
    for name, path in executed.items():
        (stage / name).parent.mkdir(exist_ok=True)
        page = pages.with_details(pages.with_byline(nbformat.read(path, as_version=4)))
        nbformat.write(pages.without_variants(claims.with_claims(page, register)), stage / f"{name}.ipynb")
    options = ["--path-output", site, "-W", "-n", "--keep-going", "-q"]
    command = [Path(sys.executable).with_name("jupyter-book"), "build", stage, *options]
    messages = folder / "sphinx.output"
    process = start(command, root, messages)
    try:
        process.wait()
    finally:
        stop([process])
    if process.returncode:
        text = plain(messages.read_text(errors="replace")).replace(f"{stage}{os.sep}", "").strip()
        raise BuildError(f"the pages could not be rendered without warnings:\n\n{text}")
    messages.unlink()
    variants = pages.figure_variants(folder / "executed" / preset) | pages.static_variants(stage / "book" / "_static")
    pages.place_variants(site / "_build" / "html", variants)
    pages.polish(site / "_build" / "html")
    sharing.share(site / "_build" / "html", root, parse_toc_yaml(root / "_toc.yml"))
    claims.write(site / "_build" / "html" / "claims.json", register)
    shutil.rmtree(html, ignore_errors=True)
    shutil.move(site / "_build" / "html", html)
    return html / "index.html"


def build(folder: Path = ROOT / "_build", preset: str = "demo", root: Path = ROOT, jobs: int | None = None) -> Path:
    """Execute the chapters that changed, render the book, print how long it took, and return the first page.

    Args:
        folder: where everything is written.
        preset: size of the experiments.
        root: of the repository.
        jobs: chapters at once; see `side_by_side`.

    Raises:
        BuildError: if a chapter or the rendering fails, stored results are not sound or shown nowhere, a sentence of a
            takeaway is no registered claim, or the verdict on a claim is no longer the registered one.
    """

    def print_line(what: str, how: str) -> None:
        print(f"  {what:<36} {how}", flush=True)

    began = time.perf_counter()
    try:
        claims.check_pages(root)
    except claims.ClaimError as error:
        raise BuildError(str(error)) from None
    print(f"Building the book in {folder} at preset {preset!r}", flush=True)
    stored = stored_results(results_folder(root))
    book = [Chapter(name, folder, preset, root) for name in chapters(root)]
    for chapter in book:
        if chapter.unchanged:
            print_line(chapter.name, "unchanged")
    changed = sorted((chapter for chapter in book if not chapter.unchanged), key=Chapter.effort, reverse=True)
    report = lambda chapter, seconds: print_line(chapter.name, f"executed in {seconds:.1f} s")  # noqa: E731
    folder.mkdir(parents=True, exist_ok=True)
    messages = folder / "stage.output"
    staging = start([*STAGE, folder, root], root, messages, MPLBACKEND="agg", OMP_NUM_THREADS="1")
    try:
        execute_together([chapter for chapter in changed if not chapter.alone], jobs or side_by_side(preset), report)
        if staging.wait():
            raise BuildError(f"what does not come from a chapter could not be staged:\n\n{plain(messages.read_text())}")
        execute_together([chapter for chapter in changed if chapter.alone], 1, report)
    finally:
        stop([staging])
    left_out = stored - {name for chapter in book for name in chapter.record["results"]}
    for name in sorted(left_out):
        print_line(name, "shown by no chapter")
    if missing := of_the_book(left_out, results_folder(root)):
        names = ", ".join(sorted(missing))
        raise BuildError(
            f"no chapter loads {names} of {results_folder(root)}: show these results, or keep them elsewhere"
        )
    rendering = time.perf_counter()
    index = render(folder, preset, root)
    print_line("pages", f"rendered in {time.perf_counter() - rendering:.1f} s")
    print(f"The book, after {time.perf_counter() - began:.0f} s: {index}", flush=True)
    return index


def main() -> int:
    """Build the book with the options of the command line."""
    parser = argparse.ArgumentParser(description="Execute the chapters and render the book.")
    parser.add_argument("--preset", choices=PRESETS, default="demo", help="size of the experiments (default: demo)")
    parser.add_argument("--folder", type=Path, default=ROOT / "_build", help="where everything is written")
    parser.add_argument(
        "--jobs",
        type=int,
        metavar="N",
        help="chapters at once (default: one per core, or fewer if memory is short; one with a GPU)",
    )
    arguments = parser.parse_args()
    if arguments.jobs is not None and arguments.jobs < 1:
        parser.error(f"--jobs must be at least 1, got {arguments.jobs}")
    for ending in (signal.SIGTERM, signal.SIGHUP):  # as Ctrl-C: the chapters that run are ended, and not left alone
        signal.signal(ending, signal.default_int_handler)
    folder = arguments.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(folder / "build.lock", timeout=0):
            build(folder, arguments.preset, ROOT, jobs=arguments.jobs)
    except Timeout:
        print(f"error: another build writes to {folder}: wait for it, or name another --folder", file=sys.stderr)
        return 1
    except BuildError as error:
        print(f"\n\nerror: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\n\nInterrupted. The chapters that were executed to their end are kept.", file=sys.stderr)
        return 130
    return 0
