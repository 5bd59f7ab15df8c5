"""The script for a GPU, its decisions, and the page of costs that waits for them."""

import json
import os
import subprocess
import sys
from types import SimpleNamespace

import gpu_training
import psutil
import pytest
import torch
from conftest import ROOT
from gpu_decisions import decide
from gpu_training import loss_difference, steps_per_second
from nads_book.benchmarks.times import (
    FEWEST,
    GPUS,
    times,
)

import nads_core as nc

SCRIPT = ROOT / "tools" / "on_a_gpu.py"
PARTS = ("tests", "kernels", "networks", "own_loop", "large", "trainings")

# What a machine that is there for minutes lacks, though the book needs it.
_ABSENT = (
    "loky",
    "mnist1d",
    "anywidget",
    "ipywidgets",
    "IPython",
    "traitlets",
    "jupytext",
    "papermill",
    "bs4",
)


def run(*arguments, path=None):
    environment = os.environ | {"PYTHONPATH": str(path or "")}
    command = [sys.executable, str(SCRIPT), *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, cwd=ROOT)


@pytest.mark.slow
def test_a_dry_run_goes_through_every_part_and_its_results_are_kept(tmp_path, monkeypatch):
    """Also without what that machine lacks; a second call has nothing to do."""
    absent = f"import sys\nfor name in {_ABSENT}:\n    sys.modules[name] = None\n"
    (tmp_path / "sitecustomize.py").write_text(absent)
    out = tmp_path / "out"
    arguments = ("--dry-run", "--minutes", "600", "--out", str(out), "--commit", "abc1234")
    result = run(*arguments, path=tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr
    files = [*out.iterdir()]
    assert len(files) <= 8 and all(path.stat().st_size < 2**24 for path in files)
    for part in PARTS:
        content = json.loads((out / f"{part}.json").read_text())
        assert content["complete"] and content["rows"], part
        for row in content["rows"]:
            assert row["commit"] == "abc1234" and row["device"] and "error" not in row, row
    assert all(
        row["outcome"] == "PASSED" for row in json.loads((out / "tests.json").read_text())["rows"]
    )
    trainings = json.loads((out / "trainings.json").read_text())
    assert [len(part["rows"]) for part in trainings["results"].values()] == [2, 2]
    assert all(
        run["commit"] for part in trainings["results"].values() for run in part["provenance"]
    )
    again = run(*arguments, path=tmp_path)
    assert again.returncode == 0 and again.stdout.count("complete already") == len(PARTS)

    kept = tmp_path / "kept"
    monkeypatch.setenv("NADS_RESULTS", str(kept))
    result = run("--keep", str(out), "--into", str(tmp_path))
    assert result.returncode == 0, result.stdout + result.stderr
    assert sorted(path.name for path in kept.glob("*.json")) == [
        "fig1-logreg.smoke.json",
        "fig7-logreg.smoke.json",
    ]
    assert {f"gpu-{part}.json" for part in PARTS} <= {path.name for path in tmp_path.iterdir()}


@pytest.mark.slow
def test_a_part_is_ended_at_its_limit_with_all_that_it_started(tmp_path, monkeypatch):
    """Its pytest, a process of its own, loads a plugin that never ends."""
    written = "from os import getpid\nfrom pathlib import Path\nfrom time import sleep\n"
    written += f"Path({str(tmp_path / 'pid')!r}).write_text(str(getpid()))\nsleep(600)\n"
    (tmp_path / "endless.py").write_text(written)
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p endless")
    parts = ("--parts", "tests", "own_loop")
    for minutes in ("0.4", "2", "10"):  # on a busy machine the first ones may end before it begins
        out = ("--out", str(tmp_path / minutes))
        result = run("--dry-run", "--minutes", minutes, *out, *parts, path=tmp_path)
        if (tmp_path / "pid").exists():
            break
    assert result.returncode == 1
    assert "ended at its limit" in result.stdout and "no time was left" in result.stdout
    child = int((tmp_path / "pid").read_text())
    assert not psutil.pid_exists(child) or psutil.Process(child).status() == psutil.STATUS_ZOMBIE


# --- decisions


def row(
    network,
    rate,
    evaluation="vmap",
    dtype="float32",
    kernels="torch",
    **more,
):
    fields = {"network": network, "evaluation": evaluation, "dtype": dtype, "kernels": kernels}
    return fields | {"networks_per_second": rate} | more


def decided(networks, own_loops=()):
    return {each.subject: each.decision for each in decide(networks, list(own_loops))}


def test_an_evaluation_is_the_default_from_a_factor_of_1_2():
    for rate, decision in ((119.9, "vmap"), (120.0, "graph"), (10.0, "vmap")):
        rows = [row("vit", 100.0), row("vit", rate, "graph"), row("vit", 1e6, "graph", "bfloat16")]
        assert decided(rows)["evaluation of vit"] == decision


def test_kernels_are_the_default_where_they_are_faster_as_a_whole():
    """By whole calls, not by the networks alone."""
    rows = [row("lenet", 100.0), row("lenet", 1e6, kernels="triton"), row("vit", 1.0)]
    rows += [row("resnet18", None, error="out of memory"), row("resnet18", 5.0, "loop")]
    calls = [
        {"network": name, "variant": variant, "method": "library", "networks_per_second": rate}
        for name, kernels in (("lenet", 121.0), ("cnn", 119.0), ("vit", None))
        for variant, rate in (("library", 100.0), ("library, triton", kernels))
    ]
    found = decided(rows, calls)
    assert found["kernels for lenet"] == "triton" and found["kernels for cnn"] == "torch"
    assert found["kernels for vit"] == found["kernels for resnet18"] == "not known"
    of_two_cards = [call | {"device": call["variant"]} for call in calls]
    assert decided(rows, of_two_cards)["kernels for lenet"] == "not known"
    assert found["evaluation of cnn"] == "not known" and found["evaluation of resnet18"] == "loop"


@pytest.mark.parametrize(
    ("library", "share", "decision"),
    [(500.0, 0.3, "reached"), (499.0, 0.3, "missed"), (500.0, 0.29, "missed")],
)
def test_a_goal_needs_both_the_factor_and_the_roofline(library, share, decision):
    loops = [
        {"network": "lenet", "method": "own loop", "networks_per_second": rate}
        for rate in (50.0, 100.0)
    ]
    loops += [{"network": "lenet", "method": "library, triton", "networks_per_second": library}]
    rows = [row("lenet", 1.0, roofline_share=share), row("lenet", 1.0, "loop", roofline_share=0.1)]
    assert decided(rows, loops)["goal of lenet"] == decision
    assert decided(rows, loops[:2])["goal of lenet"] == "not known"


# --- training


def test_losses_of_a_training_are_those_of_a_cpu():
    """On a GPU, float32 rounds otherwise: there a tolerance of 1e-3 holds for 50 steps."""
    assert loss_difference(nc.LENET, "cpu", steps=4, batch_size=8, image_size=16) < 1e-6


def test_steps_per_second_are_those_that_epochs_add(monkeypatch):
    """A start of 5 s, epochs of 1 s; the times of three and five epochs are too short by noise."""
    noise = iter([0.0, 0.0, -3.0, -3.0])

    def train(architecture, data, *, recipe, **options):
        seconds = 5.0 + recipe.epochs + next(noise, 0.0)
        return SimpleNamespace(seconds=torch.full((len(data),), seconds / len(data)))

    monkeypatch.setattr(gpu_training, "train_networks", train)
    options = {"mixed_precision": False, "batch_size": 4, "image_size": 16, "batches": 3}
    assert steps_per_second(nc.LENET, "cpu", **options) == pytest.approx(3)


# --- the page of costs


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
