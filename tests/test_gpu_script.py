"""The script for a GPU, and the page of costs that shows what GPUs took."""

import json
import subprocess
import sys

import pytest
from conftest import ROOT
from nads_book.benchmarks.roofline import DATA_SHEETS, Work
from nads_book.benchmarks.times import (
    FEWEST,
    GPUS,
    Duration,
    gpu_durations,
    networks_for,
    times,
)


@pytest.mark.slow
def test_the_script_times_whole_calls_and_parts_on_a_cpu(tmp_path):
    out = tmp_path / "gpu.json"
    arguments = ("calls", "--share", "0.001", "--device", "cpu", "--out", str(out))
    command = [sys.executable, str(ROOT / "tools/on_a_gpu.py"), *arguments]
    result = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert result.returncode == 0, result.stdout + result.stderr
    rows = json.loads(out.read_text())["rows"]
    assert all(row["seconds"] > 0 and "error" not in row for row in rows)
    assert {row.get("method", row.get("kernels")) for row in rows} == {"plain loop", "torch"}


def row(network, rate, evaluation="vmap", dtype="float32", kernels="torch"):
    fields = {"network": network, "evaluation": evaluation, "dtype": dtype, "kernels": kernels}
    return fields | {"networks_per_second": rate}


# --- the page of costs


def test_the_error_falls_as_one_over_the_number_of_networks():
    assert networks_for(0.99, 1_000, 0.9) == 10_000
    assert networks_for(0.9, 10_000, 0.99) == 1_000
    assert networks_for(0.9, 10_000, 0.999999) == FEWEST
    with pytest.raises(ValueError, match="got 1 and 0.9"):
        networks_for(1, 10, 0.9)


def test_times_on_gpus_are_measured_where_a_row_is_there():
    """By the newest row of the defaults; elsewhere they are estimated, by the share of the limits
    that was reached on another GPU.
    """
    work = Work(0, 3e12, 3e12, 0.0, 0.0, 0.0, 0.0)
    common = {"device": "NVIDIA H100 80GB HBM3", "roofline_share": 0.1}
    rows = [
        row("lenet", rate, dtype=dtype, kernels=kernels) | common
        for rate, dtype, kernels in (
            (90.0, "bfloat16", "torch"),
            (20.0, "float32", "torch"),
            (30.0, "float32", "torch"),
            (50.0, "float32", "triton"),
            (99.0, "float32", "one that was removed"),
        )
    ]
    rows += [row("cnn", 1e9) | common, row("lenet", 80.0, "loop") | common]
    rows.insert(0, {**rows[1], "error": "out of memory"})
    del rows[0]["networks_per_second"]
    found = gpu_durations(100, work, "lenet", rows)
    assert found["H100"] == Duration(5.0, "NVIDIA H100 80GB HBM3")
    assert found["T4"].seconds == pytest.approx(
        100 * 6e12 / DATA_SHEETS["T4"].rates["float32"] / 0.1
    )
    assert not found["T4"].source and str(found["T4"]).startswith("≈")


@pytest.mark.stored
def test_the_table_of_the_page_is_complete():
    found = times()
    more = times(0.999)
    assert list(found) == ["lenet", "cnn", "resnet18", "vit", "densenet121"]
    for count, by_device in found.values():
        laptop = by_device["laptop"]
        h100 = by_device["H100"]
        assert count >= FEWEST and list(by_device) == ["laptop", *GPUS]
        assert laptop.source and laptop.seconds > h100.seconds
        assert by_device["H200"].source
    assert more["lenet"][0] == pytest.approx(10 * found["lenet"][0], rel=0.01)
