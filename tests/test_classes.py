"""Along which NADs classes differ: planted differences, a naive twin, and the command."""

from dataclasses import replace

import pytest
import torch
from convergence import normal, random_nads
from nads_book.photos.class_differences import class_differences

import nads_core as nc


def basis(size=8, channels=1, seed=0):
    nads = random_nads(channels, size, size, seed=seed)
    return replace(nads, eigenvalues=torch.logspace(0, -3, len(nads)))


def planted(nads, index, gap, num_images=600, seed=0):
    """Return noise in which the first of three classes has ``gap`` more of a NAD."""
    labels = torch.arange(num_images) % 3
    images = normal(num_images, 3, 8, 8, seed=seed)
    images += gap * (labels == 0).float()[:, None, None, None] * nads.directions[index]
    return nc.ImageSet(images, labels, ("a", "b", "c"), "planted")


@pytest.mark.parametrize("channels", [1, 3])
def test_a_planted_difference_is_found_where_it_is(channels):
    nads = basis(channels=channels)
    result = class_differences(planted(nads, 5, 3.0), nads)
    assert result.leading(1) == [5] and int(result.explained.argmax()) == 5
    per_channel = 3 // channels
    assert float(result.between[5]) == pytest.approx(
        3 * per_channel, rel=0.2
    )  # of means 3, 0 and 0
    assert float(result.within.mean()) == pytest.approx(per_channel, rel=0.05)
    low, high = result.lift_interval
    assert low < result.lift < high < 1.2 * low
    assert result.lift_within == pytest.approx(1, abs=0.1)
    others = torch.arange(len(nads)) != 5
    assert 0.8 < float((result.explained < result.chance)[others].float().mean()) <= 1


def test_the_interval_holds_the_truth_as_often_as_it_says():
    nads = basis()
    truth = float(
        nads.eigenvalues[5] / nads.eigenvalues.mean()
    )  # the classes differ along this NAD alone
    result = [
        class_differences(planted(nads, 5, 1.0, seed=seed), nads).lift_interval
        for seed in range(60)
    ]
    assert 51 <= sum(low < truth < high for low, high in result) <= 60  # 57 expected


def test_it_is_the_analysis_of_variance():
    nads = basis()
    index = 3
    images = planted(nads, 5, 1.0)
    x = (
        images.images.double().flatten(2) @ nads.directions[index].flatten().double()
    ).numpy()  # (N, 3)
    labels = images.labels.numpy()
    total = ((x - x.mean(0)) ** 2).sum()
    groups = [x[labels == k] for k in range(3)]
    among = sum(len(group) * (group.mean(0) - x.mean(0)) ** 2 for group in groups).sum()
    inside = (total - among) / (len(x) - 3)
    result = class_differences(images, nads)
    assert float(result.explained[index]) == pytest.approx(among / total, rel=1e-3)
    assert float(result.within[index]) == pytest.approx(inside, rel=1e-3)
    assert float(result.between[index]) == pytest.approx(
        (among / 2 - inside) / 200, rel=0.02, abs=1e-4
    )


@pytest.mark.parametrize(
    ("change", "shown"),
    [
        (lambda images, nads: (images, basis(size=4)), "do not fit images"),
        (lambda images, nads: (images, nads[:9]), "only a part of a basis"),
        (lambda images, nads: (replace(images, labels=0 * images.labels), nads), "'b': 0"),
    ],
)
def test_what_cannot_be_compared_is_rejected(change, shown):
    with pytest.raises(ValueError, match=shown):
        class_differences(*change(planted(basis(), 0, 1.0), basis()))
