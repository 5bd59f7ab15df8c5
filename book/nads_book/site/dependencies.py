"""The inputs of a chapter, as one hash: `build` executes a chapter again only when its hash changes.

They are the code cells' imports from `nads_core` and `nads_book` with all that these import, without docstrings and
comments; data files of those packages; the variants of figures; stored results; pinned requirements; the preset; and
the data folders.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import nbformat

PACKAGES = {"nads_core": "nads_core", "nads_book": "book/nads_book"}  # package -> folder in the repository
PHOTOS = (  # folders in that of the photos, or anywhere
    "cifar-10-batches-py", "train", "cifar10", "fashion-mnist", "FashionMNIST", "imagenette64", "imagenette2-160",
    "/usr/share/datasets/fashion-mnist",
)  # fmt: skip
DATA_VARIABLES = ("NADS_DATA", "NADS_REFERENCE", "NADS_DOWNLOAD")
MAGIC = re.compile(r"^\s*[%!].*$", re.MULTILINE)  # lines of a cell that are no Python


def fingerprint(notebook: Path, preset: str, root: Path, results: Path) -> str:
    """Return the hash of a chapter's inputs.

    Args:
        notebook: path of the chapter.
        preset: size of the experiments.
        root: root of the repository.
        results: folder of stored results.
    """
    photos = Path(os.environ.get("NADS_DATA") or Path.home() / ".cache" / "nads_core")
    present = [(photos / name).is_dir() for name in PHOTOS]
    digest = hashlib.sha256(repr([preset, *map(os.environ.get, DATA_VARIABLES), *present]).encode())
    modules = closure(notebook, root)
    data = [*_data(modules.values(), root), *_files(results), *_files(root / "benchmarks" / "results")]
    for name, path in sorted(modules.items()):
        digest.update(f"{name} {code(path, path.stat().st_mtime_ns)}".encode())
    for path in [notebook, root / "requirements.txt", root / "book" / "nads_book" / "figures" / "variants.py", *data]:
        if path.is_file():
            content = path.read_bytes()
            digest.update(f"{os.path.relpath(path, root)} {len(content)} ".encode() + content)
    return digest.hexdigest()


def closure(notebook: Path, root: Path) -> dict[str, Path]:
    """Return the modules of both packages that a chapter's cells use, directly or not: name -> path."""
    cells = nbformat.read(notebook, as_version=4).cells
    source = "\n".join(MAGIC.sub("", cell.source) for cell in cells if cell.cell_type == "code")
    try:
        waiting = list(uses(ast.parse(source), root))
    except SyntaxError:  # the chapter will fail, and show where
        waiting = list(PACKAGES)
    modules: dict[str, Path] = {}
    while waiting:
        name = resolve(waiting.pop(), root)
        path = module_path(name, root)
        if path and name not in modules:
            modules[name] = path
            waiting += needs(path, path.stat().st_mtime_ns, root)
    return modules


@functools.cache
def needs(path: Path, modified: int, root: Path) -> set[str]:
    """Return the dotted names that a module uses; of a package whose use could not be resolved, all its imports."""
    tree = parsed(path, modified)
    return {*uses(tree, root), *(bindings(tree).values() if path.name == "__init__.py" else ())}


@functools.cache
def parsed(path: Path, modified: int) -> ast.Module:
    """Return a module's syntax tree, as of a time of modification."""
    return ast.parse(path.read_bytes())


@functools.cache
def bindings(tree: ast.AST) -> dict[str, str]:
    """Return what import statements anywhere in the code bind: local name -> dotted name in one of both packages."""
    bound = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            bound |= {n.asname or n.name.partition(".")[0]: n.name for n in node.names}
        elif isinstance(node, ast.ImportFrom):
            bound |= {n.asname or n.name: f"{node.module}.{n.name}" for n in node.names}
    return {local: name for local, name in bound.items() if name.partition(".")[0] in PACKAGES}


def uses(tree: ast.AST, root: Path) -> Iterator[str]:
    """Yield the dotted names in both packages that the code uses; of packages, only with the attributes looked up."""
    packages = {}
    for local, name in bindings(tree).items():
        path = module_path(resolve(name, root), root)
        if path and path.name == "__init__.py":
            packages[local] = name
        else:
            yield name
    by_name = any(isinstance(node, ast.Attribute) and node.attr == "import_module" for node in ast.walk(tree))
    inner = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(tree):
        if by_name and isinstance(node, ast.Constant) and re.fullmatch(r"nads_(core|book)(\.\w+)*", str(node.value)):
            yield str(node.value)
        elif isinstance(node, ast.Attribute | ast.Name) and id(node) not in inner:
            local, _, attributes = ast.unparse(node).partition(".")
            if local in packages:
                yield f"{packages[local]}.{attributes}".rstrip(".")


def resolve(name: str, root: Path) -> str:
    """Return the module that defines a dotted name, or the package if its imports do not determine it."""
    module, parts = name, []
    while "." in module and not module_path(module, root):
        module, _, part = module.rpartition(".")
        parts.insert(0, part)
    path = module_path(module, root)
    if parts and path and path.name == "__init__.py":
        target = bindings(parsed(path, path.stat().st_mtime_ns)).get(parts[0])
        if target and target != module:
            return resolve(".".join([target, *parts[1:]]), root)
    return module


def module_path(name: str, root: Path) -> Path | None:
    """Return the file of a module, or None where a name is not a module."""
    package, _, rest = name.partition(".")
    path = root / PACKAGES[package] / rest.replace(".", "/")
    return next((file for file in (path / "__init__.py", path.with_suffix(".py")) if file.is_file()), None)


@functools.cache
def code(path: Path, modified: int) -> str:
    """Return a hash of a module's code, which docstrings, comments and layout do not change."""
    tree = ast.parse(path.read_bytes())  # not the cached one: docstrings are taken out
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            if ast.get_docstring(node, clean=False) is not None:
                node.body = node.body[1:]
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest()


def _data(modules: Iterable[Path], root: Path) -> list[Path]:
    """Return the data files of the packages that the modules are in, such as NADs that ship."""
    used = {parent for path in modules for parent in path.parents}
    files = [path for folder in PACKAGES.values() for path in _files(root / folder)]
    packages = {path.parent for path in files if path.suffix == ".py"}
    homes = {path: next((p for p in path.parents if p in packages), None) for path in files if path.suffix != ".py"}
    return [path for path, home in homes.items() if home in used]


def _files(folder: Path) -> list[Path]:
    """Return the files below a folder, in order, without caches and hidden files."""
    paths = sorted(folder.rglob("*"))
    return [p for p in paths if p.is_file() and "__pycache__" not in p.parts and not p.name.startswith(".")]
