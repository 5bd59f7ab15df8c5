"""Settings of matplotlib for light and dark pages, and figures that are drawn with them."""

from collections.abc import Callable
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

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
GROUND, INK = "0.07", "0.87"  # the colours of a dark page and of its text
DARK: dict[Any, Any] = {
    **dict.fromkeys(
        ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), INK
    ),
    "figure.facecolor": GROUND,
    "savefig.facecolor": GROUND,
    "axes.facecolor": "none",
    "grid.color": "0.318",
}


def drawn_with(
    settings: dict[Any, Any],
    draw: Callable[[], Figure],
    arrange: Callable[[Figure], None] | None = None,
) -> Figure:
    """Return a figure that is drawn with other matplotlib settings than the reader's, and maybe
    arranged with these.
    """
    with plt.rc_context(settings):
        figure = draw()
        plt.close(figure)  # a notebook shows the returned figure once, not twice
        if arrange:
            arrange(figure)
    return figure
