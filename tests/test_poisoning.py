import pytest
import torch
from convergence import random_nads
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

import nads_core as nc

SIZE = 6
NADS = random_nads(1, SIZE, SIZE)
LABELS = torch.arange(30) % 10
IMAGES = torch.rand(30, 3, SIZE, SIZE, generator=torch.Generator().manual_seed(1))


@given(st.integers(0, SIZE**2 - 5), st.floats(0, 1), st.sampled_from([1, 3]))
def test_poison_sets_one_coordinate_and_keeps_all_others(index, strength, channels):
    images = IMAGES[:, :channels]
    poisoned = nc.poison(images, LABELS, NADS, index, strength)
    before, after = (some.flatten(2) @ NADS.basis for some in (images, poisoned))
    for row, label in enumerate(LABELS.tolist()):
        nad = index + label // (2 * channels)
        channel = label % channels
        sign = 2 * (label % 2) - 1
        expected = before[row].clone()
        expected[channel, nad] = sign * strength
        assert_close(after[row], expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("missing", [0, 1])
def test_flip_is_orthogonal_its_own_inverse_and_reverses_coordinates(missing):
    nads = NADS[: SIZE**2 - missing]
    flipped = nc.flip(IMAGES, nads)
    assert_close(flipped.flatten(2).norm(dim=2), IMAGES.flatten(2).norm(dim=2))
    assert_close(nc.flip(flipped, nads), IMAGES, atol=1e-5, rtol=0)
    if not missing:
        before, after = (some.flatten(2) @ nads.basis for some in (IMAGES, flipped))
        assert_close(after, before.flip(-1), atol=1e-5, rtol=0)
