import pytest
import torch
from conftest import run_python
from nads_book.benchmarks.measuring import peak_memory

import nads_core as nc
from nads_core.runtime import arguments as memory
from nads_core.runtime.arguments import require_memory


def test_more_than_there_is_is_refused(monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda device: 2_000_000_000)
    require_memory(1.9e9, "cpu", "it takes", "ask for less")
    with pytest.raises(MemoryError, match=r"it takes 3\.0 GB.* 2\.0 GB.*ask for less"):
        require_memory(3e9, "cpu", "it takes", "ask for less")
    monkeypatch.setattr(memory, "available_memory", lambda device: None)
    require_memory(1e18, "cpu", "it takes", "ask for less")  # where nobody knows, nobody is held up


@pytest.mark.slow
def test_large_images_take_little_more_than_their_vectors():
    code = """
import resource
import nads_core as nc
from torch import nn

def net():
    features = nn.Conv2d(3, 8, 7, stride=4), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten()
    return nn.Sequential(*features, nn.Linear(128, 10), nn.ReLU(), nn.Linear(10, 1))

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

before = nc.compute_nads and peak()
nc.compute_nads(net, (3, 224, 224), 60, num_directions=5, progress=False, device="cpu", workers=1)
print(peak() - before)
"""
    peak = run_python("-c", code)
    vectors = 60 * 2 * 3 * 224**2 * 4
    assert int(peak) < 6 * vectors + 3e8


def test_eigenvectors_of_large_inputs_take_no_copy_of_their_vectors():
    networks, dimension = 100, 75_000
    moment = nc.SecondMoment((dimension,))

    before = peak_memory(lambda: None, "cpu")
    for _ in range(networks // 50):
        moment.add(torch.randn(50, 2, 1, dimension))
    stored = peak_memory(lambda: None, "cpu") - before
    peak = peak_memory(lambda: moment.nads((), 10), "cpu") - before
    vectors = 2 * networks * dimension * 4
    assert stored < 1.5 * vectors and peak < 3.5 * vectors  # a copy is one more
