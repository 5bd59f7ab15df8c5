"""Estimates with their intervals: as lines over a number, or as dots in rows."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from nads_book.figures.style import (
    bar_ends,
    colours,
    legend,
    log_ticks,
    name_rows,
    panel_row,
    rule,
    shade,
    styled,
    subplots,
)

# Label -> places (n,), and values (n,), or with the ends of their intervals (n, 3).
Lines = Mapping[str, tuple[Any, Any]]
Estimates = Mapping[str, Mapping[str, Sequence[float]]]  # series -> row -> value, low, high
# Label -> values by NAD index, alone or with the ends of their intervals.
Sweeps = Mapping[str, pd.DataFrame | pd.Series]


@styled
def plot_lines(
    panels: Mapping[str, Lines],
    xlabel: str,
    ylabel: str,
    ticks: Sequence[float] = (),
    *,
    level: float | None = None,
    bands: bool = False,
    marks: Mapping[str, str] | None = None,
    **settings: Any,
) -> Figure:
    """Draw lines, or dots, over a number.

    Args:
        panels: title -> lines.
        xlabel: label of the horizontal axes.
        ylabel: label of the first vertical axis.
        ticks: ticks of the horizontal axes, which are logarithmic; linear without any.
        level: value to compare with.
        bands: whether intervals are bands rather than bars.
        marks: label -> format of a line, such as "o" for dots alone; a line with dots by default.
        **settings: settings of the axes, such as ``ylim``.
    """
    figure, axes = panel_row(panels, 3.0, xlabel=xlabel, ylabel=ylabel, sharey=True)
    labels = list(dict.fromkeys(label for lines in panels.values() for label in lines))
    for axis, lines in zip(axes, panels.values(), strict=True):
        for label, (places, estimates) in lines.items():
            values, lengths = bar_ends(estimates)
            look = (marks or {}).get(label, "o-")
            size = 3 if "-" in look else 5
            colour = colours()[labels.index(label) % len(colours())]
            axis.plot(places, values, look, markersize=size, label=label, color=colour)
            if bands:
                low, high = values - lengths[0], values + lengths[1]
                axis.fill_between(places, low, high, alpha=0.2, linewidth=0, color=colour)
            else:
                axis.errorbar(places, values, lengths, fmt="none", color=colour)
        if level is not None:
            rule(axis, level)
        axis.set(**settings)
        if len(ticks):
            log_ticks(axis, ticks)
    if any(len(lines) > 1 for lines in panels.values()):
        legend(figure, axes, ncols=3)
    return figure


def index_axis(axis: Axes) -> None:
    """Make a logarithmic axis of NAD indices, drawn at index + 1 because it has no 0."""
    ticks = np.array([0, 3, 10, 30, 100, 300, 1000])
    log_ticks(axis, ticks + 1, map(str, ticks))
    axis.set(xlabel="NAD index of the carrier", xlim=(0.85, 1_100))


@styled
def plot_by_index(
    sweeps: Sweeps, ylabel: str, own: Sweeps | None = None, *, level: float = 0
) -> Figure:
    """Draw values with their intervals against the NAD index.

    Args:
        sweeps: values.
        ylabel: label of the vertical axis.
        own: values of the reader's run, drawn as stars in ink.
        level: value to compare with, such as chance.
    """
    figure, ((axis,),) = subplots(height=3.2)
    drawn = {**sweeps, **(own or {})}
    for number, (label, sweep) in enumerate(drawn.items()):
        look: dict[str, Any] = {"fmt": f"{'os^Dvp'[number]}-", "color": colours()[number]}
        if number >= len(sweeps):
            look = {"fmt": "*", "color": shade(0), "markersize": 13}
        values, lengths = bar_ends(sweep.to_numpy())
        # Points at one index stand beside each other.
        where = (sweep.index + 1) * 1.035 ** (number - (len(drawn) - 1) / 2)
        axis.errorbar(where, values, lengths, label=label, elinewidth=0.9, **look)
    rule(axis, level)
    axis.set_ylabel(ylabel)
    index_axis(axis)
    legend(figure, axis, ncols=2)
    return figure


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
