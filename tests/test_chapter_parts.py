"""Computations that chapters take from the book's package."""

import numpy as np
import pytest
import torch
from nads_book import frequency_maps, load_results
from nads_book.analysis.statistics import resampled_crossed_mean
from nads_book.atlas.trained_waves import (
    predicted_from_others,
    rising_fit,
)
from nads_book.studies import toy_shortcuts, transform_summaries


def test_neighbours_of_a_constant_and_of_a_checkerboard():
    board = (-1.0) ** (torch.arange(32)[:, None] + torch.arange(32))
    assert toy_shortcuts.neighbouring_correlation(torch.ones(1024)) == pytest.approx(1.0)
    assert toy_shortcuts.neighbouring_correlation(board.flatten()) == pytest.approx(-1.0)


def test_pairs_in_order_and_gains():
    truth = {(0, 1): 0.9, (0, 2): 0.5, (0, 3): 0.8}
    scores = {(0, 1): 3.0, (0, 2): 2.0, (0, 3): 1.0}
    pairs, ordered = frequency_maps.ordered_pairs(scores, truth)
    assert pairs == [((0, 1), (0, 2)), ((0, 3), (0, 2))] and ordered == [((0, 1), (0, 2))]
    assert frequency_maps.count_ordered(scores, truth) == "1 of 2"
    gains, error = frequency_maps.gains_along(truth, {k: a + 0.1 for k, a in truth.items()}, truth)
    assert gains == pytest.approx([10, 10, 10]) and error == pytest.approx(0, abs=1e-9)


def test_rising_fit_pools_what_falls_and_ignores_the_order_of_points():
    x = np.array([3.0, 1.0, 2.0])
    y = np.array([1.0, 0.0, 2.0])
    assert rising_fit(x, y) == pytest.approx([1.5, 0.0, 1.5])
    groups = np.array(["a", "a", "a", "b"])
    assert predicted_from_others(
        "b", groups, np.array([1.0, 2.0, 4.0, 2.0]), np.array([0, 1, 2, 9.0])
    ) == [1.0]


def test_kinds_of_maps_cover_the_stored_results():
    results = load_results("maps-lenet", "laptop")
    assert results is not None, "book/results/maps-lenet.laptop.json is part of the repository"
    kinds = transform_summaries.by_kind(results)
    assert sum(kind.num_networks for kind in kinds) == len(results.rows)
    accuracies = [kind.test_accuracy for kind in kinds]
    assert (
        accuracies == sorted(accuracies, reverse=True)
        and kinds[0].label == transform_summaries.AS_THEY_ARE
    )
    kept, backwards = (
        [row for row in results.rows if fields.items() <= row.items()]
        for order in ("kept", "reversed")
        for fields in [{"source": "pca", "target": "lenet", "order": order}]
    )
    value, low, high = transform_summaries.difference_of(results, kept, backwards)
    assert 0 < low < value and value - low == pytest.approx(high - value)


def test_crossed_resampling_brackets_the_mean_and_ignores_what_is_not_chosen():
    rows = np.repeat(np.arange(6), 5)
    columns = np.tile(np.arange(5), 6)[:, None]
    values = np.where(columns[:, 0] == 0, 1e6, rows * 1.0)
    chosen = columns[:, 0] > 0
    low, high = resampled_crossed_mean(values, rows, columns, chosen, 200)
    assert 0 < low < 2.5 < high < 5
    assert resampled_crossed_mean(np.ones(30), rows, columns, chosen, 20) == (1.0, 1.0)
