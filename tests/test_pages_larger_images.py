"""Verdicts about NADs at 64 x 64 follow the stored runs."""

import copy

import pytest

larger = pytest.importorskip("nads_book.pages.larger_images", reason="figures need matplotlib")


def test_verdicts_follow_the_runs(monkeypatch):
    runs = copy.deepcopy(larger._stored())
    assert larger.runs_agree_as_predicted().holds and larger.runs_forecast_themselves().holds
    runs["rows"][1]["agreement_found"] -= 0.05
    runs["runs"][1]["forecasts"]["16384"][0]["num_certain"] *= 2
    monkeypatch.setattr(larger, "_stored", lambda: runs)
    assert larger.runs_agree_as_predicted().value < -0.05
    assert not larger.runs_agree_as_predicted().holds
    assert larger.runs_forecast_themselves().value < 0.67
    assert not larger.runs_forecast_themselves().holds
    assert "**failed**" in larger.table_of_predictions()
