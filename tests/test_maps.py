"""Orthogonal maps of photos: which they are, how well each matches a network, and the job that
trains on them.
"""

import numpy as np
import pytest
import torch
from convergence import rotation
from nads_book.studies.transforms import (
    covariance,
    match,
    matrix_of,
    neighbour_correlation,
    orthogonal_map,
    principal_components,
    transform,
)
from torch.testing import assert_close

GENERATOR = torch.Generator().manual_seed(0)


ORDERS = ("kept", "reversed", "shuffled", "shuffled in octaves")
A = rotation(64)
B = rotation(64, seed=1)
IMAGES = torch.rand(200, 3, 8, 8, generator=GENERATOR)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("signs", [False, True])
def test_each_coordinate_comes_to_lie_on_one_direction(order, signs):
    laid = B.T @ orthogonal_map(A, B, order, signs=signs, seed=3) @ A  # (target, source)
    place = laid.abs().argmax(0)
    assert_close(laid.abs(), torch.eye(64)[place].T, atol=1e-5, rtol=0)
    indices = torch.arange(64)
    octaves = [range(16), range(16, 32), range(32, 64)]
    if order == "kept":
        assert torch.equal(place, indices)
    elif order == "reversed":
        assert torch.equal(place, indices.flip(0))
    else:
        assert sorted(place.tolist()) == indices.tolist() and not torch.equal(place, indices)
        within = all(sorted(place[list(octave)].tolist()) == list(octave) for octave in octaves)
        assert within == (order == "shuffled in octaves")
    assert bool((laid.sum(0) < 0).any()) == signs


def test_a_covariance_turns_with_the_images():
    spread = covariance(IMAGES)
    matrix = orthogonal_map(A, B).double()
    expected = np.cov(IMAGES[:, 0].flatten(1).T, bias=True)
    np.testing.assert_allclose(covariance(IMAGES[:, :1]), expected, atol=1e-6)
    assert_close(
        covariance(transform(IMAGES, matrix)), matrix @ spread @ matrix.T, atol=1e-6, rtol=0
    )
    values = torch.diagonal(principal_components(spread).T @ spread @ principal_components(spread))
    assert (values.diff() <= 1e-9).all()


def test_the_match_is_one_where_the_orders_agree_and_zero_where_they_are_opposite():
    falling = torch.linspace(1, 0.01, 64)
    sensitivity = (A * falling) @ A.T
    spread = (B * falling.square()) @ B.T
    laid = {order: orthogonal_map(B, A, order, seed=1) for order in ORDERS}
    result = {
        order: match(sensitivity, matrix @ spread @ matrix.T) for order, matrix in laid.items()
    }
    assert result["kept"] == pytest.approx(1, abs=1e-4) and result["reversed"] == pytest.approx(
        0, abs=1e-4
    )
    assert 0.2 < result["shuffled"] < 0.8 < result["shuffled in octaves"] < 1


def test_neighbours_of_smooth_images_are_similar():
    noise = torch.randn(20_000, 1, 8, 8, generator=GENERATOR)
    smooth = (noise + noise.roll(1, 2) + noise.roll(1, 3) + noise.roll((1, 1), (2, 3))) / 2
    assert neighbour_correlation(covariance(noise), 8) == pytest.approx(0, abs=0.01)
    assert neighbour_correlation(covariance(smooth), 8) == pytest.approx(0.5, abs=0.01)


def test_a_map_of_photos_is_the_identity_where_nothing_is_changed():
    spread = covariance(torch.rand(20, 1, 32, 32, generator=GENERATOR))
    unit = {"source": "lenet", "target": "lenet", "order": "kept", "signs": False, "draw": 0}
    assert_close(matrix_of(unit, spread), torch.eye(1024), atol=1e-3, rtol=0)
    shuffled = [matrix_of(unit | {"order": "shuffled", "draw": draw}, spread) for draw in (0, 1)]
    assert not torch.allclose(*shuffled)
