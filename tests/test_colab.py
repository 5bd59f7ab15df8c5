"""The notebooks where nobody prepared anything: a bare environment with Colab's kind of packages.

They are links to those of the running environment; what those do not need, such as loky, papermill
and torchvision, is missing.
"""

import os
import re
import subprocess
import venv
import zipfile
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import nbformat
import pytest
import yaml
from conftest import ROOT
from nads_book.cli import main
from nads_book.site import execution
from packaging.requirements import Requirement

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
ADDRESS = yaml.safe_load((ROOT / "_config.yml").read_text("utf8"))["repository"]["url"]
PACKAGES = """torch numpy scipy matplotlib pillow lazy_loader tqdm cloudpickle ipykernel ipywidgets
pip""".split()
MISSING = ("nads_core", "loky", "torchvision", "papermill", "nbformat")


def install_cell(path):
    """Return the first code cell of a notebook."""
    return next(
        cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"
    )


# The cell that fetches the library


def test_one_command_sets_the_address_everywhere(tmp_path, monkeypatch, capsys):
    """In all files of a clone; and it is undone as completely."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    subprocess.run(["git", "clone", "--quiet", ROOT, tmp_path / "fork"], check=True)
    monkeypatch.chdir(tmp_path / "fork")
    for address in ("me/fork", "https://gitlab.com/me/fork", "https://github.com/me"):
        assert main(["address", address]) == 2 and address in capsys.readouterr().err
    assert main(["address", "https://github.com/Me/my.fork.git"]) == 0
    owner = ADDRESS.split("/")[-2]
    command = ["git", "grep", "-IlE", rf"github(\.com)?/{owner}/|{owner}\.github\.io"]
    assert not subprocess.run(command, capture_output=True, text=True).stdout
    config = yaml.safe_load(Path("_config.yml").read_text("utf8"))
    assert config["repository"]["url"] == "https://github.com/Me/my.fork"
    assert config["html"]["baseurl"] == "https://me.github.io/my.fork/"
    assert all(
        '"https://github.com/Me/my.fork"\n' in install_cell(path).source
        for path in Path("notebooks").glob("*.ipynb")
    )
    assert main(["address", ADDRESS]) == 0
    assert not subprocess.run(["git", "diff", "--quiet", "--", ":!tests"]).returncode


# The environment


def needed(names):
    """Yield the installed distributions of these names and all that they require."""
    seen = set()
    waiting = list(names)
    while waiting:
        name = re.sub(r"[-_.]+", "-", waiting.pop()).lower()
        try:
            package = distribution(name)
        except PackageNotFoundError:
            continue  # ipywidgets, where it is not installed
        if name not in seen:
            seen.add(name)
            yield package
            requirements = map(Requirement, package.requires or ())
            waiting += [
                r.name for r in requirements if r.marker is None or r.marker.evaluate({"extra": ""})
            ]


def bare_environment(folder):
    """Make an environment with Colab's kind of packages; return its Python and its packages."""
    venv.EnvBuilder(symlinks=True).create(folder)
    (packages,) = folder.glob("lib/python*/site-packages")
    for package in needed(PACKAGES):
        for part in {
            file.parts[0] for file in package.files if file.parts[0] not in ("..", "__pycache__")
        }:
            if not (packages / part).exists():
                (packages / part).symlink_to(package.locate_file(part))
    return folder / "bin" / "python", packages


def environment(**variables):
    """Return the variables of this process, less those that lend our packages and data."""
    ours = {
        "PYTHONPATH",
        "PYTHONHOME",
        "VIRTUAL_ENV",
        *execution.dependencies.DATA_VARIABLES,
        "NADS_RESULTS",
    }
    return {name: value for name, value in os.environ.items() if name not in ours} | variables


def as_wheel(name, folder):
    """Put an installed pure Python distribution into a wheel, for pip to find offline."""
    package = distribution(name)
    with zipfile.ZipFile(folder / f"{name}-{package.version}-py3-none-any.whl", "w") as archive:
        for file in package.files:
            if file.parts[0] != ".." and "__pycache__" not in file.parts:
                archive.write(package.locate_file(file), file.as_posix())


def run(command, folder, **variables):
    result = subprocess.run(
        list(map(str, command)),
        cwd=folder,
        env=environment(**variables),
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def fetched_from(folder):
    """Return variables by which a checkout stands in for the repository's address."""
    config = {"KEY_0": f"url.file://{folder}.insteadOf", "VALUE_0": ADDRESS}
    return {"GIT_CONFIG_COUNT": "1"} | {f"GIT_CONFIG_{key}": one for key, one in config.items()}


# The two ways in


@pytest.mark.slow
@pytest.mark.parametrize("place", [".", "nads-book/notebooks", "nads-book/book/gaps"])
def test_first_cell_fetches_what_is_missing_and_replaces_nothing(place, tmp_path):
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    python, packages = bare_environment(tmp_path / "environment")
    before = {path.name: path.resolve() for path in packages.iterdir()}
    assert not {path.split("-")[0] for path in before} & set(MISSING)
    wheels, content, cell = (tmp_path / name for name in ("wheels", "content", "cell.ipy"))
    wheels.mkdir(), content.mkdir()
    for name in ("loky", "pandas", "setuptools"):
        as_wheel(name, wheels)
    if place != ".":  # in a checkout nads_core can be imported, and nads_book cannot
        run(["git", "clone", "--quiet", ROOT, "nads-book"], content)
    cell.write_text(
        f"{install_cell(NOTEBOOKS[0]).source}\n"
        "import nads_book, nads_core, torch\n"
        "print(nads_core.__file__, torch.__file__, nads_book.load_results('fig1-lenet') is not None)"
    )
    command = [python, "-m", "IPython", "--no-banner", cell]
    pip = {"NO_INDEX": "1", "FIND_LINKS": str(wheels), "DISABLE_PIP_VERSION_CHECK": "1"}
    offline = {f"PIP_{key}": value for key, value in pip.items()} | fetched_from(ROOT)
    ipython = {"IPYTHONDIR": str(tmp_path / "ipython")}
    said = run(command, content / place, **ipython, **offline).splitlines()[-1]
    library = content / "nads-book" / "nads_core" / "__init__.py"
    assert said == f"{library} {packages / 'torch' / '__init__.py'} True"

    after = {path.name: path.resolve() for path in packages.iterdir()}
    assert {name: after.get(name) for name in before} == before, "a package was replaced"
    added = {name.split("-")[0].strip("_") for name in after.keys() - before.keys()}
    assert {"loky", "nads_core"} <= added

    again = run(command, tmp_path, PATH="", **ipython)
    assert again.splitlines() == [said], "nothing is to be done where the library is there"
    assert not (tmp_path / "nads-book").exists()


@pytest.mark.slow
def test_first_cell_stops_with_a_sentence_where_nothing_can_be_fetched(tmp_path):
    python, _ = bare_environment(tmp_path / "environment")
    cell = tmp_path / "cell.ipy"
    cell.write_text(f"{install_cell(NOTEBOOKS[0]).source}\nprint('went on')\n")
    variables = environment(
        PIP_NO_INDEX="1",
        IPYTHONDIR=str(tmp_path / "ipython"),
        **fetched_from(tmp_path / "nothing"),
    )
    command = [python, "-m", "IPython", "--no-banner", cell]
    done = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True)
    told = done.stdout + done.stderr
    assert "SystemExit" in told and ADDRESS in told and "went on" not in told
    assert "Traceback" not in told
