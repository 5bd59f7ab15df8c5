"""Figures of directions of every input shape, and what marks their uncertainty."""

import numpy as np
import pytest
from test_directions import some

from nads_core.directions.plot import draw_direction

matplotlib = pytest.importorskip("matplotlib")
plt = pytest.importorskip("matplotlib.pyplot")

SHAPES = {
    "grey": (1, 4, 4),
    "colour": (3, 4, 4),
    "two channels": (2, 4, 5),
    "sequence": (2, 12),
    "features": (20,),
}


@pytest.mark.parametrize("kind", SHAPES)
def test_a_panel_for_each_direction(kind):
    nads = some(SHAPES[kind], name=kind)
    figure = nads.plot(k=7)
    assert len(figure.axes) == 7 and figure.get_suptitle() == kind
    assert figure.get_supxlabel().startswith("in brackets")
    assert not some(SHAPES[kind])[2:].plot(2).get_supxlabel()
    title = "NAD 1 (--a 0)\n0.918 ± 0.09\ncertainty 0.91"
    assert figure.axes[1].get_title() == title
    figure.canvas.draw()
    with pytest.raises(ValueError, match="k is 101"):
        nads.plot(101)


def test_of_a_long_sequence_the_largest_part_is_drawn_and_named():
    """A thousand positions in a panel of two hundred pixels would be a solid band."""
    positions = np.arange(1_000)
    envelope = np.exp(-(((positions - 700) / 30) ** 2))
    direction = np.tile(envelope * np.sin(positions), (2, 1))
    figure, axis = plt.subplots()
    draw_direction(axis, direction)
    low, high = axis.get_xlim()
    assert high - low == 128 and low + 64 == pytest.approx(700, abs=3)
    assert axis.get_xlabel() == f"{int(low)} to {int(high) - 1} of 1000"
    plt.close("all")


@pytest.mark.parametrize("kind", SHAPES)
def test_every_number_of_a_direction_is_drawn(kind):
    direction = some(SHAPES[kind])[0].numpy()
    _, axis = plt.subplots()
    draw_direction(axis, direction)
    if kind == "colour":
        expected = 0.5 + direction.transpose(1, 2, 0) / (2 * abs(direction).max())
        np.testing.assert_allclose(axis.images[0].get_array(), expected)
    elif direction.ndim == 3:
        picture = axis.images[0].get_array()
        channels = [
            picture[:, start : start + direction.shape[2]]
            for start in range(0, picture.shape[1], 1 + direction.shape[2])
        ]
        np.testing.assert_array_equal(channels, direction)
        low, high = axis.images[0].get_clim()
        assert low == -high == -abs(direction).max()
    else:
        np.testing.assert_array_equal(
            [patch.get_data().values for patch in axis.patches], np.atleast_2d(direction)
        )
    low, high = axis.get_ylim()
    assert direction.ndim == 3 or low == -high < -abs(direction).max()
    plt.close("all")
