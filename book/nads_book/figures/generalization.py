"""Figures of chapter 6: test accuracy against the order, the energy and the eigenvalue of a direction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from nads_book.figures.style import COLOURS, colours, shade, subplots
from nads_book.figures.variants import styled

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MARKERS = "osD^vP"
_SCORES = np.geomspace(0.01, 50, 200)
_ACCURACIES = 100 * torch.special.ndtr(torch.from_numpy(_SCORES))  # of the first-step law, in per cent


def _bars(axis: Axes, x: Sequence[float], centre: Sequence[float], intervals: Sequence[Any], **style: Any) -> None:
    centre = np.asarray(centre)
    low, high = np.abs(np.asarray(intervals, dtype=float).reshape(-1, 2).T - centre)
    axis.errorbar(x, 100 * centre, (100 * low, 100 * high), capsize=1.5, elinewidth=0.8, linestyle="none", **style)


@styled
def plot_accuracy_by_nad(
    curves: Mapping[str, Mapping[str, Sequence[Any]]],
    eigenvalues: Mapping[str, Sequence[float]],
    published: Mapping[str, Mapping[int, float] | None] | None = None,
) -> Figure:
    """Draw test accuracy on D(u_i) against i, above the eigenvalues (Fig. 6), one architecture a column.

    Args:
        curves: architecture -> {"index": (n,), "accuracy": (n,), "interval": (n, 2)}, maybe with n = 0; accuracies
            in [0, 1].
        eigenvalues: architecture -> all of them, descending.
        published: architecture -> {index: accuracy}; drawn in grey.
    """
    figure, axes = subplots(2, len(curves), 4.0, sharex=True, sharey="row", height_ratios=[2, 1])
    for (label, curve), (top, bottom) in zip(curves.items(), axes.T, strict=True):
        theirs = (published or {}).get(label)
        if theirs:
            top.plot(list(theirs), 100 * np.array(list(theirs.values())), ".", color=shade(0.55), markersize=2,
                     label="paper")  # fmt: skip
        _bars(top, curve["index"], curve["accuracy"], curve["interval"], fmt="o", markersize=3.5, color=COLOURS[0],
              label="ours")  # fmt: skip
        top.axhline(50, color=shade(0.4), linestyle=":", linewidth=1, label="chance")
        values = np.asarray(eigenvalues[label], dtype=float)
        bottom.plot(np.arange(len(values)), values / values[0], color=COLOURS[2])
        bottom.set(xlabel="NAD index", yscale="log", ylim=(5e-6, 2))
        top.set(title=label, xlabel="NAD index", ylim=(45, 102))
        for axis in (top, bottom):
            axis.grid(alpha=0.3)
    axes[0, 0].set_ylabel("test accuracy (%)")
    axes[1, 0].set_ylabel("eigenvalue / first")
    axes[0, 0].legend()
    return figure


@styled
def plot_monotone_fits(panels: Mapping[str, Mapping[str, Sequence[float]]]) -> Figure:
    """Draw how far each accuracy lies from the best falling curve, in standard errors; logarithmic beyond two.

    Args:
        panels: title -> {"index": (n,), "deviation": (n,)}.
    """
    figure, (axes,) = subplots(1, len(panels), 2.4, sharey=True)
    for axis, (title, panel) in zip(axes, panels.items(), strict=True):
        axis.axhspan(-1.96, 1.96, color=shade(0.9), linewidth=0)
        axis.axhline(0, color=shade(0.4), linewidth=0.8)
        axis.plot(panel["index"], panel["deviation"], "o", color=COLOURS[0], markersize=2.5)
        axis.set(title=title, xlabel="NAD index")
        axis.set_yscale("symlog", linthresh=2)  # a few outliers would hide the band on a linear scale
        axis.set_yticks((-50, -10, -2, 0, 2, 10, 50), ("−50", "−10", "−2", "0", "2", "10", "50"), minor=False)
        axis.set_yticks((), minor=True)
    limit = 1.2 * max((abs(x) for panel in panels.values() for x in panel["deviation"]), default=0)
    axes[0].set_ylim(-max(4, limit), max(4, limit))
    axes[0].set_ylabel("accuracy − falling fit\n(standard errors)")
    return figure


@styled
def plot_law(panels: Mapping[str, Mapping[str, tuple[Sequence[float], Sequence[float]]]]) -> Figure:
    """Draw measured accuracies against the predicted signal-to-noise ratio; the first-step law is the black line.

    Args:
        panels: title -> family of directions -> ratios (n,) and accuracies (n,) in [0, 1].
    """
    columns = min(3, len(panels))
    rows = -(-len(panels) // columns)
    figure, axes = subplots(rows, columns, 0.5 + 2.2 * rows, sharex=True, sharey=True)
    families = list(dict.fromkeys(family for points in panels.values() for family in points))
    for axis, (title, points) in zip(axes.flat, panels.items(), strict=False):
        for family, (ratios, accuracies) in points.items():
            which = families.index(family)
            crowded = len(ratios) > 200
            style = {"markersize": 2, "zorder": 1} if crowded else {"markersize": 3, "zorder": 2}
            marker, percent = "." if crowded else _MARKERS[which], 100 * np.asarray(accuracies)
            axis.plot(ratios, percent, marker, label=family, color=colours()[which], alpha=0.7, **style)
        axis.plot(_SCORES, _ACCURACIES, color=shade(0), linewidth=1.2, label="first-step law", zorder=3)
        axis.set(title=title, xscale="log", ylim=(45, 102), xlim=(_SCORES[0], _SCORES[-1]))
        axis.grid(alpha=0.3)
    for axis in axes.flat[len(panels) :]:
        axis.set_axis_off()
    for axis in axes.flat[len(panels) - columns : len(panels)]:  # the lowest of each column
        axis.tick_params(labelbottom=True)
    for axis in axes[:, 0]:
        axis.set_ylabel("test accuracy (%)")
    for axis in axes.flat:
        axis.set_xlabel("predicted signal to noise")
    handles: dict[str, Artist] = {}
    for axis in axes.flat:
        handles |= {label: handle for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)}
    figure.legend(list(handles.values()), list(handles), loc="outside lower center", ncols=3, markerscale=1.5)
    return figure


@styled
def plot_rank_correlations(
    panels: Mapping[str, Mapping[str, Mapping[str, tuple[float, float, float]]]],
) -> Figure:
    """Draw rank correlations of energy and accuracy with their intervals, a colour an estimator.

    Args:
        panels: title -> family of directions -> estimator -> correlation, low, high (NaN is left out).
    """
    families = list(next(iter(panels.values())))
    estimators = list(dict.fromkeys(name for panel in panels.values() for family in panel.values() for name in family))
    figure, (axes,) = subplots(1, len(panels), 0.9 + 0.75 * len(families), sharey=True)
    for axis, (title, panel) in zip(axes, panels.items(), strict=True):
        for row, values in enumerate(panel.values()):
            for place, name in enumerate(estimators):
                rho, low, high = values.get(name, (np.nan,) * 3)
                y = row + 0.8 * ((place + 0.5) / len(estimators) - 0.5)
                axis.plot([low, high], [y, y], color=colours()[place], linewidth=1.2)
                label = name if row == 0 else None
                axis.plot(rho, y, _MARKERS[place % len(_MARKERS)], color=colours()[place], markersize=5, label=label)
        axis.axvline(0, color=shade(0.4), linestyle=":", linewidth=1)
        axis.set(title=title, xlim=(-1.02, 1.04), xlabel="rank correlation with test accuracy")
        axis.set_yticks(range(len(families)), families)
        axis.grid(alpha=0.3, axis="x")
    axes[0].set_ylabel("directions")
    axes[0].invert_yaxis()
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


@styled
def plot_collapse(
    curves: Mapping[str, Mapping[str, Sequence[float]]], labels: Mapping[str, str], law: str | None = None
) -> Figure:
    """Draw accuracy against different scales of the eigenvalue, one a panel: is there one curve for all architectures?

    Args:
        curves: architecture -> {"accuracy": (n,), and a key of ``labels``: (n,)}.
        labels: key -> label of the horizontal axis.
        law: the key whose panel gets the first-step law.
    """
    figure, (axes,) = subplots(1, len(labels), 3.4, sharey=True)
    for axis, (key, label) in zip(axes, labels.items(), strict=True):
        for which, (name, curve) in enumerate(curves.items()):
            crowded = len(curve["accuracy"]) > 200
            style = {"markersize": 2.5, "zorder": 1} if crowded else {"markersize": 4, "zorder": 2}
            marker, percent = "." if crowded else _MARKERS[which % len(_MARKERS)], 100 * np.asarray(curve["accuracy"])
            axis.plot(curve[key], percent, marker, label=name, color=colours()[which], alpha=0.8, **style)
        if key == law:
            axis.plot(_SCORES, _ACCURACIES, color=shade(0), linewidth=1.2, label="first-step law", zorder=3)
        axis.axhline(50, color=shade(0.4), linestyle=":", linewidth=1)
        axis.set(xscale="log", xlabel=label, ylim=(45, 102))
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("test accuracy (%)")
    figure.legend(*axes[-1].get_legend_handles_labels(), loc="outside lower center", ncols=3, markerscale=1.5)
    return figure
