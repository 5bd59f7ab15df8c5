"""Variants of a figure for the pages of the book: on dark ground, and narrow, for phones.

A variant is drawn by calling the plot function again, with other matplotlib settings:
`style.subplots` follows the width that these name. Figures use this module only in a kernel that
`build` started.
"""

from __future__ import annotations

import base64
import functools
import io
import textwrap
from collections.abc import Callable
from typing import Any

from matplotlib.figure import Figure

from nads_book.figures.settings import DARK, LOOK, SLIM, drawn_with

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

    def variant(self, name: str) -> Figure:
        """Return one of `VARIANTS`."""
        slim = SLIM if name.startswith("narrow") else {}
        ground = DARK if name.endswith("dark") else {}
        figure = drawn_with(LOOK | slim | ground, self._draw)
        for axis in figure.axes if slim else ():
            axis.set_xlabel(textwrap.fill(axis.get_xlabel(), 40))
        return figure

    def bundle(self, **_: Any) -> dict[str, str]:
        """Return the variants as a notebook stores them: MIME type -> PNG in base64."""
        return {MIME.format(name): _png(self.variant(name)) for name in VARIANTS}


def _png(figure: Figure) -> str:
    buffer = io.BytesIO()
    figure.savefig(
        buffer, format="png", dpi=figure.dpi, bbox_inches="tight", facecolor=figure.get_facecolor()
    )
    return base64.b64encode(buffer.getvalue()).decode()
