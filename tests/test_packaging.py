"""What a clone and a wheel hold, what an import costs, and which module may import which."""

import ast
import functools
import graphlib
import json
import re
import shutil
import tarfile
import zipfile

import pytest
from conftest import ROOT, run_python

HEAVY = {"matplotlib", "ipywidgets", "torchvision", "triton"}
BOOK_ONLY = {  # what `pip install -e .[dev]` does not bring
    "ipykernel",
    "IPython",
    "ipywidgets",
    "jupyter_book",
    "jupytext",
    "matplotlib",
    "pandas",
    "papermill",
    "PIL",
    "sphinx_external_toc",
    "torchvision",
}

# Floors of each package, the lowest first: a module imports only from its own floor and from lower
# ones, and the rooms (subpackages) of a floor import each other in no circle.
LAYERS = {
    "nads_core": (
        {"runtime"},
        {"kernels"},
        {"networks"},
        {"directions"},
        {"data"},
        {"training"},
        {"cli"},
        {"__init__", "__main__"},
    ),
    "nads_book": (
        {"experiments", "atlas", "photos", "published", "statistics", "theory"},
        {"studies", "benchmarks", "claims", "figures", "explorer", "network_report"},
        {"pages"},
        {"cli", "site"},
        {"__init__", "__main__"},
    ),
}
PACKAGES = {"nads_core": ROOT / "nads_core", "nads_book": ROOT / "book" / "nads_book"}
MODULES = [
    (name, path) for name, folder in PACKAGES.items() for path in sorted(folder.rglob("*.py"))
]
NAMES = {
    ".".join([package, *path.relative_to(PACKAGES[package]).with_suffix("").parts]).removesuffix(
        ".__init__"
    ): path
    for package, path in MODULES
}


@functools.cache
def parsed(source):
    """Return the syntax tree of a module, without what only annotations need."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = []
    return tree


def imported(name):
    """Yield the modules of both packages that a module imports, also inside functions or by their
    name, such as one that is imported when it is asked for.
    """
    for node in ast.walk(parsed(NAMES[name].read_text("utf8"))):
        targets = []
        if isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):  # a module, or a name in one
            assert not node.level, "imports are absolute here"
            targets = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Constant):
            targets = re.findall(r"^nads_(?:core|book)(?:\.\w+)+$", str(node.value))
        for target in targets:
            while target and target not in NAMES:
                target = target.rpartition(".")[0]
            if target not in ("", name):
                yield target


def room(module):
    """Return where a module lives: its package, and a folder or a module at the top of it."""
    return (*module.split("."), "__init__")[:2]


def test_modules_import_only_from_floors_below():
    floors = {
        (package, name): number
        for package, layers in LAYERS.items()
        for number, names in enumerate(layers)
        for name in names
    }
    for name in NAMES:
        package, own = room(name)
        assert (package, own) in floors, f"add {own} to its floor in LAYERS"
        for target in imported(name):
            home, there = room(target)
            assert home == package or package == "nads_book", f"{name} imports {target}"
            upwards = home == package and there != "__init__"
            below = floors[home, there] <= floors[package, own]
            assert below or not upwards, f"{name} imports {target}"


def test_imports_go_round_in_no_circle():
    modules = {name: set(imported(name)) for name in NAMES}
    graphlib.TopologicalSorter(modules).prepare()  # raises CycleError
    rooms = {room(name): set() for name in modules}
    for name, targets in modules.items():
        rooms[room(name)] |= {room(target) for target in targets if "." in target} - {room(name)}
    graphlib.TopologicalSorter(rooms).prepare()


COMPUTE = """
import importlib, pkgutil, sys
sys.modules.update(dict.fromkeys(sys.argv[1:]))  # to import one of these raises ModuleNotFoundError
import nads_core as nc
estimator = nc.SmoothedGradient(4)
nads = nc.compute_nads(nc.LOGREG, (1, 4, 4), 2, estimator=estimator, progress=False)
nads.save("nads.npz")
assert len(nc.load_nads("nads.npz")) == len(nads) and len(nc.load_nads("lenet")) == 1024
assert not [name for name in sys.modules if name.startswith("nads_core.cli")]
for module in pkgutil.walk_packages(nc.__path__, "nads_core."):
    if not module.name.endswith(("_triton", "__main__")):
        importlib.import_module(module.name)
"""


def test_the_library_works_without_the_book_and_its_packages(tmp_path):
    missing = sorted(BOOK_ONLY | HEAVY | {"nads_book"})
    run_python("-c", COMPUTE, *missing, folder=tmp_path)


REPORT = """
import sys
sys.modules.update(dict.fromkeys(sys.argv[1:]))
import nads_core as nc
import nads_book as nb
moment = nc.second_moment(nc.LOGREG, (1, 4, 4), 16, workers=1, progress=False)
print(nb.report_on(moment).html[:15])
"""


@pytest.mark.slow
def test_a_report_needs_only_the_packages_of_its_extra():
    pytest.importorskip("matplotlib.axes", reason="reports: pip install -e .[report]")
    missing = sorted(BOOK_ONLY - {"matplotlib", "PIL"} | {"torchvision"})
    assert run_python("-c", REPORT, *missing) == "<!doctype html>\n"


def test_importing_either_package_is_light():
    code = "import json, sys, nads_core, nads_book; print(json.dumps(list(sys.modules)))"
    assert not HEAVY.intersection(json.loads(run_python("-c", code)))


COLLECT = """
import pytest, sys
sys.modules.update(dict.fromkeys(sys.argv[1:]))
sys.exit(pytest.main(["--collect-only", "-q", "tests"]))
"""


@pytest.mark.slow
def test_tests_can_be_collected_without_what_only_the_book_needs():
    collected = run_python("-c", COLLECT, *BOOK_ONLY)
    assert "tests/test_directions.py" in collected and "tests/test_book.py::" not in collected


def packages(book=""):
    """Name the files of both packages, `book` before the book's, without JavaScript sources."""
    return {
        f"{book if name == 'nads_book' else ''}{name}/{path.relative_to(folder).as_posix()}"
        for name, folder in PACKAGES.items()
        for path in folder.rglob("*")
        if path.is_file() and not {"__pycache__", "sources"} & set(path.parts)
    }


DESCRIBED = "pyproject.toml README.md LICENSE CITATION.cff MANIFEST.in".split()


@pytest.mark.slow
def test_a_release_holds_the_packages_with_their_data_and_the_index_accepts_it(tmp_path):
    """Built offline, from a copy without traces of builds."""
    for name in DESCRIBED:
        shutil.copy(ROOT / name, tmp_path)
    for name in ("nads_core", "book/nads_book", "tests"):
        ignore = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, tmp_path / name, ignore=ignore)
    run_python("-m", "build", "--no-isolation", "--outdir", "dist", ".", folder=tmp_path)
    (wheel,) = tmp_path.glob("dist/*.whl")
    (sdist,) = tmp_path.glob("dist/*.tar.gz")
    content = [
        file for file in zipfile.ZipFile(wheel).infolist() if ".dist-info/" not in file.filename
    ]
    assert {file.filename for file in content} == packages()
    assert sum(file.compress_size for file in content if file.filename.endswith(".npz")) < 9e6
    with tarfile.open(sdist) as archive:
        names = {file.name.partition("/")[2] for file in archive.getmembers() if file.isfile()}
    names = {name for name in names if "egg-info" not in name}
    assert names == packages("book/") | {*DESCRIBED, "PKG-INFO", "setup.cfg"}
    run_python("-m", "twine", "--no-color", "check", "--strict", wheel, sdist)
