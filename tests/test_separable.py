import torch
from convergence import assert_mean, normal
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

import nads_core as nc


def unit(seed, shape=(1, 6, 6)):
    direction = normal(*shape, seed=seed)
    return direction / direction.norm()


@settings(max_examples=25)
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
    one, labels = nc.separable_dataset(unit(1), 10, seed=3)
    other, same_labels = nc.separable_dataset(unit(2), 10, seed=3)
    assert torch.equal(labels, same_labels)
    difference = (one - other).flatten(1)
    assert (
        int((torch.linalg.svdvals(difference) > 1e-3).sum()) == 2
    )  # each differs from the noise by one direction
    assert not torch.equal(one, nc.separable_dataset(unit(1), 10, seed=4)[0])


def test_datasets_of_many_directions_are_those_of_each():
    directions = torch.stack([unit(seed) for seed in range(3)])
    datasets = nc.SeparableDatasets(directions, 30, 1.5, 2.0, seed=7)
    for dataset, direction in zip(datasets, directions, strict=True):
        assert all(map(torch.equal, dataset, nc.separable_dataset(direction, 30, 1.5, 2.0, seed=7)))


def test_what_is_handed_out_can_be_written_to():
    data = nc.SeparableDatasets(torch.stack([unit(seed) for seed in range(3)]), 40, seed=11)
    expected = data[1]
    for give in (
        lambda: [data.labels],
        lambda: data[1],
        lambda: nc.separable_dataset(unit(0), 40, seed=11),
    ):
        for tensor in give():
            tensor.fill_(7)
        assert all(torch.equal(now, before) for now, before in zip(data[1], expected, strict=True))


def test_pairs_differ_along_the_direction_alone():
    directions = torch.stack([nc.fourier_direction((1, k), 8) for k in range(3)])
    data = nc.SeparableDatasets(directions, 40, margin=1.5, noise_std=2.0, seed=3, paired=True)
    for b, v in enumerate(directions):
        images, labels = data[b]
        assert_close(images[20:] - images[:20], (3.0 * v).expand(20, -1, -1, -1))
        assert (labels[:20] == 0).all() and (labels[20:] == 1).all()
