"""The script for a GPU, here on a CPU."""

import json

import pytest
from conftest import run_python


@pytest.mark.slow
def test_the_script_times_whole_calls_and_parts(tmp_path):
    out = tmp_path / "gpu.json"
    old = [{"part": "tests", "command": "tests/gpu", "seconds": 1}]
    old += [{"part": "calls", "network": "lenet", "method": "torch", "error": "memory"}]
    out.write_text(json.dumps({"rows": old}))
    arguments = ("calls", "--share", "0.001", "--device", "cpu", "--out", out)
    run_python("tools/on_a_gpu.py", *arguments)
    rows = json.loads(out.read_text())["rows"]
    assert all(row["seconds"] > 0 and "error" not in row for row in rows)
    assert rows[0] == old[0] and len(rows) == 5  # a plain loop and the library, for two networks
    assert {row["method"] for row in rows[1:]} == {"plain loop", "torch"}
