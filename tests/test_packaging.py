"""What a clone and a wheel hold, what an import costs, and which module may import which."""

import ast
import json
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "nads_core"
HEAVY = {"matplotlib", "ipywidgets", "anywidget", "torchvision", "triton"}
BOOK_ONLY = {  # what `pip install -e .[dev]` does not bring
    "anywidget", "ipykernel", "IPython", "ipywidgets", "jupyter_book", "jupytext", "matplotlib", "papermill", "PIL",
    "sphinx_external_toc", "torchvision",
}  # fmt: skip

# From the ground up: a module imports only from its own room and from rooms on lower floors.
FLOORS = (
    {"machinery"},
    {"kernels", "theory"},
    {"networks"},
    {"directions"},
    {"data", "costs"},
    {"training"},
    {"evidence", "figures"},
    {"explorer"},
    {"__init__", "doctor", "__main__"},
)


def imported(node):
    """Yield the modules that an import statement names."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        assert not node.level, "imports are absolute here"
        yield node.module
        yield from (f"{node.module}.{alias.name}" for alias in node.names if node.module == "nads_core")


MODULES = sorted(PACKAGE.rglob("*.py"))


def room(path):
    """Return where a module lives: a folder, or the module itself on the top floor."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports_upwards(room, source):
    """Yield what a module of a room imports from where it may not."""
    floor = next((number for number, rooms in enumerate(FLOORS) if room in rooms), None)
    assert floor is not None, f"say in FLOORS on which floor {room} is"
    allowed = {room, *(below for rooms in FLOORS[:floor] for below in rooms)}
    allowed |= FLOORS[-1] if room in FLOORS[-1] else set()
    for node in ast.walk(ast.parse(source)):
        for name in imported(node):
            if name.startswith("nads_core.") and name.split(".")[1] not in allowed:
                yield f"line {node.lineno} imports {name}"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_module_imports_only_from_floors_below(path):
    assert not list(imports_upwards(room(path), path.read_text("utf8")))


def test_an_import_upwards_is_found():
    assert not list(imports_upwards("training", "from nads_core.data.fourier import spectrum\n"))
    wrong = "def late():\n    from nads_core.evidence import experiments\n    import nads_core.figures\n"
    assert len(list(imports_upwards("training", wrong))) == 2


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_module_imports_only_torch_and_numpy_when_it_is_imported(path):
    allowed = {"nads_core", "torch", "numpy", *sys.stdlib_module_names}
    if path.name.endswith("_triton.py"):
        allowed.add("triton")  # imported only where a kernel is asked for: see the next test
    if path.match("explorer/widget.py"):  # imported where a widget is made, and nowhere else
        allowed |= {"anywidget", "traitlets"}
    for node in ast.parse(path.read_text("utf8")).body:
        for name in imported(node):
            assert name.split(".")[0] in allowed, f"{path.name}:{node.lineno} imports {name}: do it where it is used"


def test_import_is_light():
    code = "import json, sys, nads_core; print(json.dumps(list(sys.modules)))"
    result = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert not HEAVY.intersection(json.loads(result.stdout))


def test_tests_can_be_collected_without_what_only_the_book_needs(tmp_path):
    (tmp_path / "without_book.py").write_text(f"import sys\nsys.modules.update(dict.fromkeys({sorted(BOOK_ONLY)}))\n")
    command = [sys.executable, "-m", "pytest", "-p", "without_book", "--collect-only", "-q", "tests"]
    environment = os.environ | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}", "NADS_STRICT": ""}
    result = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "tests/test_directions.py" in result.stdout and "tests/test_book.py::" not in result.stdout


def library():
    """Name the files of the library, as they stand in the checkout."""
    files = (path for path in PACKAGE.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(ROOT).as_posix() for path in files}


def test_wheel_holds_the_library_with_its_data_and_nothing_else(distributions):
    (wheel,) = distributions.glob("*.whl")
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert names == library()
    published = {f"nads_core/evidence/published/{name}" for name in ("fig1.csv", "fig6.csv", "LICENSE", "NOTICE")}
    assert {"nads_core/precomputed/lenet.v1.npz"} | published <= names


def test_sdist_holds_the_library_and_what_describes_it(distributions):
    (sdist,) = distributions.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames() if archive.getmember(name).isfile()}
    names = {name for name in names if "egg-info" not in name}
    described = {"pyproject.toml", "README.md", "LICENSE", "CITATION.cff", "MANIFEST.in", "PKG-INFO", "setup.cfg"}
    assert names == library() | described


def test_index_would_accept_the_release(distributions):
    files = sorted(map(str, distributions.iterdir()))
    assert len(files) == 2
    command = [sys.executable, "-m", "twine", "--no-color", "check", "--strict", *files]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0 and result.stdout.count("PASSED") == 2, result.stdout + result.stderr


def test_tracked_files_are_small():
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if listing.returncode:
        pytest.skip("not a git checkout")
    sizes = {name: (ROOT / name).stat().st_size for name in listing.stdout.split("\0") if (ROOT / name).is_file()}
    assert sizes
    large = {name: size for name, size in sizes.items() if size > 2.7e6}
    assert not large


@pytest.mark.parametrize("command", [["check"], ["format", "--check"]], ids=" ".join)
def test_ruff_is_content(command):
    command = [sys.executable, "-m", "ruff", *command, "--output-format=concise", "."]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, f"run `make lint`\n{result.stdout}{result.stderr}"


def test_types_are_sound():
    pytest.importorskip("mypy", reason="mypy is not installed")
    result = subprocess.run([sys.executable, "-m", "mypy"], cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
