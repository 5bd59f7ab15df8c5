import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import nads_core as nc
from nads_core.__main__ import main

ROOT = Path(__file__).parent.parent

FACTORIES = """
import time
from pathlib import Path

import torch
from torch import nn


def small():
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 8), nn.ReLU(), nn.Linear(8, 1))


class Slow(nn.Sequential):
    seen = 0  # goes on for a while, and then only when the file `hold` is gone

    def forward(self, x):
        Slow.seen += 1
        time.sleep(0.005)
        while Slow.seen > 250 and Path("hold").exists():
            time.sleep(0.01)
        return super().forward(x)


def slow():
    return Slow(*small())


def seeded():
    torch.manual_seed(0)
    return small()


network = small()
"""


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """A folder to work in, with a module of factories that can be imported from it."""
    (tmp_path / "factories.py").write_text(FACTORIES)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.delitem(sys.modules, "factories", raising=False)
    return tmp_path


SMALL = ["--image-shape", "1", "8", "8", "--num-inputs", "2"]


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-W", "error", "-m", "nads_core", *arguments]


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}


@pytest.mark.stored
def test_one_of_our_architectures(folder, capsys):
    arguments = ["compute", "logreg", "--out", "new/folder/x.npz", "--num-networks", "64", "--seed", "3", *SMALL]
    assert main(arguments) == 0
    nads = nc.NADs.load("new/folder/x.npz")
    expected = nc.compute_nads(
        nc.LOGREG, 64, estimator=nc.SmoothedGradient(2), image_shape=(1, 8, 8), seed=3, device="cpu", progress=False
    )
    assert torch.equal(nads.directions, expected.directions)
    assert torch.equal(nads.eigenvalues, expected.eigenvalues)
    assert "NADs(logreg, 64 directions of (1, 8, 8), 64 networks) -> new/folder/x.npz" in capsys.readouterr().out
    assert (folder / "new/folder/x.ckpt").exists()


@pytest.mark.parametrize(
    ("name", "estimator"),
    [
        ("smoothed", nc.SmoothedGradient(2)),
        ("mixed", nc.MixedDerivative(2)),
        ("point", nc.PointGradient()),
        ("dipole", nc.Dipole()),
    ],
)
def test_estimators_and_a_factory_of_ones_own(folder, name, estimator):
    arguments = [
        "compute",
        "factories:small",
        "--out",
        "x.npz",
        "--num-networks",
        "10",
        "--estimator",
        name,
        "--device",
        "cpu",
    ]
    assert main([*arguments, "--debiasing", "none", "--quantized", "--checkpoint", "state.ckpt", *SMALL]) == 0
    provenance = nc.NADs.load("x.npz").provenance
    expected = {"architecture": "small", "num_networks": 10, "debiasing": "none", "estimator": repr(estimator)}
    assert expected.items() <= provenance.items()
    assert (folder / "state.ckpt").exists()
    with np.load("x.npz") as file:
        assert file["directions"].dtype == np.int16


@pytest.mark.parametrize(
    ("architecture", "message"),
    [
        (
            "alexnet",
            "unknown architecture 'alexnet': choose from logreg, lenet, .*, densenet121, or module:factory",
        ),
        ("nowhere:factory", "cannot load 'nowhere:factory': No module named 'nowhere'"),
        ("factories:missing", "cannot load 'factories:missing': .*no attribute 'missing'"),
        (":small", "Empty module name"),
        ("factories:network", r"got Sequential: pass `lambda: MyNet\(\)`"),
        ("factories:seeded", "same weights twice"),
    ],
)
def test_a_bad_architecture_is_an_error(folder, capsys, architecture, message):
    with torch.random.fork_rng():
        assert main(["compute", architecture, "--out", "x.npz", "--num-networks", "10", *SMALL]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert re.search(message, error)
    assert not (folder / "x.npz").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--num-networks", "0"], "num_networks must be a positive integer, got 0"),
        (["--num-inputs", "3"], "num_inputs must be an even integer when antithetic, got 3"),
        (["--image-shape", "1", "8", "9"], "logreg needs square images"),
    ],
)
def test_bad_options_are_errors(folder, capsys, arguments, message):
    assert main(["compute", "logreg", "--out", "x.npz", *SMALL, *arguments]) == 2
    assert f"error: {message}" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["compute"],
        ["compute", "logreg"],
        ["compute", "logreg", "--out", "x.npz", "--debiasing", "shrnk"],
        ["train"],
    ],
    ids=str,
)
def test_what_argparse_refuses(capsys, arguments):
    with pytest.raises(SystemExit) as exit_:
        main(arguments)
    assert exit_.value.code == 2
    assert "usage: python -m nads_core" in capsys.readouterr().err


@pytest.mark.stored
def test_ctrl_c_and_resume(folder):
    arguments = ["compute", "factories:slow", "--out", "x.npz", "--num-networks", "640", "--device", "cpu", *SMALL]
    progress, hold = "", folder / "hold"
    hold.touch()
    with subprocess.Popen(command(*arguments), stderr=subprocess.PIPE, text=True, env=environment()) as process:
        while not re.search(r" [1-9]\d*/640", progress):  # until the first networks are counted
            character = process.stderr.read(1)
            assert character, progress
            progress += character
        os.kill(process.pid, signal.SIGINT)
        hold.unlink()
        error = process.stderr.read()
    assert process.returncode == 130
    assert "of 640 networks; call again with checkpoint='x.ckpt' to go on" in error
    assert "Traceback" not in error
    saved = torch.load("x.ckpt", weights_only=True)["blocks_done"]
    assert 0 < saved < 10
    assert main(arguments) == 0
    resumed = nc.NADs.load("x.npz")
    expected = nc.compute_nads(
        sys.modules["factories"].small,
        640,
        estimator=nc.SmoothedGradient(2),
        image_shape=(1, 8, 8),
        device="cpu",
        progress=False,
    )
    assert torch.equal(resumed.directions, expected.directions)


def test_exit_status_of_the_process(folder):
    done = subprocess.run(
        command("compute", "alexnet", "--out", "x.npz"), capture_output=True, text=True, env=environment()
    )
    assert done.returncode == 2
    assert "error: unknown architecture 'alexnet'" in done.stderr
    assert "Traceback" not in done.stderr
