"""The recipes of `book/how_to.md`, executed as printed, from top to bottom in one empty folder."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

PAGE = ROOT / "book" / "how_to.md"
FENCE = re.compile(
    r"^```(?:\{code-block\} )?(python|bash)\n(?::caption: (\S+)\n\n)?(.*?)^```$",
    re.DOTALL | re.MULTILINE,
)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:nothing is claimed")  # of so few networks
def test_recipes_run_as_printed(tmp_path, monkeypatch):
    text = PAGE.read_text("utf8")
    blocks = [(match.start(), *match.groups()) for match in FENCE.finditer(text)]
    assert len(blocks) == len(re.findall(r"^```\S", text, re.MULTILINE)) > 10, (
        "a block would not be executed"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "mynet", raising=False)
    monkeypatch.setenv("MPLBACKEND", "agg")
    commands = {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "OMP_NUM_THREADS": "1",
    }
    commands["PYTHONPATH"] = f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    shell = shutil.which("bash") or "sh"
    namespace = {}
    for start, language, file, code in blocks:
        if file:
            Path(file).write_text(code, "utf8")
        elif language == "bash":
            command = [shell, "-e", "-c", code]
            result = subprocess.run(
                command, env=os.environ | commands, capture_output=True, text=True
            )
            assert result.returncode == 0, f"{code}\n{result.stdout}{result.stderr}"
        else:
            line = text.count("\n", 0, start) + 1
            exec(
                compile("\n" * line + code, str(PAGE), "exec"), namespace
            )  # an error names the line of the page
    assert namespace["nads"].directions.shape == (1024, 1, 32, 32)
    assert namespace["larger"].provenance["num_networks"] == 128
    alone, shared = namespace["nc"].load_nads("mynet.npz"), namespace["shared"]
    assert alone.overlap(shared, k=10) > 0.999
    assert (
        len(namespace["train"].class_names) == 10
        and len(namespace["train"]) == len(namespace["test"]) == 1_000
    )
    assert namespace["result"].test_accuracy > 0.6  # of Fashion-MNIST
    assert Path("mynet.png").stat().st_size > 10_000
