import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import nads_core as nc


def unit(seed: int, shape=(1, 6, 6)) -> torch.Tensor:
    direction = torch.randn(shape, generator=torch.Generator().manual_seed(seed))
    return direction / direction.norm()


@settings(max_examples=25)
@given(st.integers(0, 1000), st.floats(0.1, 5), st.floats(0, 5))
def test_the_class_is_the_coordinate_along_the_direction(seed, margin, noise_std):
    direction = unit(seed)
    images, labels = nc.separable_dataset(direction, 50, margin, noise_std, seed=seed)
    along = images.flatten(1) @ direction.flatten()
    torch.testing.assert_close(along, margin * (2.0 * labels - 1), atol=1e-4, rtol=1e-4)
    assert labels.dtype == torch.int64 and set(labels.tolist()) <= {0, 1}


def test_noise_is_isotropic_and_orthogonal_to_the_direction():
    direction, count, noise_std = unit(0), 20_000, 3.0
    images, labels = nc.separable_dataset(direction, count, 1.0, noise_std, seed=1)
    noise = (images - (2.0 * labels - 1)[:, None, None, None] * direction).flatten(1).double()
    flat = direction.flatten().double()
    expected = noise_std**2 * (torch.eye(36, dtype=torch.float64) - torch.outer(flat, flat))
    spread = noise_std**2 * math.sqrt(2 / count)  # largest standard error of a covariance entry
    assert ((noise.T @ noise / count - expected).abs() < 5 * spread).all()
    assert abs(float(labels.double().mean()) - 0.5) < 4 * 0.5 / math.sqrt(count)


def test_one_seed_gives_one_noise_for_every_direction():
    one, labels = nc.separable_dataset(unit(1), 10, seed=3)
    other, same_labels = nc.separable_dataset(unit(2), 10, seed=3)
    assert torch.equal(labels, same_labels)
    difference = (one - other).flatten(1)
    assert int((torch.linalg.svdvals(difference) > 1e-3).sum()) == 2  # each differs from the noise by one direction
    assert not torch.equal(one, nc.separable_dataset(unit(1), 10, seed=4)[0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((torch.ones(1, 4, 4), 5), "norm 4, expected 1"),
        ((torch.ones(16) / 4, 5), r"shape \(C, H, W\)"),
        ((unit(0), 0), "num_samples"),
        ((unit(0), 5, -1.0), "margin"),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        nc.separable_dataset(*arguments)
