"""Adam and the flip (`nads_book.studies.adam_flip`): bases and both controls."""

import pytest
import torch
from convergence import normal
from nads_book.studies import adam_flip
from nads_book.studies.adam_flip import BASES
from torch.testing import assert_close

SMALL = ("as is", "rotated", "components")  # bases of images of any size


@pytest.fixture
def images(monkeypatch):
    """Return smooth random images of 8 x 8, which replace the photos."""
    generator = torch.Generator().manual_seed(0)
    small = torch.randn(60, 3, 4, 4, generator=generator)
    found = torch.nn.functional.interpolate(small, scale_factor=2, mode="bilinear")
    found = found + 0.1 * torch.randn(found.shape, generator=generator)
    data = (found, torch.arange(60) % 10)
    monkeypatch.setattr(adam_flip, "upright", lambda: (data, data, "generated"))
    adam_flip.principal_axes.cache_clear()
    yield found
    adam_flip.principal_axes.cache_clear()


@pytest.mark.parametrize("basis", BASES)
def test_all_bases_are_orthogonal_maps(images, basis):
    if basis not in SMALL:  # NADs are of 32 x 32
        images = images.repeat(1, 1, 4, 4) * torch.linspace(0, 1, 32)
    found = adam_flip.in_basis(images, basis)
    distances = torch.pdist(images.flatten(1))
    assert_close(torch.pdist(found.flatten(1)), distances, rtol=1e-3, atol=1e-3)
    assert (found is images) == (basis == "as is")


def test_effective_inputs_count_equal_and_unequal_variances():
    noise = normal(4_000, 1, 4, 4, seed=1)
    assert adam_flip.effective_inputs(noise) == pytest.approx(16, rel=0.02)
    noise[:, :, 0] *= 2
    assert adam_flip.effective_inputs(noise) == pytest.approx(28**2 / 76, rel=0.02)


def test_equal_variances_are_equal_and_of_the_same_sum(images):
    train, test = adam_flip.with_equal_variances(images, images[:10])
    variances = train.var(0)
    assert float(variances.max() / variances.min()) == pytest.approx(1, rel=1e-3)
    assert float(variances.sum()) == pytest.approx(float(images.var(0).sum()), rel=1e-3)
    assert_close(test, train[:10])
    images[:, 0, 0, 0] = 0.0  # a constant input is not divided by zero
    assert adam_flip.with_equal_variances(images, images)[0].isfinite().all()


def test_one_step_size_keeps_the_direction_of_the_gradient():
    weight = torch.nn.Parameter(torch.zeros(2, 3))
    optimiser = adam_flip.SharedScaleAdam([weight], lr=0.1)
    gradient = torch.tensor([[1.0, 10.0, 0.0], [0.0, 0.0, -5.0]])
    for steps in (1, 2):  # Adam's corrections make both steps equally long
        (weight * gradient).sum().backward()
        optimiser.step()
        optimiser.zero_grad()
        expected = -0.1 * steps * gradient / gradient.square().mean().sqrt()
        assert_close(weight.detach(), expected)
