"""Nothing is lost: interrupts, kill -9, full disks, damaged files, and longer runs."""

import itertools
import json
import os
import re
import signal
import subprocess
import sys
import time
from functools import wraps

import numpy as np
import pytest
import torch
from conftest import PATHS, run_python
from examples import Weighted, assert_damage_is_named, compute, convnet, perceptron, same

import nads_core as nc
from nads_core.directions import Estimator, checkpoint, run

ESTIMATOR = nc.SmoothedGradient(4, readouts=2)


def computed(path=None, count=60, factory=convnet, **options):
    return compute(factory, count, **{"estimator": ESTIMATOR, "checkpoint": path} | options)


class Interrupted(Estimator):
    """An estimator during whose n-th network the user presses Ctrl-C; it describes itself as the one
    that it wraps.
    """

    readouts, antithetic, num_inputs = 2, True, 4

    def __init__(self, network, times=1):
        self.network, self.times, self.seen = network, times, []

    def __repr__(self):
        return repr(ESTIMATOR)

    def vectors(self, network):
        if network.index == self.network and self.network not in self.seen:
            for _ in range(self.times):
                os.kill(os.getpid(), signal.SIGINT)
        self.seen.append(network.index)
        return ESTIMATOR.vectors(network)


@pytest.mark.parametrize(("count", "network", "done"), [(60, 0, 8), (60, 20, 24), (60, 59, 60)])
def test_an_interrupted_run_resumes_without_a_loss(tmp_path, capsys, count, network, done):
    path = tmp_path / "a new folder" / "state.npz"
    handler = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt, match=f"after {done} of {count}") as caught:
        computed(path, count, estimator=Interrupted(network))
    assert (
        f"checkpoint={str(path)!r}" in str(caught.value) and "finishing" in capsys.readouterr().err
    )
    assert signal.getsignal(signal.SIGINT) is handler
    again = Interrupted(-1)
    resumed = computed(path, count, estimator=again)
    assert again.seen == [0, *range(done, count)]
    assert same(resumed, computed(count=count))


def test_without_a_checkpoint_the_message_names_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = []
    for network in (20, 40):  # the second file does not replace the first
        with pytest.raises(KeyboardInterrupt) as caught:
            computed(estimator=Interrupted(network))
        names.append(re.search(r"checkpoint='(.+)'", str(caught.value)).group(1))
    assert {file.name for file in tmp_path.iterdir()} == {*names} and "convnet" in names[0]
    assert len({*names}) == 2 and all(same(computed(name), computed()) for name in names)


class Rows(list):
    """Rows of networks, during whose addition the user presses Ctrl-C."""

    def append(self, row):
        super().append(row)
        os.kill(os.getpid(), signal.SIGINT)


def test_interrupts_leave_no_part_of_a_chunk(tmp_path, monkeypatch):
    path, add = tmp_path / "state.npz", nc.SecondMoment.add

    def interrupted(moment, vectors):
        moment.rows = Rows(moment.rows)
        add(moment, vectors)

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt, match="after 8 of 60"):
        patched.setattr(nc.SecondMoment, "add", interrupted)
        computed(path)
    assert same(computed(path), computed())


@pytest.mark.parametrize("networks", [(20, 100), pytest.param((72, 136), marks=pytest.mark.slow)])
def test_a_resumed_run_ends_after_as_many_networks(tmp_path, networks):
    path = tmp_path / "state.npz"
    options = {"count": 999, "factory": Weighted, "num_certain": 6, "symmetries": ()}
    for network in networks:
        with pytest.raises(KeyboardInterrupt):
            computed(path, estimator=Interrupted(network), **options)
    whole = computed(**options)
    assert 144 < whole.provenance["num_networks"] < 999
    assert same(computed(path, **options), whole)
    assert same(computed(path, **options), whole)  # a finished run


def test_a_second_interrupt_does_not_wait(tmp_path):
    with pytest.raises(KeyboardInterrupt, match="after 16 of 60"):
        computed(tmp_path / "state.npz", estimator=Interrupted(20, times=2))


