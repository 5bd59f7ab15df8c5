"""The parameters of the chapters: what the first cell accepts, what it rejects, and the preset that
it chooses.
"""

import os
import re
import subprocess
import sys
from types import SimpleNamespace

import pytest
import torch
from conftest import PATHS, ROOT
from nads_book import check_parameters, choose_preset

import nads_core as nc

# Each documented value of each parameter is in one of these runs at smoke; tests/test_chapters.py
# runs the defaults.
RUNS = [
    ("poison", {"architecture": "logreg", "index": 100, "seed": 2**32 - 1}),
    ("poison", {"architecture": "vgg11", "dataset": "generated", "index": 1022}),
    ("poison", {"architecture": "resnet18", "strength": 32}),
    ("poison", {"architecture": "densenet121", "strength": 0.001}),
    *(("flip", {"architecture": name}) for name in nc.ARCHITECTURES if name != "lenet"),
    *(
        ("explorer", {"architecture": name, "second": second, "index": index})
        for index, (name, second) in enumerate(
            zip(nc.ARCHITECTURES, reversed(nc.ARCHITECTURES), strict=True)
        )
    ),
]


def test_documented_values_are_accepted():
    check_parameters()
    for name in nc.ARCHITECTURES:
        check_parameters(architecture=name, seed=2**32 - 1)
    check_parameters(architecture=dict, image_shape=(3, 8, 8), num_networks=5)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("seed", value) for value in ("abc", None, True, float("nan"), -1, 0.5)),
        *(("architecture", value) for value in ("foo", "LeNet", 3, "", None)),
        ("num_networks", -1),
    ],
)
def test_values_that_a_parameter_cannot_have_are_rejected(name, value):
    with pytest.raises(ValueError, match=f"{name} .*{re.escape(repr(value))}"):
        check_parameters(**{name: value})


# Whole chapters


def papermill(tmp_path, title, parameters, **variables):
    """Run a chapter at smoke; return the exit status of papermill and what it printed."""
    (notebook,) = (ROOT / "notebooks").glob(f"*_{title}.ipynb")
    command = [sys.executable, "-m", "papermill", notebook, tmp_path / "executed.ipynb"]
    for name, value in ({"preset": "smoke"} | parameters).items():
        command += ["-p", name, str(value)]
    result = subprocess.run(
        command,
        cwd=ROOT,
        env=os.environ | PATHS | {"OMP_NUM_THREADS": "1"} | variables,
        capture_output=True,
        text=True,
        timeout=1200,
    )
    return result.returncode, result.stdout + result.stderr


@pytest.mark.slow
@pytest.mark.parametrize(("title", "parameters"), RUNS)
def test_documented_values_run_at_smoke(tmp_path, title, parameters):
    status, output = papermill(tmp_path, title, parameters)
    assert status == 0, output


@pytest.mark.slow
@pytest.mark.parametrize("title", ["poison", "flip"])
def test_a_folder_with_photos_is_read_and_one_without_is_rejected(tmp_path, title):
    photos = os.environ.get("NADS_DATA")
    if not photos:
        pytest.skip("NADS_DATA is not set: it names the folder with CIFAR-10")
    chosen = {"architecture": "logreg", "data_root": photos}
    status, output = papermill(tmp_path, title, chosen, NADS_DATA="", NADS_DOWNLOAD="0")
    assert status == 0, output
    status, output = papermill(tmp_path, title, chosen | {"data_root": tmp_path / "none"})
    assert status == 1 and "DatasetNotFoundError" in output


# The preset


def test_preset_that_is_named_is_kept():
    assert choose_preset("paper", gpu="demo") == "paper"
    with pytest.raises(ValueError, match="'tiny'"):
        choose_preset("tiny")


@pytest.mark.parametrize("gpu", ["demo", "paper"])
def test_preset_is_chosen_for_the_machine(gpu, monkeypatch, capsys):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert choose_preset(gpu=gpu) == "demo" and "no GPU" in capsys.readouterr().out
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    for name, major in (("Tesla T4", 7), ("A100", 8)):
        device = SimpleNamespace(name=name, major=major, total_memory=16 * 2**30)
        monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _, device=device: device)
        assert choose_preset(gpu=gpu) == gpu
        output = capsys.readouterr().out
        assert name in output and "16 GB" in output and ("no bfloat16" in output) == (major < 8)
