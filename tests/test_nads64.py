"""Two runs of NADs at 64 x 64 (`nads_book.studies.nads64`), here at 16 x 16."""

import dataclasses

import pytest
import torch
from nads_book.studies import nads64

import nads_core as nc


@pytest.fixture
def small(monkeypatch, tmp_path):
    values = {"scratch": lambda: tmp_path, "SHAPE": (1, 16, 16), "MANY": 128, "COUNTS": (2, 8)}
    for name, value in values.items():
        monkeypatch.setattr(nads64, name, value)


def test_a_run_agrees_with_itself(small):
    nads64.draw(0, 128)
    nads = nc.directions.NADs.load(nads64.paths(0, 128)[1])
    known = dataclasses.replace(nads.uncertainty, certainty=torch.ones(len(nads)))
    certain = nc.NADs(nads.directions, nads.eigenvalues, {}, known)
    found = nads64.compared(certain, nads)
    assert [each["overlap"] for each in found["leading"]] == pytest.approx([1, 1], abs=1e-3)
    assert found["agreement_found"] == pytest.approx(1, abs=1e-3)
    assert found["num_certain"] == len(nads)
    turned = nc.NADs(nads.directions.flip(0), nads.eigenvalues, {}, nads.uncertainty)
    assert nads64.compared(nads, turned)["leading"][0]["overlap"] == pytest.approx(0, abs=1e-3)
