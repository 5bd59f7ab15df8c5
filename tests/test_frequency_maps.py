import nads_book as nb
import numpy as np
import pytest
from nads_book.published import waves as maps

TASKS = nb.grid_frequencies()
GRID = [(ky, kx) for ky in range(-16, 16, 2) for kx in range(-16, 16, 2)]


def results(rows):
    return nb.Results({}, rows, [])


def test_copies_are_counted_and_both_halves_give_a_value_to_every_task():
    generator = np.random.default_rng(0)
    cells = {k: float(generator.random()) for k in GRID}
    assert maps.copied_cells(cells) == (0, 224)
    copied = {k: cells[k if k[1] >= 0 else maps.mirrored(k)] for k in GRID}
    assert maps.copied_cells(copied) == (224, 224)
    right = maps.of_tasks(cells, right=True)
    left = maps.of_tasks(cells, right=False)
    whole = maps.of_tasks(cells)
    assert set(whole) == set(TASKS) and whole[4, 0] == (cells[4, 0] + cells[-4, 0]) / 2
    assert whole[4, -4] == (right[4, -4] + left[4, -4]) / 2
    assert set(right) == set(left) == set(TASKS)
    assert right[4, -4] == cells[-4, 4] and right[4, 4] == cells[4, 4]
    assert left[4, -4] == cells[4, -4] and left[4, 4] == cells[-4, -4]


def test_values_are_averaged_over_seeds_and_never_is_infinite():
    rows = [
        {"frequency": [0, 2], "seed": 0, "test_accuracy": 0.5, "iterations": [10, -1, -1]},
        {"frequency": [0, 2], "seed": 1, "test_accuracy": 0.7, "iterations": [20, 30, -1]},
        {"frequency": [0, 4], "seed": 0, "test_accuracy": 0.9, "iterations": [5, 6, 7]},
    ]
    sweep = results(rows)
    assert maps.by_frequency(sweep) == {(0, 2): pytest.approx(0.6), (0, 4): 0.9}
    assert maps.by_frequency(sweep, seed=1) == {(0, 2): 0.7}
    assert maps.seed_pairs(sweep) == [(0.5, 0.7)]
    steps = maps.by_frequency(sweep, "iterations")
    np.testing.assert_array_equal(steps[0, 2], [15, np.inf, np.inf])
    np.testing.assert_array_equal(steps[0, 4], [5, 6, 7])
