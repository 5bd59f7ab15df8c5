"""Seeding leaves no trace: neither in the generators that were seeded, nor in those of a GPU that
waits for its use.
"""

from functools import partial

import examples
import pytest
import torch
from convergence import normal
from examples import perceptron

import nads_core as nc
from nads_core.runtime.seeds import seeded


class Gpu:
    """Stands in for the generators of a GPU, where there is none."""

    def __init__(self, monkeypatch, used):
        self.seed = "its own"
        monkeypatch.setattr(torch.cuda, "is_initialized", lambda: used)
        monkeypatch.setattr(torch.cuda, "manual_seed_all", lambda seed: setattr(self, "seed", seed))
        monkeypatch.setattr(torch.cuda, "get_rng_state_all", lambda: self.seed)
        monkeypatch.setattr(
            torch.cuda, "set_rng_state_all", lambda state: setattr(self, "seed", state)
        )


small = partial(perceptron, 64, 8, 2)


def compute():
    examples.compute(small, 16, device="cpu")


def train():
    data = torch.zeros(4, 1, 8, 8), torch.tensor([0, 1, 0, 1])
    options = {"recipe": nc.Recipe(epochs=1), "device": "cpu", "progress": False}
    nc.train_networks(small, [data], **options)
    nc.train_network(small(), data, **options)


@pytest.mark.parametrize("work", [compute, train])
def test_a_gpu_that_waits_for_its_first_use_keeps_its_seed(monkeypatch, work):
    gpu = Gpu(monkeypatch, used=False)
    work()
    assert gpu.seed == "its own"


@pytest.mark.parametrize(("used", "device"), [(True, "cpu"), (False, "cuda"), (True, "cuda:1")])
def test_a_gpu_in_use_is_seeded_and_put_back(monkeypatch, used, device):
    gpu = Gpu(monkeypatch, used)
    before = torch.get_rng_state()
    with pytest.raises(ZeroDivisionError), seeded(5, device):
        assert gpu.seed == 5
        drawn = torch.randn(3)
        1 / 0  # noqa: B018
    assert gpu.seed == "its own" and torch.equal(torch.get_rng_state(), before)
    assert torch.equal(drawn, normal(3, seed=5))
