"""Set-up shared by all tests."""

import functools
import gzip
import hashlib
import http.server
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import settings

# On a busy machine two threads that wait for each other make a network ten times slower.
# `make test-slow` repeats what is marked `stored` with other threads and instructions.
torch.set_num_threads(int(os.environ.get("NADS_TEST_THREADS", "1")))
settings.register_profile("nads", deadline=None, max_examples=25, derandomize=True, print_blob=True)
settings.load_profile("nads")

# Without a GPU, Triton's kernels run in its interpreter, chosen when triton is first imported.
if not torch.cuda.is_available():
    os.environ.setdefault("TRITON_INTERPRET", "1")

ROOT = Path(__file__).resolve().parent.parent
BOOK = ROOT / "_build" / "test"  # the book that the tests build
EMPTY = BOOK / "empty"  # a folder without photos

# Tests of the book are left out where what builds it is not installed: pip install -e .[book]
if importlib.util.find_spec("jupytext") is None:
    names = """atlas bench book chapters checks claims cluster colab* deep_linear dependencies exact_first_step
    experiments explorer* figures first_step_rates forgetting formatting frequency_maps gaps how_to images jupyterlab
    law_experiment lemma2 maps notes pages* paper parameters photos playground* poisoning
    precision prediction published
    recipes repair rival_theory rules studies waves"""
    collect_ignore_glob = [f"test_{name}.py" for name in names.split()]
else:
    collect_ignore_glob = []

_PUBLISHED = {
    "lenet": "LeNet_published_nads.npz",
    "vgg11": "VGG11_published_nads.npz",
    "resnet18": "ResNet18_published_nads.npz",
}


def pytest_report_header() -> list[str]:
    """Name what the floats of this run depend on, and the files that are left out."""
    instructions = torch.backends.cpu.get_cpu_capability()
    header = [f"instructions: {instructions}, threads of torch: {torch.get_num_threads()}"]
    if collect_ignore_glob:
        header.append(f"left out, without jupytext: {', '.join(collect_ignore_glob)}")
    return header


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let what takes longest begin: one worker executes chapters from the first one, another one
    from the last, and renders the pages.
    """
    rank = {"test_chapters.py": 0, "test_pages.py": 1}
    items.sort(key=lambda item: rank.get(item.path.name, 2))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport():
    """Count a skipped test as failed where NADS_STRICT is set, unless it needs a GPU."""
    report = yield
    for_a_gpu = any(
        reason in str(report.longrepr) for reason in ("needs a CUDA device", "there is no GPU")
    )
    if os.environ.get("NADS_STRICT") and report.skipped and not for_a_gpu:
        report.outcome = "failed"
    return report


@pytest.fixture(scope="session")
def published() -> Callable[[str], torch.Tensor]:
    """Give the authors' directions of "lenet" or "resnet18", (1023, 1, 32, 32)."""
    folder = os.environ.get("NADS_REFERENCE")
    if not folder:
        pytest.skip(
            "NADS_REFERENCE is not set: it names the folder with the authors' published directions"
        )

    def load(name: str) -> torch.Tensor:
        with np.load(Path(folder) / _PUBLISHED[name]) as file:
            return torch.from_numpy(file["nads"]).double().view(-1, 1, 32, 32)

    return load


@pytest.fixture
def set_threads() -> Iterator[Callable[[int], None]]:
    """Give the function that sets the number of PyTorch's threads, for this test."""
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


ALONE = {"executor": "sequential", "device": "cpu", "progress": False}  # of a study
PATHS = {"PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'book'}"}


def run_python(*arguments: str | Path, folder: Path = ROOT) -> str:
    """Run Python with both packages, and return what it has printed; it must not fail."""
    command, pipes = [sys.executable, *arguments], {"capture_output": True, "text": True}
    done = subprocess.run(command, cwd=folder, env=os.environ | PATHS, **pipes)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def git(folder: Path, *arguments: str | Path) -> None:
    """Run git in a folder, as somebody who signs nothing."""
    options = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *options, *arguments], cwd=folder, check=True, capture_output=True)


