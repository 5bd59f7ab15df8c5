"""Scores on data: permutations, the reader's own network, and verdicts of stored rows."""

import pytest
import torch
from nads_book.pages import scores_on_data as scores
from torch import nn


def test_orders_are_permutations_and_reach_every_series():
    for name in scores.series.ORDERS:
        order = scores.permutation(name, seed=1)
        assert order.sort().values.equal(torch.arange(40)), name
    assert scores.permutation("neighbours")[:4].tolist() == [1, 0, 3, 2]
    with pytest.raises(ValueError, match="'shuffled'"):
        scores.permutation("shuffled")


def test_a_linear_model_does_not_notice_an_order():
    def build():
        network = nn.Sequential(nn.Flatten(), nn.Linear(40, 10))
        nn.init.zeros_(network[1].weight)
        return network

    orders = (None, scores.permutation("random"))
    before, after = (scores.accuracy_after(build, order, steps=60) for order in orders)
    assert before == pytest.approx(after, abs=0.003) and before > 0.2
