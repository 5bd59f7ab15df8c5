"""The choice of a pooling: its data sets are separable, its networks fit them, and a prediction is
written once.
"""

import pytest
import torch
from nads_book.studies import pooling
from torch.testing import assert_close

import nads_core as nc


def test_mixtures_are_separable_along_the_sum_of_their_waves():
    for waves in pooling.MIXTURES.values():
        directions = torch.stack([nc.fourier_direction(wave) for wave in waves])
        gram = directions.flatten(1) @ directions.flatten(1).T
        assert_close(gram, torch.eye(4), atol=1e-5, rtol=0)
        images, labels = pooling.mixture(waves, 200, seed=3)
        margins = (images * directions.sum(0)).sum((1, 2, 3)) * (2 * labels - 1)
        assert_close(margins, torch.ones(200), atol=1e-3, rtol=0)
        along = (images[:, None] * directions).sum((2, 3, 4)).abs()
        assert ((along > 0.5).sum(1) == 1).all()  # one wave shows the class
        assert set(along.argmax(1).tolist()) == set(range(4))
        assert images.std() == pytest.approx(pooling.NOISE_STD, rel=0.05)


def test_parts_and_seeds_of_a_mixture_differ():
    draws = [
        pooling.dataset("low", train, seed)[0][0] for train in (True, False) for seed in (0, 1)
    ]
    assert all(not torch.equal(a, b) for i, a in enumerate(draws) for b in draws[:i])


@pytest.mark.parametrize(("channels", "num_classes"), [(1, 2), (3, 10)])
def test_the_wide_network_has_as_many_parameters_as_the_one_without_pooling(channels, num_classes):
    networks = (
        pooling.architecture(kind, num_classes).build(channels, 32, num_classes)
        for kind in (pooling.WIDE, "none", "max")
    )
    wide, without, narrow = (sum(p.numel() for p in network.parameters()) for network in networks)
    assert wide == pytest.approx(without, rel=0.03)
    assert narrow < wide / 5
