"""Energies and trainings with other initial scales, widths and norms (`nads_book.studies.recipes`)."""

import pytest
import torch
from nads_book.studies import photo_noise, recipes
from torch import nn
from torch.nn import functional
from torch.testing import assert_close

import nads_core as nc


def test_recipes_differ_in_what_they_are_named_after():
    shapes = [weight.shape for weight in nc.LENET.build(1, 32, 2).parameters()]
    assert [weight.shape for weight in recipes.build("lenet", "default").parameters()] == shapes
    for network in recipes.NETWORKS:
        torch.manual_seed(0)
        default, he, twice, normed = (
            recipes.build(network, name)
            for name in ("default", "he", "twice the width", "batch norm")
        )
        assert any(isinstance(layer, nn.BatchNorm2d) for layer in normed.modules())
        assert not any(isinstance(layer, nn.BatchNorm2d) for layer in he.modules())
        width, wider = (next(net.parameters()).shape[0] for net in (default, twice))
        assert wider == 2 * width
    lasts = [
        [list(recipes.build(network, name).parameters())[-2].detach() for _ in range(20)]
        for network in recipes.NETWORKS
        for name in ("he", "mup")
    ]
    for he, mup in (lasts[:2], lasts[2:]):
        fan = he[0].shape[1]
        assert float(torch.stack(he).var()) == pytest.approx(2 / fan, rel=0.1)
        assert float(torch.stack(mup).var()) == pytest.approx(2 / fan**2, rel=0.1)


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
