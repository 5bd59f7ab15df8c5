"""The factorial of chapter 12: data whose classes overlap."""

import pytest
import torch
from nads_book.studies import forgetting as script
from nads_book.studies.forgetting import Cell

import nads_core as nc


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
