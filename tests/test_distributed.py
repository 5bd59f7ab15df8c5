"""Several processes under torchrun give what one process gives, also when one of them dies."""

import dataclasses
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import nads_book as nb
import pytest
import torch
from nads_book.cli import main

import nads_core as nc

ROOT = Path(__file__).resolve().parent.parent
PATHS = f"{ROOT}{os.pathsep}{ROOT / 'book'}"

FACTORIES = """
import os
import time
from pathlib import Path

import torch
from torch import nn


def small():
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 8), nn.ReLU(), nn.Linear(8, 1))


class Slow(nn.Sequential):
    def forward(self, x):
        time.sleep(0.002)
        return super().forward(x)


def slow():
    return Slow(*small())


def mortal():
    Path(f"worker-{os.environ.get('RANK', 0)}.pid").write_text(str(os.getpid()))
    return slow()
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "factories.py").write_text(FACTORIES)
    return tmp_path


def torchrun(folder, processes, *arguments, options=(), program=("-m", "nads_core")):
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}", *options]
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": f"{folder}{os.pathsep}{PATHS}",
    }
    return subprocess.Popen(
        [*command, *program, *arguments], cwd=folder, env=environment, text=True, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, start_new_session=True,
    )  # fmt: skip


def finish(process):
    output, _ = process.communicate(timeout=600)
    assert process.returncode == 0, output
    return output


SMALL = ("--image-shape", "1", "8", "8", "--num-inputs", "4", "--device", "cpu")


def compute(folder, factory="factories:small", networks=1_000, out="out.npz"):
    return "compute", factory, "--num-networks", str(networks), *SMALL, "--out", str(folder / out)


def alone(folder, factory="small", networks=1_000, **options):
    sys.path.insert(0, str(folder))
    try:
        sys.modules.pop("factories", None)
        module = __import__("factories")
        return nc.compute_nads(
            getattr(module, factory), networks, image_shape=(1, 8, 8), device="cpu",
            estimator=nc.SmoothedGradient(4), progress=False, **options,
        )  # fmt: skip
    finally:
        sys.path.remove(str(folder))


def same(ours, theirs):
    """Compare the matrices, not the eigenvectors, which are free where eigenvalues are equal."""
    first, second = ((nads.basis * nads.eigenvalues) @ nads.basis.T for nads in (ours, theirs))
    return float((first - second).norm() / second.norm())


@pytest.mark.parametrize("processes", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_processes_give_what_one_process_gives(folder, processes):
    output = finish(torchrun(folder, processes, *compute(folder)))
    assert output.count("out.npz") == 1  # one of them speaks
    assert same(nc.NADs.load(folder / "out.npz"), alone(folder)) < 1e-6


@pytest.mark.slow
def test_a_checkpoint_passes_between_any_numbers_of_processes(folder):
    alone(folder, networks=320, checkpoint=folder / "out.ckpt")
    finish(torchrun(folder, 2, *compute(folder, networks=640), "--checkpoint", str(folder / "out.ckpt")))
    assert torch.load(folder / "out.ckpt", weights_only=True)["blocks_done"] * 64 == 640
    again = alone(folder, networks=1_000, checkpoint=folder / "out.ckpt")
    assert same(again, alone(folder)) < 1e-6


@pytest.mark.slow
def test_a_worker_that_dies_is_replaced(folder):
    process = torchrun(folder, 2, *compute(folder, "factories:mortal", 9_600), options=["--max-restarts=2"])
    deadline = time.monotonic() + 600
    while not list(folder.glob("out.*.ckpt")):
        assert process.poll() is None and time.monotonic() < deadline, process.communicate()[0]
        time.sleep(0.05)
    pid = int((folder / "worker-1.pid").read_text())
    os.kill(pid, signal.SIGKILL)
    finish(process)
    assert int((folder / "worker-1.pid").read_text()) != pid
    assert same(nc.NADs.load(folder / "out.npz"), alone(folder, networks=9_600)) < 1e-6


# --- sweeps

# The command line in a process whose torch soon loses patience, whose process 1 is slow, and which dies if it shall.
PROGRAM = """
import os, sys, time
from datetime import timedelta
import torch.distributed
from torch.distributed import distributed_c10d
from nads_book.cli import main, run as program

def run(*arguments, plain=program.run_experiment, **options):
    getattr(torch.distributed, "set_timeout", distributed_c10d._set_pg_timeout)(timedelta(seconds=0.5))
    if os.environ["RANK"] == "1":
        time.sleep(3)
        if "DIES" in os.environ:
            os._exit(1)
    return plain(*arguments, **options)

