"""The first step by exact derivatives (`nads_book.studies.exact_first_step`)."""

import pytest
import torch
from convergence import normal
from nads_book.experiments import Context
from nads_book.experiments.study import DeadlinePassedError
from nads_book.studies import exact_first_step, geometry
from nads_book.studies.exact_first_step import LAW
from torch import nn
from torch.testing import assert_close

import nads_core as nc

# The first forward derivative imports functions that torch compiles in a way that it deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit:FutureWarning")


def small_network(norm):
    """Return a convolutional network in double precision, smooth so that differences converge."""
    torch.manual_seed(0)
    layers = [nn.Conv2d(1, 3, 3, padding=1), nn.BatchNorm2d(3) if norm else nn.Identity()]
    layers += [nn.Tanh(), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(48, 2)]
    return nn.Sequential(*layers).double()


@pytest.mark.parametrize("norm", [False, True])
def test_the_derivative_is_the_limit_of_small_steps(norm):
    generator = torch.Generator().manual_seed(1)
    images = torch.randn(6, 1, 8, 8, generator=generator, dtype=torch.float64)
    inputs = torch.randn(2, 3, 1, 8, 8, generator=generator, dtype=torch.float64)
    before, change = exact_first_step.gradients_and_change(small_network(norm), images, inputs)

    def after(rate):
        """Return the gradients after one step of plain training with both labels."""
        network = small_network(norm).train()
        logits = network(images)
        loss = sum(nn.functional.cross_entropy(logits, torch.full((6,), y)) for y in (0, 1)) / 2
        weights = list(network.parameters())
        with torch.no_grad():
            for weight, slope in zip(weights, torch.autograd.grad(loss, weights), strict=True):
                weight -= rate * slope
        x = inputs.flatten(0, 1).clone().requires_grad_()
        if norm:  # with the statistics of the training images
            layer = network[1]
            features = network[0](images)
            mean = features.mean((0, 2, 3))
            std = features.var((0, 2, 3), unbiased=False)
            scaled = (network[0](x) - mean[:, None, None]) / (std + layer.eps)[:, None, None].sqrt()
            logits = network[2:](scaled * layer.weight[:, None, None] + layer.bias[:, None, None])
        else:
            logits = network(x)
        (found,) = torch.autograd.grad((logits[:, 1] - logits[:, 0]).sum(), x)
        return found.unflatten(0, (2, 3)).mean(1).flatten(1)

    assert_close(before, after(0.0))
    rate = 1e-4
    assert_close(change, (after(rate) - after(-rate)) / (2 * rate), rtol=1e-5, atol=1e-9)


def test_the_second_moment_moves_as_the_gradients_do():
    gradients, changes = normal(2, 5, 2, 7, seed=3).double()
    step = 1e-6
    moments = [geometry.moment(gradients + sign * step * changes) for sign in (1, -1)]
    found = exact_first_step.moment_change(gradients, changes)
    assert_close(found, (moments[0] - moments[1]) / (2 * step), rtol=1e-6, atol=1e-8)


def test_the_matrix_of_nads_has_their_eigenvalues():
    nads = nc.load_nads("lenet")
    matrix = exact_first_step.second_moment_of(nads)
    direction = nads.directions[3].flatten().double()
    share = float(nads.eigenvalues[3] / nads.eigenvalues.mean())
    assert float(direction @ matrix @ direction) == pytest.approx(share, rel=1e-4)


def test_the_law_is_found_where_it_holds():
    generator = torch.Generator().manual_seed(5)
    factor = torch.randn(1024, 8, generator=generator).double()
    law = factor @ factor.T
    gradients = torch.randn(160, 2, 1024, generator=generator).mean(1, keepdim=True).repeat(1, 2, 1)
    changes = -1e-3 * (gradients.double() @ law).float()  # E[g g'] is proportional to 1
    laws = {
        LAW: law[None],
        "S": torch.eye(1024).double()[None],
        "G_0": torch.eye(1024).double()[None],
    }
    found = exact_first_step.first_change(gradients, changes, laws)
    assert found["change"]["cosine"][LAW][0] == pytest.approx(-1, abs=0.05)
    assert found["growth"][2] < 0 and found["change"]["law ahead"]["G_0"][1] > 0


def test_networks_are_kept_in_parts_and_a_deadline_stops_between_them(tmp_path, monkeypatch):
    monkeypatch.setattr(exact_first_step, "PART", 2)
    calls = []

    def compute(identities):
        calls.append(len(identities))
        values = torch.tensor([float(i - exact_first_step.FIRST_IDENTITY) for i in identities])
        return values[:, None], values

    late = Context(out=tmp_path / "rows.json", deadline=0.0)
    with pytest.raises(DeadlinePassedError, match="0 of 5"):
        exact_first_step.in_parts(compute, "x", 5, late)
    context = Context(out=tmp_path / "rows.json")
    for _ in range(2):
        gradients, others = exact_first_step.in_parts(compute, "x", 5, context)
        assert gradients[:, 0].tolist() == others.tolist() == [0, 1, 2, 3, 4]
    assert calls == [2, 2, 1]