# Variables of a situation: whatever this machine has, or neither photos nor published directions.
SITUATIONS = {
    "here": {},
    "no data": {"NADS_DATA": str(EMPTY), "NADS_DOWNLOAD": "0", "NADS_REFERENCE": ""},
}


# The chapter whose figures are drawn with all variants, which take longer than the figures;
# tests/test_figures.py draws those of every figure.
WITH_VARIANTS = "08_flip"

# A chapter that failed is not executed again for the next test.
_failures: dict[tuple[str, str], Exception] = {}


def execute_once(chapter: str, situation: str = "here") -> Path:
    """Execute a chapter, such as "07_poison", at `smoke`, once for all tests and workers of a run.

    The result is read again by later runs, as long as nothing changes that the chapter depends on.

    Args:
        chapter: name of the notebook.
        situation: key of `SITUATIONS`.

    Returns:
        The executed notebook.
    """
    from filelock import FileLock
    from nads_book.figures.publishing import NO_VARIANTS, OPTIONS
    from nads_book.site import execution

    if failure := _failures.get((chapter, situation)):
        raise failure
    folder = BOOK if situation == "here" else BOOK / situation.replace(" ", "-")
    for path in (folder, EMPTY):
        path.mkdir(parents=True, exist_ok=True)
    with (
        FileLock(folder / f"{chapter}.lock"),
        pytest.MonkeyPatch.context() as patch,
    ):
        # Other workers use the other cores.
        one_core = {"OMP_NUM_THREADS": "1", "LOKY_MAX_CPU_COUNT": "1"}
        for name, value in (one_core | SITUATIONS[situation]).items():
            patch.setenv(name, value)
        if chapter != WITH_VARIANTS:
            patch.setattr(execution, "OPTIONS", (*OPTIONS, NO_VARIANTS))
        try:
            one = execution.Chapter(f"notebooks/{chapter}", folder, "smoke")
            execution.execute_together([one] if one.changed else [], 1)
        except execution.BuildError as error:
            _failures[chapter, situation] = error
            raise
    return folder / "executed" / "smoke" / f"{chapter}.ipynb"


@pytest.fixture(scope="session")
def html() -> Path:
    """Build the book from the chapters executed at `smoke`; a warning of Sphinx is an error."""
    from filelock import FileLock
    from nads_book.site import build

    for name in reversed(build.chapters()):  # another worker begins with the first one
        execute_once(Path(name).name)
    digest = hashlib.sha256()
    sources = [path for path in (ROOT / "book").rglob("*") if "__pycache__" not in path.parts]
    executed = BOOK.glob("executed/smoke/*.ipynb")
    for path in sorted([*sources, *executed, ROOT / "_config.yml", ROOT / "_toc.yml"]):
        digest.update(f"{path} ".encode() + (path.read_bytes() if path.is_file() else b""))
    with FileLock(BOOK / "html.lock"):
        stamp = BOOK / "html.sha256"
        if not stamp.is_file() or stamp.read_text() != digest.hexdigest():
            # In a process of its own, as for a reader: what this one has cached would not be read
            # again, so that the build would take a stored result for one that no page loads.
            said = run_python("-m", "nads_book.site", "--folder", BOOK, "--preset", "smoke")
            assert (BOOK / "html" / "index.html").is_file(), said
            stamp.write_text(digest.hexdigest())
    return BOOK / "html"


@pytest.fixture(scope="session")
def browser():
    """Drive the Chromium of this machine, or what NADS_CHROMIUM names, which may be nothing."""
    sync_api = pytest.importorskip(
        "playwright.sync_api", reason="the tests of the pages need playwright"
    )
    names = ("chromium", "chromium-browser", "google-chrome")
    path = os.environ.get("NADS_CHROMIUM", next(filter(None, map(shutil.which, names)), None))
    if not path:
        pytest.skip("no Chromium on this machine: the tests of the pages need one")
    with sync_api.sync_playwright() as playwright:
        # Many addresses in a row are no flood.
        options = ["--no-sandbox", "--disable-gpu", "--disable-ipc-flooding-protection"]
        chrome = playwright.chromium.launch(executable_path=path, args=options)
        yield chrome
        chrome.close()