program.run_experiment = run
sys.exit(main(sys.argv[1:]))
"""


def sweep(folder, *more):
    return "run", "fig1-logreg", "--preset", "smoke", "--device", "cpu", "--out", str(folder / "r.json"), *more


def measured(results):
    return [{name: value for name, value in row.items() if name != "seconds"} for row in results.rows]


@pytest.fixture(scope="module")
def whole():
    return nb.run_experiment("fig1-logreg", "smoke", device="cpu", progress=False)


@pytest.mark.slow
def test_a_sweep_is_shared_and_joined(folder, whole):
    finish(torchrun(folder, 2, *sweep(folder), program=("-m", "nads_book")))
    together = nb.Results.load(folder / "r.json")
    assert together.complete and measured(together) == measured(whole) and len(together.provenance) == 2
    assert [path.name for path in folder.glob("*.json")] == ["r.json"]


@pytest.mark.slow
def test_processes_wait_for_the_slowest_longer_than_torch_would(folder, whole):
    (folder / "program.py").write_text(PROGRAM)
    finish(torchrun(folder, 2, *sweep(folder), program=["program.py"]))
    together = nb.Results.load(folder / "r.json")
    assert together.complete and measured(together) == measured(whole)


@pytest.mark.slow
def test_a_process_that_died_is_not_waited_for(folder):
    """Two processes that nobody watches over: torchrun itself would end the other one."""
    (folder / "program.py").write_text(PROGRAM)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    common = {
        "TORCHELASTIC_RUN_ID": "1", "WORLD_SIZE": "2", "GROUP_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": port, "OMP_NUM_THREADS": "1", "PYTHONPATH": PATHS, "DIES": "1",
    }  # fmt: skip
    begin = lambda rank, error: subprocess.Popen(  # noqa: E731
        [sys.executable, "program.py", *sweep(folder)], cwd=folder, text=True, stderr=error,
        env={**os.environ, **common, "RANK": rank, "LOCAL_RANK": rank},
    )  # fmt: skip
    with begin("0", subprocess.PIPE) as waiting, begin("1", subprocess.DEVNULL) as dying:
        _, error = waiting.communicate(timeout=240)
    assert dying.returncode == 1
    assert waiting.returncode == 2 and "error: a process died that the others waited for" in error, error
    done = nb.Results.load(folder / "r.process0.json")
    assert 0 < len(done.rows) < done.num_units and not (folder / "r.json").exists()


@pytest.mark.slow
@pytest.mark.parametrize("processes", [1, 2])
def test_what_another_number_of_processes_left_is_taken_over(folder, whole, processes):
    """Four processes were ended, after one, two, one and no networks; and a run before them had finished one."""
    taken = [[0], [1, 2], [3], []]
    for number, units in enumerate(taken):
        rows = [whole.rows[unit] | {"seconds": 1000.0 + number} for unit in units]
        run = {**whole.provenance[0], "networks": len(rows), "seconds": number}
        dataclasses.replace(whole, rows=rows, provenance=[run] if rows else []).save(folder / f"r.process{number}.json")
    dataclasses.replace(whole, rows=whole.rows[4:5]).save(folder / "r.json")
    finish(torchrun(folder, processes, *sweep(folder), program=("-m", "nads_book")))
    results = nb.Results.load(folder / "r.json")
    assert results.complete and measured(results) == measured(whole)
    assert [row["seconds"] for row in results.rows[:4]] == [1000, 1001, 1001, 1002]  # not trained again
    assert results.rows[4] == whole.rows[4]
    assert [path.name for path in folder.glob("*.json")] == ["r.json"]


def test_leftovers_of_another_job_are_named_and_kept(folder, whole, capsys):
    dataclasses.replace(whole, preset="demo").save(folder / "r.process0.json")
    whole.save(folder / "r.json")
    assert main(list(sweep(folder))) == 2
    assert "r.process0.json were left by an earlier run: " in capsys.readouterr().err
    assert (folder / "r.process0.json").exists()


def test_more_processes_than_gpus_are_refused(monkeypatch, capsys, folder):
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "1")
    monkeypatch.setenv("LOCAL_RANK", "2")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert main(list(sweep(folder)[:4])) == 2
    assert "3 or more processes, but 2 GPUs: start one process per GPU" in capsys.readouterr().err
