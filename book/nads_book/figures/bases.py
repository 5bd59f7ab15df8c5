"""Figures of NADs: the directions, how strongly they are preferred, how well bases agree, and what
they cost.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import LogLocator
from torch import Tensor

from nads_book.figures.style import (
    COLOURS,
    bare,
    colours,
    dotted,
    legend,
    log_ticks,
    panel_row,
    shade,
    show_spectrum,
    styled,
    subplots,
)
from nads_book.report import LABELS
from nads_core.data import ClassDifferences
from nads_core.directions import NADs
from nads_core.directions.export import draw_direction

_KINDS: dict[str, dict[str, Any]] = {  # styles of costs
    "live": {"marker": "o", "linestyle": "none"},
    "stored": {"marker": "s", "linestyle": "none", "fillstyle": "none"},
    "model": {"linestyle": "-", "alpha": 0.8},
}
_DURATIONS = {
    "1 s": 1,
    "10 s": 10,
    "1 min": 60,
    "10 min": 600,
    "1 h": 3_600,
    "10 h": 36_000,
    "4 days": 345_600,
}


@styled
def plot_directions(
    bases: Mapping[str, NADs] | NADs, indices: Sequence[int] = (0, 1, 2, 3)
) -> Figure:
    """Draw NADs (left) and, of images, their energy in the Fourier domain (right), one architecture
    a row (Fig. 5).

    `export.draw_direction` draws the directions; the energy of colour images is that of all
    channels.

    Args:
        bases: label -> NADs of inputs of any shape; or the NADs of one architecture.
        indices: indices of the directions. Those that are certain by less than a half have a dotted
            frame: they are one of many directions that the run could have found.
    """
    bases = {bases.name: bases} if isinstance(bases, NADs) else bases
    count, images = len(indices), any(nads.directions.dim() == 4 for nads in bases.values())
    frame: dict[str, Any] = {
        "fill": False,
        "edgecolor": shade(0.3),
        "ls": ":",
        "linewidth": 2,
        "clip_on": False,
    }
    ratios = [1] * count + ([0.25] + [1] * count) * images
    figure, axes = subplots(
        len(bases), len(ratios), 0.35 + 0.98 * len(bases), grid=None, width_ratios=ratios
    )
    for row, (label, nads) in zip(axes, bases.items(), strict=True):
        for axis in row[count:]:
            axis.axis("off")
        for column, index in enumerate(indices):
            drawn = [row[column]]
            draw_direction(row[column], nads[index])
            bare(row[column])
            axes[0, column].set_title(f"NAD {index}")
            if nads.directions.dim() == 4:
                drawn.append(row[count + 1 + column])
                drawn[1].axis("on")
                show_spectrum(drawn[1], nads[index])
                axes[0, count + 1 + column].set_title(f"spectrum {index}")
            if nads.uncertainty is not None and nads.certainty[index] < 0.5:
                for axis in drawn:
                    axis.add_patch(Rectangle((0, 0), 1, 1, transform=axis.transAxes, **frame))
        row[0].set_ylabel(label)
    return figure


@styled
def plot_eigenvalues(bases: Mapping[str, NADs]) -> Figure:
    """Draw how fast the eigenvalues of each basis decay, relative to the first, on logarithmic axes
    (Fig. 6, green).
    """
    figure, ((axis,),) = subplots(height=3.2)
    curves = {
        label: np.asarray(nads.eigenvalues / nads.eigenvalues[0]) for label, nads in bases.items()
    }
    place = 0.0  # of the label below
    for label, values in sorted(curves.items(), key=lambda curve: curve[1][curve[1] > 0][-1]):
        colour, values = colours()[list(curves).index(label)], values[values > 0]
        place = max(3 * place, values[-1])
        axis.plot(np.arange(len(values)) + 1, values, color=colour)
        axis.annotate(
            label, (len(values) * 1.1, place), color=colour, va="center", annotation_clip=False
        )
    axis.set(
        xscale="log",
        yscale="log",
        xlabel="rank of the NAD (1 = most preferred)",
        ylabel="eigenvalue / first",
    )
    return figure


@styled
def plot_overlaps(
    counts: Sequence[int], overlaps: Mapping[str, Sequence[float]], chance: float
) -> Figure:
    """Draw the overlap of two runs against the number of networks; from the second curve on,
    dashed.

    Args:
        counts: numbers of networks, (n,).
        overlaps: label -> (n,).
        chance: overlap of random subspaces, drawn as a line.
    """
    figure, ((axis,),) = subplots(height=3.0)
    for (label, values), colour, style in zip(
        overlaps.items(), colours(), ("o-", "s--"), strict=False
    ):
        axis.plot(counts, values, style, color=colour, label=label, markersize=4)
    axis.axhline(chance, **dotted("random directions"))
    axis.set(xlabel="networks in each run", ylabel="overlap of two runs", ylim=(0, 1.02))
    log_ticks(axis, counts)
    axis.legend()
    return figure


@styled
def plot_kinks(cuts: Mapping[str, tuple[Tensor, Tensor]], slopes: Mapping[str, float]) -> Figure:
    """Draw a network along a line, and its slope there, a column a length of the line.

    Args:
        cuts: title -> places along the line (n,) and outputs (n,). The slope drawn is that between
            neighbouring places.
        slopes: label -> slope to compare with, drawn over all of each line; the first is marked at
            0, its place.
    """
    figure, axes = subplots(2, len(cuts), 4.2)
    (point, at_point), *averages = slopes.items()
    for (upper, lower), (title, (places, outputs)) in zip(axes.T, cuts.items(), strict=True):
        places, outputs = np.asarray(places), np.asarray(outputs)
        upper.plot(places, outputs, color=shade(0), linewidth=1)
        lower.stairs(
            np.diff(outputs) / np.diff(places), places, baseline=None, color=shade(0), linewidth=0.8
        )
        for (label, value), colour in zip(averages, colours(), strict=False):
            lower.axhline(value, color=colour, linestyle="--", linewidth=1.5, label=label)
        lower.plot(0, at_point, "o", color=COLOURS[1], markersize=5, label=point, linestyle="none")
        upper.set_title(title)
        for axis in (upper, lower):
            axis.set_xlabel("t")
            axis.ticklabel_format(axis="y", scilimits=(0, 0))
    axes[0, 0].set_ylabel("output f(x + tv)")
    axes[1, 0].set_ylabel("slope along v")
    legend(figure, axes[1, 0], ncols=len(slopes))
    figure.align_ylabels()
    return figure


@styled
def plot_reliability(diagrams: Mapping[str, Mapping[str, Any]]) -> Figure:
    """Draw promised against actual values of certificates, one panel per architecture.

    Args:
        diagrams: the study ``reliability.json``, see `load_study`.
    """
    panels: dict[str, list[Mapping[str, Any]]] = {}
    for facts in diagrams.values():
        panels.setdefault(facts["architecture"], []).append(facts)
    rows = -(-len(panels) // 3)
    figure, grid = subplots(rows, 3, height=2.7 * rows)
    for axis in grid.flat[len(panels) :]:
        axis.axis("off")
    for axis, (architecture, of_sizes) in zip(grid.flat, panels.items(), strict=False):
        axis.plot([0, 1], [0, 1], color=shade(0.6), linewidth=1)
        for facts, colour in zip(of_sizes, colours(), strict=False):
            names = ("promised", "kept", "error", "share")
            promised, kept, error, share = np.array(
                [[entry[name] for name in names] for entry in facts["bins"]]
            ).T
            label = f"{facts['runs']} runs of {facts['num_networks']:,}"
            axis.errorbar(promised, kept, 2 * error, fmt="none", color=colour, linewidth=1)
            axis.scatter(
                promised, kept, 12 + 200 * share, color=colour, alpha=0.6, linewidth=0, label=label
            )
        axis.set(
            xlabel="predicted cos²",
            ylabel="measured cos²",
            title=LABELS.get(architecture, architecture),
        )
        axis.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03), aspect="equal")
        for handle in axis.legend(loc="upper left", fontsize="small").legend_handles:
            handle.set_sizes([30])
    return figure


@styled
def plot_definitions(networks: Mapping[str, Mapping[str, Any]], reference: str) -> Figure:
    """Draw how much energy dipoles of several arms put at other frequencies than one definition
    does.

    Args:
        networks: label -> ``moved`` of pairs of definitions, the "moments" of the study
            ``definitions.json``.
        reference: the definition that the others are compared with, such as "gradient 1".
    """
    figure, ((axis,),) = subplots(height=3.2)
    for number, (label, facts) in enumerate(networks.items()):
        found = {
            pair.replace(reference, "").strip(" |"): values
            for pair, values in facts["moved"].items()
        }
        points = [
            (float(pair[6:]), *values)
            for pair, values in found.items()
            if re.fullmatch("dipole [.0-9]+", pair)
        ]
        arm, moved, chance = np.array(sorted(points)).T
        axis.errorbar(
            arm * 1.03**number,
            moved,
            2 * chance,
            color=colours()[number],
            linewidth=1.2,
            elinewidth=0.7,
        )
        axis.annotate(label, (arm[-1] * 1.2, moved[-1]), va="center", annotation_clip=False)
    axis.set(
        xscale="log", xlabel="arm of the dipole", ylabel="share of energy elsewhere", ylim=(0, None)
    )
    return figure


@styled
def plot_scaling(
    panels: Mapping[str, Mapping[str, tuple[str, Sequence[float], Sequence[float]]]],
    xlabels: Sequence[str] = ("pixels D",),
) -> Figure:
    """Draw quantities on logarithmic axes, such as costs against the number of pixels, one quantity
    a panel.

    Args:
        panels: quantity with its unit -> label -> (kind, places, values); the kind is "live"
            (dots), "stored" (squares) or "model" (a line).
        xlabels: labels of the horizontal axes, one a panel.
    """
    figure, axes = panel_row([""] * len(panels), 3.5)
    for axis, (quantity, series), xlabel in zip(axes, panels.items(), xlabels, strict=True):
        for (label, (kind, places, values)), colour in zip(series.items(), colours(), strict=False):
            axis.plot(places, values, color=colour, label=label, **_KINDS[kind])
        axis.set(xscale="log", yscale="log", ylabel=quantity.strip(), xlabel=xlabel)
        low, high = axis.get_xlim()
        if high < 20 * low:  # hardly more than a decade has too few ticks, and too many minor ones
            axis.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axis.xaxis.set_major_formatter("{x:g}")
            axis.xaxis.set_minor_formatter("")
        axis.legend(loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0)
    return figure


@styled
def plot_durations(rows: Mapping[str, Mapping[str, float]]) -> Figure:
    """Draw durations on a logarithmic axis, one row a label and one mark a kind.

    Args:
        rows: label -> kind -> seconds.
    """
    figure, ((axis,),) = subplots(1, 1, 0.9 + 0.3 * len(rows), grid="x")
    kinds = list(dict.fromkeys(kind for durations in rows.values() for kind in durations))
    for kind, colour, marker in zip(kinds, colours(), "os^Dv", strict=False):
        places = [place for place, durations in enumerate(rows.values()) if kind in durations]
        seconds = [durations[kind] for durations in rows.values() if kind in durations]
        axis.plot(seconds, places, marker, color=colour, label=kind, markersize=6)
    axis.set_xlabel("time of a run")
    log_ticks(axis, list(_DURATIONS.values()), _DURATIONS)
    axis.set_yticks(range(len(rows)), list(rows))
    axis.invert_yaxis()
    legend(figure, axis, ncols=len(kinds))
    return figure


@styled
def plot_class_differences(results: Mapping[str, tuple[NADs, ClassDifferences]]) -> Figure:
    """Draw the variance that the classes explain along each NAD, and the four NADs with the largest
    class variance.

    Each network has one row. The grey line is the 95th percentile of random labels. Directions of
    colour images are averaged over their channels.

    Args:
        results: NADs and class differences of each network by its label.
    """
    figure, axes = subplots(
        len(results), 5, 1.75 * len(results) + 0.3, grid=None, width_ratios=[2.6, 1, 1, 1, 1]
    )
    for row, (label, (nads, differences)) in zip(axes, results.items(), strict=True):
        ranks = np.arange(1, len(nads) + 1)
        row[0].plot(
            ranks, 100 * differences.explained, ".", color=COLOURS[0], ms=3, alpha=0.7, mew=0
        )
        row[0].plot(ranks, 100 * differences.chance, color=shade(0.5), lw=1, label="random labels")
        row[0].set(xscale="log", ylabel="explained by classes (%)", title=label, ylim=(0, None))
        row[0].set_xlabel("rank of the NAD")
        for axis, index in zip(row[1:], differences.leading(4), strict=False):
            draw_direction(axis, nads.directions[index].mean(0, keepdim=True))
            axis.set_title(f"NAD {index}: {100 * differences.explained[index]:.0f} %")
            axis.spines[:].set_visible(False)
    axes[0, 0].legend()
    return figure
