"""Predictions that change with components of photos (`nads_book.studies.responses`)."""

import torch
from nads_book.studies.responses import changed_shares
from torch import nn

import nads_core as nc

FACTORS = {"half": 0.5, "turn": 2.0}


class ReadsFirst(nn.Module):
    """Predict a class by the sign of the first component of the first channel."""

    def __init__(self, direction):
        super().__init__()
        self.direction = nn.Parameter(direction)

    def forward(self, x):
        value = x.flatten(2)[:, 0] @ self.direction
        return torch.stack([value, -value], 1)


def test_predictions_change_when_the_component_that_is_read_is_turned():
    nads = nc.load_nads("lenet").directions.flatten(1)
    images = torch.randn(200, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    network = ReadsFirst(nads[0])
    found = changed_shares(network, images, nads[:2], nads[:2], FACTORS)
    assert found["turn"] == 1 and found["half"] == 0
    other = changed_shares(network, images, nads[:2], nads[[7, 8]], FACTORS)
    assert other["turn"] == 0
    exchanged = changed_shares(network, images, nads[[1, 0]], nads[:2], FACTORS)
    assert 0.2 < exchanged["turn"] < 0.5  # the other component says by how much
