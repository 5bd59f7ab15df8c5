"""The page of directional bias: its maps, what a reader trains, and verdicts that follow from
stored results.
"""

import numpy as np
import pytest
import torch
from nads_book.pages import directional_bias as page

import nads_core as nc

speed = page.speed
tasks = page.tasks


@pytest.mark.parametrize("wave", [(3, 5), (-3, -5), (0, 9)])
def test_the_stored_wave_beside_the_readers_is_the_closest_one(wave):
    labels = list(tasks.stored_beside(wave))
    (nearest,) = {label.partition(", (")[2] for label in labels}
    ky, kx = map(int, nearest.rstrip(")").split(", "))
    assert min(np.hypot(s * ky - wave[0], s * kx - wave[1]) for s in (1, -1)) <= np.sqrt(2)
    assert len(labels) == 6


def test_a_wave_that_the_pixels_show_as_another_one_is_rejected():
    for wave in ((0, 16), (-17, 3)):
        with pytest.raises(ValueError, match="−16 to 15"):
            page.plot_your_training("logreg", wave, nc.Recipe(epochs=1), num_images=40)


def test_a_network_for_other_channels_is_rejected_with_the_shape_of_the_images():
    def coloured():
        return torch.nn.Sequential(torch.nn.Conv2d(3, 2, 32), torch.nn.Flatten())

    with pytest.raises(ValueError, match="1 × 32 × 32"):
        page.plot_your_training(coloured, (0, 2), nc.Recipe(epochs=1), num_images=40)


def test_steps_that_are_never_reached_are_the_most():
    a, b = speed.ranked({(0, 2): np.inf, (0, 4): 3.0, (2, 2): 1.0}, {(0, 2): 1.0, (0, 4): 2.0})
    assert a[0] > a[1] and list(b) == [1, 2]
