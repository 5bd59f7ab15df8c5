"""Settings of matplotlib for light and dark pages, and figures that are drawn with them."""

from collections.abc import Callable
from typing import Any

import matplotlib.pyplot as plt
from cycler import cycler
from matplotlib.figure import Figure

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")  # Okabe and Ito
# Keys are of matplotlib.typing.RcKeyType, which matplotlib has from 3.11 on: Colab has 3.10.
STYLE: dict[Any, Any] = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 9,
    "axes.labelsize": 9,
    "font.size": 9,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "figure.dpi": 150,
    "savefig.facecolor": "white",
    "figure.facecolor": "white",
    "text.color": "black",
}
# What figures of the book add, so that their lines look similar.
LOOK: dict[Any, Any] = STYLE | {
    "axes.prop_cycle": cycler(color=COLOURS),
    "lines.linewidth": 1.2,
    "lines.markersize": 4,
    "image.interpolation": "nearest",
    "figure.figsize": (7.6, 3.0),  # inches: the text width of the book
}
GROUND, INK = "0.07", "0.87"  # the colours of a dark page and of its text
# A blue of a contrast of at least 4.5 with a dark page; the widgets' dark colours are as bright.
BRIGHT_BLUE = "#4da3e0"
SLIM: dict[Any, Any] = {"figure.figsize": (4.0, 3.0)}  # inches, on the screen of a phone
DARK: dict[Any, Any] = {
    "axes.prop_cycle": cycler(color=(BRIGHT_BLUE, *COLOURS[1:])),
    **dict.fromkeys(
        ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), INK
    ),
    "figure.facecolor": GROUND,
    "savefig.facecolor": GROUND,
    "axes.facecolor": "none",
    "grid.color": "0.318",
}


def drawn_with(settings: dict[Any, Any], draw: Callable[[], Figure]) -> Figure:
    """Return a figure that is drawn with other matplotlib settings than the reader's."""
    with plt.rc_context(settings):
        figure = draw()
        plt.close(figure)  # a notebook shows the returned figure once, not twice
    return figure
