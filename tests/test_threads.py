"""Threads: operations have one, large ones the caller's number, which is as before at the end."""

import pytest
import torch
from examples import Net, compute

from nads_core.runtime.threads import LARGE, num_threads, one_thread, threads_for


@pytest.fixture(autouse=True)
def two_threads(set_threads):
    set_threads(2)


def test_the_callers_threads_are_as_before():
    seen = []

    def seeing(net, x):
        seen.append(torch.get_num_threads())
        return net.last(net.features(x))

    nads = compute(lambda: Net(seeing), 20, device="cpu")
    assert torch.get_num_threads() == 2 and set(seen) == {1}
    assert nads.provenance["device"] == "2 CPU threads"
    with pytest.raises(ValueError, match="division"):
        compute(lambda: Net(lambda net, x: 1 / 0), 20)
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
