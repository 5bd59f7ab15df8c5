import numpy as np
import pytest
import torch
from convergence import normal
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

import nads_core as nc

frequency = st.integers(-40, 40)


@given(frequency, frequency, st.sampled_from([1, 4, 7, 8, 32]))
def test_a_direction_is_a_unit_wave_of_its_frequency(ky, kx, size):
    direction = nc.fourier_direction((ky, kx), size)
    assert direction.shape == (1, size, size) and direction.dtype == torch.float32
    assert float(direction.norm()) == pytest.approx(1, abs=1e-5)
    share = nc.spectrum(direction)[0]
    centre = size // 2
    at = share[(ky + centre) % size, (kx + centre) % size]
    opposite = share[(-ky + centre) % size, (-kx + centre) % size]
    same = (2 * ky) % size == 0 and (2 * kx) % size == 0
    assert (
        float(at) == pytest.approx(float(opposite)) == pytest.approx(1.0 if same else 0.5, abs=1e-5)
    )


def test_the_sine_is_used_where_it_does_not_vanish():
    pixels = torch.arange(32)
    sine = torch.sin(2 * torch.pi * (3 * pixels[:, None] + 5 * pixels[None]) / 32)
    assert_close(nc.fourier_direction((3, 5))[0], sine / sine.norm(), atol=1e-6, rtol=0)
    assert_close(nc.fourier_direction((0, 0)), torch.full((1, 32, 32), 1 / 32))
    board = (-1.0) ** (pixels[:, None] + pixels[None]) / 32
    assert_close(nc.fourier_direction((16, -16))[0], board)


@pytest.mark.parametrize("size", [4, 5, 8])
def test_the_basis_is_orthonormal_and_labelled(size):
    basis, frequencies = nc.fourier_basis(size)
    rows = basis.flatten(1)
    assert_close(rows @ rows.T, torch.eye(size**2), atol=1e-6, rtol=0)
    for row, (ky, kx) in zip(basis, frequencies.tolist(), strict=True):
        share = nc.spectrum(row)[0]
        assert float(share[ky + size // 2, kx + size // 2]) > 0.49


def test_spectrum_agrees_with_a_plain_sum():
    image = normal(6, 6, dtype=torch.float64)
    pixels = np.arange(6)
    for ky, kx in ((0, 0), (1, -2), (-3, 2)):
        wave = np.exp(-2j * np.pi * (ky * pixels[:, None] + kx * pixels[None]) / 6)
        expected = abs((image.numpy() * wave).sum()) ** 2 / 36 / float(image.square().sum())
        assert float(nc.spectrum(image)[ky + 3, kx + 3]) == pytest.approx(expected)
