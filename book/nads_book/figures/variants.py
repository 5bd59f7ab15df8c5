"""Variants of a figure for the pages of the book: on dark ground, and narrow, with its panels in
one or two columns.

A variant is drawn by calling the plot function again, with other matplotlib settings. Figures use
this module only in a kernel that `build` started.
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

from nads_book.figures.settings import DARK, LOOK, drawn_with

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
        return drawn_with(LOOK, self._draw)

    def variant(self, name: str) -> Figure | None:
        """Return one of `VARIANTS`, or None for a narrow one of a figure whose panels cannot be
        rearranged.
        """
        arrange = None
        if name.startswith("narrow") and (arrange := _arrangement(self.light)) is None:
            return None
        ground = DARK if name.endswith("dark") else {}
        return drawn_with(LOOK | ground, self._draw, arrange)

    def bundle(self, **_: Any) -> dict[str, str]:
        """Return the variants as a notebook stores them: MIME type -> PNG in base64."""
        figures = {name: self.variant(name) for name in VARIANTS}
        return {
            MIME.format(name): _png(figure)
            for name, figure in figures.items()
            if figure is not None
        }


def _png(figure: Figure) -> str:
    buffer = io.BytesIO()
    figure.savefig(
        buffer, format="png", dpi=figure.dpi, bbox_inches="tight", facecolor=figure.get_facecolor()
    )
    return base64.b64encode(buffer.getvalue()).decode()


def _arrangement(figure: Figure) -> Callable[[Figure], None] | None:
    """Return how the panels of a figure are arranged in a narrow one, or None if they cannot be."""
    if _stackable(figure):
        return _stack
    if _blocks(figure):
        return _fold
    if _pictures(figure):
        return _shrink
    return _transpose if _transposable(figure) else None


def _rows(figure: Figure) -> list[list[Axes]]:
    """Return the axes of a figure whose places all have one, row by row; of other figures an empty
    list.
    """
    placed = [axis for axis in figure.axes if axis.get_subplotspec() is not None]
    grids = {axis.get_gridspec() for axis in placed}
    grid = grids.pop() if len(grids) == 1 else None
    if grid is None or len(placed) != grid.nrows * grid.ncols:
        return []
    placed.sort(key=lambda axis: axis.get_subplotspec().num1)  # type: ignore[union-attr]
    return [placed[start : start + grid.ncols] for start in range(0, len(placed), grid.ncols)]


def _transposable(figure: Figure) -> bool:
    """Return whether the panels are two rows of at most six, all in use, with titles on top
    only.
    """
    rows = _rows(figure)
    if len(rows) != 2 or not 2 <= len(rows[0]) <= 6 or any(axis.get_title() for axis in rows[1]):
        return False
    return all(axis.axison for row in rows for axis in row)


def _transpose(figure: Figure) -> None:
    """Draw the columns of a figure as rows: titles become labels at the left, and the rows' labels
    become titles.
    """
    rows, bars = _rows(figure), [axis for axis in figure.axes if axis.get_label() == "<colorbar>"]
    maps, tall = any(map(_maps, rows[0])), len(rows[0])
    figure.set_size_inches(NARROW, (1.55 if maps else 1.35) * tall + (1.2 if bars else 0.7))
    names, titles = [row[0].get_ylabel() for row in rows], [axis.get_title() for axis in rows[0]]
    grid = figure.add_gridspec(tall, 2)
    for place, (name, row) in enumerate(zip(names, rows, strict=True)):
        for line, (axis, title) in enumerate(zip(row, titles, strict=True)):
            axis.set_subplotspec(grid[line, place])
            axis.set(title=name if line == 0 else "", ylabel="" if place else title)
            axis.set_xlabel(axis.get_xlabel() if line == tall - 1 else "")
            axis.tick_params(labelleft=not (maps and place), labelbottom=line == tall - 1)
    for bar in bars:  # below the panels that it belongs to
        colours = bar._colorbar  # type: ignore[attr-defined]
        label = bar.get_ylabel()
        parents = bar._colorbar_info["parents"]  # type: ignore[attr-defined]
        options = {
            "extend": colours.extend,
            "label": textwrap.fill(label, 24),
            "location": "bottom",
            "aspect": 15,
        }
        colours.remove()
        figure.colorbar(colours.mappable, ax=parents, **options)


def _blocks(figure: Figure) -> list[range]:
    """Return the columns of each block of panels, if a column without panels separates two blocks;
    otherwise none.
    """
    rows = _rows(figure)
    gaps = [
        place
        for place, column in enumerate(zip(*rows, strict=True))
        if not any(axis.axison for axis in column)
    ]
    if len(gaps) != 1 or not 0 < gaps[0] < len(rows[0]) - 1:
        return []
    return [range(gaps[0]), range(gaps[0] + 1, len(rows[0]))]


def _fold(figure: Figure) -> None:
    """Put the second block of panels below the first one, with the same labels at the left."""
    rows, blocks = _rows(figure), _blocks(figure)
    wide = max(map(len, blocks))
    side = (NARROW - 0.4) / wide
    figure.set_size_inches(NARROW, 2 * len(rows) * (side + 0.03) + 0.6)
    grid = figure.add_gridspec(2 * len(rows), wide)
    for place, row in enumerate(rows):
        label = row[0].get_ylabel()
        for number, columns in enumerate(blocks):
            for column, old in enumerate(columns):
                row[old].set_subplotspec(grid[number * len(rows) + place, column])
            row[columns[0]].set_ylabel(label)
    for axis in [axis for axis in figure.axes if not axis.axison]:
        axis.remove()


def _pictures(figure: Figure) -> bool:
    """Return whether the panels are rows of at most `IMAGES` pictures without ticks."""
    rows = _rows(figure)
    panels = [axis for row in rows for axis in row]
    return (
        len(rows) > 1
        and len(rows[0]) <= IMAGES
        and all(axis.images and not axis.get_xticks().size for axis in panels)
    )


def _shrink(figure: Figure) -> None:
    """Keep the rows of a figure, with smaller pictures."""
    rows = _rows(figure)
    side = (NARROW - 0.4) / len(rows[0])
    figure.set_size_inches(NARROW, side * len(rows) + 0.3)


def _stackable(figure: Figure) -> bool:
    """Return whether the panels are one row or column, with at most `IMAGES` images and at most
    `TICKS` names each.
    """
    places, panels = _places(figure), _panels(figure)
    grids = {axis.get_gridspec() for axis in panels}
    if len(grids) != 1 or None in grids:
        return False
    (grid,) = grids
    in_line = (
        grid is not None
        and 1 in (grid.nrows, grid.ncols)
        and grid.nrows * grid.ncols == len(places)
    )
    return (
        in_line
        and sum(map(_maps, panels)) <= IMAGES
        and all(len(axis.get_xticks()) <= TICKS for axis in panels)
    )


def _stack(figure: Figure) -> None:
    """Put the panels that are drawn below each other, with labels and legends that fit a narrow
    figure.

    Four pictures without ticks are put in two rows.
    """
    panels = _panels(figure)
    grid = panels[0].get_gridspec()
    height = max(figure.get_size_inches()[1] / (grid.nrows if grid else 1), 0.75 * NARROW)
    height *= 0.93 if any(map(_maps, panels)) else 0.85
    for axis in [axis for axis in figure.axes if not axis.axison]:
        axis.remove()
    places = _places(figure)
    columns = (
        2
        if len(places) == IMAGES
        and all(_maps(axis) and not axis.get_xticks().size for axis in panels)
        else 1
    )
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
    wide = [
        axis
        for axis in figure.axes
        if (legend := axis.get_legend()) and _width(legend) > 0.8 * _width(axis)
    ]
    if len(wide) > 1:  # each panel keeps a legend of its own, below it and in one column
        labels = [
            axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2)).get_texts() for axis in wide
        ]
        figure.set_size_inches(NARROW, figure.get_size_inches()[1] + 0.17 * sum(map(len, labels)))
        wide = []
    handles = {
        name: line
        for axis in figure.axes
        for line, name in zip(*axis.get_legend_handles_labels(), strict=True)
    }
    legends = [*figure.legends, *filter(None, (axis.get_legend() for axis in wide))]
    for legend in legends:  # those that would squeeze the panels go above them, in one column
        names = [text.get_text() for text in legend.get_texts()]
        lines: list[Any] = [
            handles.get(name, line) for name, line in zip(names, legend.legend_handles, strict=True)
        ]
        figure.legend(lines, names, loc="outside upper center", ncols=1, frameon=False, fontsize=8)
        legend.remove()


def _width(artist: Any) -> float:
    return artist.get_window_extent().width


def _panels(figure: Figure) -> list[Axes]:
    return [axis for axis in figure.axes if axis.axison and axis.get_label() != "<colorbar>"]


def _places(figure: Figure) -> dict[int, list[Axes]]:
    """Return the axes at each place of a figure's grid: more than one where they share a horizontal
    axis.
    """
    places: dict[int, list[Axes]] = {}
    for axis in figure.axes:
        if (place := axis.get_subplotspec()) is not None:
            places.setdefault(place.num1, []).append(axis)
    return places


def _maps(axis: Axes) -> bool:
    """Return whether something in a panel is coloured by its values."""
    return bool(axis.images) or any(
        collection.get_array() is not None for collection in axis.collections
    )


def _wrap(axis: Axes, width: int) -> None:
    """Break long labels, which would make the figure wider than a telephone."""
    axis.set_xlabel(textwrap.fill(axis.get_xlabel(), 40))
    lines = axis.get_title().splitlines() if width < 50 else [axis.get_title()]
    axis.title.set_text(
        "\n".join(textwrap.fill(line, width) for line in lines)
    )  # unlike set_title, this keeps the font size
    names = [text.get_text() for text in axis.get_yticklabels()]
    if (
        isinstance(axis.yaxis.get_major_locator(), FixedLocator)
        and max(map(len, names), default=0) > 20
    ):
        axis.set_yticks(axis.get_yticks(), [textwrap.fill(name, 20) for name in names])
