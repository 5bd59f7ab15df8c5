"""The flip: its maps of images, and verdicts that follow from the stored numbers."""

import numpy as np
import pytest
import torch
from convergence import normal, random_nads
from nads_book.pages import flip
from torch.testing import assert_close


def test_each_map_does_to_coordinates_what_its_name_says():
    nads = random_nads(1, 4, 4)
    images = normal(5, 3, 4, 4, seed=1)
    before = images.flatten(2) @ nads.basis
    after = {name: flip.mapped(images, nads, name).flatten(2) @ nads.basis for name in flip.MAPS}
    assert_close(after.pop("as is"), before)
    assert_close(after["flipped"], before.flip(-1))
    assert_close(after["random signs"].abs(), before.abs())
    assert_close(after["shuffled"].sort().values, before.sort().values)
    assert not any(torch.allclose(one, before) for one in after.values())
    with pytest.raises(ValueError, match="'reversed'"):
        flip.mapped(images, nads, "reversed")


def test_a_shuffled_order_that_loses_would_have_met_the_prediction(edit_stored):
    def lose(row):
        if row["order"].startswith("shuffled"):
            row["test_accuracy"] = 0.3

    edit_stored("maps-resnet18.narrow.json", lose)
    assert not flip.rough.order_beats_shuffled().holds


def test_effects_are_those_of_two_regressions_on_residuals():
    found = flip.match.regressed("lenet")
    kinds = flip.match.by_kind(flip.stored.maps("lenet"))
    kinds = [kind for kind in kinds if kind.label != flip.match.AS_THEY_ARE]
    assert len(kinds) == 15
    match, smooth, accuracy = (
        np.array([getattr(kind, key) for kind in kinds])
        for key in ("match", "neighbours", "test_accuracy")
    )
    rest, target = (y - np.polyval(np.polyfit(match, y, 1), match) for y in (smooth, accuracy))
    slope = (rest @ target) / (rest @ rest)
    error = np.sqrt(np.square(target - slope * rest).sum() / 12 / (rest @ rest))
    scale = 100 * smooth.std()
    ends = [scale * (slope + sign * 2.1788 * error) for sign in (-1, 1)]  # Student's, 12 degrees
    assert found.effects["smoothness"] == pytest.approx((scale * slope, *ends), abs=1e-3)
