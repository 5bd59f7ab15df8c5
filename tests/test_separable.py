import torch
from convergence import assert_mean, normal
from examples import in_float64
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

import nads_core as nc


def unit(seed, shape=(1, 6, 6)):
    direction = normal(*shape, seed=seed)
    return direction / direction.norm()


@given(st.integers(0, 1000), st.floats(0.1, 5), st.floats(0, 5))
def test_the_class_is_the_coordinate_along_the_direction(seed, margin, noise_std):
    direction = unit(seed)
    images, labels = nc.separable_dataset(direction, 50, margin, noise_std, seed=seed)
    along = images.flatten(1) @ direction.flatten()
    assert_close(along, margin * (2.0 * labels - 1), atol=1e-4, rtol=1e-4)
    assert labels.dtype == torch.int64 and set(labels.tolist()) <= {0, 1}


def test_noise_is_isotropic_and_orthogonal_to_the_direction():
    direction = unit(0)
    images, labels = nc.separable_dataset(direction, 5_000, 1.0, 3.0, seed=1)
    noise = (images - (2.0 * labels - 1)[:, None, None, None] * direction).flatten(1)
    flat = direction.flatten()
    assert_mean(noise[:, None] * noise[:, :, None], 9 * (torch.eye(36) - torch.outer(flat, flat)))
    assert_mean(labels, 0.5)


def test_one_seed_gives_one_noise_for_every_direction():
    """Whatever is done to earlier data."""
    data = nc.SeparableDatasets(torch.stack([unit(1), unit(2)]), 10, seed=3)
    (one, labels), (other, same_labels) = data
    assert torch.equal(labels, same_labels)
    difference = torch.linalg.svdvals((one - other).flatten(1))
    assert int((difference > 1e-3).sum()) == 2  # each differs from the noise by one direction
    before = other.clone()
    for tensor in (data.labels, *data[1]):
        tensor.fill_(7)
    assert torch.equal(nc.separable_dataset(unit(2), 10, seed=3)[0], before)
    assert not torch.equal(nc.separable_dataset(unit(2), 10, seed=4)[0], before)
    direction = unit(2)
    assert in_float64(lambda: nc.separable_dataset(direction, 10)[0]).dtype == torch.float32


def test_pairs_differ_along_the_direction_alone():
    directions = torch.stack([nc.fourier_direction((1, k), 8) for k in range(3)])
    data = nc.SeparableDatasets(directions, 40, margin=1.5, noise_std=2.0, seed=3, paired=True)
    for b, v in enumerate(directions):
        images, labels = data[b]
        assert_close(images[20:] - images[:20], (3.0 * v).expand(20, -1, -1, -1))
        assert (labels[:20] == 0).all() and (labels[20:] == 1).all()
