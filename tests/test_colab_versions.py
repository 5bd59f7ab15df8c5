"""The notebooks with Colab's Python and versions (tests/colab_packages.txt), in an environment.

It takes five gigabytes and a few minutes, and is deleted afterwards. What is tested is the last
commit, which the first cell of a notebook clones, as on Colab.
"""

import json
import shutil
import subprocess
import sys
import tomllib

import nbformat
import pytest
from packaging.requirements import Requirement
from test_chapters import unexpected_warnings
from test_colab import NOTEBOOKS, ROOT, environment, fetched_from, install_cell, run
from test_gaps import SESSIONS, checks, solve

VERSION = (3, 13)  # Python's, on Colab
PACKAGES = ROOT / "tests" / "colab_packages.txt"
BYTES = 10e9  # of disk, for the environment while it is installed


@pytest.fixture(scope="module")
def colab(tmp_path_factory):
    """Install what Colab has, execute the first cell, and yield the folder with all of it."""
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
            done = subprocess.run(command, env=environment(), capture_output=True, text=True)
            if done.returncode:
                pytest.skip(f"{name} cannot install Colab's packages: {done.stderr.strip()[-500:]}")
        kernel = folder / "kernels" / "colab"
        kernel.mkdir(parents=True)
        argv = [str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        (kernel / "kernel.json").write_text(
            json.dumps({"argv": argv, "display_name": "Colab", "language": "python"})
        )
        cell = folder / "cell.ipy"
        cell.write_text(install_cell(NOTEBOOKS[0]).source)
        first = [python, "-m", "IPython", "--no-banner", cell]
        run(first, folder, IPYTHONDIR=str(folder / "ipython"), **fetched_from(ROOT))
        yield folder
    finally:
        shutil.rmtree(folder)


def papermill(colab, notebook, executed):
    """Run a notebook at smoke in the environment, in the checkout that the first cell cloned."""
    options = "-k colab -p preset smoke --execution-timeout 300 --no-progress-bar".split()
    run(
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
