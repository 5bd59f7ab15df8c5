"""Orders, and how sure they are."""

import numpy as np
import pytest
from nads_book import statistics
from scipy.stats import binomtest, spearmanr


def test_the_order_test_allows_for_the_noise_of_test_sets_and_of_trainings():
    truth, rng = np.linspace(0.95, 0.55, 60), np.random.default_rng(0)
    spread, by_chance = statistics.order_test(rng.binomial(10_000, truth) / 10_000, 10_000)
    assert spread < 1.3 * by_chance
    noise = rng.normal(size=60) * np.sqrt(truth * (1 - truth) / 10_000)
    measured = truth + 3 * noise
    (spread, alone), (same, both) = (
        statistics.order_test(measured, 10_000, inflation) for inflation in (1.0, 3.0)
    )
    assert alone < spread == same < 1.3 * both and 2 < both / alone < 4


def test_rank_correlation_is_spearmans_with_ties():
    a, b = np.random.default_rng(0).integers(0, 5, (2, 40))
    assert statistics.rank_correlation(a, b) == pytest.approx(spearmanr(a, b).statistic)
    assert np.isnan(statistics.rank_correlation(a, np.ones(40)))
    assert np.isnan(statistics.rank_correlation(a[:3], b[:3]))


def test_area_under_the_curve():
    scores = np.array([3.0, 2, 2, 1, 0])
    positive = np.array([True, True, False, False, False])
    assert statistics.area_under_curve(scores, positive) == pytest.approx((3 + 2.5) / 6)
    assert np.isnan(statistics.area_under_curve(scores, positive | True))
    assert np.isnan(statistics.area_under_curve([], []))


def test_pooled_deviations_leave_out_what_kinds_differ_by():
    pooled = statistics.pooled_variance([[1.0, 3.0], [11.0, 13.0], [5.0]])
    assert pooled.degrees == 2 and pooled.deviation == pytest.approx(2**0.5)
    assert pooled.half_width(2) == pytest.approx(
        4.302653 * 1.0
    )  # Student's with two degrees of freedom
    assert pooled.half_width(2, 2) == pytest.approx(2**0.5 * pooled.half_width(2))
    assert statistics.pooled_variance([[1.0], [2.0]]).half_width(1) == np.inf
    assert statistics.student_mean([1.0, 3.0]) == pytest.approx((2, 2 - 12.706205, 2 + 12.706205))


def test_rank_correlations_of_draws_are_those_of_repeated_items():
    rng = np.random.default_rng(0)
    a = rng.integers(0, 6, 30).astype(float)
    b = rng.normal(size=30)
    counts = statistics.drawn_counts(rng.integers(0, 12, 30), 20)
    expected = [
        statistics.rank_correlation(*(np.repeat(x, count.astype(int)) for x in (a, b)))
        for count in counts
    ]
    assert statistics.rank_correlations(a, b, counts) == pytest.approx(expected)


@pytest.mark.parametrize(("hits", "count"), [(0, 50), (160, 200), (9_990, 10_000)])
def test_the_interval_of_an_accuracy_is_wilsons(hits, count):
    expected = binomtest(hits, count).proportion_ci(method="wilson")
    found = statistics.accuracy_interval(hits / count, count)
    assert found == pytest.approx((expected.low, expected.high), abs=1e-5)
