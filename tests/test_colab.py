"""The notebooks with Colab's Python and versions (tests/colab_packages.txt), in an environment.

It takes five gigabytes and a few minutes, and is deleted afterwards. What is tested is the last
commit, which the first cell of a notebook clones, as on Colab.
"""

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import nbformat
import pytest
import yaml
from conftest import ROOT, git
from nads_book.cli import main
from nads_book.site import execution
from packaging.requirements import Requirement
from test_chapters import unexpected_warnings
from test_gaps import SESSIONS, checks, solve

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
ADDRESS = yaml.safe_load((ROOT / "_config.yml").read_text("utf8"))["repository"]["url"]
VERSION = (3, 13)  # Python's, on Colab
PACKAGES = ROOT / "tests" / "colab_packages.txt"
BYTES = 10e9  # of disk, for the environment while it is installed


def install_cell(path):
    """Return the first code cell of a notebook."""
    return next(
        cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"
    )


def test_one_command_sets_the_address_everywhere(tmp_path, monkeypatch, capsys):
    """In all files of a clone; and it is undone as completely."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    git(tmp_path, "clone", ROOT, tmp_path / "fork")
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
    git(Path(), "diff", "--exit-code", "--", ":!tests")


def run(command, folder, **variables):
    """Run a command without the variables that lend it our packages and data."""
    ours = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "NADS_RESULTS"}
    ours |= set(execution.dependencies.DATA_VARIABLES)
    environment = {name: value for name, value in os.environ.items() if name not in ours}
    return subprocess.run(
        command,
        cwd=folder,
        env=environment | variables,
        capture_output=True,
        text=True,
    )


def succeed(*arguments, **variables):
    result = run(*arguments, **variables)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def fetched_from(folder):
    """Return variables by which a checkout stands in for the repository's address."""
    config = {"KEY_0": f"url.file://{folder}.insteadOf", "VALUE_0": ADDRESS}
    return {"GIT_CONFIG_COUNT": "1"} | {f"GIT_CONFIG_{key}": one for key, one in config.items()}


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Install what Colab has, and yield the folder, with the command that runs the first cell."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout, which the first cell clones")
    folder = tmp_path_factory.mktemp("colab")
    if (free := shutil.disk_usage(folder).free) < BYTES:
        pytest.skip(
            f"Colab's packages take {BYTES / 1e9:.0f} GB of disk, and {free / 1e9:.0f} GB are free"
        )
    name = sys.executable if sys.version_info[:2] == VERSION else "python{}.{}".format(*VERSION)
    python = folder / "environment" / "bin" / "python"
    pip = [python, "-m", "pip", "install", "--quiet", "--no-compile", "-r", PACKAGES]
    try:
        for command in ([shutil.which(name) or "false", "-m", "venv", folder / "environment"], pip):
            # pyenv has every version under the same name, and asks this variable which one is meant
            done = run(command, folder, PYENV_VERSION="{}.{}".format(*VERSION))
            if done.returncode:
                pytest.skip(f"{name} cannot install Colab's packages: {done.stderr.strip()[-500:]}")
        kernel = folder / "kernels" / "colab"
        kernel.mkdir(parents=True)
        argv = [str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        (kernel / "kernel.json").write_text(
            json.dumps({"argv": argv, "display_name": "Colab", "language": "python"})
        )
        (folder / "cell.ipy").write_text(install_cell(NOTEBOOKS[0]).source + "\nprint('went on')\n")
        yield folder, [python, "-m", "IPython", "--no-banner", folder / "cell.ipy"]
    finally:
        shutil.rmtree(folder)


def versions(folder):
    command = [folder / "environment" / "bin" / "python", "-m", "pip", "freeze"]
    return set(succeed(command, folder).splitlines())


@pytest.fixture(scope="module")
def colab(installed):
    """Execute the first cell, and return the folder: no package is replaced."""
    folder, first = installed
    before = versions(folder)
    ipython = {"IPYTHONDIR": str(folder / "ipython"), "TERM": "dumb"}  # else it sets a title
    assert "went on" in succeed(first, folder, **ipython, **fetched_from(ROOT))
    assert before < versions(folder)
    assert succeed(first, folder, PATH="", **ipython) == "went on\n", "all is there: nothing to do"
    return folder


@pytest.mark.slow
def test_the_first_cell_stops_with_a_sentence_where_nothing_can_be_fetched(installed, tmp_path):
    _, first = installed
    nothing = {"PIP_NO_INDEX": "1"} | fetched_from(tmp_path / "nothing")
    done = run(first, tmp_path, IPYTHONDIR=str(tmp_path / "ipython"), **nothing)
    told = done.stdout + done.stderr
    assert "SystemExit" in told and ADDRESS in told and "went on" not in told
    assert "Traceback" not in told


def papermill(colab, notebook, executed):
    """Run a notebook at smoke in the environment, in the checkout that the first cell cloned."""
    options = "-k colab -p preset smoke --execution-timeout 300 --no-progress-bar".split()
    succeed(
        [sys.executable, "-m", "papermill", notebook, executed, *options],
        colab / "nads-book",
        JUPYTER_PATH=str(colab),
        HOME=str(colab),
        OMP_WAIT_POLICY="PASSIVE",
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", [path.name for path in NOTEBOOKS])
def test_a_chapter_runs(colab, name):
    executed = colab / name
    papermill(colab, colab / "nads-book" / "notebooks" / name, executed)
    outputs = [
        o for cell in nbformat.read(executed, as_version=4).cells for o in cell.get("outputs", ())
    ]
    kinds = {kind for output in outputs for kind in output.get("data", {})}
    assert kinds & {"image/png", "application/vnd.jupyter.widget-view+json"}
    errors = "".join(output.text for output in outputs if output.get("name") == "stderr")
    assert not unexpected_warnings(errors)


@pytest.mark.slow
@pytest.mark.parametrize("solved", [False, True])
@pytest.mark.parametrize("name", SESSIONS)
def test_a_notebook_with_gaps_runs(colab, name, solved):
    notebook = nbformat.read(ROOT / "book" / "gaps" / f"{name}.ipynb", as_version=4)
    if solved:
        solve(notebook)
    nbformat.write(notebook, colab / "gaps.ipynb")
    executed = colab / "executed.ipynb"
    papermill(colab, colab / "gaps.ipynb", executed)
    said = checks(nbformat.read(executed, as_version=4))
    assert said == {"Right." if solved else "No new answer"}


def test_notebooks_need_no_newer_version_than_colab_has():
    lines = PACKAGES.read_text("utf8").splitlines()
    pinned = dict(line.split("==") for line in lines if "==" in line)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf8"))["project"]
    for need in [*project["dependencies"], *project["optional-dependencies"]["book"]]:
        need = Requirement(need)
        assert need.name not in pinned or pinned[need.name] in need.specifier, need
