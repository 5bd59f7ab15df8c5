"""Energies and trainings with other initial scales, widths and norms (`nads_book.studies.recipes`)."""

import pytest
import torch
from nads_book.studies import photo_noise
from torch.nn import functional
from torch.testing import assert_close

import nads_core as nc


def test_noise_like_photos_hides_separable_classes(monkeypatch):
    """Its power is that of white noise; moved, its variance at wave k is that of k + 16."""
    torch.manual_seed(0)
    smooth = functional.avg_pool2d(torch.randn(2_000, 1, 32, 32), 5, 1, 2)
    monkeypatch.setattr(photo_noise, "photos", lambda: (smooth, None))
    directions = torch.stack([nc.fourier_direction(k) for k in ((0, 1), (16, 15))])
    parts = {kind: photo_noise.components(kind) for kind in ("photos", "moved")}
    low, high = (directions.flatten(1) @ parts["photos"].T).square().sum(1)
    assert low > 100 * high
    moved = (directions.flatten(1) @ parts["moved"].T).square().sum(1)
    assert_close(moved, torch.stack([high, low]), rtol=0.05, atol=0)
    for part in parts.values():
        assert float(part.square().sum()) == pytest.approx(9 * 1024, rel=1e-4)
        images, labels = photo_noise.hidden(directions, part, 40, 0, paired=True)[1]
        along = (images * directions[1]).sum((1, 2, 3))
        assert_close(along, 2.0 * labels - 1, rtol=1e-3, atol=1e-3)
        difference = images[:20] - images[20:]
        assert_close(difference.flatten(1).norm(dim=1), torch.full((20,), 2.0), rtol=1e-3, atol=0)
