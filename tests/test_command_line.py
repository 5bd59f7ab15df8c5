import argparse
import importlib.metadata
import inspect
import os
import re
import shutil
import subprocess
import sys

import examples
import nads_book as nb
import numpy as np
import pytest
import torch
from conftest import ROOT
from nads_book.atlas.similarity import NADS_FOLDER
from nads_book.cli import main as book_main
from nads_book.cli.run import run_one

import nads_core as nc
from nads_core.cli import main
from nads_core.directions import ComputeOptions

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
        if Stopping.seen == 300 and Path("stop").exists():
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


class Two(nn.Linear):
    def __init__(self):
        super().__init__(64, 1)

    def forward(self, x, meta):
        return super().forward(x.flatten(1)) + meta
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
    nads = nc.NADs.load("new/folder/x.npz")
    estimator = nc.SmoothedGradient(4)
    expected = examples.compute(nc.LOGREG, 64, estimator=estimator, seed=3, device="cpu")
    assert examples.same(nads, expected)
    (checkpoint,) = (folder / "new/folder").glob("x.*.ckpt")
    printed = capsys.readouterr().out
    assert "new/folder/x.npz" in printed and str(checkpoint.relative_to(folder)) in printed


WIDE = SMALL[:4]
SURPRISES = {  # a command that cannot work, and what it shows
    "no ending": (["logreg", "--out", "m2"], ".npz"),
    "a folder of a file": (["logreg", *SMALL, "--out", "factories.py/x.npz"], "factories.py"),
    "another shape": (["factories:small"], "--image-shape"),
    "a dictionary": (["factories:named", *SMALL], "--output logits.0"),
    "two inputs": (["factories:Two", *SMALL], "wrapper of one"),
    "no module": (["nowhere:factory", *SMALL], "No module named 'nowhere'"),
    "readouts of another": (
        ["logreg", *WIDE, "--estimator", "mixed", "--readouts", "8"],
        "--readouts 8",
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
    more = ["--num-directions", "5", "--symmetries", "flip_rows", "--batch-size", "4"]
    assert compute("logreg", *SMALL, *more, "--name", "mine") == 0
    nads = nc.NADs.load("x.npz")
    assert len(nads) == 5 and nads.provenance["symmetries"] == ["flip_rows"]
    assert nads.provenance["architecture"] == "mine"
    assert compute("logreg", *SMALL, "--symmetries", "--output", "factories:first") == 0  # none
    provenance = nc.NADs.load("x.npz").provenance
    assert provenance["symmetries"] == [] and provenance["output"].startswith("factories:first#")
    assert compute("logreg", *WIDE, "--symmetries", "test", networks=40) == 0
    assert "transpose" in nc.NADs.load("x.npz").provenance["symmetry_tests"]


@pytest.mark.parametrize(
    ("name", "estimator"),
    [
        ("smoothed", nc.SmoothedGradient(4)),
        ("mixed", nc.MixedDerivative(4)),
        ("point", nc.PointGradient()),
        ("dipole", nc.Dipole()),
    ],
)
def test_estimators_and_a_factory_of_ones_own(folder, name, estimator):
    more = ["--estimator", name, *(SMALL if hasattr(estimator, "num_inputs") else WIDE)]
    more += ["--debiasing", "none", "--quantized", "--checkpoint", "state.ckpt"]
    assert compute("factories:small", *more) == 0
    provenance = nc.NADs.load("x.npz").provenance
    expected = {"architecture": "small", "num_networks": 10, "debiasing": "none"}
    assert (expected | {"estimator": repr(estimator)}).items() <= provenance.items()
    assert (folder / "state.ckpt").exists()
    with np.load("x.npz") as file:
        assert file["directions"].dtype == np.int16


def test_a_finished_run_does_not_stand_in_the_way_of_the_next_seed(folder):
    def checkpoints(networks, *more):
        assert compute("factories:small", *SMALL, *more, networks=networks) == 0
        return {
            path.name: torch.load(path, weights_only=True)["blocks_done"]
            for path in folder.glob("x.*.ckpt")
        }

    (first,) = checkpoints(64)
    both = checkpoints(64, "--seed", "1")
    assert len(both) == 2 and both[first] == 1 and nc.NADs.load("x.npz").provenance["seed"] == 1
    assert checkpoints(192) == both | {first: 3}  # a finished one is extended
    assert len(checkpoints(64, "--dtype", "bfloat16")) == 3
    same = checkpoints(320, "--debiasing", "none", "--readouts", "1")  # the same networks
    assert len(same) == 3 and same[first] == 5


@pytest.mark.parametrize(
    ("run", "arguments", "shown"),
    [
        (main, ["compute"], "usage: python -m nads_core"),
        (main, ["compute", "logreg", "--out", "x.npz", "--estimator", "smothed"], "'smothed'"),
        (main, ["compute", "logreg", "--out", "x.npz", "--num-inputs", "foo"], "'foo'"),
        (main, ["compute", "logreg", "--out", "folder"], "folder is a folder"),
        (main, ["train"], "'train'"),
        (book_main, ["run", "fig1-logreg", "--shard", "two"], "such as 2/8"),
        (book_main, ["run", "fig1-logreg", "--shard", "9/8"], "'9/8'"),
        (book_main, ["run", "fig1-logreg", "--shard", "0/8"], "'0/8'"),
    ],
    ids=lambda value: value.__module__ if callable(value) else str(value),
)
def test_arguments_that_cannot_be_parsed(folder, capsys, run, arguments, shown):
    (folder / "folder").mkdir()
    with pytest.raises(SystemExit) as exit_:
        run(arguments)
    assert exit_.value.code == 2 and shown in capsys.readouterr().err


@pytest.mark.skipif(torch.cuda.is_available(), reason="tests the error on a machine without a GPU")
def test_a_study_without_its_gpu_or_its_name_touches_no_file(folder, capsys):
    for more, shown in (
        (["fig9-lenet"], "'fig9-lenet'"),
        (["fig1-logreg", "--device", "cuda"], "device 'cuda'"),
    ):
        assert book_main(["run", *more, "--preset", "smoke", "--out", "new/r.json"]) == 2
        assert shown in capsys.readouterr().err and not (folder / "new").exists()


def test_a_command_that_fails_does_not_wait_for_torch(folder):
    code = (
        "import sys\nfrom nads_core.cli import main\n"
        "try: main(sys.argv[1:])\n"
        "finally: assert not {'torch', 'scipy', 'matplotlib'} & sys.modules.keys()"
    )
    for arguments in (
        ["compute", "--help"],
        ["similar", "--help"],
        ["compute", "lenet", "--outt", "x"],
    ):
        command = [sys.executable, "-c", code, *arguments]
        environment = os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'book'}"}
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        assert "Assertion" not in done.stderr and "usage:" in done.stdout + done.stderr


CALLED = {
    "compute": [nc.compute_nads, ComputeOptions],
    "run": [nb.run_experiment, nb.run_study, run_one],
    "atlas": [nb.atlas.compute_entry],
    "report": [nc.compute_nads, ComputeOptions],
}


@pytest.mark.parametrize("package", ["nads_core", "nads_book"])
def test_help_lists_every_command_and_its_defaults(capsys, package):
    """Each option is a parameter of the function that the command calls, and shows its default."""
    cli = importlib.import_module(f"{package}.cli")
    with pytest.raises(SystemExit, match="0"):
        cli.main(["--help"])
    listing = capsys.readouterr().out
    for name in cli.COMMANDS:
        module = importlib.import_module(f"{package}.cli.{name.replace('-', '_')}")
        parser = argparse.ArgumentParser()
        parameters = {}
        module.add_arguments(parser)
        for function in (*CALLED.get(name, []), module.run):
            parameters |= inspect.signature(function).parameters
        for action in parser._actions:
            if action.dest in ("help", "num_inputs", "readouts"):  # or a field of an estimator
                continue
            default = parameters[action.dest].default
            if default not in (None, False, (), inspect.Parameter.empty):
                values = default if isinstance(default, tuple) else [default]
                shown = " ".join(str(value).removeprefix("torch.") for value in values)
                assert f"(default: {shown})" in action.help
        assert name in listing


def test_similar_networks(folder, capsys):
    shutil.copy(NADS_FOLDER / "cnn.npz", "a.txt")
    assert book_main(["similar", "a.txt", "--num-directions", "7", "--count", "3"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3 and lines[0].startswith("atlas/cnn") and "first 7" in lines[0]
    assert book_main(["similar", "atlas/cnn", "--count", "0"]) == 2
    assert "count must be a positive integer, got 0" in capsys.readouterr().err
    assert compute("lenet", "--num-inputs", "4", networks=16) == 0
    assert book_main(["similar", "x.npz"]) == 2
    assert "no leading subspace of x.npz is certain" in capsys.readouterr().err


def test_ctrl_c_and_resume(folder, capsys):
    arguments = ["compute", "factories:stopping", "--out", "x.npz", "--num-networks", "640"]
    arguments += ["--device", "cpu", *SMALL]
    (folder / "stop").touch()
    assert main(arguments) == 130
    error = capsys.readouterr().err
    assert re.search(r"\d+ of 640 networks; the same call with checkpoint=.* resumes", error)
    (checkpoint,) = folder.glob("x.*.ckpt")
    assert 0 < torch.load(checkpoint, weights_only=True)["blocks_done"] < 10
    assert main(arguments) == 0
    small = sys.modules["factories"].small
    expected = examples.compute(small, 640, estimator=nc.SmoothedGradient(4), device="cpu")
    assert examples.same(nc.NADs.load("x.npz"), expected)
