"""Variants of a figure for the pages of the book: on dark ground, and narrow, with its panels in a column.

A variant is drawn by calling the plot function again, with other matplotlib settings. Figures use this module only in a
kernel that `build` started.
"""

from __future__ import annotations

import base64
import functools
import io
import textwrap
from collections.abc import Callable
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator
from nads_book.figures.style import DARK, STYLE, drawn_with

NARROW = 4.0  # inches
IMAGES = 4  # at most, in a column
TICKS = 30  # at most, along a panel of a narrow figure
VARIANTS = ("dark", "narrow", "narrow-dark")
MIME = "application/x-{}-png"  # type of a variant, in the output that holds image/png


class Variants:
    """A plot function with its arguments, which can be drawn in several ways.

    Args:
        plot: function that returns a new figure.
        args: positional arguments of ``plot``.
        kwargs: keyword arguments of ``plot``.
    """

    def __init__(self, plot: Callable[..., Figure], *args: Any, **kwargs: Any):
        self._draw = functools.partial(getattr(plot, "__wrapped__", plot), *args, **kwargs)

    @functools.cached_property
    def light(self) -> Figure:
        """The figure itself."""
        return drawn_with(STYLE, self._draw)

    def variant(self, name: str) -> Figure | None:
        """Return one of `VARIANTS`, or None for a narrow one of a figure whose panels cannot stand in a column."""
        narrow = name.startswith("narrow")
        if narrow and not _stackable(self.light):
            return None
        return drawn_with(STYLE | (DARK if name.endswith("dark") else {}), self._draw, _stack if narrow else None)

    def bundle(self, **_: Any) -> dict[str, str]:
        """Return the variants as a notebook stores them: MIME type -> PNG in base64."""
        figures = {name: self.variant(name) for name in VARIANTS}
        return {MIME.format(name): _png(figure) for name, figure in figures.items() if figure is not None}


def _png(figure: Figure) -> str:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=figure.dpi, bbox_inches="tight", facecolor=figure.get_facecolor())
    return base64.b64encode(buffer.getvalue()).decode()


def _stackable(figure: Figure) -> bool:
    """Return whether the panels are one row or column, with at most `IMAGES` images and at most `TICKS` names each."""
    places, panels = _places(figure), _panels(figure)
    grids = {axis.get_gridspec() for axis in panels}
    if len(grids) != 1 or None in grids:
        return False
    (grid,) = grids
    in_line = grid is not None and 1 in (grid.nrows, grid.ncols) and grid.nrows * grid.ncols == len(places)
    return in_line and sum(map(_maps, panels)) <= IMAGES and all(len(axis.get_xticks()) <= TICKS for axis in panels)


def _stack(figure: Figure) -> None:
    """Put the panels that are drawn below each other, with labels and legends that fit a narrow figure.

    Four pictures without ticks are put in two rows.
    """
    panels = _panels(figure)
    grid = panels[0].get_gridspec()
    height = max(figure.get_size_inches()[1] / (grid.nrows if grid else 1), 0.75 * NARROW)
    height *= 0.93 if any(map(_maps, panels)) else 0.85
    for axis in [axis for axis in figure.axes if not axis.axison]:
        axis.remove()
    places = _places(figure)
    columns = 2 if len(places) == IMAGES and all(_maps(axis) and not axis.get_xticks().size for axis in panels) else 1
    rows = len(places) // columns
    figure.set_size_inches(NARROW, (height if columns == 1 else 0.55 * NARROW) * rows + 0.4)
    grid = figure.add_gridspec(rows, columns)
    label = ""
    for place, axes in enumerate(places.values()):
        for axis in axes:
            axis.set_subplotspec(grid[divmod(place, columns)])
            _wrap(axis, 50 // columns)
        label = axes[0].get_ylabel() or label  # in a row, only the first panel has a label
        axes[0].tick_params(labelleft=True, labelbottom=True)
        axes[0].set_ylabel(label)
    figure.draw_without_rendering()
    wide = [axis for axis in figure.axes if (legend := axis.get_legend()) and _width(legend) > 0.8 * _width(axis)]
    if len(wide) > 1:  # each panel keeps a legend of its own, below it and in one column
        labels = [axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2)).get_texts() for axis in wide]
        figure.set_size_inches(NARROW, figure.get_size_inches()[1] + 0.17 * sum(map(len, labels)))
        wide = []
    handles = {name: line for axis in figure.axes for line, name in zip(*axis.get_legend_handles_labels(), strict=True)}
    legends = [*figure.legends, *filter(None, (axis.get_legend() for axis in wide))]
    for legend in legends:  # those that would squeeze the panels go above them, in one column
        names = [text.get_text() for text in legend.get_texts()]
        lines: list[Any] = [handles.get(name, line) for name, line in zip(names, legend.legend_handles, strict=True)]
        figure.legend(lines, names, loc="outside upper center", ncols=1, frameon=False, fontsize=8)
        legend.remove()


def _width(artist: Any) -> float:
    return artist.get_window_extent().width


def _panels(figure: Figure) -> list[Axes]:
    return [axis for axis in figure.axes if axis.axison and axis.get_label() != "<colorbar>"]


def _places(figure: Figure) -> dict[int, list[Axes]]:
    """Return the axes at each place of a figure's grid: more than one where they share a horizontal axis."""
    places: dict[int, list[Axes]] = {}
    for axis in figure.axes:
        if (place := axis.get_subplotspec()) is not None:
            places.setdefault(place.num1, []).append(axis)
    return places


def _maps(axis: Axes) -> bool:
    """Return whether something in a panel is coloured by its values."""
    return bool(axis.images) or any(collection.get_array() is not None for collection in axis.collections)


def _wrap(axis: Axes, width: int) -> None:
    """Break long labels, which would make the figure wider than a telephone."""
    axis.set_xlabel(textwrap.fill(axis.get_xlabel(), 40))
    lines = axis.get_title().splitlines() if width < 50 else [axis.get_title()]
    axis.title.set_text(
        "\n".join(textwrap.fill(line, width) for line in lines)
    )  # unlike set_title, this keeps the font size
    names = [text.get_text() for text in axis.get_yticklabels()]
    if isinstance(axis.yaxis.get_major_locator(), FixedLocator) and max(map(len, names), default=0) > 20:
        axis.set_yticks(axis.get_yticks(), [textwrap.fill(name, 20) for name in names])
