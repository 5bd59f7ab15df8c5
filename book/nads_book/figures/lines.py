"""Estimates as lines over a number, with their intervals, in a row of panels."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from nads_book.figures.style import bar_ends, legend, log_ticks, panel_row, rule, styled

# Label -> places (n,), and values (n,), or with the ends of their intervals (n, 3).
Lines = Mapping[str, tuple[Sequence[float] | np.ndarray, Sequence[Any] | np.ndarray]]


@styled
def plot_lines(
    panels: Mapping[str, Lines],
    xlabel: str,
    ylabel: str,
    ticks: Sequence[float],
    *,
    level: float | None = None,
    bands: bool = False,
    **limits: tuple[float, float],
) -> Figure:
    """Draw lines over a logarithmic axis.

    Args:
        panels: title -> lines.
        xlabel: label of the horizontal axes.
        ylabel: label of the first vertical axis.
        ticks: ticks of the horizontal axes.
        level: value to compare with.
        bands: whether intervals are bands rather than bars.
        **limits: limits of the axes, ``xlim`` and ``ylim``.
    """
    figure, axes = panel_row(panels, 3.0, xlabel=xlabel, ylabel=ylabel, sharey=True)
    for axis, lines in zip(axes, panels.values(), strict=True):
        for label, (places, estimates) in lines.items():
            values, lengths = bar_ends(estimates)
            (line,) = axis.plot(places, values, "o-", markersize=3, label=label)
            if bands:
                low, high = values - lengths[0], values + lengths[1]
                axis.fill_between(places, low, high, alpha=0.2, linewidth=0)
            else:
                axis.errorbar(places, values, lengths, fmt="none", color=line.get_color())
        if level is not None:
            rule(axis, level)
        log_ticks(axis, ticks)
        axis.set(**limits)
    legend(figure, axes, ncols=3)
    return figure
