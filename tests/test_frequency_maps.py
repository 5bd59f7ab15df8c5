import nads_book as nb
import numpy as np
import pytest
import torch
from nads_book.analysis import frequency_maps as maps
from scipy.stats import spearmanr

import nads_core as nc

TASKS = nb.grid_frequencies()
GRID = [(ky, kx) for ky in range(-16, 16, 2) for kx in range(-16, 16, 2)]


def results(rows):
    provenance = [{"device": "2 CPU threads", "date": "2026-11-21"}]
    return nb.Results("fig2-lenet", "paper", {}, 260, rows, provenance)


def test_negative_frequencies_have_the_same_wave_up_to_sign_and_mirrored_ones_do_not():
    for k in GRID:
        wave, other, image = (
            nc.fourier_direction(f, 32) for f in (k, maps.negative(k), maps.mirrored(k))
        )
        assert min((wave - other).norm(), (wave + other).norm()) < 1e-5
        same = min((wave - image).norm(), (wave + image).norm()) < 1e-5
        assert same == (k[0] in (0, -16) or k[1] in (0, -16))


def test_every_pair_of_transposed_tasks_is_found_once_and_has_transposed_waves():
    number = {k: float(i) for i, k in enumerate(TASKS)}
    pairs = maps.transposed_pairs(number)
    assert len({frozenset(pair) for pair in pairs}) == len(pairs) == (130 - 16) // 2
    for a, b in pairs:
        wave, twin = (nc.fourier_direction(TASKS[int(i)], 32)[0] for i in (a, b))
        assert min((wave.T - twin).norm(), (wave.T + twin).norm()) < 1e-5
    covered = {i for pair in pairs for i in pair}
    for i, k in enumerate(TASKS):
        wave = nc.fourier_direction(k, 32)[0]
        itself = min((wave.T - wave).norm(), (wave.T + wave).norm()) < 1e-5
        assert itself != (i in covered)


def test_pairs_of_negative_frequencies_are_one_task():
    number = {k: float(i) for i, k in enumerate(GRID)}
    pairs = maps.negative_pairs(number)
    assert len(pairs) == 14
    for a, b in pairs:
        assert GRID[int(b)] == maps.negative(GRID[int(a)]) and a != b


def test_copies_are_counted_and_both_halves_give_a_value_to_every_task():
    generator = np.random.default_rng(0)
    cells = {k: float(generator.random()) for k in GRID}
    assert maps.copied_cells(cells) == (0, 224)
    copied = {k: cells[k if k[1] >= 0 else maps.mirrored(k)] for k in GRID}
    assert maps.copied_cells(copied) == (224, 224)
    right, left = maps.of_tasks(cells, right=True), maps.of_tasks(cells, right=False)
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


def test_agreement_against_scipy_and_the_law_of_large_numbers():
    a = torch.rand(400, generator=torch.Generator().manual_seed(0)).double().numpy()
    b = a + 0.1 * np.random.default_rng(1).standard_normal(400)
    result = maps.agreement(list(zip(a, b, strict=True)))
    mean, low, high = result.difference
    assert mean == pytest.approx(100 * np.abs(a - b).mean()) and result.num_pairs == 400
    error = 100 * np.abs(a - b).std() / 20
    assert high - low == pytest.approx(2 * 1.96 * error, rel=0.15)
    assert result.correlation[0] == pytest.approx(spearmanr(a, b)[0])
    assert result.correlation[1] < result.correlation[0] < result.correlation[2]
    assert result.cells().startswith("400 | ") and "–" in maps.agreement([(0.5, 0.6)] * 3).cells()
    with pytest.raises(ValueError, match="no pairs"):
        maps.agreement([])


# Samples of a map


@pytest.mark.stored
def test_a_sample_of_the_grid_estimates_what_the_whole_grid_says():
    name = "vgg11"
    cells = nb.published.fourier_accuracies(name)
    truth = maps.of_tasks(cells)
    rng = np.random.default_rng(0)
    noisy = {
        k: float(np.clip(value + 0.05 * rng.standard_normal(), 0, 1)) for k, value in truth.items()
    }
    whole = maps.sampled_agreement(name, noisy, truth)
    a, b = np.array(maps.common_pairs(noisy, truth)).T
    assert whole.num_waves == 130
    assert whole.correlation[0] == pytest.approx(spearmanr(a, b).statistic)
    assert whole.area[0] == pytest.approx(nb.statistics.area_under_curve(a, b > 0.55))
    part = maps.sampled_agreement(
        name, {k: noisy[k] for k in nb.waves.stratified_frequencies(name)[:40]}, truth
    )
    assert part.num_waves == 40
    for wide, narrow in ((part.area, whole.area), (part.correlation, whole.correlation)):
        assert (
            wide[1] <= wide[0] <= wide[2]
            and wide[1] <= narrow[0] + 0.02
            and narrow[0] - 0.02 <= wide[2]
        )
        assert wide[2] - wide[1] > narrow[2] - narrow[1]


def test_transposing_twice_gives_the_same_task():
    for k in TASKS:
        twin = maps.transposed(k)
        assert twin in TASKS and maps.transposed(twin) == k
