import math

import nads_book as nb
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import nads_core as nc

SIZE = 6


def random_nads(count: int = SIZE**2) -> nc.NADs:
    generator = torch.Generator().manual_seed(0)
    basis = torch.linalg.qr(
        torch.randn(SIZE**2, SIZE**2, generator=generator, dtype=torch.float64)
    ).Q.float()
    return nc.NADs(basis[:count].view(-1, 1, SIZE, SIZE), torch.linspace(1, 0, count))


def photos(count: int = 30) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.rand(
        count, 3, SIZE, SIZE, generator=torch.Generator().manual_seed(1)
    ), torch.arange(count) % 10


@settings(max_examples=25)
@given(st.integers(0, SIZE**2 - 2), st.floats(0, 1))
def test_poison_sets_one_coordinate_and_keeps_all_others(index, strength):
    nads, (images, labels) = random_nads(), photos()
    poisoned = nc.poison(images, labels, nads, index, strength)
    before, after = images.flatten(2) @ nads.basis, poisoned.flatten(2) @ nads.basis
    for row, label in enumerate(labels.tolist()):
        nad, channel, sign = index + (label >= 6), label % 3, 2 * (label % 2) - 1
        expected = before[row].clone()
        expected[channel, nad] = sign * strength
        torch.testing.assert_close(after[row], expected, atol=1e-5, rtol=0)


def test_every_class_has_a_carrier_of_its_own():
    assert len(set(nc.carriers(10, 7))) == 10
    assert nc.carriers(10, 7)[0] == (7, 0, -1) and nc.carriers(10, 7)[9] == (8, 0, 1)
    assert len(set(nc.carriers(100, 0))) == 100
    grey = nc.carriers(10, 7, channels=1)
    assert (
        len(set(grey)) == 10
        and grey[9] == (11, 0, 1)
        and {channel for _, channel, _ in grey} == {0}
    )


def test_grey_images_carry_two_classes_at_each_nad():
    nads, (images, labels) = random_nads(), photos()
    poisoned = nc.poison(images[:, :1], labels, nads, 3, 0.5)
    before, after = images[:, :1].flatten(2) @ nads.basis, poisoned.flatten(2) @ nads.basis
    for row, label in enumerate(labels.tolist()):
        expected = before[row].clone()
        expected[0, 3 + label // 2] = 0.5 * (1 if label % 2 else -1)
        torch.testing.assert_close(after[row], expected, atol=1e-5, rtol=0)


def test_flip_is_orthogonal_its_own_inverse_and_reverses_coordinates():
    nads, (images, _) = random_nads(), photos()
    flipped = nc.flip(images, nads)
    torch.testing.assert_close(flipped.flatten(2).norm(dim=2), images.flatten(2).norm(dim=2))
    torch.testing.assert_close(nc.flip(flipped, nads), images, atol=1e-5, rtol=0)
    torch.testing.assert_close(
        flipped.flatten(2) @ nads.basis,
        (images.flatten(2) @ nads.basis).flip(-1),
        atol=1e-5,
        rtol=0,
    )


def test_flip_completes_a_basis_that_lacks_a_direction():
    nads, (images, _) = random_nads(SIZE**2 - 1), photos()
    flipped = nc.flip(images, nads)
    torch.testing.assert_close(flipped.square().sum(), images.square().sum())
    torch.testing.assert_close(nc.flip(flipped, nads), images, atol=1e-5, rtol=0)


@pytest.mark.stored
def test_shipped_nads_poison_real_sizes():
    nads = nc.load_nads("lenet")
    images = torch.rand(10, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    poisoned = nc.poison(images, torch.arange(10), nads, 1000)
    coordinates = poisoned.flatten(2) @ nads.basis
    for label, (nad, channel, sign) in enumerate(nc.carriers(10, 1000)):
        assert float(coordinates[label, channel, nad]) == pytest.approx(0.05 * sign, abs=1e-4)
    assert math.isclose(float(nc.flip(images, nads).norm()), float(images.norm()), rel_tol=1e-5)


def test_bad_input_is_refused():
    nads, (images, labels) = random_nads(), photos()
    with pytest.raises(ValueError, match="1 or 3 channels, got 2"):
        nc.poison(images[:, :2], labels, nads, 0)
    with pytest.raises(ValueError, match="images of shape"):
        nc.poison(torch.rand(2, 3, 8, 8), labels[:2], nads, 0)
    with pytest.raises(ValueError, match="integer labels"):
        nc.poison(images, labels[:-1], nads, 0)
    with pytest.raises(ValueError, match="need more than the 36 given"):
        nc.poison(images, labels, nads, SIZE**2 - 1)
    with pytest.raises(ValueError, match="index .* -1"):
        nc.poison(images, labels, nads, -1)
    for strength in (-0.1, float("inf"), float("nan")):
        with pytest.raises(ValueError, match=f"strength .*{strength}"):
            nc.poison(images, labels, nads, 0, strength=strength)
    with pytest.raises(ValueError, match="got 10: compute all"):
        nc.flip(images, random_nads(10))
    colour = nc.NADs(torch.eye(12).view(12, 3, 2, 2), torch.ones(12))
    with pytest.raises(ValueError, match="single-channel"):
        nc.flip(torch.rand(1, 3, 2, 2), colour)


class FirstTwoCoordinates(torch.nn.Module):
    """Classify by which of the first two NAD coordinates of the first channel is larger."""

    def __init__(self, nads):
        super().__init__()
        self.directions = torch.nn.Parameter(nads.directions[:2].flatten(1))

    def forward(self, images):
        return images[:, 0].flatten(1) @ self.directions.T


def test_changed_predictions_are_those_of_the_changed_images():
    nads = random_nads()
    images = torch.randn(200, 3, SIZE, SIZE, generator=torch.Generator().manual_seed(2))
    network = FirstTwoCoordinates(nads)
    first, second = (images[:, 0].flatten(1) @ nads.basis)[:, :2].T
    before = second > first
    expected = {"remove": [second > 0, first < 0], "flip": [second > -first, -second > first]}
    for change, after in expected.items():
        shares = nb.changed_predictions(network, images, nads, [0, 1, 5], change)
        right = [float((a != before).double().mean()) for a in after]
        assert shares.tolist() == pytest.approx([*right, 0.0]) and min(right) > 0.1
    assert network.training


def test_changed_predictions_refuse_what_does_not_exist():
    nads, (images, _) = random_nads(), photos()
    with pytest.raises(ValueError, match=r"36 NADs, got the indices \[36, -1\]"):
        nb.changed_predictions(FirstTwoCoordinates(nads), images, nads, [3, 36, -1])
    with pytest.raises(ValueError, match="choose 'remove' or 'flip'"):
        nb.changed_predictions(FirstTwoCoordinates(nads), images, nads, [3], "drop")
