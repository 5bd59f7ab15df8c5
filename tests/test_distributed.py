"""Several processes under torchrun give what one process gives, also when one of them dies."""

import os
import signal
import subprocess
import sys
import time

import examples
import pytest
import torch
from conftest import ROOT

import nads_core as nc
from nads_core.runtime import distributed

PATHS = f"{ROOT}{os.pathsep}{ROOT / 'book'}"

FACTORIES = """
import os
import time
from pathlib import Path

import torch
from torch import nn


def small():
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 8), nn.ReLU(), nn.Linear(8, 1))


def uneven():  # process 1 evaluates twice as many blocks between two sums over processes
    from nads_core.directions import accumulation, evaluation

    accumulation._EXCHANGED_BATCHES = 2
    rank = int(os.environ.get("RANK", 0))
    evaluation.fitting_batch = lambda *_: 64 << rank
    return small()


class Slow(nn.Sequential):
    def forward(self, x):  # once there is a checkpoint, only when the file `hold` is gone
        time.sleep(0.002)
        while Path("hold").exists() and list(Path().glob("out.*.ckpt")):
            time.sleep(0.01)
        return super().forward(x)


def slow():
    return Slow(*small())


def mortal():
    rank = os.environ.get("RANK", 0)
    draft = Path(f"worker-{rank}.draft")
    draft.write_text(str(os.getpid()))
    draft.replace(f"worker-{rank}.pid")  # at once: the test reads it at any time
    return slow()
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "factories.py").write_text(FACTORIES)
    return tmp_path


def torchrun(folder, processes, *arguments, options=(), program=("-m", "nads_core")):
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command += [f"--nproc-per-node={processes}", *options]
    paths = f"{folder}{os.pathsep}{PATHS}"
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": paths}
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "start_new_session": True}
    command += [*program, *arguments]
    return subprocess.Popen(command, cwd=folder, env=environment, text=True, **options)


def finish(process):
    output, _ = process.communicate(timeout=600)
    assert process.returncode == 0, output
    return output


SMALL = ("--image-shape", "1", "8", "8", "--num-inputs", "4", "--device", "cpu")


def compute(folder, factory="factories:small", networks=1_000, out="out.npz"):
    return "compute", factory, "--num-networks", str(networks), *SMALL, "--out", str(folder / out)


def alone(networks=1_000, **options):
    exec(FACTORIES, made := {"__name__": "factories"})  # noqa: S102
    estimator = nc.SmoothedGradient(4)
    return examples.compute(made["small"], networks, estimator=estimator, device="cpu", **options)


def same(ours, theirs):
    """Compare the matrices, not the eigenvectors, which are free where eigenvalues are equal."""
    first, second = ((nads.basis * nads.eigenvalues) @ nads.basis.T for nads in (ours, theirs))
    return float((first - second).norm() / second.norm())


@pytest.mark.parametrize(
    ("processes", "factory"), [(2, "uneven"), pytest.param(4, "small", marks=pytest.mark.slow)]
)
def test_processes_give_what_one_process_gives(folder, processes, factory):
    """They need not evaluate equally many blocks at once: they have other numbers of threads, or
    free memory.
    """
    output = finish(torchrun(folder, processes, *compute(folder, f"factories:{factory}")))
    assert output.count("out.npz") == 1  # one of them speaks
    assert same(nc.NADs.load(folder / "out.npz"), alone()) < 1e-6


@pytest.mark.slow
def test_a_checkpoint_passes_between_any_numbers_of_processes(folder):
    alone(networks=320, checkpoint=folder / "out.ckpt")
    checkpoint = ("--checkpoint", str(folder / "out.ckpt"))
    finish(torchrun(folder, 2, *compute(folder, networks=640), *checkpoint))
    assert torch.load(folder / "out.ckpt", weights_only=True)["blocks_done"] * 64 == 640
    again = alone(networks=1_000, checkpoint=folder / "out.ckpt")
    assert same(again, alone()) < 1e-6


@pytest.mark.slow
def test_a_worker_that_dies_is_replaced(folder):
    (folder / "hold").touch()
    program = compute(folder, "factories:mortal", 9_600)
    process = torchrun(folder, 2, *program, options=["--max-restarts=2"])
    deadline = time.monotonic() + 600
    while not list(folder.glob("out.*.ckpt")):
        assert process.poll() is None and time.monotonic() < deadline, process.communicate()[0]
        time.sleep(0.05)
    pid = int((folder / "worker-1.pid").read_text())
    os.kill(pid, signal.SIGKILL)
    (folder / "hold").unlink()
    finish(process)
    assert int((folder / "worker-1.pid").read_text()) != pid
    assert same(nc.NADs.load(folder / "out.npz"), alone(networks=9_600)) < 1e-6


def test_more_processes_than_gpus_are_refused(monkeypatch):
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "1")
    monkeypatch.setenv("LOCAL_RANK", "2")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    with (
        pytest.raises(ValueError, match="3 or more processes, but 2 GPUs"),
        distributed.process_group(None),
    ):
        pass