class _Server(http.server.SimpleHTTPRequestHandler):
    """Compresses text, as GitHub Pages and other hosts do."""

    def do_GET(self):
        path = Path(self.translate_path(self.path))
        if path.suffix not in (".html", ".css", ".js", ".svg") or not path.is_file():
            return super().do_GET()
        content = gzip.compress(path.read_bytes(), 6)
        self.send_response(200)
        self.send_header("Content-Type", self.guess_type(str(path)))
        self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *args):
        pass


@pytest.fixture(scope="session")
def serve() -> Iterator[Callable[[Path], str]]:
    """Serve folders from this machine, and give the address of one."""
    servers = []

    def start(folder: Path) -> str:
        server = http.server.ThreadingHTTPServer(
            ("127.0.0.1", 0), functools.partial(_Server, directory=str(folder))
        )
        servers.append(server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{server.server_port}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


# Pages with explorers


@pytest.fixture(scope="session")
def site_folder(tmp_path_factory) -> Path:
    """Write pages as the book has them, without the book around, once for all workers of a run."""
    from explorer_pages import write_site
    from filelock import FileLock

    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "site"
    with FileLock(f"{folder}.lock"):
        if not (folder / "complete").exists():
            folder.mkdir()
            write_site(folder)
            (folder / "complete").touch()
    return folder


@pytest.fixture(scope="session")
def site(site_folder, serve) -> str:
    """Serve these pages, and return their address."""
    return serve(site_folder)


@pytest.fixture
def tab(browser):
    """Return a function that opens a tab for a site, in which nothing may go wrong."""
    from explorer_pages import Reader

    readers = []

    def open_tab(site, **screen):
        readers.append(Reader(browser.new_context(**screen).new_page(), site))
        return readers[-1]

    yield open_tab
    for reader in readers:
        reader.page.context.close()
        assert not reader.troubles


@pytest.fixture
def reader(tab, site):
    """Open one."""
    return tab(site, viewport={"width": 1000, "height": 900})


@pytest.fixture(scope="session")
def tables(browser, site) -> dict[str, np.ndarray]:
    """Read the colour maps of the explorer's program, each (256, 4)."""
    page = browser.new_page()
    page.goto(f"{site}/empty.html")
    colours = page.evaluate("async () => (await import('/sources/colours.js')).COLOURS")
    page.close()
    return {name: np.array(table) for name, table in colours.items()}


@pytest.fixture
def edit_stored(monkeypatch):
    """Return a function that changes rows of a stored file for all that read it, and returns them.

    Whatever pages and studies have cached is forgotten, now and after the test, but for NADs, which
    are in no such file.
    """
    from nads_book.atlas import load_entry_nads
    from nads_book.experiments.stored import nads_of_file

    texts = {}
    read = Path.read_text

    def read_edited(path, *args, **options):
        return texts.get(path.name) or read(path, *args, **options)

    def clear():
        for name, module in list(sys.modules.items()):
            if re.match(r"nads_book\.(pages|studies|atlas|experiments)", name):
                for value in vars(module).values():
                    if hasattr(value, "cache_clear") and value not in (
                        load_entry_nads,
                        nads_of_file,
                    ):
                        value.cache_clear()

    def edit(name, change, *parts):
        (path,) = (ROOT / "book" / "results").rglob(name)
        content = json.loads(path.read_text("utf8"))
        parts = parts or {"rows", "control"} & content.keys()
        rows = [row for part in parts for row in content[part]]
        for row in rows:
            change(row)
        texts[name] = json.dumps(content)
        clear()
        return rows

    monkeypatch.setattr(Path, "read_text", read_edited)
    yield edit
    monkeypatch.undo()
    clear()
