"""Figures of test accuracy against the order, the energy and the eigenvalue of a direction."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from nads_book.analysis.prediction import predicted_accuracy
from nads_book.figures.style import (
    COLOURS,
    bars,
    colours,
    dotted,
    legend,
    log_ticks,
    panel_row,
    shade,
    styled,
    subplots,
)


@styled
def plot_accuracy_by_nad(networks: Mapping[str, Mapping[str, Any]]) -> Figure:
    """Draw test accuracy on D(u_i) against i, above the eigenvalues (Fig. 6), one architecture a
    column.

    Args:
        networks: architecture -> "ours": indices (n,), accuracies (n,) in [0, 1], intervals (n, 2),
            maybe with n = 0; "eigenvalues", descending; "published": index -> accuracy, and
            "published eigenvalues": indices (n,), eigenvalues (n,), both drawn in grey.
    """
    figure, axes = subplots(2, len(networks), 4.0, sharex=True, sharey="row", height_ratios=[2, 1])
    for (label, found), (top, bottom) in zip(networks.items(), axes.T, strict=True):
        theirs = found["published"]
        top.plot(
            list(theirs),
            100 * np.array(list(theirs.values())),
            ".",
            color=shade(0.55),
            markersize=2,
            label="paper",
        )
        indices, accuracies, intervals = found["ours"]
        style = {"color": COLOURS[0], "markersize": 3.5, "capsize": 1.5, "elinewidth": 0.8}
        lengths = bars(accuracies, intervals)
        top.errorbar(indices, 100 * np.asarray(accuracies), lengths, fmt="o", label="ours", **style)
        top.axhline(50, **dotted("chance"))
        values = np.asarray(found["eigenvalues"], dtype=float)
        bottom.plot(np.arange(len(values)), values / values[0], color=COLOURS[2])
        where, spectrum = found["published eigenvalues"]
        scaled = np.asarray(spectrum) / max(spectrum)
        bottom.plot(where, scaled, color=shade(0.55), linewidth=1.2, linestyle="--")
        bottom.set(xlabel="NAD index", yscale="log", ylim=(5e-6, 2))
        top.set(title=label, xlabel="NAD index", ylim=(45, 102))
    axes[0, 0].set_ylabel("test accuracy (%)")
    axes[1, 0].set_ylabel("eigenvalue / first")
    axes[0, 0].legend()
    return figure


@styled
def plot_law(families: Mapping[str, tuple[Sequence[float], Sequence[float]]]) -> Figure:
    """Draw measured accuracies against the predicted signal-to-noise ratio; the first-step law is
    the black line.

    Families of more than 200 directions are drawn as dots.

    Args:
        families: family of directions -> ratios (n,) and accuracies (n,) in [0, 1].
    """
    figure, (axis,) = panel_row(
        [""], 2.7, xlabel="predicted signal to noise", ylabel="test accuracy (%)"
    )
    for place, (family, (ratios, accuracies)) in enumerate(families.items()):
        crowded = len(accuracies) > 200
        axis.plot(
            ratios,
            100 * np.asarray(accuracies),
            "." if crowded else "osD"[place],
            color=colours()[place],
            markersize=2 if crowded else 3,
            alpha=0.7,
            zorder=1 if crowded else 2,
            label=family,
        )
    scores = np.geomspace(0.01, 50, 200)
    law = 100 * predicted_accuracy(scores)
    axis.plot(scores, law, color=shade(0), linewidth=1.2, label="first-step law", zorder=3)
    axis.set(xscale="log", ylim=(45, 102), xlim=(scores[0], scores[-1]))
    legend(figure, axis, "outside lower center", ncols=3, markerscale=1.5)
    return figure


Curves = Mapping[str, tuple[Sequence[float], Sequence[float], Sequence[float]]]


@styled
def plot_gain(panels: Mapping[str, Curves]) -> Figure:
    """Draw how far accuracies are from a law that knows the energy alone, against the gain.

    Args:
        panels: title -> energy -> gains (n,), distances in points (n,), halves of intervals (n,).
    """
    figure, axes = panel_row(
        panels,
        3.2,
        sharey=True,
        xlabel="gain of one 5 × 5 filter",
        ylabel="accuracy − law (points)",
    )
    for axis, curves in zip(axes, panels.values(), strict=True):
        for (label, curve), colour, marker in zip(curves.items(), colours(), "os^D", strict=False):
            gains, values, halves = curve
            axis.errorbar(
                gains,
                values,
                halves,
                fmt=f"{marker}-",
                label=label,
                color=colour,
                markersize=5,
                linewidth=1.2,
                elinewidth=0.9,
            )
        axis.axhline(0, color=shade(0.4), linewidth=0.8)
        log_ticks(axis, [2, 4, 8])
    legend(figure, axes, ncols=3)
    return figure
