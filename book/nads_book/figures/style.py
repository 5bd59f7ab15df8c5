"""The look of the book's figures: colours, sizes, and the axes that several of them share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor

from nads_core.data.fourier import spectrum

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.typing import RcKeyType

WIDTH = 7.6  # inches: the text width of the book
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")  # Okabe and Ito
DIVERGING, SEQUENTIAL = "RdBu_r", "magma"
STYLE: dict[RcKeyType, Any] = {
    "axes.spines.top": False, "axes.spines.right": False, "axes.titlesize": 9, "axes.labelsize": 9, "font.size": 9,
    "xtick.labelsize": 8, "ytick.labelsize": 8, "legend.fontsize": 8, "legend.frameon": False, "figure.dpi": 150,
    "savefig.facecolor": "white", "figure.facecolor": "white", "text.color": "black",
}  # fmt: skip
GROUND, INK = "0.07", "0.87"  # the colours of a dark page and of its text
DARK: dict[RcKeyType, Any] = {
    **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), INK),
    "figure.facecolor": GROUND, "savefig.facecolor": GROUND, "axes.facecolor": "none", "grid.color": "0.318",
}  # fmt: skip


def colours() -> tuple[str, ...]:
    """Return the colours of up to seven series, the last one in ink: black, or light on dark ground."""
    return (*COLOURS, shade(0))


def shade(level: float) -> str:
    """Return a grey between ink (0) and ground (1), which follows the settings that a figure is drawn with."""
    from matplotlib import rcParams
    from matplotlib.colors import to_hex, to_rgb

    ink, ground = (np.array(to_rgb(rcParams[key])) for key in ("text.color", "figure.facecolor"))
    return to_hex(ink + level * (ground - ink))


def subplots(rows: int = 1, columns: int = 1, height: float = 3.0, **options: Any) -> tuple[Figure, np.ndarray]:
    """Return a figure of the text width and its axes as a (rows, columns) array."""
    import matplotlib.pyplot as plt

    return plt.subplots(rows, columns, figsize=(WIDTH, height), layout="constrained", squeeze=False, **options)


def show_signed(axis: Axes, image: Tensor | np.ndarray, limit: float | None = None) -> None:
    """Draw a signed image with zero in the middle of the colour map: (H, W)."""
    image = np.asarray(image)
    limit = limit or np.abs(image).max()
    axis.imshow(image, cmap=DIVERGING, vmin=-limit, vmax=limit, interpolation="nearest")
    bare(axis)


def show_spectrum(axis: Axes, direction: Tensor) -> None:
    """Draw the energy of an image over frequencies, zero in the middle: (H, W)."""
    share = np.asarray(spectrum(direction))
    half = share.shape[0] // 2
    axis.imshow(share, cmap=SEQUENTIAL, vmin=0, extent=(-half - 0.5, half - 0.5, half - 0.5, -half - 0.5))
    bare(axis)


def bare(axis: Axes) -> None:
    """Remove ticks and frame."""
    axis.set(xticks=[], yticks=[])
    axis.spines[:].set_visible(False)
