"""The rival theory: products with gradients, the fit, and the rule."""

from types import SimpleNamespace

import pytest
import torch
from convergence import normal
from nads_book.studies import rival_theory
from nads_book.studies.rival_theory import Linearised
from torch import nn
from torch.testing import assert_close

import nads_core as nc

# The first forward derivative imports functions that torch compiles in a way that it deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit:FutureWarning")


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(9, 4), nn.Tanh(), nn.Linear(4, 2)).double()


def images(count, seed):
    return normal(count, 1, 3, 3, seed=seed).double()


def gradients(module, some):
    """Return J, (N, P), one image at a time."""
    rows = []
    for image in some:
        logits = module(image[None])[0]
        found = torch.autograd.grad(logits[1] - logits[0], list(module.parameters()))
        rows.append(torch.cat([part.flatten() for part in found]))
    return torch.stack(rows)


def test_products_are_those_of_the_matrix_of_gradients(monkeypatch):
    monkeypatch.setattr(rival_theory, "CHUNK", 4)  # three parts
    module = network()
    some = images(10, 1)
    matrix = gradients(module, some)
    linear = Linearised(module, some)
    values = torch.linspace(-1, 1, 10).double()
    transposed = linear.transposed(values)
    assert_close(transposed, matrix.T @ values)
    assert_close(linear.times(transposed), matrix @ matrix.T @ values)


def test_many_iterations_are_kernel_ridge_regression():
    module = network()
    some = images(12, 2)
    others = images(5, 3)
    targets = torch.tensor([1.0, -1.0] * 6).double()
    found, first = rival_theory.conjugate_gradients(
        Linearised(module, some), targets, Linearised(module, others), 200
    )
    train = gradients(module, some)
    test = gradients(module, others)
    assert_close(first, train.T @ targets)
    kernel = train @ train.T
    ridge = rival_theory.RIDGE * (train.T @ targets).square().sum() / 12
    expected = test @ train.T @ torch.linalg.solve(kernel + ridge * torch.eye(12), targets)
    assert_close(found[-1], expected, rtol=1e-3, atol=1e-4)
    one = found[0]  # after one iteration the outputs are along the kernel times the labels
    assert_close(one / one.norm(), (v := test @ train.T @ targets) / v.norm())


def test_pairs_of_samples_leave_no_noise_in_the_alignment(monkeypatch):
    layers = nn.Flatten(), nn.Linear(1024, 2, bias=False)
    linear = SimpleNamespace(build=lambda *sizes: nn.Sequential(*layers))
    monkeypatch.setattr(rival_theory, "MODELS", {"lenet": linear})
    found = rival_theory.alignments("lenet", nc.fourier_direction((0, 2), size=32), 3.0, 1)
    assert found == pytest.approx([2] * rival_theory.NUM_KERNELS, rel=1e-4)  # K = 2 x'x
