import inspect

import matplotlib
import nads_book as nb
import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_allclose

import nads_core as nc
from nads_core.directions import Uncertainty

matplotlib.use("Agg")

from nads_book import figures  # noqa: E402


def nads(size=8):
    basis, _ = nc.fourier_basis(size)
    values = torch.linspace(1, 1e-3, size**2)
    certainty = torch.linspace(1, 0, size**2)
    errors = torch.where(certainty > 0.5, 0.1 * values, torch.nan)  # of which nothing is known
    known = Uncertainty(("",) * size**2, certainty, errors, certainty)
    return nc.NADs(basis, values, {}, known)


WAVE = torch.tensor([0.3, 1.0, 0.7, -0.2, -1.1, -0.8, 0.4, 0.9])
SWEEP = pd.DataFrame({0: [30, 28, 32], 10: [20, 10, 30], 300: [0, -np.inf, np.inf]}).T
PHOTOS = torch.rand(7, 3, 8, 8, generator=torch.Generator().manual_seed(0))


CALLS = {
    "plot_signed_images": lambda: figures.plot_signed_images(
        {"a": torch.eye(4), "b": -torch.eye(4)}
    ),
    "plot_frequency_maps": lambda: figures.plot_frequency_maps(
        {
            "ours": {"a": {(0, 2): 60.0, (4, -4): 90.0}, "b": {(0, 0): 70.0}},
            "paper": {"a": {(0, 2): 55.0}, "b": {}},
        }
    ),
    "plot_directions": lambda: figures.plot_directions({"a": nads(), "b": nads()}, (0, 5)),
    "plot_eigenvalues": lambda: figures.plot_eigenvalues({"a": nads(), "b": nads()}),
    "plot_by_index": lambda: figures.plot_by_index(
        {"a": SWEEP, "b": SWEEP}, "points", {"yours": pd.Series({5: 20.0})}
    ),
    "plot_versions": lambda: figures.plot_versions(
        {"clean": PHOTOS, "flipped": PHOTOS - 0.5}, ["cat"] * 7, signed=("flipped",)
    ),
    "plot_convergence": lambda: figures.plot_convergence(
        range(3), [1.0, 0.1, 0.0], torch.tensor([[5, 6], [20, 30], [101, 101]]), 100
    ),
}


def needs_nothing(draw):
    parameters = inspect.signature(draw).parameters.values()
    return all(one.default is not one.empty or one.kind is one.VAR_POSITIONAL for one in parameters)


EVERY = CALLS | {  # with the figures that pages draw from stored results
    f"{page}.{name}": draw
    for page in nb.pages.MODULES
    for name, draw in vars(getattr(nb.pages, page)).items()
    if name.startswith("plot_") and needs_nothing(draw)
}


# The chapters draw all of them: one of eight is drawn each time.
SOME = [
    pytest.param(name, marks=[pytest.mark.slow] * bool(number % 8))
    for number, name in enumerate(EVERY)
]


@pytest.mark.parametrize("name", SOME)
def test_a_figure_draws_labels_its_axes_and_leaves_settings_alone(name, tmp_path):
    settings = dict(matplotlib.rcParams)
    figure = EVERY[name]()
    figure.savefig(tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 2_000
    assert dict(matplotlib.rcParams) == settings
    for axis in figure.axes:
        drawn = axis.lines or axis.images or axis.collections
        assert drawn or not axis.axison
        if axis.lines:  # there may be two vertical scales
            over = [other for other in figure.axes if other.bbox.bounds == axis.bbox.bounds]
            shared = axis.get_shared_x_axes().get_siblings(axis)
            assert any(other.get_xlabel() for other in [*over, *shared])
            assert axis.get_ylabel() or axis.get_shared_y_axes().get_siblings(axis)


def luminance(colour):
    """Relative luminance of the guidelines for accessible content (WCAG 2)."""
    rgb = np.array(matplotlib.colors.to_rgb(colour))
    weights = (0.2126, 0.7152, 0.0722)
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4) @ weights


def contrast(colour):
    """Contrast with a dark page."""
    return (luminance(colour) + 0.05) / (luminance("#121212") + 0.05)


def variants_of(figure):
    return figure._repr_mimebundle_.__self__


@pytest.mark.parametrize("name", SOME)
def test_a_figure_has_a_dark_variant_and_a_narrow_one_with_its_panels_below_each_other(
    name, monkeypatch
):
    assert not hasattr(EVERY[name](), "_repr_mimebundle_")
    monkeypatch.setattr("nads_book.figures.style.draws_variants", lambda: True)
    figure = EVERY[name]()
    dark = variants_of(figure).variant("dark")
    assert luminance(dark.get_facecolor()[:3]) < 0.01
    for text in dark.findobj(matplotlib.text.Text):
        assert not text.get_text() or contrast(text.get_color()) > 4.5, text
    for line in dark.findobj(matplotlib.lines.Line2D):
        assert line.get_alpha() or contrast(line.get_color()) > 1.5, line.get_color()
    narrow = variants_of(figure).variant("narrow")
    narrow.canvas.draw()
    panels = [axis for axis in narrow.axes if axis.get_label() != "<colorbar>"]
    wide = [axis.get_window_extent().width / narrow.bbox.width for axis in panels]
    # Nothing squeezes a panel, and nothing stands out, which would shrink the rest.
    assert min(wide) > 0.3 / narrow.axes[0].get_gridspec().ncols, wide
    assert narrow.get_size_inches()[0] == 4 and narrow.get_tightbbox().width < 1.3 * 4
    grid = figure.axes[0].get_gridspec()
    if grid.nrows == 1:
        assert narrow.axes[0].get_gridspec().ncols == 1


def test_values_by_index_have_finite_bars_and_the_readers_run_is_a_star():
    axis = CALLS["plot_by_index"]().axes[0]
    first, second, own = axis.containers
    assert_allclose(first.lines[0].get_ydata(), [30, 20, 0])
    assert (first.lines[0].get_xdata() < second.lines[0].get_xdata()).all()  # beside each other
    lengths = [np.ptp(segment[:, 1]) for segment in first.lines[2][0].get_segments()]
    assert_allclose(lengths, [4, 20, 0])  # an infinite interval is not drawn
    assert own.lines[0].get_marker() == "*"


def test_a_frequency_map_shows_each_value_at_its_frequency_and_at_the_negative():
    figure = CALLS["plot_frequency_maps"]()
    assert [axis.get_title() for axis in figure.axes[:4]] == ["a", "b", "", ""]
    image = figure.axes[0].images[0]
    grid = np.ma.filled(image.get_array(), np.nan)  # spacing 2: zero frequency is row 8, column 8
    assert grid.shape == (16, 16) and np.isfinite(grid).sum() == 4
    assert grid[8, 9] == grid[8, 7] == 60 and grid[10, 6] == grid[6, 10] == 90
