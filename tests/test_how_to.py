"""The first report, the recipes and the page about clusters, executed as printed, from top to bottom
in one empty folder; Slurm's `srun` is played by a script that starts two workers. What a page says is
printed has to be, up to 5 % of each number: trainings differ between processors.
"""

import contextlib
import io
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT
from nads_book.experiments import Results
from nads_book.studies import experiment

PAGES = [ROOT / "book" / f"{name}.md" for name in ("first_report", "how_to", "clusters")]
SRUN = '#!/bin/sh\n"$@" &\n"$@" &\nwait\n'
FENCE = re.compile(
    r"^```(?:\{code-block\} )?(python|bash)\n(?::caption: (\S+)\n\n)?(.*?)^```$"
    r"(?:\n\nOutput[^\n]*:\n\n~~~text\n(.*?)^~~~$)?",
    re.DOTALL | re.MULTILINE,
)
NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d*)?(?:e[-+]\d+)?")


def blocks_of(page):
    """Return page, line, language, file, code and output of each block of a page."""
    text = page.read_text("utf8")
    found = [(page, text.count("\n", 0, m.start()) + 1, *m.groups()) for m in FENCE.finditer(text)]
    assert len(found) == len(re.findall(r"^```(?!\{figure\})\S", text, re.MULTILINE)) > 1, (
        f"a block of {page.name} would not be executed"
    )
    assert sum(one[-1] is not None for one in found) == len(
        re.findall("^Output", text, re.MULTILINE)
    )
    return found


def require_output(printed, documented, numbers):
    """Compare words exactly, and numbers by their size, if they do not depend on the time."""
    assert NUMBER.split(printed.strip()) == NUMBER.split(documented.strip())
    if numbers:
        ours, theirs = (
            [float(x.replace(",", "")) for x in NUMBER.findall(text)]
            for text in (printed, documented)
        )
        assert ours == pytest.approx(theirs, rel=0.05)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:nothing is claimed")  # of so few networks
def test_recipes_run_as_printed(tmp_path, monkeypatch):
    pytest.importorskip("distributed", reason="Dask is not installed: pip install -e .[cluster]")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "srun").write_text(SRUN)
    (tmp_path / "bin" / "srun").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "mynet", raising=False)
    monkeypatch.setenv("MPLBACKEND", "agg")
    commands = {
        "PATH": os.pathsep.join(
            [f"{tmp_path}/bin", str(Path(sys.executable).parent), os.environ["PATH"]]
        ),
        "OMP_NUM_THREADS": "1",
    }
    commands["PYTHONPATH"] = f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    shell = shutil.which("bash") or "sh"
    namespace = {}
    for path, line, language, file, code, output in [
        one for page in PAGES for one in blocks_of(page)
    ]:
        printed = io.StringIO()
        if file:
            Path(file).write_text(code, "utf8")
        elif language == "bash":
            command = [shell, "-e", "-c", code]
            result = subprocess.run(
                command, env=os.environ | commands, capture_output=True, text=True
            )
            assert result.returncode == 0, f"{code}\n{result.stdout}{result.stderr}"
            printed.write(result.stdout)
        else:
            # An error names the line of the page
            with contextlib.redirect_stdout(printed):
                exec(compile("\n" * line + code, str(path), "exec"), namespace)
        if output is not None:
            # How many networks a report has depends on the machine
            require_output(printed.getvalue(), output, path != PAGES[0])
    assert namespace["nads"].directions.shape == (1024, 1, 32, 32)
    assert namespace["larger"].provenance["num_networks"] == 128
    alone = namespace["nc"].load_nads("mynet.npz")
    for name in ("shared", "by_dask"):
        assert alone.overlap(namespace[name], k=10) > 0.999
    assert len(Results.load("study.json").rows) == len(experiment("random-logreg", "smoke").units())
    assert namespace["merged"].nads().provenance["num_networks"] == 128
    assert "No NAD is known yet" in Path("report.html").read_text("utf8")
    assert (
        len(namespace["train"].class_names) == 10
        and len(namespace["train"]) == len(namespace["test"]) == 1_000
    )
    assert namespace["result"].test_accuracy > 0.6  # of Fashion-MNIST
    assert Path("mynet.png").stat().st_size > 10_000
