import subprocess
import sys

import pytest
import torch
from examples import compute
from nads_book.benchmarks.measuring import peak_memory
from nads_core.directions.covariance import gram_eigenpairs
from torch import nn

import nads_core as nc
from nads_core.directions.moments import GramMoments
from nads_core.runtime import arguments as memory
from nads_core.runtime.arguments import require_memory


def wide():
    return nn.Sequential(nn.Flatten(), nn.Linear(3 * 64 * 64, 2), nn.ReLU(), nn.Linear(2, 1))


def test_more_than_there_is_is_refused(monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda device: 2_000_000_000)
    require_memory(1.9e9, "cpu", "it takes", "ask for less")
    with pytest.raises(MemoryError, match=r"it takes 3\.0 GB.* 2\.0 GB.*ask for less"):
        require_memory(3e9, "cpu", "it takes", "ask for less")
    monkeypatch.setattr(memory, "available_memory", lambda device: None)
    require_memory(1e18, "cpu", "it takes", "ask for less")  # where nobody knows, nobody is held up


def test_compute_nads_rejects_at_once_what_it_could_not_keep(monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda device: 10_000_000_000)
    options = {"image_shape": (3, 64, 64), "estimator": nc.SmoothedGradient(4, readouts=2)}
    needed = r"100,000 networks .*2 readouts .* 12,288 pixels.*10\.0 GB"
    with pytest.raises(MemoryError, match=needed):
        compute(wide, 100_000, num_directions=100, **options)
    assert len(compute(wide, 8, num_directions=3, **options)) == 3


def run_python(code):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout


@pytest.mark.slow
def test_large_images_are_drawn_and_evaluated_in_parts():
    peak = run_python("""
import resource
import nads_core as nc
from torch import nn

def net():
    features = nn.Conv2d(3, 8, 7, stride=4), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten()
    return nn.Sequential(*features, nn.Linear(128, 10), nn.ReLU(), nn.Linear(10, 1))

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

nc.compute_nads, before = nc.compute_nads, peak()
options = dict(num_directions=5, progress=False, device="cpu")
nads = nc.compute_nads(net, 60, image_shape=(3, 224, 224), **options)
print(peak() - before)
""")
    assert int(peak) < 1.2e9  # in one piece 2.3e9


def test_eigenvectors_take_what_is_stated_and_no_copy_of_the_vectors():
    networks = 100
    dimension = 75_000
    count = 10
    moments = GramMoments(dimension)

    def fill():
        for _ in range(networks // 50):
            moments.update(torch.randn(50, 2, dimension))

    before = peak_memory(lambda: None, "cpu")
    fill()
    stored = peak_memory(lambda: None, "cpu") - before
    peak = peak_memory(lambda: gram_eigenpairs(*moments.vectors(), count), "cpu") - before
    vectors = 2 * networks * dimension * 4
    stated = GramMoments.needed_bytes(dimension, networks, count)
    assert vectors <= stated <= 1.1 * vectors
    assert stored < 1.1 * vectors and peak < stated + 40e6
