"""Twins of a figure for the pages of a book: for dark pages, and for telephones, with its panels in a column."""

from __future__ import annotations

import base64
import io
import os
import pickle
import textwrap
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

GROUND, INK = 0.07, 0.87  # lightness of a dark page and of what is written on it
COLOURED = 0.12  # distance between the largest and the smallest of red, green and blue above which a colour is one
NARROW = 4.0  # inches
IMAGES = 4  # in a column
TICKS = 30  # names along a panel
MIME = "application/x-{}-png"  # of a twin, beside image/png; no program but the build of the book knows it
TWINS = ("dark", "narrow", "narrow-dark")


def attach_twins(figure: Figure) -> None:
    """Let a figure bring its twins along when a notebook displays it, if the book is being built."""
    if "NADS_BOOK" in os.environ:
        figure._repr_mimebundle_ = partial(_bundle, figure)  # type: ignore[attr-defined]


def _bundle(figure: Figure, **_: Any) -> dict[str, str]:
    return twins(figure)


def twins(figure: Figure) -> dict[str, str]:
    """Return a figure's twins: MIME type -> PNG in base64. A figure whose panels cannot stand in a column has one."""
    narrow = stacked(figure)
    drawn = {"dark": darkened(figure), "narrow": narrow, "narrow-dark": narrow and darkened(narrow)}
    return {MIME.format(name): _png(twin) for name, twin in drawn.items() if twin is not None}


def darkened(figure: Figure) -> Figure:
    """Return a copy in light ink on a dark page's ground. What has a colour keeps it, and so do values of images."""
    from matplotlib import cm, collections, lines, patches, text

    twin = _copy(figure)
    for artist in twin.findobj():
        if isinstance(artist, lines.Line2D):
            _exchange(artist, "markerfacecolor", "markeredgecolor")  # first: unless set, they follow the line's
        if isinstance(artist, (text.Text, lines.Line2D)):
            _exchange(artist, "color")
        if isinstance(artist, text.Text) and artist.get_bbox_patch() is not None:
            _exchange(artist.get_bbox_patch(), "facecolor", "edgecolor")
        if isinstance(artist, patches.Patch):
            _exchange(artist, "facecolor", "edgecolor")
        if isinstance(artist, cm.ScalarMappable) and artist.get_array() is not None:
            (bad,) = _exchanged(artist.cmap.get_bad())
            artist.set_cmap(artist.cmap.with_extremes(bad=bad if bad[3] else None))
        elif isinstance(artist, collections.Collection):
            _exchange(artist, "facecolor", "edgecolor")
    for axis in twin.axes:
        axis.patch.set_facecolor("none")
    twin.patch.set_facecolor(f"{GROUND:.3f}")  # the page's, for a reader who opens the picture alone
    return twin


