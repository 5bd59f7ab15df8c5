"""The page 16_scale: its claims, and the costs of an architecture that a reader names."""

import pytest
from nads_book.pages import scale as page
from torch import nn


def tiny():
    """Return a network that is none of the book's."""
    return nn.Sequential(nn.Conv2d(1, 4, 3, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(36, 1))


def test_any_network_can_be_timed_and_counted(monkeypatch):
    assert page.time_network(tiny, (1, 8, 8), seconds=0.01) > 0
    shown = []
    monkeypatch.setattr(page.costs.report, "table", lambda rows, head: shown.extend(rows))
    page.show_passes(tiny, (1, 8, 8))
    assert [row[0] for row in shown] == list(page.costs.KINDS)
    assert shown[0][2] == "1" and float(shown[-1][2]) > 1


def test_the_time_of_a_named_network_is_drawn_below_the_stored_ones():
    figure = page.plot_run_times({"tiny": 0.001})
    (axis,) = figure.axes
    assert axis.get_yticklabels()[-1].get_text() == "tiny"
    (own,) = [line for line in axis.get_lines() if line.get_label() == "measured here"]
    assert own.get_xdata()[0] == pytest.approx(2.0)  # 2,000 networks


def test_measured_times_stand_beside_stored_ones():
    figure = page.plot_pixels({16: 0.1, 32: 0.2})
    lines = {line.get_label(): line for line in figure.axes[0].get_lines()}
    assert list(lines["measured here"].get_xdata()) == [768, 3072]
    assert len(lines["stored"].get_xdata()) == len(page.costs.costs_by_pixels())
