"""Figures of directions of any input shape, with what is known of each. matplotlib is imported when one is drawn."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from nads_core.runtime.arguments import require_integers
from nads_core.runtime.optional import optional_module

if TYPE_CHECKING:
    from nads_core.directions.nads import NADs

_SIZE, _TITLES = 1.5, 0.55  # inches: width of a panel, and height of its title and bar


def draw_direction(axis: Any, direction: Any, certainty: float | None = None) -> None:
    """Draw a direction, and its certainty as the filled part of a bar below it.

    Images of three channels are coloured, with zero in grey. Other images are red where positive and blue where
    negative, their channels side by side. Sequences have a line per channel, and features a bar each, around zero.

    Args:
        axis: axes of matplotlib.
        direction: direction of shape (C, H, W), (C, L) or (F,), at any scale.
        certainty: certainty of the direction; None for no bar.
    """
    values = np.asarray(direction)
    limit, ink = float(np.abs(values).max()) or 1.0, {"color": axis.xaxis.label.get_color(), "clip_on": False}
    if values.ndim == 3 and len(values) == 3:
        axis.imshow(0.5 + values.transpose(1, 2, 0) / (2 * limit), interpolation="nearest")
    elif values.ndim == 3:
        picture = np.concatenate(values, axis=1)  # (C, H, W) -> (H, C W)
        axis.imshow(picture, cmap="RdBu_r", vmin=-limit, vmax=limit, interpolation="nearest")
        for channel in range(1, len(values)):
            axis.axvline(channel * values.shape[2] - 0.5, linewidth=0.5, **ink)
    else:
        if values.ndim == 2:
            axis.plot(values.T, linewidth=1)
        else:
            axis.stairs(values, fill=True)
        axis.axhline(0, linewidth=0.5, **ink)
        axis.set(ylim=(-1.05 * limit, 1.05 * limit), xmargin=0)
    axis.set(xticks=[], yticks=[])
    axis.spines[:].set_visible(False)
    if certainty is not None:
        for share, alpha in ((1, 0.2), (certainty, 1)):
            axis.fill_between([0, share], -0.065, -0.04, alpha=alpha, linewidth=0, transform=axis.transAxes, **ink)


def plot_directions(nads: NADs, k: int, columns: int) -> Any:
    """Return the figure of `NADs.plot`."""
    require_integers(k=k, columns=columns)
    pyplot = optional_module("matplotlib.pyplot", "plot")
    count = min(k, len(nads))
    columns = min(columns, count)
    rows = -(-count // columns)
    size = (_SIZE * columns, (_SIZE + _TITLES) * rows + _TITLES / 2)
    figure, axes = pyplot.subplots(rows, columns, figsize=size, layout="constrained", squeeze=False)
    pyplot.close(figure)  # a notebook shows the returned figure once, not twice
    figure.suptitle(nads.provenance.get("architecture", ""), fontsize=10)
    for axis in axes.flat[count:]:
        axis.axis("off")
    for index, axis in zip(range(count), axes.flat, strict=False):
        title, value, certainty = f"NAD {index}", f"{float(nads.eigenvalues[index]):.3g}", None
        if nads.certificates is not None:
            certainty, error = float(nads.certainty[index]), float(nads.eigenvalue_std[index])
            title += f" ({nads.names[index]})" if nads.types[index] else ""
            value += "" if math.isnan(error) else f" ± {error:.1g}"
        draw_direction(axis, nads[index], certainty)
        axis.set_title(f"{title}\n{value}", fontsize=7)
    return figure
