"""The page about what NADs do not tell: its verdicts follow from the stored rows."""

import math

import pytest
import torch
from nads_book.experiments import load_study
from nads_book.pages import what_nads_do_not_tell as page
from torch import nn


def test_accuracies_in_the_order_of_energies_would_let_the_choice_succeed(edit_stored):
    scores = load_study("pooling.json")["prediction"]

    def by_energy(row):
        row["test_accuracy"] = 0.5 + 0.01 * math.log10(scores[row["pooling"]][row["data"]][0])

    edit_stored("pooling.json", by_energy)
    found = page.pooling.energy_chooses_pooling()
    assert not found.holds and found.value == pytest.approx(1)


def test_a_count_of_operations_on_paths():
    assert page.search.on_paths("224112") == "242"  # one convolution is on no path


def test_a_linear_model_does_not_notice_an_order():
    def build():
        network = nn.Sequential(nn.Flatten(), nn.Linear(40, 10))
        nn.init.zeros_(network[1].weight)
        return network

    orders = torch.arange(40), torch.randperm(40, generator=torch.Generator().manual_seed(0))
    before, after = (page.accuracy_after(build, order, steps=60) for order in orders)
    assert before == pytest.approx(after, abs=0.003) and before > 0.2
