"""The script for a GPU, here on a CPU."""

import json
import subprocess
import sys

import pytest
from conftest import ROOT


@pytest.mark.slow
def test_the_script_times_whole_calls_and_parts(tmp_path):
    out = tmp_path / "gpu.json"
    arguments = ("calls", "--share", "0.001", "--device", "cpu", "--out", str(out))
    command = [sys.executable, str(ROOT / "tools/on_a_gpu.py"), *arguments]
    result = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert result.returncode == 0, result.stdout + result.stderr
    rows = json.loads(out.read_text())["rows"]
    assert all(row["seconds"] > 0 and "error" not in row for row in rows)
    assert {row.get("method", row.get("kernels")) for row in rows} == {"plain loop", "torch"}
