"""Computations that chapters take from the book's package."""

import pytest
from nads_book import load_results
from nads_book.studies import transform_summaries


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
