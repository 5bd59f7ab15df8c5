"""What a clone and a wheel hold, what an import costs, and which module may import which."""

import ast
import json
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
HEAVY = {"matplotlib", "ipywidgets", "anywidget", "torchvision", "triton"}
BOOK_ONLY = {  # what `pip install -e .[dev]` does not bring
    "anywidget", "ipykernel", "IPython", "ipywidgets", "jupyter_book", "jupytext", "matplotlib", "papermill", "PIL",
    "sphinx_external_toc", "torchvision",
}  # fmt: skip

# Layers of each package, the lowest first: a module imports only from its own subpackage and from lower layers.
LAYERS = {
    "nads_core": (
        {"runtime"},
        {"kernels", "reference", "theory"},
        {"networks"},
        {"directions"},
        {"data"},
        {"training"},
        {"cli"},
        {"__init__", "__main__"},
    ),
    "nads_book": (
        {"checkout", "evidence", "publishing"},
        {"mnist1d", "report", "theory"},
        {"checks", "experiments"},
        {"analysis"},
        {"atlas"},
        {"studies", "benchmarks"},
        {"figures", "parameters"},
        {"explorer", "claims", "predictions", "network_report"},
        {"pages"},
        {"cli", "site"},
        {"__init__", "__main__"},
    ),
}
PACKAGES = {"nads_core": ROOT / "nads_core", "nads_book": ROOT / "book" / "nads_book"}
MODULES = [
    (name, path) for name, folder in PACKAGES.items() for path in sorted(folder.rglob("*.py"))
]
IDS = [f"{name}/{path.relative_to(PACKAGES[name])}" for name, path in MODULES]


def imported(node):
    """Yield the modules that an import statement names."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        assert not node.level, "imports are absolute here"
        yield node.module
        yield from (
            f"{node.module}.{alias.name}" for alias in node.names if node.module in PACKAGES
        )
    elif isinstance(node, ast.Constant) and re.fullmatch(
        r"nads_(core|book)(\.\w+)+", str(node.value)
    ):
        yield node.value  # a module that is named by a string, such as one that is imported when it is asked for


def subpackage(package, path):
    """Return where a module lives: a folder, or the module itself at the top of its package."""
    return path.relative_to(PACKAGES[package]).parts[0].removesuffix(".py")


def imports_upwards(package, subpackage, source):
    """Yield what a module of a subpackage imports from where it may not."""
    layers = LAYERS[package]
    layer = next((number for number, names in enumerate(layers) if subpackage in names), None)
    assert layer is not None, f"add {subpackage} to its layer in LAYERS"
    allowed = {subpackage, *(below for names in layers[:layer] for below in names)}
    tree = ast.parse(source)
    for node in ast.walk(tree):  # what only annotations need is not imported
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = []
    for node in ast.walk(tree):
        for name in imported(node):
            home, _, rest = name.partition(".")
            upwards = home == package and rest and rest.split(".")[0] not in allowed
            if upwards or (package == "nads_core" and home == "nads_book"):
                yield f"line {node.lineno} imports {name}"


@pytest.mark.parametrize(("package", "path"), MODULES, ids=IDS)
def test_module_imports_only_from_layers_below(package, path):
    assert not list(imports_upwards(package, subpackage(package, path), path.read_text("utf8")))


def test_an_import_upwards_is_found():
    assert not list(
        imports_upwards("nads_core", "training", "from nads_core.data.fourier import spectrum\n")
    )
    wrong = "def late():\n    from nads_book.studies import directions\n    import nads_core.cli\n"
    assert len(list(imports_upwards("nads_core", "training", wrong))) == 2
    by_string = 'def late():\n    return importlib.import_module("nads_core.cli.compute")\n'
    assert len(list(imports_upwards("nads_core", "training", by_string))) == 1


NAMES = {
    ".".join([package, *path.relative_to(PACKAGES[package]).with_suffix("").parts]).removesuffix(
        ".__init__"
    ): path
    for package, path in MODULES
}


def modules_imported(name):
    """Return the modules of both packages that a module imports, also inside functions."""
    tree = ast.parse(NAMES[name].read_text("utf8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = []
    found = set()
    for node in ast.walk(tree):
        if isinstance(
            node, ast.Constant
        ):  # the registry of a subpackage names its modules; the layers hold for it, too
            continue
        names = list(imported(node))
        if isinstance(node, ast.ImportFrom):  # a module, or a name in one
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for target in names:
            while target and target not in NAMES:
                target = target.rpartition(".")[0]
            found |= {target} - {"", name}
    return found


def test_imports_go_round_in_no_circle():
    graph = {name: modules_imported(name) for name in NAMES}

    def reachable(start):
        seen, waiting = set(), list(graph[start])
        while waiting:
            if (name := waiting.pop()) not in seen:
                seen.add(name)
                waiting += graph[name]
        return seen

    reached = {name: reachable(name) for name in graph}
    circles = {
        frozenset(other for other in reached[name] if name in reached[other])
        for name in graph
        if name in reached[name]
    }
    assert circles == set()


def test_no_script_is_imported_and_no_module_search_path_is_changed():
    """But for the working folder, in which `nads compute module:function` looks for the module."""
    allowed = {"nads_core/networks/architectures.py"}
    for package, path in MODULES:
        uses = re.findall(r"\brunpy\b|\bsys\.path\b", path.read_text("utf8"))
        assert (
            not uses or f"{package}/{path.relative_to(PACKAGES[package]).as_posix()}" in allowed
        ), path


IMPORTED = [
    item for item in MODULES if subpackage(*item) not in {"site", "claims", "pages"}
]  # these build the book


@pytest.mark.parametrize(("package", "path"), IMPORTED, ids=str)
def test_module_imports_only_torch_and_numpy_when_it_is_imported(package, path):
    allowed = {*PACKAGES, "torch", "numpy", *sys.stdlib_module_names}
    if path.name.endswith("_triton.py"):
        allowed.add("triton")  # imported only where a kernel is asked for: see the next test
    if path.match("explorer/widget.py"):  # imported where a widget is made, and nowhere else
        allowed |= {"anywidget", "traitlets"}
    if path.name == "__init__.py":
        allowed.add("lazy_loader")
    if path.match("nads_book/figures/*"):  # nothing else imports the figures
        allowed.add("matplotlib")
    for node in ast.parse(path.read_text("utf8")).body:
        for name in imported(node):
            assert name.split(".")[0] in allowed, (
                f"{path.name}:{node.lineno} imports {name}: do it where it is used"
            )


COMPUTE = """
import json, sys
sys.modules.update(dict.fromkeys(sys.argv[1:]))  # to import one of these raises ModuleNotFoundError
import nads_core as nc
options = dict(image_shape=(1, 4, 4), estimator=nc.SmoothedGradient(2), device="cpu", progress=False)
nads = nc.compute_nads(nc.LOGREG, 2, **options)
nads.save("nads.npz")
assert len(nc.NADs.load("nads.npz")) == len(nads) and len(nc.load_nads("lenet")) == 1024
print(json.dumps([name for name, module in sys.modules.items() if module]))
"""


def test_the_library_works_without_the_book_and_its_packages(tmp_path):
    missing = sorted(BOOK_ONLY | HEAVY | {"nads_book"})
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", COMPUTE, *missing]
    result = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    loaded = {
        name
        for name in json.loads(result.stdout.splitlines()[-1])
        if name.partition(".")[0] == "nads_core"
    }
    assert not [name for name in loaded if name.startswith(("nads_core.cli", "nads_core.__main__"))]


def test_importing_either_package_is_light():
    code = "import json, sys, nads_core, nads_book; print(json.dumps(list(sys.modules)))"
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert not HEAVY.intersection(json.loads(result.stdout))


@pytest.mark.slow
def test_tests_can_be_collected_without_what_only_the_book_needs(tmp_path):
    (tmp_path / "without_book.py").write_text(
        f"import sys\nsys.modules.update(dict.fromkeys({sorted(BOOK_ONLY)}))\n"
    )
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "without_book",
        "--collect-only",
        "-q",
        "tests",
    ]
    environment = os.environ | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}", "NADS_STRICT": ""}
    result = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    assert (
        "tests/test_directions.py" in result.stdout and "tests/test_book.py::" not in result.stdout
    )


def packages(book=""):
    """Name the files of both packages without the JavaScript sources; those of the book's are below a folder."""
    return {
        f"{book if name == 'nads_book' else ''}{name}/{path.relative_to(folder).as_posix()}"
        for name, folder in PACKAGES.items()
        for path in folder.rglob("*")
        if path.is_file() and not {"__pycache__", "sources"} & set(path.parts)
    }