def stacked(figure: Figure) -> Figure | None:
    """Return a narrow copy whose panels stand below each other, or None if they are not in one row or column.

    Panels that are not drawn are left out. More than `IMAGES` images would make a tower, and more than `TICKS` names
    along a panel would stand on each other: such figures keep their width.
    """
    panels = [axis for axis in figure.axes if axis.axison and not _is_bar(axis)]
    grids = {axis.get_gridspec() for axis in panels}
    crowded = any(len(axis.get_xticks()) > TICKS for axis in panels)
    if crowded or len(grids) != 1 or None in grids or sum(_maps(axis) for axis in panels) > IMAGES:
        return None
    grid = grids.pop()
    if grid is None or 1 not in (grid.nrows, grid.ncols) or grid.nrows * grid.ncols != len(_places(figure)):
        return None
    twin = _copy(figure)
    for axis in [axis for axis in twin.axes if not axis.axison]:
        axis.remove()
    height = max(figure.get_size_inches()[1] / grid.nrows, 0.75 * NARROW) * (0.93 if any(map(_maps, panels)) else 0.85)
    places = _places(twin)
    twin.set_size_inches(NARROW, height * len(places) + 0.4)
    column = twin.add_gridspec(len(places), 1)
    label = ""
    for row, axes in enumerate(places.values()):
        for axis in axes:
            axis.set_subplotspec(column[row])
            _wrap(axis)
        label = axes[0].get_ylabel() or label
        _label_alone(axes[0], label)
    twin.draw_without_rendering()
    inside = [
        legend
        for axis in twin.axes
        if (legend := axis.get_legend()) and legend.get_window_extent().width > 0.8 * axis.get_window_extent().width
    ]
    drawn = {name: handle for axis in twin.axes for handle, name in zip(*axis.get_legend_handles_labels(), strict=True)}
    for legend in [*twin.legends, *inside]:  # those that would squeeze the panels stand above them, in one column
        names = [text.get_text() for text in legend.get_texts()]
        found = [drawn.get(name, handle) for name, handle in zip(names, legend.legend_handles, strict=True)]
        handles = [handle for handle in found if handle is not None]
        twin.legend(handles, names, loc="outside upper center", ncols=1, frameon=False, fontsize=8)
        legend.remove()
    return twin


def _places(figure: Figure) -> dict[int, list[Axes]]:
    """Return the axes at each place of a figure's grid: more than one where they share a horizontal axis."""
    found: dict[int, list[Axes]] = {}
    for axis in figure.axes:
        if (place := axis.get_subplotspec()) is not None:
            found.setdefault(place.num1, []).append(axis)
    return found


def _maps(axis: Axes) -> bool:
    """Whether something in a panel is coloured by its values."""
    return bool(axis.images) or any(collection.get_array() is not None for collection in axis.collections)


def _is_bar(axis: Axes) -> bool:
    """Whether an axis is the colour bar of others, which goes where they go."""
    return axis.get_label() == "<colorbar>"


def _label_alone(axis: Axes, label: str) -> None:
    """Write what a panel has left to its neighbour on the left."""
    axis.tick_params(labelleft=True, labelbottom=True)
    axis.set_ylabel(label)


def _wrap(axis: Axes) -> None:
    """Break lettering that would make the picture wider than a telephone, and so everything in it smaller."""
    from matplotlib.ticker import FixedFormatter

    axis.set_xlabel(textwrap.fill(axis.get_xlabel(), 40))
    axis.title.set_text(textwrap.fill(axis.get_title(), 50))  # and keep its size
    named = [text.get_text() for text in axis.get_yticklabels()]
    if isinstance(axis.yaxis.get_major_formatter(), FixedFormatter) and max(map(len, named), default=0) > 20:
        axis.set_yticks(axis.get_yticks(), [textwrap.fill(name, 20) for name in named])


def _copy(figure: Figure) -> Figure:
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    twin: Figure = pickle.loads(pickle.dumps(figure))
    FigureCanvasAgg(twin)
    return twin


def _png(figure: Figure) -> str:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=figure.dpi, bbox_inches="tight", facecolor=figure.get_facecolor())
    return base64.b64encode(buffer.getvalue()).decode()


def _exchange(artist: Artist | None, *names: str) -> None:
    """Exchange ink and ground in some colours of an artist."""
    for name in names:
        colour = getattr(artist, f"get_{name}")()
        if isinstance(colour, str) and colour in ("auto", "none"):
            continue
        found = _exchanged(colour)
        getattr(artist, f"set_{name}")(found[0] if len(found) == 1 else found)


def _exchanged(colours: Any) -> np.ndarray:
    """Return colours (n, 4) in which greys are mirrored between `GROUND` and `INK`."""
    from matplotlib.colors import to_rgba_array

    rgba = to_rgba_array(colours)
    grey = np.ptp(rgba[:, :3], 1) < COLOURED
    rgba[grey, :3] = INK + (GROUND - INK) * rgba[grey, :3]
    return rgba
