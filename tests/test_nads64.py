"""Two runs of NADs at 64 x 64 (`nads_book.studies.nads64`), here at 16 x 16."""

import json

import pytest
import torch
from nads_book.experiments import run_study
from nads_book.studies import nads64

import nads_core as nc


@pytest.fixture
def small(monkeypatch, tmp_path):
    for name, value in {
        "scratch": lambda: tmp_path, "SHAPE": (1, 16, 16), "FEW": 64, "MANY": 128,
        "FORECASTS": (128, 256), "COUNTS": (2, 8),
    }.items():  # fmt: skip
        monkeypatch.setattr(nads64, name, value)
    monkeypatch.setattr(nads64.NADs64, "design", {"num_networks": (64, 128)})
    return tmp_path


def test_two_runs_are_compared_with_what_each_predicts(small):
    out = small / "nads64.json"
    run_study(nads64.NADs64(), out=out, device="cpu", progress=False)
    stored = json.loads(out.read_text("utf8"))
    few, many = stored["rows"]
    assert [few["num_networks"], many["num_networks"]] == [64, 128]
    assert 0 < many["leading"][0]["overlap"] <= 1 and len(many["squares"]) == 256
    assert [each["num_networks"] for each in stored["runs"][1]["forecasts"]["64"]] == [64, 128, 256]


def test_a_run_agrees_with_itself(small):
    nads64.draw(0, 128)
    nads = nc.directions.NADs.load(nads64.paths(0, 128)[1])
    found = nads64.compared(nads, nads)
    assert all(
        each["overlap"] == pytest.approx(1, abs=1e-3)
        for each in (*found["leading"], *found["bands"])
    )
    assert torch.tensor(found["squares"]).min() > 0.999
