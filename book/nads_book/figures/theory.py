"""The figures of the theory chapters, one call each; each returns a matplotlib Figure."""

from collections.abc import Sequence

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor

from nads_book.figures.style import (
    colours,
    legend,
    shade,
    styled,
    subplots,
)

Curve = Sequence[float] | np.ndarray | Tensor


@styled
def plot_convergence(
    frequencies: Curve,
    zetas: Curve,
    iterations: Tensor,
    num_steps: int,
    reference: Tensor | None = None,
) -> Figure:
    """Draw the steps to convergence over the frequency, and ζ below them (Fig. 4b).

    Args:
        frequencies: (F,).
        zetas: (F,).
        iterations: (F, runs).
        num_steps: the budget; frequencies that exceed it are drawn as crosses on top.
        reference: steps of other settings (F, runs), whose medians are drawn in grey.
    """
    figure, axes = subplots(2, 1, 4.6)
    upper, lower = axes[:, 0]
    low, median, high = iterations.double().quantile(torch.tensor([0.1, 0.5, 0.9]).double(), 1)
    done, places = median <= num_steps, np.asarray(frequencies)
    if reference is not None:
        medians = reference.double().median(1).values
        upper.plot(places, medians, color=shade(0.5), label="median before")
    upper.fill_between(places, low, high, color=colours()[0], alpha=0.2, linewidth=0)
    label = "median of the starts (band: 80 % of them)"
    upper.plot(places[done], median[done], "o-", color=colours()[0], markersize=3, label=label)
    label = f"more than {num_steps:,} steps"
    upper.plot(places[~done], median[~done], "x", color=colours()[1], label=label)
    upper.set(ylabel="steps to convergence", title="How long does training take?")
    lower.plot(places, np.maximum(np.asarray(zetas), 1e-4), "o-", color=colours()[2], markersize=3)
    lower.set(ylabel="ζ(ℓ)", title="How strong is the signal?")
    for axis in axes[:, 0]:
        axis.set(yscale="log", xlabel="frequency ℓ")
    lower.set_ylim(bottom=1e-4)
    legend(figure, upper, ncols=2)
    return figure
