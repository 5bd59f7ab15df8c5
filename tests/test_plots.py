"""Figures of directions of every input shape, and what marks their uncertainty."""

import subprocess
import sys

import numpy as np
import pytest
from test_export import some

import nads_core as nc
from nads_core.directions.plots import draw_direction

matplotlib = pytest.importorskip("matplotlib")
plt = pytest.importorskip("matplotlib.pyplot")
figures = pytest.importorskip("nads_book.figures")

SHAPES = {"grey": (1, 4, 4), "colour": (3, 4, 4), "two channels": (2, 4, 5), "sequence": (2, 12), "features": (20,)}


def panels(figure):
    return [axis for axis in figure.axes if axis.axison]


def width(bar):
    """Return the length of a bar below a panel, in widths of the panel."""
    (path,) = bar.get_paths()
    return path.get_extents().x1


@pytest.mark.parametrize("kind", SHAPES)
def test_a_panel_for_each_direction(kind):
    nads = some(SHAPES[kind], name=kind)
    open_before = plt.get_fignums()
    figure = nads.plot(k=7)
    assert plt.get_fignums() == open_before  # a notebook shows it once
    assert len(panels(figure)) == 7 and len(figure.axes) == 10 and figure.get_suptitle() == kind
    for index, axis in enumerate(panels(figure)):
        title, (full, part) = axis.get_title(), map(width, axis.collections)
        value, error = f"{float(nads.eigenvalues[index]):.3g}", f"{float(nads.eigenvalue_std[index]):.1g}"
        assert title == f"NAD {index} ({nads.names[index]})\n{value} ± {error}"
        assert (full, part) == (1, float(nads.certainty[index]))
    figure.canvas.draw()


@pytest.mark.parametrize("kind", SHAPES)
def test_every_number_of_a_direction_is_drawn(kind):
    direction = some(SHAPES[kind])[0].numpy()
    _, axis = plt.subplots()
    draw_direction(axis, direction)
    if kind == "colour":
        expected = 0.5 + direction.transpose(1, 2, 0) / (2 * abs(direction).max())
        np.testing.assert_allclose(axis.images[0].get_array(), expected)
    elif direction.ndim == 3:
        np.testing.assert_array_equal(axis.images[0].get_array(), np.hstack(list(direction)))
        low, high = axis.images[0].get_clim()
        assert low == -high == -abs(direction).max()
        assert len(axis.lines) == len(direction) - 1  # between the channels
    elif direction.ndim == 2:
        np.testing.assert_array_equal([line.get_ydata() for line in axis.lines[:2]], direction)
    else:
        np.testing.assert_array_equal(axis.patches[0].get_data().values, direction)
    low, high = axis.get_ylim()
    assert direction.ndim == 3 or low == -high < -abs(direction).max()
    plt.close("all")


def test_directions_of_zeros_and_few_directions():
    nads = some(count=4)
    blank = nc.NADs(0 * nads.directions, nads.eigenvalues, {})
    assert len(panels(blank.plot())) == 4 and blank.plot(2).axes[0].get_title() == "NAD 0\n1"
    assert not blank.plot(1).axes[0].collections  # nothing is known of its certainty
    assert len(blank.plot(4, columns=2).axes) == 4
    for wrong in ({"k": 0}, {"columns": 1.5}):
        with pytest.raises(ValueError, match="must be a positive integer"):
            nads.plot(**wrong)


def test_readers_settings_set_the_ink():
    with matplotlib.rc_context({"axes.labelcolor": "0.87"}):
        figure = some().plot(1)
    assert figure.axes[0].collections[-1].get_facecolor()[0, 0] == 0.87


def test_matplotlib_is_needed_only_to_plot(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match="plot needs matplotlib.*pip install matplotlib"):
        some().plot()
    code = "import sys, nads_core as nc; nc.load_nads('lenet')[:3].to_pandas; print('matplotlib' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"


@pytest.mark.parametrize("kind", SHAPES)
def test_the_figure_of_the_book_draws_the_same(kind):
    nads = some(SHAPES[kind], name=kind)
    figure = figures.plot_directions(nads, (0, 3))
    images = len(SHAPES[kind]) == 3
    assert len(panels(figure)) == (4 if images else 2) and figure.axes[0].get_ylabel() == kind
    assert width(figure.axes[1].collections[-1]) == float(nads.certainty[3])
    if images:
        spectrum = np.asarray(figure.axes[3].images[0].get_array())
        assert spectrum.shape == SHAPES[kind][1:] and spectrum.sum() == pytest.approx(1, abs=1e-5)


def test_the_figure_of_the_book_takes_different_inputs():
    figure = figures.plot_directions({kind: some(shape) for kind, shape in SHAPES.items()})
    assert len(panels(figure)) == 4 * 5 + 4 * 3
    figure.canvas.draw()
