"""Results do not depend on who evaluates the networks: processes, threads, or a cluster of which a
worker dies.
"""

import os
import random
import signal
import threading
import time
from concurrent.futures import Executor, Future, ThreadPoolExecutor

import numpy as np
import pytest
import torch
from examples import Weighted, compute, failing, in_float64, perceptron, same
from torch import nn

import nads_core as nc
from nads_core.directions import workers

COUNT = 61


class Drawing(nn.Module):
    """A network that draws from all generators that are seeded."""

    def __init__(self):
        super().__init__()
        self.layers = perceptron(64, 9)
        self.factor = random.random() * np.random.rand()
        self.order = torch.randperm(64)

    def forward(self, x):
        return self.layers(x.flatten(1)[:, self.order] * self.factor)


@pytest.fixture(scope="module")
def alone():
    return compute(Drawing, COUNT, workers=1)


@pytest.mark.parametrize("count", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_processes_give_what_one_process_gives(alone, count):
    assert same(compute(Drawing, COUNT, workers=count), alone)


class Skipping(nn.Sequential):
    """A network that keeps features in a list of all networks: meta-pytorch/captum#469."""

    kept = []

    def forward(self, x):
        self.kept.append(x.flatten(1).tanh())
        time.sleep(1e-4)  # another thread goes on
        return super().forward(self.kept.pop())


class Recording(ThreadPoolExecutor):
    """Threads that know which networks were asked for."""

    numbers = ()

    def submit(self, function, job, numbers):
        self.numbers = *self.numbers, *numbers
        return super().submit(function, job, numbers)


@pytest.mark.parametrize("factory", [Drawing, lambda: Skipping(*perceptron(64))])
def test_threads_give_what_one_thread_gives(factory, set_threads):
    set_threads(2)
    with Recording(3) as pool:
        found = compute(factory, COUNT, workers=pool)
    assert same(found, compute(factory, COUNT, workers=1)) and torch.get_num_threads() == 2
    assert pool.numbers == tuple(range(COUNT))


def test_two_chunks_for_each_worker_are_asked_for():
    with Recording(2) as pool:
        nads = compute(Weighted, 2_000, workers=pool, num_certain=1)
    assert len(pool.numbers) == nads.provenance["num_networks"] + 3 * 8


def test_processes_have_the_callers_default_type():
    found = in_float64(lambda: [compute(Drawing, 20, workers=count) for count in (1, 2)])
    assert same(*found) and not same(found[0], compute(Drawing, 20))


@pytest.mark.slow
def test_a_cluster_replaces_a_worker_that_dies(alone, tmp_path):
    distributed = pytest.importorskip("distributed", reason="needs distributed")
    marker, own = tmp_path / "died", os.getpid()

    def mortal():
        if os.getpid() != own and not marker.exists():
            marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return Drawing()

    options = {"n_workers": 2, "threads_per_worker": 2, "dashboard_address": None}
    with (
        distributed.LocalCluster(**options, silence_logs=50) as cluster,
        distributed.Client(cluster) as client,
    ):
        assert same(compute(mortal, COUNT, workers=client.get_executor()), alone)
    assert marker.exists()


@pytest.mark.parametrize("before", [True, False])
def test_an_interrupted_run_waits_for_no_chunk(before):
    interrupts = [2] if before else []

    class Busy(Executor):
        def submit(self, *arguments):
            interrupts.append(2)
            future = Future()
            future.result = lambda: pytest.fail("a chunk that is not ready is waited for")
            return future

    job, device = nc.SmoothedGradient(), torch.device("cpu")  # anything that can be sent
    chunks = workers.evaluated(job, [range(8), range(8, 16)], Busy(), device, interrupts)
    assert list(chunks) == [] and len(interrupts) == 1


@pytest.mark.parametrize(("seconds", "started"), [(0.0, [2]), (1e9, [])])
def test_processes_are_started_where_they_pay(alone, monkeypatch, seconds, started):
    counts = []

    def processes(count):
        counts.append(count)
        return ThreadPoolExecutor(count)

    monkeypatch.setattr(workers, "_WORTH", seconds)
    monkeypatch.setattr(workers, "num_cores", lambda: 2)
    monkeypatch.setattr("nads_core.runtime.processes.process_pool", processes)
    assert same(compute(Drawing, COUNT), alone)
    assert counts == started


def test_what_goes_wrong_elsewhere_is_named():
    with pytest.raises(ZeroDivisionError) as caught:
        compute(failing(lambda y: 1 / 0), 99, workers=2)
    assert any("network" in note for note in caught.value.__notes__)
    lock = threading.Lock()
    with pytest.raises(ValueError, match="lock.*workers=1"):
        compute(lambda: lock and perceptron(64), 99, workers=2)