SCRIPT = """
import sys, time
import torch
from torch import nn
import nads_core as nc
from nads_core.directions import checkpoint

class Slow(nn.Sequential):
    def forward(self, x):
        time.sleep(0.003)
        return super().forward(x)

def slow():
    return Slow(nn.Flatten(), nn.Linear(64, 8), nn.Tanh(), nn.Linear(8, 1))

if __name__ == "__main__":
    checkpoint._EVERY = 0.0
    options = dict(workers=int(sys.argv[1]), checkpoint="state.npz", progress=False, device="cpu")
    nc.compute_nads(slow, (1, 8, 8), 300, **options).save("result.npz")
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_process_that_is_killed_resumes_without_a_loss(tmp_path, number, workers):
    (tmp_path / "script.py").write_text(SCRIPT)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    command = [sys.executable, "script.py", workers]
    process = subprocess.Popen(command, cwd=tmp_path, env=os.environ | PATHS, **pipes)
    deadline = time.monotonic() + 300
    while not (tmp_path / "state.npz").exists():
        assert process.poll() is None and time.monotonic() < deadline, process.communicate()[0]
        time.sleep(0.02)
    process.send_signal(number)
    output, _ = process.communicate(timeout=300)  # workers end, too, and close the pipe
    assert not (tmp_path / "result.npz").exists()
    assert ("KeyboardInterrupt: stopped after" in output) == (number == signal.SIGINT)
    run_python("script.py", workers, folder=tmp_path)
    whole = compute(lambda: perceptron(64), 300, device="cpu")
    assert same(nc.load_nads(tmp_path / "result.npz"), whole)


@pytest.mark.parametrize(
    ("short", "long", "limit", "rows"),  # of six: three networks of a group at once
    [(8, 60, 64, 512), (20, 60, 64, 512), (3, 5, 64, 512), (20, 40, 63, 512), (20, 50, 64, 6)],
)
def test_an_extended_run_equals_a_longer_one(tmp_path, monkeypatch, short, long, limit, rows):
    monkeypatch.setattr("nads_core.directions.moments.DENSE_LIMIT", limit)
    monkeypatch.setattr("nads_core.directions.moments.ROWS", rows)
    path = tmp_path / "state.npz"
    assert same(computed(path, short), computed(count=short))
    assert same(computed(path, long), computed(count=long))
    with pytest.raises(ValueError, match=f"holds {long} networks, more than {short}"):
        computed(path, short)


def test_a_finished_run_is_not_computed_again(tmp_path, monkeypatch):
    monkeypatch.setattr(
        time, "monotonic", map(float, itertools.count()).__next__
    )  # a second at each look
    path = tmp_path / "state.npz"
    first, counter = computed(path), Interrupted(-1)
    assert same(computed(path, estimator=counter, symmetries="auto"), first)
    assert counter.seen == [0]
    assert same(computed(path, symmetries=()), computed(symmetries=()))
    one, other = (nads.provenance["seconds"] for nads in (first, computed(path)))
    assert other > one / 2 > 0  # not counted are the eigenvectors of the first call


def test_the_state_is_saved_on_the_way(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "_EVERY", 0.0)
    monkeypatch.setattr(checkpoint.time, "monotonic", iter(range(9_999)).__next__)
    path, seen = tmp_path / "state.npz", []

    class Watching(Interrupted):
        def vectors(self, network):
            if path.exists():
                with np.load(path) as file:
                    seen.append(json.loads(str(file["facts"]))["num_networks"])
            return super().vectors(network)

    computed(path, estimator=Watching(-1))
    assert seen and set(seen) <= set(range(8, 60, 8)) and seen == sorted(seen)
    assert [file.name for file in tmp_path.iterdir()] == ["state.npz"]


@wraps(convnet)
def edited(factor=1.01):
    """A factory of the same name, one weight of which an edit has changed."""
    network = convnet()
    network[0].weight.data.mul_(factor)
    return network


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        ({"seed": 1}, "seed was 0, now 1"),
        ({"estimator": nc.SmoothedGradient(8, readouts=2)}, "estimator was .*=4.*, now .*=8"),
        ({"image_shape": (1, 7, 8)}, r"\[1, 8, 8\], now \[1, 7, 8\]"),
        ({"dtype": torch.float64}, "'torch.float32', now 'torch.float64'"),
        ({"factory": nc.LOGREG}, "'convnet', now 'logreg'"),
        ({"factory": edited}, "another factory: the vectors of network 0"),
        (
            {"output": lambda y: y[:, 0], "estimator": nc.PointGradient()},
            "output was 0, now '.*<lambda>",
        ),
        ({"equal_weights": True}, "equal_weights"),
    ],
)
def test_the_file_of_another_computation_is_rejected_and_kept(tmp_path, options, shown):
    path = tmp_path / "state.npz"
    computed(path, 16)
    before = path.read_bytes()
    with pytest.raises(ValueError, match=f"state.npz is of .*{shown}"):
        computed(**{"path": path, "count": 32} | options)
    assert path.read_bytes() == before


def test_rounding_does_not_look_like_an_edit_and_other_numbers_are_rejected(tmp_path, monkeypatch):
    path, rounded = tmp_path / "state.npz", wraps(convnet)(lambda: edited(1 + 1e-5))
    computed(path, 16)
    assert computed(path, 32, rounded).provenance["num_networks"] == 32
    monkeypatch.setattr(run, "NADS_VERSION", run.NADS_VERSION + 1)
    with pytest.raises(ValueError, match="numbers was 3, now 4.*CHANGELOG"):
        computed(path, 48)


def test_damaged_files_are_named(tmp_path):
    path = tmp_path / "state.npz"
    nads = computed(path, 24)
    assert_damage_is_named(path, lambda: computed(path, 24))
    nads.save(path)
    with pytest.raises(ValueError, match="state.npz is damaged, or no checkpoint"):
        computed(path, 24)


@pytest.fixture
def full_disk():
    """Give a function after which files cannot grow beyond 1,000 bytes."""
    resource = pytest.importorskip("resource", reason="needs a limit on the size of files")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, before[1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_leaves_the_previous_files(tmp_path, full_disk):
    path = tmp_path / "state.npz"
    nads = computed(path, 16)
    nads.save(tmp_path / "nads.npz")
    before = {file: file.read_bytes() for file in tmp_path.iterdir()}
    full_disk()
    with pytest.raises(OSError, match=r"state\.npz.*free space"):
        computed(path, 32)
    with pytest.raises(OSError, match=r"nads\.npz.*free space"):
        nads.save(tmp_path / "nads.npz")
    assert before == {file: file.read_bytes() for file in tmp_path.iterdir()} and len(before) == 2
