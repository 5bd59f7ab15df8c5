"""Photos with small components along the first NADs (`nads_book.studies.small_components`)."""

import pytest
import torch
from nads_book.studies import small_components
from torch import nn
from torch.testing import assert_close

import nads_core as nc

SCORE = small_components.SmallComponents().score
DIRECTIONS = nc.load_nads("lenet").directions[:2]


def images(count=200):
    """Return noise with components of growing size along both NADs."""
    generator = torch.Generator().manual_seed(0)
    noise = torch.randn(count, 3, 32, 32, generator=generator)
    own = small_components.components(noise, DIRECTIONS)
    sizes = torch.linspace(0.1, 10, count)[:, None, None]
    signs = torch.randint(2, own.shape, generator=generator) * 2.0 - 1
    return small_components.without(noise, own - sizes * signs, DIRECTIONS, 1.0)


class ReadsFirst(nn.Module):
    """Predict a class by the sign of the first component of the first channel."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, x):
        value = self.scale * small_components.components(x, DIRECTIONS)[:, 0, 0]
        return torch.stack([value, -value], 1)


def test_components_are_removed_and_flipped():
    some = images(5)
    before = small_components.components(some, DIRECTIONS)
    for name, factor in small_components.FACTORS.items():
        changed = small_components.without(some, before, DIRECTIONS, factor)
        after = small_components.components(changed, DIRECTIONS)
        expected = 0 * before if name == "remove" else -before
        assert_close(after, expected, atol=1e-4, rtol=0)
    flipped = small_components.without(some, before, DIRECTIONS, 2.0)
    assert_close(flipped.flatten(1).norm(dim=1), some.flatten(1).norm(dim=1))


def test_random_directions_are_orthonormal():
    drawn = small_components.random_directions(seed=1).flatten(1)
    assert_close(drawn @ drawn.T, torch.eye(2), atol=1e-5, rtol=0)


def test_a_network_that_reads_one_component_changes_all_predictions_when_it_is_flipped():
    controls = small_components.random_directions(seed=0)
    rows, examples = small_components.answers(ReadsFirst(), images(), DIRECTIONS, controls)
    assert all(row["nads"]["flip"] == 1 for row in rows)
    assert all(row["random"]["flip"] < 0.3 for row in rows)
    assert rows[0]["norm"] < rows[9]["norm"] and rows[0]["relative"] < 0.05
    assert len(examples) == small_components.NUM_EXAMPLES
    assert all(example["before"] == 1 - example["flip"] for example in examples)
    assert all(example["photo"] < 20 for example in examples)  # of the smallest components


def rows(first=0.05, last=0.6, random=0.02):
    groups = [{"nads": {"remove": 0.0, "flip": first}, "random": {"remove": 0.0, "flip": random}}]
    groups += [{"nads": {"remove": 0.1, "flip": last}, "random": {"remove": 0.0, "flip": 0.1}}] * 9
    return [{"groups": [group | {"relative": 0.04} for group in groups]}] * 3


@pytest.mark.parametrize(
    ("changed", "failing"),
    [
        ({}, set()),
        ({"first": 0.12}, {"few change where components are small"}),
        ({"last": 0.4}, {"many change where they are large"}),
        ({"random": 0.06}, {"NADs change more than random directions in the first group"}),
    ],
)
def test_each_criterion_can_fail(changed, failing):
    evidence = SCORE(rows(**changed))
    assert {name for name, holds in evidence.met.items() if not holds} == failing
    change = evidence.estimates["change of photos in the first group (% of the norm)"]
    assert [value for value, *_ in change.values()] == pytest.approx([4, 8])


def test_nothing_is_decided_without_rows():
    assert set(SCORE([]).met.values()) == {None}
