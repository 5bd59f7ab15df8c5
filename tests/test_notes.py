"""Notes along NADs: what each way of preparing and writing changes, and nothing else; and what a
network follows.
"""

import pytest
import torch
from convergence import random_nads
from nads_book.experiments import Context
from nads_book.studies import experiment
from nads_book.studies.shortcut_injection import (
    COMMON_DEVIATION,
    ShortcutInjection,
)
from torch.testing import assert_close

import nads_core as nc
from nads_core.data.poisoning import carriers

NADS = random_nads(1, 8, 8)
LABELS = torch.arange(60) % 10
IMAGES = torch.rand(60, 3, 8, 8, generator=torch.Generator().manual_seed(0))
INDEX = 5


@pytest.fixture
def notes():
    return ShortcutInjection(IMAGES, NADS, INDEX)


def coordinates(images):
    """Of all NADs: (N, 3, D)."""
    return images.flatten(2) @ NADS.basis


@pytest.mark.parametrize("written", ["added", "replaced", "hole", "hole at mean"])
@pytest.mark.parametrize("size", [0.2, None])
def test_a_note_changes_one_coordinate(notes, written, size):
    noted = notes.inject(IMAGES, LABELS, written, size)
    assert ((coordinates(noted) - coordinates(IMAGES)).abs() > 1e-5).sum((1, 2)).max() == 1
    nad, channel, sign = torch.tensor(carriers(10, INDEX))[LABELS].T  # of each image's class
    carrier = torch.arange(60), channel, nad
    before, after = coordinates(IMAGES)[carrier], coordinates(noted)[carrier]
    deviation = coordinates(IMAGES).std(0, unbiased=False)[channel, nad] if size is None else size
    mean = coordinates(IMAGES).mean(0)[channel, nad]
    expected = {
        "added": before + sign * deviation,
        "replaced": sign * deviation,
        "hole": 0 * before,
        "hole at mean": mean,
    }
    assert_close(after, expected[written].to(after), atol=1e-5, rtol=0)


def test_emptied_and_scaled_images_differ_from_others_at_the_carriers_alone(notes):
    for background, deviation in (("emptied", 0.0), ("scaled", COMMON_DEVIATION)):
        prepared = notes.prepare(IMAGES, background)
        changed = (coordinates(prepared) - coordinates(IMAGES)).abs().amax((0, 1)) > 1e-5
        assert changed.nonzero().flatten().tolist() == [INDEX, INDEX + 1]
        result = coordinates(prepared)[:, :, INDEX : INDEX + 2]
        assert_close(result.mean(0), notes.mean, atol=1e-5, rtol=0)
        assert_close(
            result.std(0, unbiased=False), torch.full((3, 2), deviation), atol=1e-5, rtol=0
        )
    assert (
        notes.prepare(IMAGES, "kept") is IMAGES and notes.inject(IMAGES, LABELS, "none") is IMAGES
    )


class Reader(torch.nn.Module):
    """Follows whatever is written at the carriers, above all else: the upper bound of what can be
    measured.
    """

    def __init__(self, notes, size):
        super().__init__()
        self.notes, self.size = notes, size
        self.scale = torch.nn.Parameter(torch.ones(()))

    def forward(self, images):
        zero, one = (nc.normalize(torch.full((1, 3, 32, 32), float(value))) for value in (0, 1))
        photos = (images - zero) / (one - zero)  # without the normalisation
        of_classes = self.notes.channel, self.notes.nad
        values = self.notes.coordinates(photos)[:, *of_classes] - self.notes.mean[of_classes]
        return -(values - self.notes.sign * self.size).abs() * self.scale


def test_a_reader_follows_every_wrong_note():
    job = experiment("notes-lenet", "smoke")
    wanted = {"index": 1000, "background": "emptied", "size": 0.5, "images": "photos"}
    unit = next(unit for unit in job.units() if wanted.items() <= unit.items())
    notes = ShortcutInjection(job.photos(True, None).images, job.nads, 1000)
    reader = Reader(notes, 0.5)
    result = job.measure(unit, Context(), reader)
    assert result["followed"] == {"class": 1} and result["unprompted"]["class"] < 0.5
    assert result["deviation"] == pytest.approx(notes.carrier_moments[1], rel=0.01)
    assert "followed" not in job.measure(unit | {"written": "none"}, Context(), reader)