PUBLISHED = ("fig1.csv", "fig6.csv", "lenet.npz", "resnet18.npz", "LICENSE", "NOTICE")


@pytest.mark.slow
def test_wheel_holds_the_library_with_its_data_and_nothing_else(distributions):
    (wheel,) = distributions.glob("*.whl")
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert names == packages()
    published = {f"nads_book/analysis/published/{name}" for name in PUBLISHED}
    assert {"nads_core/precomputed/lenet.v2.npz"} | published <= names
    shipped = [info for info in zipfile.ZipFile(wheel).infolist() if info.filename.endswith(".npz")]
    assert sum(info.compress_size for info in shipped) < 9e6


@pytest.mark.slow
def test_sdist_holds_the_library_and_what_describes_it(distributions):
    (sdist,) = distributions.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {
            name.split("/", 1)[1] for name in archive.getnames() if archive.getmember(name).isfile()
        }
    names = {name for name in names if "egg-info" not in name}
    described = {
        "pyproject.toml",
        "README.md",
        "LICENSE",
        "CITATION.cff",
        "MANIFEST.in",
        "PKG-INFO",
        "setup.cfg",
    }
    assert names == packages("book/") | described


@pytest.mark.slow
def test_index_would_accept_the_release(distributions):
    files = sorted(map(str, distributions.iterdir()))
    assert len(files) == 2
    command = [sys.executable, "-m", "twine", "--no-color", "check", "--strict", *files]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0 and result.stdout.count("PASSED") == 2, (
        result.stdout + result.stderr
    )


def test_tracked_files_are_small():
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if listing.returncode:
        pytest.skip("not a git checkout")
    sizes = {
        name: (ROOT / name).stat().st_size
        for name in listing.stdout.split("\0")
        if (ROOT / name).is_file()
    }
    assert sizes
    large = {name: size for name, size in sizes.items() if size > 2.7e6}
    assert not large
