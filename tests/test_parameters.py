"""The parameters of the chapters: what the first cell accepts, what it rejects, and the preset that
it chooses.
"""

import os
import re
import subprocess
import sys
from types import SimpleNamespace

import nads_book as nb
import pytest
import torch
from conftest import ROOT
from nads_book import check_parameters, choose_network, choose_preset

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
NUMBERS = ("abc", None, True, float("nan"), float("inf"))


def rejected(error=ValueError, **parameters):
    """Check that one parameter is rejected, by name and with its value."""
    (name, value), *_ = parameters.items()
    with pytest.raises(error, match=f"{name} .*{re.escape(repr(value))}"):
        check_parameters(**parameters)


def test_documented_values_are_accepted():
    check_parameters()
    for name in nc.ARCHITECTURES:
        check_parameters(architecture=name, second=name)
    check_parameters(seed=2**32 - 1, index=1023, strength=32, dataset="generated")
    check_parameters(index=1022, last_index=1022, strength=0.001, second="")


NAMES = ("foo", "LeNet", 3)
BAD = {  # parameter: values that it cannot have
    "seed": [*NUMBERS, -1, 0.5, 2**32],
    "strength": [*NUMBERS, 0, -1, 1e-4, 33, 1e9],
    "index": [*NUMBERS, -1, 1024, 0.5],
    "architecture": [*NAMES, "", None],
    "dataset": [*NAMES, ""],
    "second": [*NAMES, None],
}


@pytest.mark.parametrize(("name", "value"), [(name, v) for name in BAD for v in BAD[name]])
def test_values_that_a_parameter_cannot_have_are_rejected(name, value):
    rejected(**{name: value})


def test_a_carrier_needs_the_next_nad_too():
    rejected(index=1023, last_index=1022)


def test_a_network_may_be_a_function_of_a_module():
    assert choose_network("lenet") is nc.LENET
    assert choose_network("collections:OrderedDict")() == {}
    with pytest.raises(ValueError, match="nowhere"):
        choose_network("nowhere:factory")
    for value in ("foo", None, 3):
        with pytest.raises(ValueError, match=f"{re.escape(repr(value))}.*lenet.*resnet18"):
            choose_network(value)


# The folder with the photos


@pytest.fixture
def offline(monkeypatch):
    """Have no photos, and no network to download them from."""
    monkeypatch.setenv("NADS_DOWNLOAD", "0")
    monkeypatch.delenv("NADS_DATA", raising=False)


def test_a_folder_that_does_not_exist_is_rejected(tmp_path, monkeypatch, offline):
    missing = str(tmp_path / "photos")
    rejected(nb.DatasetNotFoundError, data_root=missing, dataset="auto")
    rejected(nb.DatasetNotFoundError, data_root=missing, dataset="cifar10")
    check_parameters(dataset="generated", data_root=missing)  # it is not looked at
    monkeypatch.setenv("NADS_DATA", missing)
    with pytest.raises(nb.DatasetNotFoundError, match=f"^NADS_DATA .*{re.escape(missing)}"):
        check_parameters(dataset="auto")
    check_parameters()  # a chapter without photos


def test_photos_that_are_asked_for_must_be_there(tmp_path, monkeypatch, offline):
    monkeypatch.setenv("NADS_DATA", str(tmp_path))
    for dataset, preset in (("cifar10", "smoke"), ("auto", "paper")):
        with pytest.raises(nb.DatasetNotFoundError, match=re.escape(str(tmp_path))):
            check_parameters(dataset=dataset, preset=preset)
    check_parameters(dataset="auto", preset="demo")
    check_parameters(dataset="generated", preset="paper")


# Whole chapters


def papermill(tmp_path, title, parameters, **variables):
    """Run a chapter at smoke; return the exit status of papermill and what it printed."""
    (notebook,) = (ROOT / "notebooks").glob(f"*_{title}.ipynb")
    command = [sys.executable, "-m", "papermill", notebook, tmp_path / "executed.ipynb"]
    for name, value in ({"preset": "smoke"} | parameters).items():
        command += ["-p", name, str(value)]
    paths = {"PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'book'}", "OMP_NUM_THREADS": "1"}
    result = subprocess.run(
        command,
        cwd=ROOT,
        env=os.environ | paths | variables,
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
    assert status == 1 and "DatasetNotFoundError: data_root is" in output


# The preset


def test_preset_that_is_named_is_kept(capsys):
    for name in ("smoke", "demo", "paper"):
        assert choose_preset(name, gpu="paper") == name
    assert capsys.readouterr().out.count("\n") == 1  # that smoke gives no results
    with pytest.raises(ValueError, match="'tiny'"):
        choose_preset("tiny")


@pytest.mark.parametrize("gpu", ["demo", "paper"])
def test_preset_is_chosen_for_the_machine(gpu, monkeypatch, capsys):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert choose_preset(gpu=gpu) == "demo"
    assert "no GPU" in capsys.readouterr().out

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    for name, major in (("Tesla T4", 7), ("A100", 8)):
        device = SimpleNamespace(name=name, major=major, total_memory=16 * 2**30)
        monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _, device=device: device)
        assert choose_preset(gpu=gpu) == gpu
        output = capsys.readouterr().out
        assert output.count("\n") == 1 and name in output and "16 GB" in output
        assert ("no bfloat16" in output) == (major < 8)
