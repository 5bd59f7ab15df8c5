"""The execution of chapters: each in a process of its own, some side by side, and only those that
are due.
"""

from __future__ import annotations

import contextlib
import functools
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import nbformat
import torch

from nads_book.figures.variants import MIME, VARIANTS
from nads_book.publishing import OPTIONS
from nads_book.site import dependencies
from nads_book.site.dependencies import results_folder
from nads_core.runtime import provenance
from nads_core.runtime.arguments import available_memory
from nads_core.runtime.processes import num_cores

BOOK = Path(__file__).resolve().parents[2]
ROOT = BOOK.parent
PRESETS = {"smoke": 300, "demo": 900, "paper": 86_400}  # seconds that a single cell may take
MEMORY = 3 * 2**30  # bytes to count on for a chapter; most take one, one of them four
LARGEST = 5_000_000  # characters of a chapter's outputs, without the variants of its figures


class BuildError(Exception):
    """The book cannot be built; the message is for the reader of the terminal."""


@functools.cache
def lifeline() -> int:
    """Return the reading end of a pipe that closes when this process ends, however it ends."""
    reading, _ = os.pipe()  # no child process inherits the writing end
    return reading


def start(
    command: Sequence[str | Path], root: Path, output: Path, **variables: str
) -> subprocess.Popen[bytes]:
    """Start a Python script or module from the repository root; its messages go to a file.

    It has a session of its own, so that Ctrl-C reaches only this process, which forwards it: see
    `stop`. Its standard input is a `lifeline`.
    """
    environment = {
        # On a busy machine, threads that spin while they wait cost a factor of ten.
        "OMP_WAIT_POLICY": "PASSIVE",
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
            stdin=lifeline(),
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def stop(processes: list[subprocess.Popen[bytes]]) -> None:
    """Interrupt processes, so that papermill ends its kernel, and kill those that do not end."""
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
    """Raise a `BuildError` if a cell failed or printed too much, or took so long that its end may
    have been missed.

    A client that loses the kernel's last message waits until the timeout and then continues as if
    all were well.
    """
    total = 0
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        problem = ""
        for output in cell.outputs:
            if output.output_type == "error":
                problem = "\n".join(output.traceback) or f"{output.ename}: {output.evalue}"
        duration = cell.metadata.get("papermill", {}).get("duration") or 0.0
        total += size_of_outputs(cell)
        if duration > 0.95 * timeout and not problem:
            problem = f"This cell took {duration:.0f} s; a cell may take at most {timeout:.0f} s."
        if total > LARGEST and not problem:
            problem = (
                f"The outputs up to this cell have {total / 1e6:.1f} MB; those of a chapter may "
                f"have {LARGEST / 1e6:.0f} MB."
            )
        if problem:
            label = f"In [{cell.execution_count}]:\n\n{cell.source}\n"
            raise BuildError(f"{label}\n{plain(problem)}")


def size_of_outputs(cell: nbformat.NotebookNode) -> int:
    """Return the characters of a cell's outputs, without the variants of figures
    for other pages.
    """
    variants, size = {MIME.format(name) for name in VARIANTS}, 0
    for output in cell.outputs:
        counted = output.get("data", {}).keys() - variants
        size += len(output.get("text", "")) + sum(len(str(output.data[key])) for key in counted)
    return size


def machine(cores: int) -> str:
    """Describe what a chapter runs on, such as "1 of 2 cores (AMD EPYC)"."""
    all_cores = num_cores()
    gpu = f" and a {torch.cuda.get_device_name()}" if torch.cuda.is_available() else ""
    share = (
        f"{cores} of {all_cores} cores" if cores < all_cores else f"{cores} core{'s' * (cores > 1)}"
    )
    return f"{share} ({provenance.cpu_name()}){gpu}"


class Chapter:
    """A chapter of the book, and its execution by papermill in a process of its own.

    Args:
        name: name, such as ``notebooks/07_poison``.
        folder: folder of the build; the executed notebook is kept below it.
        preset: size of the experiments.
        root: root of the repository.
        timeout: seconds that a single cell may take.

    Raises:
        BuildError: if there is no such notebook.
    """

    def __init__(
        self, name: str, folder: Path, preset: str, root: Path = ROOT, timeout: float | None = None
    ):
        self.name, self.preset, self.root = name, preset, root
        self.timeout = timeout or PRESETS[preset]
        self.source = root / f"{name}.ipynb"
        self.target = folder / "executed" / preset / f"{self.source.stem}.ipynb"
        if not self.source.is_file():
            raise BuildError(f"{self.source} of _toc.yml does not exist: run `make sync`")
        self.options = list(OPTIONS)  # of the kernel
        self.record: dict[str, Any] = {}  # metadata of the executed notebook
        with contextlib.suppress(FileNotFoundError):
            self.record = json.loads(self.target.read_text("utf8"))["metadata"]

    @property
    def changed(self) -> list[str]:
        """Why it is due to be executed; empty if it is not."""
        if "dependencies" not in self.record:
            return ["never executed"]
        if self.record["surroundings"] != dependencies.surroundings(self.preset):
            return ["other photos or environment variables"]
        found = dependencies.changed(self.record["dependencies"], self.root)
        return [f"changed: {key.partition(' ')[2]}" for key in found]

    def read_results(self) -> set[str]:
        """Return the names of the files in the folder of results that it read."""
        folder = results_folder(self.root)
        paths = [self.root / key.partition(" ")[2] for key in self.record["dependencies"]]
        return {path.name for path in paths if path.resolve().parent == folder}

    def effort(self) -> tuple[float, int]:
        """Return what sorts chapters by what they may take: the seconds of last time, or their
        length.
        """
        seconds = self.record.get("papermill", {}).get("duration") or math.inf
        return seconds, self.source.stat().st_size

    @property
    def alone(self) -> bool:
        """Whether it measures the machine, so that nothing else may run: see the tag `alone`."""
        cells = nbformat.read(self.source, as_version=4).cells
        return any("alone" in cell.metadata.get("tags", []) for cell in cells)

    def start(self, cores: int) -> None:
        """Begin to execute it on some of the cores, in a folder of this run alone."""
        self.target.parent.mkdir(parents=True, exist_ok=True)
        for stale in self.target.parent.glob(f".{self.source.stem}.*"):
            shutil.rmtree(stale, ignore_errors=True)
        self.run = Path(tempfile.mkdtemp(prefix=f".{self.source.stem}.", dir=self.target.parent))
        notebook = nbformat.read(self.source, as_version=4)
        notebook.metadata["run"] = self.run.name
        nbformat.write(notebook, self.run / "notebook.ipynb")
        self.cores, self.began = cores, time.time()
        limits = {"OMP_NUM_THREADS": str(cores), "LOKY_MAX_CPU_COUNT": str(cores)}
        files = [self.run / "notebook.ipynb", self.run / "read"]
        options = [self.preset, f"{self.timeout:.0f}", *self.options]
        command: list[str | Path] = ["-m", "nads_book.site.execute", *files, *options]
        shared = limits if cores < num_cores() else {}
        self.process = start(command, self.root, self.run / "output", **shared)

    def finish(self) -> float:
        """Check and keep what came out, once the process has ended; return the seconds that it
        took.

        Raises:
            BuildError: naming the chapter, the cell and what went wrong.
        """
        seconds = time.time() - self.began
        partial = self.run / "notebook.ipynb"
        try:
            notebook = nbformat.read(partial, as_version=4)
            check(notebook, self.timeout)
            if self.process.returncode:
                text = plain((self.run / "output").read_text(errors="replace")).strip()
                status = self.process.returncode
                raise BuildError(f"papermill ended with status {status}:\n\n{text}")
            if notebook.metadata.get("run") != self.run.name:
                raise BuildError(f"{partial} belongs to another run: build again")
        except BuildError as error:
            place = f"{self.name}.ipynb failed at preset {self.preset!r}"
            raise BuildError(f"{place}, {error}\n\nIts outputs so far: {partial}") from None
        found = dependencies.read(self.run / "read", self.root)
        keys = {*found, f"file {self.source.relative_to(self.root)}", "file requirements.txt"}
        notebook.metadata |= {
            "machine": machine(self.cores),
            "surroundings": dependencies.surroundings(self.preset),
            "dependencies": dependencies.digests(keys, self.root, self.began),
        }
        self.record = notebook.metadata
        nbformat.write(notebook, partial)
        partial.replace(self.target)
        shutil.rmtree(self.run)
        return seconds


def side_by_side(preset: str) -> int:
    """Return how many chapters to execute at once: one per core, as far as there is memory.

    One after another on a GPU, whose memory they would share, and at `paper`, where each keeps
    every core busy.
    """
    if torch.cuda.is_available() or preset == "paper":
        return 1
    free = available_memory("cpu")
    return num_cores() if free is None else max(1, min(num_cores(), free // MEMORY))


def execute_together(
    waiting: list[Chapter], jobs: int, report: Callable[[Chapter, float], None]
) -> None:
    """Execute chapters, ``jobs`` at once, each on its share of the cores, and report each as it is
    ready.

    Whatever ends this early, Ctrl-C or a chapter that fails, ends the chapters that still run.
    """
    waiting, running = list(waiting), list[Chapter]()
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


def execute(name: str, folder: Path, preset: str, root: Path = ROOT) -> float | None:
    """Execute one chapter into ``folder`` unless it is there already, made from the same inputs.

    Returns:
        The seconds that it took, or None where nothing had to be executed.

    Raises:
        BuildError: naming the chapter, the cell and what went wrong.
    """
    chapter, took = Chapter(name, folder, preset, root), []
    if not chapter.changed:
        return None
    execute_together([chapter], 1, lambda _, seconds: took.append(seconds))
    return took[0]
