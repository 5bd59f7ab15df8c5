import importlib
import re
import sys

import examples
import numpy as np
import pytest
import torch
from conftest import run_python

import nads_core as nc
from nads_core.cli import main

FACTORIES = """
import os
import signal
from pathlib import Path

import torch
from torch import nn


def small():
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 8), nn.ReLU(), nn.Linear(8, 1))


class Stopping(nn.Sequential):
    seen = 0  # where there is a file `stop`, Ctrl-C is pressed once, after a while

    def forward(self, x):
        Stopping.seen += 1
        if Stopping.seen == 100 and Path("stop").exists():
            os.kill(os.getpid(), signal.SIGINT)
        return super().forward(x)


def stopping():
    return Stopping(*small())


class Named(nn.Sequential):
    def forward(self, x):
        return {"logits": super().forward(x)}


def named():
    return Named(*small())


def first(y):
    return y[:, 0]
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder to work in, with a module of factories that can be imported from it."""
    (tmp_path / "factories.py").write_text(FACTORIES)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.delitem(sys.modules, "factories", raising=False)
    return tmp_path


SMALL = ["--image-shape", "1", "8", "8", "--num-inputs", "4"]


def compute(architecture, *more, networks=10):
    """Run the command, and return its status."""
    fixed = ["--out", "x.npz", "--num-networks", str(networks), "--device", "cpu"]
    return main(["compute", architecture, *fixed, *more])


def test_one_of_our_architectures(folder, capsys):
    assert compute("logreg", *SMALL, "--out", "new/folder/x.npz", "--seed", "3", networks=64) == 0
    nads = nc.load_nads("new/folder/x.npz")
    estimator = nc.SmoothedGradient(4, readouts=8)
    expected = examples.compute(nc.LOGREG, 64, estimator=estimator, seed=3, device="cpu")
    assert examples.same(nads, expected)
    printed = capsys.readouterr().out
    assert "new/folder/x.npz" in printed and "new/folder/x.checkpoint.npz" in printed


WIDE = SMALL[:4]
SURPRISES = {  # a command that cannot work, and what it shows
    "no ending": (["logreg", "--out", "m2"], ".npz"),
    "a dictionary": (["factories:named", *SMALL], "output='logits.0'"),
    "no module": (["nowhere:factory", *SMALL], "No module named 'nowhere'"),
    "readouts of another": (
        ["logreg", *WIDE, "--estimator", "mixed", "--readouts", "8"],
        "--readouts",
    ),
}


@pytest.mark.parametrize("kind", SURPRISES)
def test_commands_that_cannot_work_name_the_remedy_in_one_line(folder, capsys, kind):
    arguments, shown = SURPRISES[kind]
    with torch.random.fork_rng():
        assert compute(*arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ") and error.count("\n") == 1 and shown in error
    assert not list(folder.glob("[mx]*"))


def test_options_are_the_arguments_of_the_function(folder):
    more = ["--num-directions", "5", "--symmetries", "flip_rows", "--workers", "1"]
    assert compute("logreg", *SMALL, *more, "--dtype", "float64", "--equal-weights") == 0
    nads = nc.load_nads("x.npz")
    assert len(nads) == 5 and nads.provenance["symmetries"] == ["flip_rows"]
    assert nads.provenance["dtype"] == "torch.float64" and nads.provenance["equal_weights"]
    (folder / "x.checkpoint.npz").unlink()
    more = ["--readouts", "1", "--symmetries", "--output", "factories:first"]
    assert compute("logreg", *SMALL, *more) == 0
    provenance = nc.load_nads("x.npz").provenance
    assert provenance["symmetries"] == [] and provenance["output"].startswith("factories:first#")


@pytest.mark.parametrize(
    ("name", "estimator", "more"),
    [
        ("mixed", nc.MixedDerivative(4), ["--num-inputs", "4"]),
        ("point", nc.PointGradient(), []),
        ("dipole", nc.Dipole(), []),
    ],
)
def test_estimators_and_a_factory_of_ones_own(folder, monkeypatch, name, estimator, more):
    monkeypatch.setenv("HOME", str(folder))
    more = ["--estimator", name, *more, "--quantized", "--checkpoint", "~/state.npz"]
    assert compute("factories:small", *WIDE, *more) == 0
    provenance = nc.load_nads("x.npz").provenance
    expected = {"architecture": "small", "num_networks": 10, "estimator": repr(estimator)}
    assert expected.items() <= provenance.items() and (folder / "state.npz").exists()
    with np.load("x.npz") as file:
        assert file["directions"].dtype == np.int16


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (["compute"], "usage: python -m nads_core"),
        (["compute", "logreg", "--out", "x.npz", "--estimator", "smothed"], "'smothed'"),
        (["compute", "logreg", "--out", "folder"], "folder is a folder"),
        (["train"], "'train'"),
    ],
)
def test_arguments_that_cannot_be_parsed(folder, capsys, arguments, shown):
    (folder / "folder").mkdir()
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    assert shown in capsys.readouterr().err


def test_a_command_that_fails_does_not_wait_for_torch(folder):
    code = """
import contextlib, sys
from nads_core.cli import main
with contextlib.redirect_stderr(sys.stdout), contextlib.suppress(SystemExit):
    main(sys.argv[1:])
assert not {"torch", "scipy", "matplotlib"} & sys.modules.keys()
"""
    for arguments in (["--help"], ["train", "lenet"]):
        assert "usage:" in run_python("-c", code, *arguments)


@pytest.mark.parametrize("package", ["nads_core", "nads_book"])
def test_help_lists_every_command(capsys, package):
    cli = importlib.import_module(f"{package}.cli")
    for arguments in ([], *([name] for name in cli.COMMANDS)):
        with pytest.raises(SystemExit, match="0"):
            cli.main([*arguments, "--help"])
        shown = capsys.readouterr().out
        assert arguments or all(name in shown for name in cli.COMMANDS)


def test_ctrl_c_and_resume(folder, capsys):
    (folder / "stop").touch()
    assert compute("factories:stopping", *SMALL, networks=100) == 130
    error = capsys.readouterr().err
    assert re.search(r"\d+ of 100 networks; the same call with checkpoint=.* resumes", error)
    assert [path.name for path in folder.glob("*.npz")] == ["x.checkpoint.npz"]
    assert compute("factories:stopping", *SMALL, networks=100) == 0
    small, estimator = sys.modules["factories"].small, nc.SmoothedGradient(4, readouts=8)
    expected = examples.compute(small, 100, estimator=estimator, device="cpu")
    assert examples.same(nc.load_nads("x.npz"), expected)
