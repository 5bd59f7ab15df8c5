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
    legend,
    panel_row,
    shade,
    styled,
    subplots,
)


@styled
def plot_accuracy_by_nad(
    curves: Mapping[str, Mapping[str, Sequence[Any]]],
    eigenvalues: Mapping[str, Sequence[float]],
    published: Mapping[str, Mapping[int, float] | None] | None = None,
    published_eigenvalues: Mapping[str, tuple[Sequence[int], Sequence[float]]] | None = None,
) -> Figure:
    """Draw test accuracy on D(u_i) against i, above the eigenvalues (Fig. 6), one architecture a column.

    Args:
        curves: architecture -> {"index": (n,), "accuracy": (n,), "interval": (n, 2)}, maybe with n = 0; accuracies
            in [0, 1].
        eigenvalues: architecture -> all of them, descending.
        published: architecture -> {index: accuracy}; drawn in grey.
        published_eigenvalues: architecture -> indices (n,) and eigenvalues (n,); drawn in grey.
    """
    figure, axes = subplots(2, len(curves), 4.0, sharex=True, sharey="row", height_ratios=[2, 1])
    for (label, curve), (top, bottom) in zip(curves.items(), axes.T, strict=True):
        theirs = (published or {}).get(label)
        if theirs:
            style = {"color": shade(0.55), "markersize": 2, "label": "paper"}
            top.plot(list(theirs), 100 * np.array(list(theirs.values())), ".", **style)
        accuracies, lengths = (
            np.asarray(curve["accuracy"]),
            bars(curve["accuracy"], curve["interval"]),
        )
        style = {
            "color": COLOURS[0],
            "markersize": 3.5,
            "capsize": 1.5,
            "elinewidth": 0.8,
            "label": "ours",
        }
        top.errorbar(curve["index"], 100 * accuracies, lengths, fmt="o", **style)
        top.axhline(50, color=shade(0.4), linestyle=":", linewidth=1, label="chance")
        values = np.asarray(eigenvalues[label], dtype=float)
        bottom.plot(np.arange(len(values)), values / values[0], color=COLOURS[2])
        if published_eigenvalues and label in published_eigenvalues:
            indices, spectrum = published_eigenvalues[label]
            scaled = np.asarray(spectrum) / max(spectrum)
            bottom.plot(indices, scaled, color=shade(0.55), linewidth=1.2, linestyle="--")
        bottom.set(xlabel="NAD index", yscale="log", ylim=(5e-6, 2))
        top.set(title=label, xlabel="NAD index", ylim=(45, 102))
    axes[0, 0].set_ylabel("test accuracy (%)")
    axes[1, 0].set_ylabel("eigenvalue / first")
    axes[0, 0].legend()
    return figure


@styled
def plot_law(panels: Mapping[str, Mapping[str, tuple[Sequence[float], Sequence[float]]]]) -> Figure:
    """Draw measured accuracies against the predicted signal-to-noise ratio; the first-step law is the black line.

    Families of more than 200 directions are drawn as dots.

    Args:
        panels: title -> family of directions -> ratios (n,) and accuracies (n,) in [0, 1].
    """
    columns = min(3, len(panels))
    rows = -(-len(panels) // columns)
    figure, axes = subplots(rows, columns, 0.5 + 2.2 * rows, sharex=True, sharey=True)
    families = list(dict.fromkeys(family for points in panels.values() for family in points))
    scores = np.geomspace(0.01, 50, 200)
    law = 100 * predicted_accuracy(scores)
    for axis, (title, points) in zip(axes.flat, panels.items(), strict=False):
        for family, (ratios, accuracies) in points.items():
            index, crowded = families.index(family), len(accuracies) > 200
            marker = "." if crowded else "osD^vP"[index % 6]
            size, order = (2, 1) if crowded else (3, 2)
            style = {
                "color": colours()[index],
                "markersize": size,
                "alpha": 0.7,
                "zorder": order,
                "label": family,
            }
            axis.plot(ratios, 100 * np.asarray(accuracies), marker, **style)
        axis.plot(scores, law, color=shade(0), linewidth=1.2, label="first-step law", zorder=3)
        axis.set(title=title, xscale="log", ylim=(45, 102), xlim=(scores[0], scores[-1]))
    for axis in axes.flat[len(panels) :]:
        axis.set_axis_off()
    for axis in axes.flat[len(panels) - columns : len(panels)]:  # the lowest of each column
        axis.tick_params(labelbottom=True)
    for axis in axes[:, 0]:
        axis.set_ylabel("test accuracy (%)")
    for axis in axes.flat:
        axis.set_xlabel("predicted signal to noise")
    legend(figure, axes.flat, "outside lower center", ncols=3, markerscale=1.5)
    return figure


Curves = Mapping[str, tuple[Sequence[float], Sequence[float], Sequence[float]]]


@styled
def plot_gain(panels: Mapping[str, Curves]) -> Figure:
    """Draw how far accuracies are from a law that knows the energy alone, against the gain.

    Args:
        panels: title -> energy -> gains (n,), distances in points (n,), halves of intervals (n,).
    """
    labels = {"xlabel": "gain of one 5 × 5 filter", "ylabel": "accuracy − law (points)"}
    figure, axes = panel_row(panels, 3.2, sharey=True, **labels)
    for axis, curves in zip(axes, panels.values(), strict=True):
        for (label, curve), colour, marker in zip(curves.items(), colours(), "os^D", strict=False):
            gains, values, halves = curve
            style = {"color": colour, "markersize": 5, "linewidth": 1.2, "elinewidth": 0.9}
            axis.errorbar(gains, values, halves, fmt=f"{marker}-", label=label, **style)
        axis.axhline(0, color=shade(0.4), linewidth=0.8)
        axis.set(xscale="log", xticks=[2, 4, 8], xticklabels=["2", "4", "8"])
        axis.minorticks_off()
    legend(figure, axes, ncols=3)
    return figure
