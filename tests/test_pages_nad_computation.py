"""The page 09_nad_computation: its claims, and that any architecture can be named in it."""

from functools import partial

import pytest
import torch
from nads_book.pages import nad_computation as page
from torch import nn

import nads_core as nc


def tiny():
    """Return a network that is none of the book's."""
    return nn.Sequential(nn.Conv2d(1, 4, 3, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 9, 2))


def test_a_run_of_one_of_our_architectures_stands_below_the_stored_one():
    run = nc.compute_nads("lenet", (1, 32, 32), 16, progress=False)
    stored, own = page.stored_beside(run)
    assert "stored" in stored and "16" in own and own.startswith("LeNet")


def test_another_architecture_is_called_by_its_own_name_and_compared_with_nothing():
    run = nc.compute_nads(tiny, (1, 8, 8), 16, progress=False)
    (label,) = page.stored_beside(run)
    assert label.startswith("tiny")


def test_a_line_through_any_network_is_drawn():
    direction = torch.zeros(1, 8, 8)
    direction[0, 2, 3] = 1
    figure = page.plot_along_a_line(tiny, direction)
    assert [axis.get_title() for axis in figure.axes[:2]] == ["near the image", "from afar"]


def test_two_runs_of_any_network_are_compared():
    figure = page.plot_two_runs(tiny, (16, 32), image_shape=(1, 8, 8), k=3)
    found, predicted, chance = figure.axes[0].get_lines()
    assert len(found.get_ydata()) == len(predicted.get_ydata()) == 2
    assert chance.get_ydata()[0] == pytest.approx(3 / 64)


def test_only_strides_with_a_global_average_make_a_comb():
    shares = {
        parts: page.comb_share(
            nc.compute_nads(partial(page.small_network, *parts), (1, 32, 32), 24, progress=False)
        )
        for parts in ((True, True), (True, False), (False, True))
    }
    assert shares[True, True] > 0.5
    assert max(shares[True, False], shares[False, True]) < 0.15


def test_the_page_about_certainties_shows_the_stored_calibration():
    rows = page.certainty.table_by_certainty().splitlines()[2:]
    names = set()
    for facts, row in zip(page.certainty.diagrams().values(), rows, strict=True):
        name, _, *cells = row.strip("| ").split(" | ")
        names.add((facts["architecture"], name))
        claimed = [float(cell.split("→")[0]) for cell in cells if "→" in cell]
        assert claimed == sorted(claimed) and all(0.3 <= one <= 1 for one in claimed)
    assert len({name for _, name in names}) == len({key for key, _ in names}) == len(names)


def test_a_network_of_which_little_is_certain_has_its_own_row(monkeypatch):
    bins = [{"claimed": 0.35, "kept": 0.3, "error": 0.0, "share": 1.0, "count": 14}]
    facts = {"architecture": "mlp", "num_networks": 2_000, "runs": 10, "bins": bins}
    monkeypatch.setattr(page.certainty, "diagrams", lambda: {"mlp-2000": facts})
    (row,) = page.certainty.table_by_certainty().splitlines()[2:]
    assert "MLP" in row and row.count("–") == 5


def test_the_picture_of_certainties_has_a_bar_for_each_direction():
    from nads_book.pages.intro import plot_certainty

    upper, lower = plot_certainty(nc.load_nads("lenet"), "++s").axes
    assert len(lower.patches) == 48 and upper.get_yscale() == "log"
    assert lower.patches[0].get_height() > 0.9
