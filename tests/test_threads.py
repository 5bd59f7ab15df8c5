"""Threads: the caller's number is as before, and networks that share Python objects are evaluated
by one thread.
"""

import gc
import logging
import threading
from collections import deque
from functools import partial

import examples
import pytest
import torch
from nads_core.networks.ensembles import Ensemble
from nads_core.networks.interleaving import interleaved
from nads_core.networks.threaded import ThreadedEnsemble
from torch import nn

import nads_core as nc
from nads_core.runtime.threads import LARGE, num_threads, one_thread, threads_for

SHAPE = (1, 4, 4)
compute = partial(examples.compute, image_shape=SHAPE, device="cpu")
HANGING = 600  # seconds after which something hangs, on the busiest machine


@pytest.fixture(autouse=True)
def two_threads(set_threads):
    set_threads(2)


class Skip(nn.Module):
    """A skip connection, which subclasses store elsewhere."""

    def __init__(self):
        super().__init__()
        self.down = nn.Linear(16, 24)
        self.middle = nn.Linear(24, 24)
        self.last = nn.Linear(24, 10)
        self.begin()

    def begin(self):
        pass

    def forward(self, x):
        hidden = torch.tanh(self.down(x.flatten(1)))
        self.keep(hidden)
        hidden = torch.tanh(self.middle(hidden))
        return self.last(hidden + self.kept())

    def keep(self, value):
        self.value = value

    def kept(self):
        return self.value


class ClassQueue(Skip):
    """First in, first out: in step, two networks take their own values."""

    values = deque()

    def keep(self, value):
        self.values.append(value)

    def kept(self):
        return self.values.popleft()


WORKSPACE = torch.zeros(64, 24)


class Workspace(Skip):
    """A tensor of the module that every network writes to."""

    def keep(self, value):
        with torch.no_grad():
            self.count = len(value)
            WORKSPACE[: self.count] = value

    def kept(self):
        return WORKSPACE[: self.count].clone()


LOCK = threading.Lock()


class Locked(ClassQueue):
    def forward(self, x):
        with LOCK:
            return super().forward(x)


class CountedCache(Skip):
    """A table that is emptied when the last thread has left, as that of `parametrize.cached`."""

    table = {}
    inside = []

    def forward(self, x):
        self.inside.append(self)
        try:
            weight = self.table.setdefault(id(self), self.down.weight.softmax(1))
            hidden = torch.tanh(x.flatten(1) @ weight.T)
            return self.last(torch.tanh(self.middle(hidden)))
        finally:
            self.inside.remove(self)
            if not self.inside:
                self.table.clear()


SHARING = [
    ClassQueue,
    Workspace,
    Locked,
    CountedCache,
]


@pytest.mark.parametrize("factory", SHARING)
def test_networks_that_share_an_object_are_evaluated_by_one_thread(factory, caplog):
    with caplog.at_level(logging.WARNING):
        assert ThreadedEnsemble(Ensemble(factory, SHAPE, device="cpu")).size == 1
    assert "one thread" in caplog.text


class OneLine(Skip):
    """Written and read in one line."""

    shared = {}

    def forward(self, x):
        return self.shared.update(h=self.down(x.flatten(1)).tanh()) or self.last(self.shared["h"])


def test_a_callback_of_the_garbage_collector_hides_nothing_that_networks_share():
    """Its Python code would be steps of one of the threads that take turns."""

    def callback(phase, info):
        return sum(index for index in range(3))

    before = gc.get_threshold()
    gc.callbacks.append(callback)
    gc.set_threshold(37)
    try:
        assert ThreadedEnsemble(Ensemble(OneLine, SHAPE, device="cpu")).size == 1
    finally:
        gc.set_threshold(*before)
        gc.callbacks.remove(callback)


class Cached(Skip):
    """What it keeps in its class is the same for all networks."""

    table = {}

    def forward(self, x):
        scale = self.table.setdefault(x.shape[1:], torch.linspace(1, 2, 16))
        return super().forward(x.flatten(1) * scale)


@pytest.mark.parametrize("factory", [Skip, Cached, lambda: nc.LENET.build(1, 16, 1)])
def test_networks_that_share_nothing_have_all_threads(factory, caplog):
    shape = SHAPE if factory in (Skip, Cached) else (1, 16, 16)
    assert ThreadedEnsemble(Ensemble(factory, shape, device="cpu")).size == 2 and not caplog.text


def test_two_functions_that_wait_for_each_other_end():
    lock = threading.Lock()

    def hold():
        with lock:
            return sum(index for index in range(10))

    waiting = threading.Thread(target=interleaved, args=(hold, hold, 0.2), daemon=True)
    waiting.start()
    waiting.join(HANGING)
    assert not waiting.is_alive() and lock.acquire(timeout=HANGING)
    assert interleaved(lambda: 1, lambda: 1 / 0, HANGING).results is None
    assert interleaved(lambda: 1, lambda: sum(range(9)), HANGING).results == [1, 36]
    counting = lambda: sum(index for index in range(9))  # noqa: E731
    pairs = (counting, int), (int, counting)
    longer, shorter = (interleaved(*pair, HANGING).steps for pair in pairs)
    assert longer > shorter  # those of the first


def test_the_callers_threads_are_as_before():
    seen = []

    class Seeing(Skip):
        def forward(self, x):
            seen.append(torch.get_num_threads())
            return super().forward(x)

    nads = compute(Seeing, 128)
    assert torch.get_num_threads() == 2 and set(seen) == {1}
    assert nads.provenance["device"] == "2 CPU threads"

    class Failing(Skip):
        def forward(self, x):
            raise RuntimeError("always")

    with pytest.raises(ValueError, match="always"):
        compute(Failing, 128)
    assert torch.get_num_threads() == 2


def test_large_operations_have_the_callers_threads_and_contexts_nest():
    assert num_threads() == torch.get_num_threads() == 2
    with pytest.raises(KeyError), one_thread():
        assert torch.get_num_threads() == 1 and num_threads() == 2
        with threads_for(LARGE):
            assert torch.get_num_threads() == 2
        with one_thread(), threads_for(LARGE - 1):
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 1
        raise KeyError
    assert torch.get_num_threads() == 2


def test_callers_in_two_threads_leave_the_number_as_it_was():
    inside = threading.Barrier(2)
    ended = threading.Event()
    seen = []

    def work(last):
        with one_thread():
            inside.wait(HANGING)
            if last:
                ended.wait(HANGING)
            seen.append((torch.get_num_threads(), num_threads()))
        seen.append(torch.get_num_threads())
        ended.set()

    threads = [threading.Thread(target=work, args=(last,)) for last in (False, True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(seen, key=str) == [(1, 2), (1, 2), 2, 2] and torch.get_num_threads() == 2
