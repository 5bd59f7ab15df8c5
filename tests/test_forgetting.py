"""The factorial of chapter 12: its design, its analysis on made-up accuracies, and one training."""

import numpy as np
import pytest
import torch
from nads_book.studies import forgetting as script
from nads_book.studies.forgetting import (
    WAVES,
    Cell,
    orders,
)

import nads_core as nc

ENERGIES = np.geomspace(1, 0.01, WAVES)


def test_energies_order_accuracies():
    falling = np.linspace(0.9, 0.5, WAVES)
    found = orders(ENERGIES, np.stack([falling, falling]))
    assert (
        found["area"] == 1
        and found["correlation"] == pytest.approx(1)
        and found["learned"] == sum(falling > 0.55)
    )
    assert orders(ENERGIES, np.stack([falling[::-1]] * 2))["area"] == 0
    assert np.isnan(orders(ENERGIES, np.full((2, WAVES), 0.5))["area"])  # nothing is learned


def test_a_margin_that_varies_makes_classes_overlap():
    direction = nc.fourier_direction((0, 4), size=32)
    images, labels = script.dataset(direction, Cell(), 0)
    separated = (images * direction).sum((1, 2, 3)) * (2 * labels - 1)
    torch.testing.assert_close(separated, torch.ones_like(separated), atol=1e-4, rtol=0)
    images, labels = script.dataset(direction, Cell(overlap=1.0), 0)
    margins = (images * direction).sum((1, 2, 3)) * (2 * labels - 1)
    assert (
        float((margins < 0).double().mean()) == pytest.approx(0.159, abs=0.02)
        and float(margins.std()) > 0.9
    )
