"""Figures of the inequalities of the paper: Lemma 2 and eq. (6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from torch import Tensor

from nads_book.checks import Check
from nads_book.figures.style import COLOURS, colours, shade, subplots
from nads_book.figures.variants import styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@styled
def plot_bounds(results: Sequence[Check]) -> Figure:
    """Draw, for each setting of an inequality, both bounds as multiples of the left side: at 1 or above they hold."""
    figure, ((axis,),) = subplots(1, 1, 0.9 + 0.2 * len(results))
    for row, check in enumerate(results):
        ours, printed = check.formula / check.simulated, check.printed / check.simulated
        axis.plot([ours, max(printed, 1e-3)], [row, row], color=shade(0.8), linewidth=1, zorder=0)
        axis.plot(ours, row, "o", color=COLOURS[0], markersize=5)
        axis.plot(max(printed, 1e-3), row, "x", color=COLOURS[1], markersize=5)
    axis.plot([], [], "o", color=COLOURS[0], label="with α")
    axis.plot([], [], "x", color=COLOURS[1], label="as printed, with α²")
    axis.axvline(1, color=shade(0), linewidth=1, linestyle=":")
    axis.axvspan(axis.get_xlim()[0], 1, color=COLOURS[1], alpha=0.07, linewidth=0)
    axis.set(xscale="log", xlabel="bound / expected gradient norm (shaded: the bound is exceeded)")
    axis.set_yticks(range(len(results)), [check.setting for check in results], fontsize=8)
    axis.invert_yaxis()
    figure.legend(*axis.get_legend_handles_labels(), loc="outside upper center", ncols=2)
    axis.grid(alpha=0.3, axis="x")
    return figure


@styled
def plot_tails(slopes: Mapping[str, Tensor]) -> Figure:
    """Draw P(s² >= eta) against eta / E s², on logarithmic axes, under the bound of Markov.

    Args:
        slopes: label -> (N,).
    """
    figure, ((axis,),) = subplots(1, 1, 3.0)
    grid = np.logspace(-1, 1.3, 100)
    axis.plot(grid, np.minimum(1, 1 / grid), color=shade(0), linewidth=1.2, label="Markov: E s² / η")
    for (label, values), colour in zip(slopes.items(), colours(), strict=False):
        energy = np.asarray(values.square() / values.square().mean())
        share = (energy[:, None] >= grid).mean(0)  # (N, 100) -> (100,)
        axis.plot(grid, np.where(share > 0, share, np.nan), color=colour, label=label)
    axis.set(xscale="log", yscale="log", xlabel="η / E s²", ylabel="share of networks with s² ≥ η")
    axis.legend()
    axis.grid(alpha=0.3)
    return figure
