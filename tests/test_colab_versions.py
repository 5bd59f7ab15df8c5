"""The notebooks with Colab's versions: an environment of its own, with Colab's Python and tests/colab_packages.txt.

It takes five gigabytes and a few minutes, and is deleted afterwards. What is tested is the last commit, which the first
cell of a notebook clones, as on Colab.
"""

import ast
import json
import os
import shutil
import subprocess
import sys

import pytest
from test_colab import ADDRESS, NOTEBOOKS, ROOT, environment, install_cell, run

nbformat = pytest.importorskip("nbformat")

VERSION = "3.13"  # Python's, on Colab
PACKAGES = ROOT / "tests" / "colab_packages.txt"
BYTES = 10e9  # of disk, for the environment while it is installed
# Executes the imports of each notebook; prints those that fail.
IMPORT_ALL = """
import json, sys
for name, imports in json.load(sys.stdin).items():
    for line in imports:
        try:
            exec(line, {})
        except Exception as error:
            print(f"{name}: {line}: {error!r}")
"""


def python_of_colab():
    """Return the path of a Python of Colab's version; skip where this machine has none."""
    look = "import ensurepip, sys, venv; print('%d.%d' % sys.version_info[:2], sys.executable)"
    for command in (sys.executable, f"python{VERSION}"):
        if shutil.which(command):
            variables = os.environ | {
                "PYENV_VERSION": VERSION
            }  # pyenv has each version under the same name
            result = subprocess.run(
                [command, "-c", look], env=variables, capture_output=True, text=True
            )
            version, _, path = result.stdout.strip().partition(" ")
            if version == VERSION:
                return path
    pytest.skip(
        f"no Python {VERSION} with venv, which Colab has: its versions of our packages cannot be installed"
    )


@pytest.fixture(scope="module")
def colab(tmp_path_factory):
    """Install what Colab has, execute the first cell, and yield a folder with `nads-book`, `environment`, `kernels`."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout, which the first cell clones")
    python = python_of_colab()
    folder = tmp_path_factory.mktemp("colab")
    if (free := shutil.disk_usage(folder).free) < BYTES:
        pytest.skip(
            f"Colab's packages take {BYTES / 1e9:.0f} GB of disk, and {free / 1e9:.0f} GB are free"
        )
    try:
        subprocess.run([python, "-m", "venv", folder / "environment"], check=True)
        python = folder / "environment" / "bin" / "python"
        pip = [
            python,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--no-compile",
        ]
        result = subprocess.run(
            [*pip, "-r", PACKAGES], env=environment(), capture_output=True, text=True
        )
        if result.returncode:
            pytest.skip(f"pip cannot install Colab's packages: {result.stderr.strip()[-500:]}")
        kernel = folder / "kernels" / "colab"
        kernel.mkdir(parents=True)
        argv = [str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        (kernel / "kernel.json").write_text(
            json.dumps({"argv": argv, "display_name": "Colab", "language": "python"})
        )
        cell = folder / "cell.ipy"
        cell.write_text(install_cell(NOTEBOOKS[0]).source)
        checkout = {  # stands in for the repository's address
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": f"url.file://{ROOT}.insteadOf",
            "GIT_CONFIG_VALUE_0": ADDRESS,
            "IPYTHONDIR": str(folder / "ipython"),
        }
        run([python, "-m", "IPython", "--no-banner", cell], folder, **checkout)
        yield folder
    finally:
        shutil.rmtree(folder)


def imports(path):
    """Return the import statements of a notebook, less those of benchmarks, which its cells find by their path."""
    statements = []
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type != "code" or cell == install_cell(path):
            continue
        for node in ast.walk(ast.parse(cell.source)):
            if isinstance(node, ast.Import | ast.ImportFrom):
                name = node.module if isinstance(node, ast.ImportFrom) else node.names[0].name
                if not (ROOT / "benchmarks" / f"{name}.py").exists():
                    statements.append(ast.unparse(node))
    return list(dict.fromkeys(statements))


@pytest.mark.slow
def test_what_the_notebooks_import_is_there(colab):
    notebooks = sorted((colab / "nads-book" / "notebooks").glob("*.ipynb"))
    statements = {path.name: imports(path) for path in notebooks}
    assert len(statements) > 10 and all(
        "import nads_book as nb" in lines for lines in statements.values()
    )
    command = [colab / "environment" / "bin" / "python", "-c", IMPORT_ALL]
    result = subprocess.run(
        command,
        input=json.dumps(statements),
        cwd=colab,
        env=environment(),
        capture_output=True,
        text=True,
    )
    assert (result.returncode, result.stdout) == (0, ""), result.stderr


@pytest.mark.slow
@pytest.mark.parametrize("title", ["nads_in_one_page", "poison", "explorer"])
def test_a_chapter_runs(colab, title):
    checkout = colab / "nads-book"
    (notebook,) = (checkout / "notebooks").glob(f"*_{title}.ipynb")
    executed = colab / notebook.name
    options = [
        "-k",
        "colab",
        "-p",
        "preset",
        "smoke",
        "--execution-timeout",
        "300",
        "--no-progress-bar",
    ]
    run(
        [sys.executable, "-m", "papermill", notebook, executed, *options],
        checkout,
        JUPYTER_PATH=str(colab),
        HOME=str(colab),
        OMP_WAIT_POLICY="PASSIVE",
    )
    outputs = [
        o for cell in nbformat.read(executed, as_version=4).cells for o in cell.get("outputs", ())
    ]
    kinds = {kind for output in outputs for kind in output.get("data", {})}
    assert kinds & {"image/png", "application/vnd.jupyter.widget-view+json"}
    errors = "".join(output.text for output in outputs if output.get("name") == "stderr")
    assert "Warning" not in errors, errors


def test_notebooks_need_no_newer_version_than_colab_has():
    """Hold the list of tests/colab_packages.txt against the bounds of the library itself."""
    import tomllib

    from packaging.requirements import Requirement

    pinned = dict(
        line.split("==") for line in PACKAGES.read_text("utf8").splitlines() if "==" in line
    )
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf8"))["project"]
    needed = map(Requirement, [*project["dependencies"], *project["optional-dependencies"]["book"]])
    too_new = [
        str(need)
        for need in needed
        if need.name in pinned and pinned[need.name] not in need.specifier
    ]
    assert not too_new
