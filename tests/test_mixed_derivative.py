"""Overlaps of NADs from the mixed derivative and from the gradient, and the registered rules."""

import pytest
import torch
from nads_book.studies import mixed_derivative as study

import nads_core as nc


def test_overlaps_within_a_kind_and_across():
    basis = torch.eye(40).reshape(40, 1, 5, 8)

    def run(start):
        return nc.NADs(basis[start : start + 10], torch.linspace(2, 1, 10))

    runs = {"smoothed": [run(0), run(2)], "mixed": [run(0), run(0)]}
    runs |= {"point": [run(20), run(30)], "mixed at a point": [run(20), run(20)]}
    found = study.overlaps(runs)
    assert found["smoothed"] == pytest.approx(0.8) and found["mixed"] == 1
    assert found["averaged over inputs"] == pytest.approx((1 + 1 + 0.8 + 0.8) / 4)
    assert found["point"] == 0 and found["at one input"] == 0.5


@pytest.mark.parametrize(
    "gradient, mixed, across, count, expected",
    [
        (0.9, 0.8, 0.8, 4, [True, True]),
        (0.8, 0.9, 0.6, 2, [False, False]),
        (0.8, 0.9, 0.8, 1, [None, None]),
        (0.2, 0.9, 0.4, 4, [None, False]),  # what does not reproduce itself decides nothing
    ],
)
def test_the_registered_rules(gradient, mixed, across, count, expected):
    overlaps = {"smoothed": gradient, "mixed": mixed, "averaged over inputs": across}
    rows = [{"network": name, "overlaps": overlaps} for name in list(study.NETWORKS)[:count]]
    assert [*study.MixedDerivativeStudy().score(rows).met.values()] == expected
