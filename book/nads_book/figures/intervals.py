"""Estimates with their intervals, as dots on lines: several series in each of a few panels."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from nads_book.figures.style import bar_ends, colours, legend, name_rows, panel_row, shade, styled

Estimates = Mapping[str, Mapping[str, Sequence[float]]]  # series -> row -> value, low, high


@styled
def plot_intervals(
    panels: Mapping[str, Estimates], labels: Sequence[str], logarithmic: Sequence[str] = ()
) -> Figure:
    """Draw estimates with 95 % intervals, one row per item and one colour per series.

    Args:
        panels: title -> series -> item -> value, lower and upper end; NaN ends draw no line.
        labels: labels of the horizontal axes.
        logarithmic: titles of panels of positive numbers with a logarithmic axis.
    """
    rows = list(dict.fromkeys(row for one in panels.values() for s in one.values() for row in s))
    series = list(dict.fromkeys(name for one in panels.values() for name in one))
    height = 1.1 + 0.16 * len(rows) * (1 + len(series))
    figure, axes = panel_row(panels, height, sharey=True)
    offsets = np.linspace(-0.4, 0.4, len(series) + 2)[1:-1]
    for axis, label, (title, one) in zip(axes, labels, panels.items(), strict=True):
        if title in logarithmic:
            axis.set_xscale("log")
        else:
            axis.axvline(0, color=shade(0.4), linewidth=0.8)
        for name, offset, colour in zip(series, offsets, colours(), strict=False):
            if name in one:
                values, lengths = bar_ends([*one[name].values()])
                places = [rows.index(row) + offset for row in one[name]]
                axis.errorbar(values, places, xerr=lengths, fmt="o", color=colour, label=name)
        axis.set_xlabel(label)
        name_rows(axis, rows)
    if len(series) > 1:
        legend(figure, axes, ncols=min(len(series), 4))
    return figure
