"""The execution of chapters by papermill: some side by side, each in a process that this one ends,
and only those that are due.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import nbformat
import torch
from loky import ProcessPoolExecutor, as_completed

from nads_book.figures.publishing import OPTIONS
from nads_book.site import dependencies
from nads_core.runtime import provenance
from nads_core.runtime.arguments import available_memory
from nads_core.runtime.processes import num_cores

ROOT = Path(__file__).resolve().parents[3]
PRESETS = {"smoke": 300, "demo": 900, "paper": 86_400}  # seconds that a single cell may take
MEMORY = 3 * 2**30  # bytes to count on for a chapter; most take one, one of them four


class BuildError(Exception):
    """The book cannot be built; the message is for the reader of the terminal."""


def check(notebook: nbformat.NotebookNode, timeout: float) -> None:
    """Raise a `BuildError` if a cell took so long that its end may have been missed.

    A client that loses the kernel's last message waits until the timeout and then continues as if
    all were well.
    """
    for cell in notebook.cells:
        duration = cell.metadata.papermill.duration or 0.0
        if duration > 0.95 * timeout:
            raise BuildError(
                f"{cell.source}\n\nThis cell took {duration:.0f} s of at most {timeout:.0f} s."
            )


def machine() -> str:
    """Describe what a chapter runs on, such as "AMD EPYC"."""
    gpu = f" and a {torch.cuda.get_device_name()}" if torch.cuda.is_available() else ""
    return f"{provenance.cpu_name()}{gpu}"


class Chapter:
    """A chapter of the book, and its execution by papermill.

    Args:
        name: name, such as ``notebooks/07_poison``.
        folder: folder of the build; the executed notebook is kept below it.
        preset: size of the experiments.
        root: root of the repository.
    """

    def __init__(self, name: str, folder: Path, preset: str, root: Path = ROOT):
        self.name, self.preset, self.root = name, preset, root
        self.source = root / f"{name}.ipynb"
        self.target = folder / "executed" / preset / self.source.name
        self.options = list(OPTIONS)  # of the kernel

    @property
    def changed(self) -> str:
        """Why it is due to be executed; empty if it is not."""
        if not self.target.exists():
            return "never executed"
        before = json.loads(self.target.read_text("utf8"))["metadata"]["dependencies"]
        now = dependencies.state(before, self.preset, self.root)
        return next((f"changed: {name}" for name in before if before[name] != now[name]), "")

    def execute(self, cores: int) -> float:
        """Execute it on some of the cores, check and keep what came out; return the seconds.

        Args:
            cores: number of cores to use.

        Raises:
            BuildError: naming the chapter, the cell and what went wrong.
        """
        import papermill

        with open(os.devnull, "w") as nowhere:  # what kernels say before they have a notebook
            os.dup2(nowhere.fileno(), 2)
        self.target.parent.mkdir(parents=True, exist_ok=True)
        partial = self.target.with_name(f".{self.source.name}")  # what it has computed so far
        read = partial.with_suffix(".read")
        read.write_text("")
        # On a busy machine, threads that spin while they wait cost a factor of ten.
        os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
        os.environ["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"
        os.environ |= dependencies.traced(read)
        if cores < num_cores():
            os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "LOKY_MAX_CPU_COUNT"), str(cores))
        began = time.time()
        try:
            notebook = papermill.execute_notebook(
                self.source,
                partial,
                {"preset": self.preset},
                execution_timeout=PRESETS[self.preset],
                progress_bar=False,
                extra_arguments=self.options,
                request_save_on_cell_execute=False,  # each save writes all cells
                cwd=self.root,
            )
            check(notebook, PRESETS[self.preset])
        except Exception as error:  # of a cell, of its kernel, or of papermill
            where = f"{self.name}.ipynb failed at preset {self.preset!r}"
            raise BuildError(f"{where}, {error}\n\nIts outputs so far: {partial}") from None
        names = dependencies.read(read, self.root)
        names |= {f"{self.name}.ipynb", "requirements.txt"}
        notebook.metadata |= {
            "machine": machine(),
            "dependencies": dependencies.state(sorted(names), self.preset, self.root, began),
        }
        nbformat.write(notebook, partial)
        partial.replace(self.target)
        read.unlink()
        return time.time() - began


def side_by_side(preset: str) -> int:
    """Return how many chapters to execute at once: one per core, as far as there is memory.

    One after another on a GPU, whose memory they would share, and at `paper`, where each keeps
    every core busy.
    """
    if torch.cuda.is_available() or preset == "paper":
        return 1
    free = available_memory("cpu") or num_cores() * MEMORY  # None where it is not known
    return max(1, min(num_cores(), free // MEMORY))


def execute_together(
    chapters: list[Chapter], jobs: int, meanwhile: Callable[[], None] = lambda: None
) -> None:
    """Execute chapters, ``jobs`` at once, each on its share of the cores, and print each as it is
    ready.

    Whatever ends this early, Ctrl-C or a chapter that fails, ends the chapters that still run.

    Args:
        chapters: chapters in the order in which they begin.
        jobs: how many at once.
        meanwhile: what this process does beside them, before it reports.
    """
    jobs = min(jobs, len(chapters)) or 1
    executor = ProcessPoolExecutor(jobs)
    try:
        cores = max(1, num_cores() // jobs)
        futures = {executor.submit(one.execute, cores): one for one in chapters}
        meanwhile()
        for future in as_completed(futures):
            name, seconds = futures[future].name, future.result()
            print(f"  {name:<36} executed in {seconds:.0f} s", flush=True)
    finally:
        executor.shutdown(kill_workers=True)
